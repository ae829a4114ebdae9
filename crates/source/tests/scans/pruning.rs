//! Skipping row groups never loses a row.

use crate::common::*;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::Operator;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsBoolExpr, IsNullExpr, LikeExpr, LikeKind, Literal,
    NegativeExpr, NotExpr,
};
use planish_plan::operators::filter::FilterExec;
use planish_plan::pushdown::{ChildPushdownResult, FilterPushdownPhase, PushedDown};
use planish_plan::{PlanRef, node_id};
use std::sync::Arc;
use tempfile::tempdir;

/// Small deterministic random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const STRINGS: &[&str] = &["", "a", "ab", "abc", "b", "\u{e4}", "\u{10ffff}", "zzzz"];

/// Values that lie close together within a row group, so that some are skipped.
fn data(random: &mut Random, rows: usize, group: usize) -> RecordBatch {
    let mut pick = |spread: u64, null: u64| -> Vec<Option<i64>> {
        (0..rows)
            .map(|row| {
                let base = ((row / group) as u64 * 7) % 20;
                let all_null = (row / group) % 5 == 4;
                let value = base + random.below(spread);
                (!all_null && random.below(10) >= null).then_some(value as i64 - 8)
            })
            .collect()
    };
    let text = |v: i64| {
        let start = STRINGS[v.rem_euclid(STRINGS.len() as i64) as usize];
        if v % 3 == 0 { format!("{start}{}", "x".repeat(80)) } else { format!("{start}{v}") }
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from_iter(pick(4, 1).iter().map(|v| v.map(|v| v as i32))))),
        ("u", Arc::new(UInt32Array::from_iter(pick(4, 0).iter().map(|v| v.map(|v| v as u32))))),
        (
            "f",
            Arc::new(Float64Array::from_iter(pick(5, 1).iter().map(|v| {
                v.map(|v| match v {
                    0 => -0.0,
                    1 => 0.0,
                    5 => f64::NAN,
                    9 => -f64::NAN,
                    v => v as f64 / 2.0,
                })
            }))),
        ),
        ("s", Arc::new(StringArray::from_iter(pick(3, 1).iter().map(|v| v.map(text))))),
        (
            "y",
            Arc::new(BinaryArray::from_iter(
                pick(3, 1).iter().map(|v| v.map(|v| text(v).into_bytes())),
            )),
        ),
        ("b", Arc::new(BooleanArray::from_iter(pick(2, 1).iter().map(|v| v.map(|v| v > 0))))),
        ("day", Arc::new(Date32Array::from_iter(pick(9, 1).iter().map(|v| v.map(|v| v as i32))))),
        (
            "t",
            Arc::new(
                TimestampMicrosecondArray::from_iter(pick(9, 1)).with_timezone("Europe/Berlin"),
            ),
        ),
        ("d4", decimals(&pick(5, 1), 8, 2)),
        ("d8", decimals(&pick(5, 1), 15, 2)),
        ("d16", decimals(&pick(5, 1), 30, 2)),
        ("required", Arc::new(Int32Array::from_iter_values((0..rows).map(|r| (r / 3) as i32)))),
    ];
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "required"));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, a)| a).collect()).unwrap()
}

fn decimals(values: &[Option<i64>], precision: u8, scale: i8) -> ArrayRef {
    let values = values.iter().map(|v| v.map(i128::from));
    Arc::new(Decimal128Array::from_iter(values).with_precision_and_scale(precision, scale).unwrap())
}

fn literal(random: &mut Random, data_type: &DataType) -> ScalarValue {
    let v = random.below(40) as i64 - 14;
    if random.below(15) == 0 {
        return ScalarValue::try_new_null(data_type).unwrap();
    }
    match data_type {
        DataType::Int32 => ScalarValue::Int32(Some(v as i32)),
        DataType::UInt32 => ScalarValue::UInt32(Some(v as u32)),
        DataType::Float64 => ScalarValue::Float64(Some(match v {
            0 => 0.0,
            1 => -0.0,
            2 => f64::NAN,
            3 => -f64::NAN,
            v => v as f64 / 2.0,
        })),
        DataType::Utf8View => ScalarValue::Utf8View(Some(format!(
            "{}{}",
            STRINGS[v.rem_euclid(STRINGS.len() as i64) as usize],
            if v % 2 == 0 { String::new() } else { v.to_string() }
        ))),
        DataType::BinaryView => ScalarValue::BinaryView(Some(
            STRINGS[v.rem_euclid(STRINGS.len() as i64) as usize].as_bytes().to_vec(),
        )),
        DataType::Boolean => ScalarValue::Boolean(Some(v > 0)),
        DataType::Date32 => ScalarValue::Date32(Some(v as i32)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(v), zone.clone())
        }
        DataType::Decimal128(p, s) => ScalarValue::Decimal128(Some(i128::from(v)), *p, *s),
        other => panic!("{other}"),
    }
}

