//! Memory, driving, evaluation order, properties and pushdown.

use super::*;
use crate::pushdown::{FilterPushdownPhase, OfferedFilter, Pushdown};
use datafusion_common::exec_err;
use datafusion_common::stats::Precision;
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_expr::ColumnarValue;
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::{Partitioning, PhysicalExpr};
use std::time::Duration;
use tokio::runtime::Handle;

fn limited(batch_size: usize, bytes: usize) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        Arc::new(options(batch_size, &[])),
        Arc::new(GreedyMemoryPool::new(bytes)),
        Arc::new(DiskManagerBuilder::default().build().unwrap()),
        Handle::current(),
    ))
}

fn counter(ctx: &TaskContext, plan: &PlanRef, name: &str) -> u64 {
    let counters = ctx.metrics().node(node_id(plan.as_ref())).counters();
    counters.iter().find(|c| c.0 == name).map_or(0, |c| c.1)
}

#[tokio::test]
async fn too_many_groups_are_spilled() {
    let batch = table(900);
    let schema = batch.schema();
    let calls = calls();
    let exprs: Vec<_> = calls.iter().map(|c| aggregate(&schema, c)).collect();
    for keys in [&["n"][..], &["n", "s"], &["l", "n"], &["d", "n"]] {
        let by = group_by(&schema, keys);
        let expected = expected(&batch, &[keys], keys, &calls);
        let ctx = limited(100, 700_000);
        let plan = single(&batch, &by, &exprs);
        assert_eq!(run(&plan, &ctx).await, expected, "{keys:?}");
        assert!(counter(&ctx, &plan, "spilled_bytes") > 0, "{keys:?}");
        let plan = two_phase(&batch, &by, &exprs, 2, &ctx).await;
        assert_eq!(run(&plan, &ctx).await, expected, "{keys:?}");
    }
}

#[tokio::test]
async fn what_cannot_fit_fails_with_the_documented_error() {
    let batch = table(2000);
    let schema = batch.schema();
    let call = Call { fun: "array_agg", arg: Some("s"), ..Call::default() };
    let exprs = [aggregate(&schema, &call)];
    for keys in [&[][..], &["keep"]] {
        let plan = single(&batch, &group_by(&schema, keys), &exprs);
        let error = collect(&plan, &limited(100, 4_000)).await.unwrap_err().to_string();
        assert!(error.contains("AggregateExec needs"), "{error}");
        assert!(error.contains("--memory-limit"), "{error}");
    }
}

#[tokio::test]
async fn partial_states_are_handed_on_early() {
    let batch = table(2000);
    let schema = batch.schema();
    let calls = [Call { fun: "sum", arg: Some("v"), ..Call::default() }];
    let exprs = [aggregate(&schema, &calls[0])];
    for keys in [&["n"][..], &["k"]] {
        let by = group_by(&schema, keys);
        let expected = expected(&batch, &[keys], keys, &calls);
        let ctx = limited(50, 6_000);
        let partial = two_phase(&batch, &by, &exprs, 2, &ctx).await;
        let free = super::ctx(50, &[]);
        assert_eq!(run(&partial, &free).await, expected);
    }
}

#[tokio::test]
async fn partitions_may_be_driven_in_any_way() {
    let batch = table(400);
    let schema = batch.schema();
    let calls = calls();
    let exprs: Vec<_> = calls.iter().map(|c| aggregate(&schema, c)).collect();
    let by = group_by(&schema, &["k", "s"]);
    let within = |future| tokio::time::timeout(Duration::from_secs(60), future);
    let driven = async {
        let ctx = ctx(16, &[]);
        let plan = two_phase(&batch, &by, &exprs, 4, &ctx).await;
        let all = collect_partitioned(&plan, &ctx).await.unwrap();
        let text = |batches: &[Batch]| batches.iter().flat_map(rows_of).collect::<Vec<_>>();
        for partition in (0..4).rev() {
            let mut alone = vec![];
            let mut stream = execute_stream(&plan, partition, &ctx).unwrap();
            while let Some(batch) = stream.next().await {
                alone.push(batch.unwrap());
            }
            assert_eq!(text(&alone), text(&all[partition]));
        }
        let mut dropped = execute_stream(&plan, 1, &ctx).unwrap();
        assert!(dropped.next().await.is_some());
        drop(dropped);
        let (a, b) = tokio::join!(run(&plan, &ctx), run(&plan, &ctx));
        assert_eq!(a, b);
        assert_eq!(a, expected(&batch, &[&["k", "s"]], &["k", "s"], &calls));
    };
    within(driven).await.unwrap();
}

