//! For the tests of joins: tables of scalars, a naive oracle, and ways to drive a plan.

use crate::context::TaskContext;
use crate::execute::{collect, collect_partitioned, execute_stream};
use crate::execution_plan::PlanRef;
use crate::operators::join_filter::{ColumnIndex, JoinFilter};
use crate::operators::memory::MemoryScanExec;
use arrow::array::{ArrayRef, AsArray, RecordBatch, new_empty_array};
use arrow::compute::{cast, kernels::cmp};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinSide, JoinType, Result, ScalarValue};
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool, UnboundedMemoryPool};
use datafusion_expr::ColumnarValue;
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::expressions::Column;
use planish_expr::{PhysicalExpr, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const JOIN_TYPES: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

pub(crate) type Row = Vec<ScalarValue>;

/// A table of scalars.
#[derive(Clone, Debug)]
pub(crate) struct TestTable {
    pub(crate) schema: SchemaRef,
    pub(crate) rows: Vec<Row>,
}

/// A small generator: tests are the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

impl TestTable {
    /// `rows` rows of key columns of `types` (few distinct values, some NULL), then a nullable
    /// Int64 and a string.
    pub(crate) fn random(types: &[DataType], prefix: &str, rows: usize, seed: u64) -> TestTable {
        let mut random = Random(seed);
        let mut fields: Vec<Field> = types
            .iter()
            .enumerate()
            .map(|(i, t)| Field::new(format!("{prefix}k{i}"), t.clone(), true))
            .collect();
        fields.push(Field::new(format!("{prefix}v"), DataType::Int64, true));
        fields.push(Field::new(format!("{prefix}s"), DataType::Utf8View, true));
        let rows = (0..rows)
            .map(|i| {
                let mut row: Row = types.iter().map(|t| random_key(t, &mut random)).collect();
                row.push(ScalarValue::Int64((random.below(5) > 0).then(|| random.below(9) as i64)));
                row.push(ScalarValue::Utf8View(Some(format!(
                    "{prefix}{i}, a long payload string"
                ))));
                row
            })
            .collect();
        TestTable { schema: Arc::new(Schema::new(fields)), rows }
    }

    /// The table as a scan of these row numbers per partition, in batches of `batch` rows, each
    /// a slice of a larger array.
    pub(crate) fn scan(&self, partitions: &[Vec<usize>], batch: usize) -> PlanRef {
        let partitions: Vec<Vec<RecordBatch>> = partitions
            .iter()
            .map(|rows| {
                let whole = self.record_batch(rows);
                (0..rows.len())
                    .step_by(batch)
                    .map(|at| whole.slice(at, batch.min(rows.len() - at)))
                    .collect()
            })
            .collect();
        Arc::new(MemoryScanExec::try_new(partitions, Arc::clone(&self.schema), None).unwrap())
    }

    /// As [`Self::scan`], rows dealt out in turn.
    pub(crate) fn dealt(&self, partitions: usize, batch: usize) -> PlanRef {
        let mut rows = vec![vec![]; partitions];
        (0..self.rows.len()).for_each(|row| rows[row % partitions].push(row));
        self.scan(&rows, batch)
    }

    /// As [`Self::scan`], rows with equal keys in one partition.
    pub(crate) fn hashed(&self, keys: usize, partitions: usize, batch: usize) -> PlanRef {
        let mut rows = vec![vec![]; partitions];
        for (i, row) in self.rows.iter().enumerate() {
            let text: String = row[..keys].iter().map(|v| canonical(v).to_string()).collect();
            let hash =
                text.bytes().fold(7usize, |h, b| h.wrapping_mul(31).wrapping_add(b as usize));
            rows[hash % partitions].push(i);
        }
        self.scan(&rows, batch)
    }

    fn record_batch(&self, rows: &[usize]) -> RecordBatch {
        let columns: Vec<ArrayRef> = (0..self.schema.fields().len())
            .map(|c| {
                let wanted = self.schema.field(c).data_type();
                if rows.is_empty() {
                    return new_empty_array(wanted);
                }
                let values = rows.iter().map(|&r| self.rows[r][c].clone());
                cast(&ScalarValue::iter_to_array(values).unwrap(), wanted).unwrap()
            })
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).unwrap()
    }
}