fn lit(value: ScalarValue) -> PhysicalExprRef {
    Arc::new(Literal::new(value))
}

fn leaf(random: &mut Random, schema: &Schema) -> PhysicalExprRef {
    let index = random.below(schema.fields().len() as u64) as usize;
    let field = schema.field(index);
    let column: PhysicalExprRef = Arc::new(Column::new(field.name(), index));
    let value = |random: &mut Random| lit(literal(random, field.data_type()));
    match random.below(12) {
        0 => Arc::new(IsNullExpr::is_null(column)),
        1 => Arc::new(IsNullExpr::is_not_null(column)),
        2 | 3 => {
            let list = (0..=random.below(4)).map(|_| value(random)).collect();
            Arc::new(InListExpr::new(column, list, random.below(2) == 0))
        }
        4 if *field.data_type() == DataType::Boolean => column,
        4 if *field.data_type() == DataType::Utf8View => {
            let pattern = ["a%", "ab_%", "abc", "%x", "z\\%%", "b-1%"];
            let pattern = pattern[random.below(pattern.len() as u64) as usize];
            let pattern = lit(ScalarValue::Utf8View(Some(pattern.to_owned())));
            Arc::new(LikeExpr::new(LikeKind::Like, random.below(2) == 0, column, pattern))
        }
        4 if *field.data_type() == DataType::Int32 => {
            let cast = Arc::new(CastExpr::new(column, DataType::Int64));
            let value = lit(ScalarValue::Int64(Some(random.below(30) as i64 - 10)));
            Arc::new(BinaryExpr::new(cast, Operator::Gt, value))
        }
        _ => {
            use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
            let op = [Eq, NotEq, Lt, LtEq, Gt, GtEq][random.below(6) as usize];
            let computed = matches!(field.data_type(), DataType::Int32 | DataType::Float64)
                && random.below(2) == 0;
            let operand = value(random);
            let column = if computed { computation(random, column, operand) } else { column };
            let value = value(random);
            if random.below(3) == 0 {
                Arc::new(BinaryExpr::new(value, op, column))
            } else {
                Arc::new(BinaryExpr::new(column, op, value))
            }
        }
    }
}

/// A number made of `column`.
fn computation(
    random: &mut Random,
    column: PhysicalExprRef,
    value: PhysicalExprRef,
) -> PhysicalExprRef {
    use Operator::{Minus, Multiply, Plus};
    let op = [Plus, Minus, Multiply][random.below(3) as usize];
    match random.below(4) {
        0 => Arc::new(NegativeExpr::new(column)),
        1 => Arc::new(BinaryExpr::new(Arc::clone(&column), op, column)),
        2 => Arc::new(BinaryExpr::new(value, op, column)),
        _ => Arc::new(BinaryExpr::new(column, op, value)),
    }
}

#[tokio::test]
async fn computed_values_skip_row_groups_too() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 100)], 10);
    let options = options(1, 8192);
    let scan = table(&path).await.unwrap().scan(None, &options).unwrap();
    let id = |scan: &PlanRef| -> PhysicalExprRef {
        let index = scan.schema().index_of("id").unwrap();
        Arc::new(Column::new("id", index))
    };
    let number = |v: i64| lit(ScalarValue::Int64(Some(v)));
    let twice: PhysicalExprRef =
        Arc::new(BinaryExpr::new(id(&scan), Operator::Multiply, number(2)));
    let kept = |op, value: PhysicalExprRef| {
        let filter: PhysicalExprRef = Arc::new(BinaryExpr::new(Arc::clone(&twice), op, value));
        offered(&scan, &filter, &options)
    };
    assert_eq!(run(&kept(Operator::Gt, number(170)), &options).await.unwrap().len(), 20);
    // A column compared with one, in row groups where it can only be less.
    assert_eq!(run(&kept(Operator::Lt, id(&scan)), &options).await.unwrap().len(), 10);
    // Where the product may overflow, nothing is skipped.
    let far: PhysicalExprRef =
        Arc::new(BinaryExpr::new(id(&scan), Operator::Multiply, number(i64::MAX)));
    let filter: PhysicalExprRef = Arc::new(BinaryExpr::new(far, Operator::Lt, number(0)));
    let scanned = run(&offered(&scan, &filter, &options), &options).await.unwrap().len();
    assert_eq!(scanned, 100, "two times MAX is -2");
}

fn predicate(random: &mut Random, schema: &Schema, depth: u64) -> PhysicalExprRef {
    if depth == 0 || random.below(3) == 0 {
        return leaf(random, schema);
    }
    let mut inner = || predicate(random, schema, depth - 1);
    let (left, right) = (inner(), inner());
    match random.below(5) {
        0 => Arc::new(NotExpr::new(left)),
        1 => Arc::new(IsBoolExpr::new(left, random.below(2) == 0, random.below(2) == 0)),
        2 => Arc::new(BinaryExpr::new(left, Operator::Or, right)),
        _ => Arc::new(BinaryExpr::new(left, Operator::And, right)),
    }
}