/// Its operand, or an error where that is NULL.
#[derive(Debug, Clone)]
struct Checked {
    inner: PhysicalExprRef,
}

planish_expr::structural_eq!(Checked { inner });

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checked({})", self.inner)
    }
}

impl PhysicalExpr for Checked {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let values = self.inner.evaluate_array(batch)?;
        if values.null_count() > 0 {
            return exec_err!("a NULL was reached");
        }
        Ok(ColumnarValue::Array(values))
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        Ok(Arc::new(Checked { inner: Arc::clone(&children[0]) }))
    }
}

#[tokio::test]
async fn a_filter_guards_its_arguments() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("keep", DataType::Boolean, true),
        Field::new("v", DataType::Int64, true),
    ]));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(Int64Array::from(vec![1, 1, 2, 2])),
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), Some(true), None])),
            Arc::new(Int64Array::from(vec![Some(5), None, Some(7), None])),
        ],
    )
    .unwrap();
    let checked = Arc::new(Checked { inner: col(&schema, "v") });
    let call = |filter| {
        let call = AggregateFunctionExpr::try_new(
            udaf("sum"),
            vec![Arc::clone(&checked) as PhysicalExprRef],
            Arc::clone(&schema),
            "x",
            false,
            false,
            vec![],
            filter,
        );
        [Arc::new(call.unwrap())]
    };
    let guarded = call(Some(col(&schema, "keep")));
    for (keys, rows) in [(&["k"][..], vec!["1|5", "2|7"]), (&[], vec!["12"])] {
        let by = group_by(&schema, keys);
        let ctx = ctx(8192, &[]);
        assert_eq!(run(&single(&batch, &by, &guarded), &ctx).await, rows);
        let plan = two_phase(&batch, &by, &guarded, 2, &ctx).await;
        assert_eq!(run(&plan, &ctx).await, rows);
        assert!(collect(&single(&batch, &by, &call(None)), &ctx).await.is_err());
    }
}

fn node(mode: AggregateMode, by: PhysicalGroupBy, input: PlanRef) -> AggregateExec {
    let schema = input.schema();
    let call = Call { fun: "sum", arg: Some("v"), ..Call::default() };
    let calls = vec![aggregate(&schema, &call)];
    AggregateExec::try_new(mode, by, calls, input, schema).unwrap()
}

#[test]
fn schemas_and_display() {
    let batch = table(10);
    let schema = batch.schema();
    let show = |node: AggregateExec| {
        let plan: PlanRef = Arc::new(node);
        let text = crate::display::displayable(&plan).to_string();
        let names: Vec<String> = plan
            .schema()
            .fields()
            .iter()
            .map(|f| format!("{}:{}", f.name(), f.data_type()))
            .collect();
        (text.lines().next().unwrap_or_default().to_owned(), names.join(" "))
    };
    let (text, names) =
        show(node(AggregateMode::Partial, group_by(&schema, &["k"]), scan(&batch, 2)));
    assert_eq!(text, "AggregateExec: mode=Partial, gby=[k@1 as k], aggr=[sum(v)]");
    assert_eq!(names, "k:Int64 sum(v)[sum]:Int64");
    let sets = grouping_sets(&schema, &["k", "keep"], &[&["k"], &[], &["k"]]);
    let (text, names) = show(node(AggregateMode::Single, sets, scan(&batch, 1)));
    assert_eq!(
        text,
        "AggregateExec: mode=Single, gby=[(k@1 as k, NULL as keep), (NULL as k, NULL as keep), \
         (k@1 as k, NULL as keep)], aggr=[sum(v)]"
    );
    assert_eq!(names, "k:Int64 keep:Boolean __grouping_id:UInt8 sum(v):Int64");
}

