//! Rows that fail are not decoded in full, and no other row is lost.

use crate::common::*;
use arrow::array::{ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::Operator;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, IsNullExpr, Literal};
use planish_plan::operators::filter::FilterExec;
use planish_plan::pushdown::{ChildPushdownResult, FilterPushdownPhase};
use planish_plan::{PlanRef, node_id};
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

const ROWS: i64 = 50_000;

/// A key that is NULL now and then, a number, text, and lists of various lengths.
fn data() -> RecordBatch {
    let all = || 0..ROWS;
    let k: Int32Array = all().map(|i| (i % 13 != 0).then_some((i * 7919 % 1000) as i32)).collect();
    let v: Int64Array = all().map(|i| (i % 5 != 0).then_some(i)).collect();
    let s: StringArray = all().map(|i| (i % 4 != 0).then(|| format!("text {}", i % 300))).collect();
    let lists = all().map(|i| (i % 3 != 0).then(|| (0..(i % 4) as i32).map(Some)));
    let l = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(k)), ("v", Arc::new(v)), ("s", Arc::new(s)), ("l", Arc::new(l))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn below(limit: i32) -> PhysicalExprRef {
    let limit = Arc::new(Literal::new(ScalarValue::Int32(Some(limit))));
    Arc::new(BinaryExpr::new(Arc::new(Column::new("k", 0)), Operator::Lt, limit))
}

fn filtering(batch_size: usize, on: bool) -> ConfigOptions {
    let mut options = options(2, batch_size);
    options.execution.parquet.pushdown_filters = on;
    options
}

fn offered(scan: &PlanRef, filter: &PhysicalExprRef, options: &ConfigOptions) -> PlanRef {
    let result = ChildPushdownResult {
        parent_filters: vec![(Arc::clone(filter), vec![])],
        self_filters: vec![],
        node: Arc::clone(scan),
    };
    scan.handle_child_pushdown_result(FilterPushdownPhase::Pre, result, options).unwrap().node
}

/// The rows that pass, and how many rows the scan itself left out.
async fn filtered(
    path: &Path,
    columns: Option<&[usize]>,
    filter: &PhysicalExprRef,
    options: &ConfigOptions,
) -> (Vec<String>, usize) {
    let scan = table(path).await.unwrap().scan(columns, options).unwrap();
    let scan = offered(&scan, filter, options);
    let plan: PlanRef =
        Arc::new(FilterExec::try_new(Arc::clone(filter), Arc::clone(&scan)).unwrap());
    let ctx = ctx(options);
    let mut out = rows(&planish_plan::collect(&plan, &ctx).await.unwrap());
    out.sort();
    let counters = ctx.metrics().node(node_id(scan.as_ref())).counters();
    let left_out = counters.iter().find(|(name, _)| *name == "rows_pruned_by_filter");
    (out, left_out.map_or(0, |(_, n)| *n as usize))
}

#[tokio::test]
async fn the_same_rows_with_and_without() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[data()], 20_000);
    let is_null: PhysicalExprRef = Arc::new(IsNullExpr::is_null(Arc::new(Column::new("k", 0))));
    for (filter, leaves_out) in [
        (below(10), true),
        // No row group is read at all.
        (below(0), false),
        (below(300), true),
        (is_null, true),
        // So many pass that nothing is decoded late.
        (below(900), false),
        (below(2000), false),
    ] {
        for columns in [None, Some(&[0, 3][..]), Some(&[0, 2, 1][..])] {
            let (expected, none) = filtered(&path, columns, &filter, &filtering(8192, false)).await;
            assert_eq!(none, 0);
            for batch_size in [7, 1000, 8192] {
                let options = filtering(batch_size, true);
                let (found, left_out) = filtered(&path, columns, &filter, &options).await;
                assert_eq!(found, expected, "{filter}, {columns:?}, {batch_size}");
                assert_eq!(left_out > 0, leaves_out, "{filter}, {columns:?}, {batch_size}");
                if leaves_out {
                    assert_eq!(left_out, ROWS as usize - found.len(), "only rows that fail");
                }
            }
        }
    }
}

#[tokio::test]
async fn without_a_column_to_decode_late_it_declines() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[data()], 20_000);
    let (_, left_out) = filtered(&path, Some(&[0]), &below(10), &filtering(8192, true)).await;
    assert_eq!(left_out, 0);
}

#[tokio::test]
async fn what_can_fail_stays_above() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[data()], 20_000);
    let number = |n| Arc::new(Literal::new(ScalarValue::Int32(Some(n)))) as PhysicalExprRef;
    let quotient =
        Arc::new(BinaryExpr::new(number(100), Operator::Divide, Arc::new(Column::new("k", 0))));
    let filter: PhysicalExprRef = Arc::new(BinaryExpr::new(quotient, Operator::Gt, number(3)));
    let options = filtering(8192, true);
    let scan = table(&path).await.unwrap().scan(None, &options).unwrap();
    let scan = offered(&scan, &filter, &options);
    // Some keys are zero, over which the scan alone must not stumble.
    assert_eq!(run(&scan, &options).await.unwrap().len(), ROWS as usize);
}

#[tokio::test]
async fn missing_and_widened_columns_are_filtered_in_the_tables_types() {
    let dir = tempdir().unwrap();
    let wide: ArrayRef = Arc::new((0..100).map(|i| i * 10).collect::<Int64Array>());
    let narrow: ArrayRef = Arc::new((0..100).collect::<Int32Array>());
    let text: ArrayRef = Arc::new((0..100).map(|i| Some(i.to_string())).collect::<StringArray>());
    let a = RecordBatch::try_from_iter([("k", wide), ("s", Arc::clone(&text))]).unwrap();
    let b = RecordBatch::try_from_iter([("s", text), ("k", narrow)]).unwrap();
    write_parquet(&dir.path().join("a.parquet"), std::slice::from_ref(&a), 30);
    write_parquet(&dir.path().join("b.parquet"), &[b], 30);
    let none = RecordBatch::try_from_iter([("s", Arc::clone(a.column(1)))]).unwrap();
    write_parquet(&dir.path().join("c.parquet"), &[none], 30);
    let limit = Arc::new(Literal::new(ScalarValue::Int64(Some(20))));
    let filter: PhysicalExprRef =
        Arc::new(BinaryExpr::new(Arc::new(Column::new("k", 0)), Operator::Lt, limit));
    let (found, left_out) = filtered(dir.path(), None, &filter, &filtering(8192, true)).await;
    // 0 and 10 of the first file, 0 to 19 of the second, no NULL of the third.
    assert_eq!(found.len(), 22);
    assert!(left_out > 0);
}