fn random_key(data_type: &DataType, random: &mut Random) -> ScalarValue {
    if random.below(6) == 0 {
        let plain = match data_type {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        return ScalarValue::try_new_null(plain).unwrap();
    }
    let n = random.below(8) as i64;
    match data_type {
        DataType::Boolean => ScalarValue::Boolean(Some(n % 2 == 0)),
        DataType::Int8 => ScalarValue::Int8(Some(n as i8 - 4)),
        DataType::UInt32 => ScalarValue::UInt32(Some(n as u32)),
        DataType::Int64 => ScalarValue::Int64(Some(n - 3)),
        DataType::UInt64 => ScalarValue::UInt64(Some(if n == 0 { u64::MAX } else { n as u64 })),
        DataType::Date32 => ScalarValue::Date32(Some(n as i32 * 100_000)),
        DataType::Float64 => {
            ScalarValue::Float64(Some([0.0, -0.0, f64::NAN, -f64::NAN, 1.5, -2.5][n as usize % 6]))
        }
        DataType::Decimal128(p, s) => {
            ScalarValue::Decimal128(Some(i128::from(n - 4) << 70), *p, *s)
        }
        DataType::Utf8View => ScalarValue::Utf8View(Some(format!("key number {n}, not inlined"))),
        DataType::Utf8 | DataType::Dictionary(..) => ScalarValue::Utf8(Some(format!("k{n}"))),
        other => panic!("no random {other}"),
    }
}

/// Floats as the join sees them.
fn canonical(value: &ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float64(Some(v)) if *v == 0.0 => ScalarValue::Float64(Some(0.0)),
        ScalarValue::Float64(Some(v)) if v.is_nan() => ScalarValue::Float64(Some(f64::NAN)),
        ScalarValue::Utf8View(Some(v)) => ScalarValue::Utf8(Some(v.clone())),
        other => other.clone(),
    }
}

/// `a = b` of SQL.
fn sql_equal(a: &ScalarValue, b: &ScalarValue) -> Option<bool> {
    (!a.is_null() && !b.is_null()).then(|| canonical(a) == canonical(b))
}

/// What the oracle should compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) join_type: JoinType,
    /// The first so many columns of both sides are keys.
    pub(crate) keys: usize,
    pub(crate) nulls_equal: bool,
    /// `left.v < right.v` beside the keys.
    pub(crate) filtered: bool,
    pub(crate) null_aware: bool,
}

impl Question {
    fn keys_match(&self, l: &Row, r: &Row) -> bool {
        (0..self.keys).all(|k| match sql_equal(&l[k], &r[k]) {
            Some(equal) => equal,
            None => self.nulls_equal && l[k].is_null() && r[k].is_null(),
        })
    }

    fn filter(&self, l: &Row, r: &Row) -> bool {
        match (&l[l.len() - 2], &r[r.len() - 2]) {
            (ScalarValue::Int64(Some(l)), ScalarValue::Int64(Some(r))) => !self.filtered || l < r,
            _ => !self.filtered,
        }
    }

    fn matches(&self, l: &Row, r: &Row) -> bool {
        if self.null_aware {
            let correlated = (1..self.keys).all(|k| sql_equal(&l[k], &r[k]) == Some(true));
            return correlated && self.filter(l, r) && sql_equal(&l[0], &r[0]) != Some(false);
        }
        self.keys_match(l, r) && self.filter(l, r)
    }

    /// The rows of the join, as text, sorted.
    pub(crate) fn answer(&self, left: &TestTable, right: &TestTable) -> Vec<String> {
        let nulls = |schema: &Schema| -> Row {
            schema.fields().iter().map(|_| ScalarValue::Null).collect()
        };
        let mark = |row: &Row, hit: bool| {
            let mut row = row.clone();
            row.push(ScalarValue::Boolean(Some(hit)));
            row
        };
        let mut out: Vec<Row> = vec![];
        let both = |l: &Row, r: &Row| l.iter().chain(r).cloned().collect::<Row>();
        use JoinType::*;
        for l in &left.rows {
            let matching: Vec<&Row> = right.rows.iter().filter(|r| self.matches(l, r)).collect();
            let hit = !matching.is_empty();
            match self.join_type {
                Inner | Left | Right | Full => out.extend(matching.iter().map(|r| both(l, r))),
                LeftSemi if hit => out.push(l.clone()),
                LeftAnti if !hit => out.push(l.clone()),
                LeftMark => out.push(mark(l, hit)),
                _ => {}
            }
            if !hit && matches!(self.join_type, Left | Full) {
                out.push(both(l, &nulls(&right.schema)));
            }
        }
        for r in &right.rows {
            let hit = left.rows.iter().any(|l| self.matches(l, r));
            match self.join_type {
                Right | Full if !hit => out.push(both(&nulls(&left.schema), r)),
                RightSemi if hit => out.push(r.clone()),
                RightAnti if !hit => out.push(r.clone()),
                RightMark => out.push(mark(r, hit)),
                _ => {}
            }
        }
        sorted(
            out.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")),
        )
    }
}