/// The scan after being offered `filter`, over its output.
fn offered(scan: &PlanRef, filter: &PhysicalExprRef, options: &ConfigOptions) -> PlanRef {
    let result = ChildPushdownResult {
        parent_filters: vec![(Arc::clone(filter), vec![])],
        self_filters: vec![],
        node: Arc::clone(scan),
    };
    let phase = FilterPushdownPhase::Pre;
    let answer = scan.handle_child_pushdown_result(phase, result, options).unwrap();
    assert_ne!(answer.filters, [PushedDown::Yes]);
    answer.node
}

async fn pruned_equals_full(properties: impl Fn() -> WriterProperties, must_prune: bool) {
    let dir = tempdir().unwrap();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut pruned = 0;
    for file in 0..4 {
        let path = dir.path().join(format!("{file}.parquet"));
        write_parquet_with(&path, &[data(&mut random, 240, 12)], properties());
        let table = table(&path).await.unwrap();
        let mut options = options(1, if file < 2 { 8192 } else { 5 });
        options.execution.parquet.pushdown_filters = file % 2 == 1;
        let scan = table.scan(None, &options).unwrap();
        for _ in 0..120 {
            let filter = predicate(&mut random, &scan.schema(), 3);
            let full: PlanRef =
                Arc::new(FilterExec::try_new(Arc::clone(&filter), Arc::clone(&scan)).unwrap());
            let wanted = run(&full, &options).await.unwrap();
            let skipping = offered(&scan, &filter, &options);
            let filtered: PlanRef =
                Arc::new(FilterExec::try_new(Arc::clone(&filter), Arc::clone(&skipping)).unwrap());
            let ctx = ctx(&options);
            let got = planish_plan::collect(&filtered, &ctx).await.unwrap();
            assert_eq!(rows(&got), wanted, "{filter}");
            let counters = ctx.metrics().node(node_id(skipping.as_ref())).counters();
            pruned += counters
                .iter()
                .find(|(name, _)| *name == "row_groups_pruned")
                .map_or(0, |(_, n)| *n);
        }
    }
    assert_eq!(pruned > 300, must_prune, "{pruned} row groups pruned");
}

#[tokio::test]
async fn skipping_by_bounds_loses_nothing() {
    let properties = || WriterProperties::builder().set_max_row_group_row_count(Some(12)).build();
    pruned_equals_full(properties, true).await;
}

#[tokio::test]
async fn skipping_by_cut_off_bounds_loses_nothing() {
    let properties = || {
        WriterProperties::builder()
            .set_max_row_group_row_count(Some(12))
            .set_statistics_truncate_length(Some(3))
            .build()
    };
    pruned_equals_full(properties, true).await;
}

#[tokio::test]
async fn without_statistics_nothing_is_skipped() {
    let properties = || {
        WriterProperties::builder()
            .set_max_row_group_row_count(Some(12))
            .set_statistics_enabled(EnabledStatistics::None)
            .build()
    };
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet_with(&path, &[data(&mut Random(7), 240, 12)], properties());
    let scan = table(&path).await.unwrap().scan(None, &options(1, 8192)).unwrap();
    let column = Arc::new(Column::new("i", 0));
    let filter: PhysicalExprRef =
        Arc::new(BinaryExpr::new(column, Operator::Gt, lit(ScalarValue::Int32(Some(1000)))));
    let scan = offered(&scan, &filter, &options(1, 8192));
    assert_eq!(run(&scan, &options(1, 8192)).await.unwrap().len(), 240);
}

#[tokio::test]
async fn filters_are_kept_in_table_coordinates() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 100)], 10);
    let options = options(1, 8192);
    let scan = table(&path).await.unwrap().scan(Some(&[3, 0, 0]), &options).unwrap();
    let filter: PhysicalExprRef = Arc::new(BinaryExpr::new(
        Arc::new(Column::new("id", 2)),
        Operator::GtEq,
        lit(ScalarValue::Int64(Some(85))),
    ));
    let scan = offered(&scan, &filter, &options);
    let text = planish_plan::display::displayable(&scan).to_string();
    assert!(text.contains("predicate=id@0 >= 85"), "{text}");
    assert_eq!(run(&scan, &options).await.unwrap().len(), 20);
    let statistics = scan.statistics(None).unwrap();
    assert_eq!(statistics.num_rows, datafusion_common::stats::Precision::Inexact(20));
    // Once more changes nothing; a new projection keeps the filter.
    assert!(Arc::ptr_eq(&offered(&scan, &filter, &options), &scan));
    assert!(scan.with_fetch(Some(1)).is_none());
}