#[test]
fn distributions_partitioning_and_facts() {
    let batch = table(10);
    let schema = batch.schema();
    let by = group_by(&schema, &["k", "s"]);
    let input = scan(&batch, 3);
    let partial = node(AggregateMode::Partial, by.clone(), Arc::clone(&input));
    assert_eq!(partial.required_input_distribution(), [Distribution::UnspecifiedDistribution]);
    assert_eq!(partial.properties().partitioning, Partitioning::UnknownPartitioning(3));
    let keys = vec![col(&schema, "k"), col(&schema, "s")];
    let partitioned = node(AggregateMode::SinglePartitioned, by.clone(), Arc::clone(&input));
    assert_eq!(partitioned.required_input_distribution(), [Distribution::HashPartitioned(keys)]);
    let one = node(AggregateMode::Single, group_by(&schema, &[]), scan(&batch, 1));
    assert_eq!(one.required_input_distribution(), [Distribution::SinglePartition]);
    let sum: PhysicalExprRef = Arc::new(Column::new("x", 0));
    assert!(one.properties().equivalences.is_constant(&sum), "one row");
    assert_eq!(one.statistics(None).unwrap().num_rows, Precision::Exact(1));
    assert_eq!(partial.statistics(None).unwrap().num_rows, Precision::Inexact(10));
    let states: PlanRef =
        Arc::new(node(AggregateMode::Partial, group_by(&schema, &[]), scan(&batch, 4)));
    for (mode, input) in
        [(AggregateMode::Single, scan(&batch, 4)), (AggregateMode::Final, Arc::clone(&states))]
    {
        let call = Call { fun: "sum", arg: Some("v"), ..Call::default() };
        let (calls, by) = (vec![aggregate(&schema, &call)], group_by(&schema, &[]));
        let total = AggregateExec::try_new(mode, by, calls, input, Arc::clone(&schema)).unwrap();
        let rows = total.statistics(None).unwrap().num_rows;
        assert_eq!(rows, Precision::Exact(1), "one row, though partitions are still to be merged");
    }

    let ordering = vec![PhysicalSortExpr::new(col(&schema, "k"), SortOptions::default())];
    let scan = MemoryScanExec::try_new(vec![vec![batch]], Arc::clone(&schema), None).unwrap();
    let ordered: PlanRef = Arc::new(scan.try_with_ordering(ordering).unwrap());
    let grouped = node(AggregateMode::Single, by, ordered);
    assert!(grouped.properties().output_ordering().is_none());
    let sets = grouping_sets(&schema, &["k"], &[&["k"], &[]]);
    let refused = AggregateExec::try_new(
        AggregateMode::SinglePartitioned,
        sets,
        vec![],
        input,
        Arc::clone(&schema),
    );
    assert!(refused.is_err());
}

#[test]
fn functions_that_do_not_sort_require_an_order() {
    let batch = table(10);
    let schema = batch.schema();
    let nth = |order: &str, name: &str| {
        let key = PhysicalSortExpr::new(col(&schema, order), SortOptions::default());
        let args = vec![col(&schema, "v"), planish_expr::expressions::lit(2i64)];
        Arc::new(
            AggregateFunctionExpr::try_new(
                udaf("nth_value"),
                args,
                Arc::clone(&schema),
                name,
                false,
                false,
                vec![key],
                None,
            )
            .unwrap(),
        )
    };
    let build = |calls| {
        AggregateExec::try_new(
            AggregateMode::Partial,
            group_by(&schema, &["k"]),
            calls,
            scan(&batch, 1),
            Arc::clone(&schema),
        )
    };
    let node = build(vec![nth("n", "a"), nth("n", "b")]).unwrap();
    assert!(node.required_input_ordering()[0].is_some());
    assert!(build(vec![nth("n", "a"), nth("s", "b")]).is_err());
}

#[test]
fn filters_on_group_columns_pass() {
    let batch = table(10);
    let schema = batch.schema();
    let offered = |by: PhysicalGroupBy, mode, column: usize| {
        let node = node(mode, by, scan(&batch, 1));
        let filter: PhysicalExprRef = Arc::new(Column::new("x", column));
        let options = ConfigOptions::new();
        let phase = FilterPushdownPhase::Pre;
        let description = node.gather_filters_for_pushdown(phase, &[filter], 1, &options).unwrap();
        match &description.children[0].parent_filters[0] {
            OfferedFilter::Supported(filter) => Some(filter.to_string()),
            OfferedFilter::Unsupported => None,
        }
    };
    let keys = ["keep", "k", "f"];
    let single = || group_by(&schema, &keys);
    let sets = |sets: &[&[&str]]| grouping_sets(&schema, &keys, sets);
    for mode in [AggregateMode::Single, AggregateMode::Partial] {
        assert_eq!(offered(single(), mode, 0).as_deref(), Some("keep@5"));
        assert_eq!(offered(single(), mode, 1).as_deref(), Some("k@1"));
        assert_eq!(offered(single(), mode, 2), None, "a float");
        assert_eq!(offered(single(), mode, 3), None, "an aggregate");
        assert_eq!(offered(group_by(&schema, &[]), mode, 0), None);
        let two = || sets(&[&["k", "keep"], &["k"]]);
        assert_eq!(offered(two(), mode, 1).as_deref(), Some("k@1"));
        assert_eq!(offered(two(), mode, 0), None, "NULL in one set");
        assert_eq!(offered(two(), mode, 3), None, "the grouping id");
        assert_eq!(offered(sets(&[&["k"], &[]]), mode, 1), None, "an empty set");
    }
}