pub(crate) fn sorted(rows: impl Iterator<Item = String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

/// The rows of batches as text, in order.
pub(crate) fn texts(batches: &[Batch]) -> Vec<String> {
    let mut out = vec![];
    for batch in batches {
        let batch = batch.to_record_batch().unwrap();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = batch
                .columns()
                .iter()
                .map(|c| {
                    let value = ScalarValue::try_from_array(c, row).unwrap();
                    match value {
                        ScalarValue::Dictionary(_, value) => value.to_string(),
                        value => value.to_string(),
                    }
                })
                .collect();
            out.push(cells.join("|"));
        }
    }
    out
}

/// `left < right`, NULL where either is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LessThan(usize, usize);

impl fmt::Display for LessThan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{} < @{}", self.0, self.1)
    }
}

impl PhysicalExpr for LessThan {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("less", DataType::Boolean, true)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let (a, b) = (batch.column(self.0)?, batch.column(self.1)?);
        let (a, b) = (a.as_primitive::<Int64Type>(), b.as_primitive::<Int64Type>());
        Ok(ColumnarValue::Array(Arc::new(cmp::lt(a, b)?)))
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(self)
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}

/// A boolean condition `@0 < @1` over any schema with such columns.
pub(crate) fn less_than(a: usize, b: usize) -> PhysicalExprRef {
    Arc::new(LessThan(a, b))
}

/// `left.v < right.v`; the right column comes first, so that order matters.
pub(crate) fn value_filter(left: &Schema, right: &Schema) -> JoinFilter {
    let columns = vec![
        ColumnIndex { index: right.fields().len() - 2, side: JoinSide::Right },
        ColumnIndex { index: left.fields().len() - 2, side: JoinSide::Left },
    ];
    let schema = JoinFilter::build_schema(&columns, left, right);
    JoinFilter::new(less_than(1, 0), columns, Arc::new(schema))
}

/// `left.k{i} = right.k{i}` for the first `keys` columns.
pub(crate) fn keys_on(
    left: &Schema,
    right: &Schema,
    keys: usize,
) -> Vec<(PhysicalExprRef, PhysicalExprRef)> {
    let column = |schema: &Schema, i: usize| -> PhysicalExprRef {
        Arc::new(Column::new(schema.field(i).name(), i))
    };
    (0..keys).map(|i| (column(left, i), column(right, i))).collect()
}

pub(crate) fn context(batch_size: usize) -> Arc<TaskContext> {
    context_with_memory(batch_size, Arc::new(UnboundedMemoryPool::default()))
}

pub(crate) fn limited_context(bytes: usize) -> (Arc<TaskContext>, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
    (context_with_memory(8192, Arc::clone(&pool)), pool)
}

fn context_with_memory(batch_size: usize, memory: Arc<dyn MemoryPool>) -> Arc<TaskContext> {
    let mut options = ConfigOptions::default();
    options.set("datafusion.execution.batch_size", &batch_size.to_string()).unwrap();
    options.set("datafusion.execution.target_partitions", "4").unwrap();
    Arc::new(TaskContext::new(
        Arc::new(options),
        memory,
        Arc::new(DiskManagerBuilder::default().build().unwrap()),
        tokio::runtime::Handle::current(),
    ))
}

/// All rows of one execution, checked to come in batches of at most `batch_size` rows.
pub(crate) async fn run(plan: &PlanRef, batch_size: usize) -> Vec<String> {
    let batches = collect(plan, &context(batch_size)).await.unwrap();
    for batch in &batches {
        assert!(batch.num_rows() <= batch_size, "{} rows in a batch", batch.num_rows());
    }
    sorted(texts(&batches).into_iter())
}

/// One partition alone, to its end.
pub(crate) async fn drain(plan: &PlanRef, partition: usize, ctx: &Arc<TaskContext>) -> Vec<String> {
    let mut stream = execute_stream(plan, partition, ctx).unwrap();
    let mut batches = vec![];
    while let Some(batch) = stream.next().await {
        batches.push(batch.unwrap());
    }
    texts(&batches)
}

/// The driving laws: partitions alone and in any order, one dropped half-way, two executions at
/// once; all under a timeout. `expected` are the sorted rows.
pub(crate) async fn drive_all_ways(plan: &PlanRef, expected: &[String]) {
    let ways = async {
        let partitions = plan.partition_count();
        let ctx = context(7);
        drain(plan, 0, &ctx).await;

        let ctx = context(7);
        let mut streams: Vec<_> =
            (0..partitions).map(|p| execute_stream(plan, p, &ctx).unwrap()).collect();
        let mut batches = vec![];
        while let Some(mut stream) = streams.pop() {
            while let Some(batch) = stream.next().await {
                batches.push(batch.unwrap());
            }
        }
        assert_eq!(sorted(texts(&batches).into_iter()), expected, "reverse order");

        let ctx = context(7);
        let mut dropped = execute_stream(plan, 0, &ctx).unwrap();
        let _ = dropped.next().await;
        drop(dropped);
        for partition in 1..partitions {
            for row in drain(plan, partition, &ctx).await {
                assert!(expected.contains(&row), "a row that is not of the join: {row}");
            }
        }

        let (a, b) = (context(7), context(1));
        let (a, b) = tokio::join!(collect_partitioned(plan, &a), collect_partitioned(plan, &b));
        for run in [a, b] {
            let batches: Vec<Batch> = run.unwrap().into_iter().flatten().collect();
            assert_eq!(sorted(texts(&batches).into_iter()), expected, "two at once");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ways).await.expect("a join does not end");
}

/// Which child a filter on output column `index` is offered to: `left`, `right`, or none.
pub(crate) fn offered(join: &PlanRef, index: usize) -> &'static str {
    use crate::pushdown::{FilterPushdownPhase, OfferedFilter};
    let filter: PhysicalExprRef = Arc::new(Column::new("c", index));
    let options = ConfigOptions::default();
    let description =
        join.gather_filters_for_pushdown(FilterPushdownPhase::Pre, &[filter], 2, &options).unwrap();
    let to = |child: usize| match &description.children[child].parent_filters[0] {
        OfferedFilter::Supported(filter) => {
            let column = filter.downcast_ref::<Column>().unwrap();
            assert!(column.index() < join.children()[child].schema().fields().len());
            true
        }
        OfferedFilter::Unsupported => false,
    };
    match (to(0), to(1)) {
        (true, false) => "left",
        (false, true) => "right",
        (false, false) => "",
        (true, true) => "both",
    }
}

/// Checks that a projection of the columns `indices` above `join`, swapped with it, gives the
/// same schema and rows; `drops`: whether it must be possible.
pub(crate) async fn narrowed_gives_equal_rows(join: &PlanRef, indices: &[usize], drops: bool) {
    use crate::operators::projection::ProjectionExec;
    use planish_expr::projection::{ProjectionExpr, ProjectionExprs};
    let schema = join.schema();
    let exprs: ProjectionExprs = indices
        .iter()
        .enumerate()
        .map(|(at, &i)| {
            let column = Arc::new(Column::new(schema.field(i).name(), i));
            ProjectionExpr::new(column, format!("out{at}"))
        })
        .collect();
    let projection = ProjectionExec::try_new(exprs, Arc::clone(join)).unwrap();
    let swapped = join.try_swapping_with_projection(&projection).unwrap();
    assert_eq!(swapped.is_some(), drops, "{schema} {indices:?}");
    let Some(swapped) = swapped else { return };
    let plain: PlanRef = Arc::new(projection);
    assert_eq!(swapped.schema(), plain.schema());
    assert_eq!(run(&swapped, 7).await, run(&plain, 7).await, "{indices:?}");
}
