//! Operators without inputs: memory scans, values, the placeholder row.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_common::stats::Precision;
use planish_batch::Batch;
use planish_expr::expressions::{BinaryExpr, lit};
use planish_expr::{PhysicalExprRef, ProjectionExprs};
use planish_plan::operators::empty::EmptyExec;
use planish_plan::operators::memory::MemoryScanExec;
use planish_plan::operators::placeholder_row::PlaceholderRowExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::values::ValuesExec;
use planish_plan::{ExecutionPlan, PlanRef};
use planish_testkit::plans::sort_key;
use planish_testkit::{batches, driving, plans, rows};
use std::sync::Arc;

fn collected(plan: &PlanRef, batch_size: usize) -> Vec<Batch> {
    driving::collect(plan, batch_size, None).unwrap().into_iter().flatten().collect()
}

#[test]
fn a_memory_scan_gives_its_rows_however_it_is_driven() {
    for partitions in [1, 2, 8] {
        for data in [batches::mixed(100, 1), batches::mixed(0, 1), batches::all_null(5)] {
            let expected = rows::of_record_batches(std::slice::from_ref(&data));
            driving::assert_drives(|| plans::scan(&data, partitions), &expected);
        }
    }
}

#[test]
fn a_memory_scan_cuts_batches_and_stops_at_its_fetch() {
    let data = batches::mixed(100, 1);
    let parts = vec![vec![data.clone()], vec![data.clone(), data.clone()]];
    let scan = MemoryScanExec::try_new(parts, data.schema(), None).unwrap();
    let all: PlanRef = Arc::new(scan);
    for batch_size in [1, 7, 8192] {
        let out = collected(&all, batch_size);
        assert!(out.iter().all(|b| b.num_rows() <= batch_size));
        assert_eq!(out.iter().map(Batch::num_rows).sum::<usize>(), 300);
    }
    let some = all.with_fetch(Some(30)).unwrap();
    assert_eq!(some.fetch(), Some(30));
    assert_eq!(some.statistics(None).unwrap().num_rows, Precision::Exact(60));
    assert_eq!(collected(&some, 7).iter().map(Batch::num_rows).sum::<usize>(), 60);
}

#[test]
fn a_memory_scan_takes_a_projection_of_columns() {
    let data = batches::mixed(20, 2);
    let schema = data.schema();
    let parts = vec![vec![data.clone()]];
    let scan = MemoryScanExec::try_new(parts, Arc::clone(&schema), None)
        .unwrap()
        .try_with_ordering(vec![sort_key("id", false, false, &schema)])
        .unwrap();
    let scan: PlanRef = Arc::new(scan);
    for indices in [&[7, 0][..], &[0], &[3, 3, 1], &[]] {
        let exprs = ProjectionExprs::from_indices(indices, &schema);
        let projection = ProjectionExec::try_new(exprs, Arc::clone(&scan)).unwrap();
        let swapped = scan.try_swapping_with_projection(&projection).unwrap().unwrap();
        assert_eq!(swapped.schema(), projection.schema());
        let facts = &swapped.properties().equivalences;
        for key in projection.properties().equivalences.orderings() {
            assert!(facts.ordering_satisfied(key));
        }
        let expected = rows::of_record_batches(&[data.project(indices).unwrap()]);
        assert_eq!(rows::of(&collected(&swapped, 8)), expected);
        assert_eq!(rows::of(&collected(&(Arc::new(projection) as PlanRef), 8)), expected);
    }
}

#[test]
fn values_are_evaluated_row_by_row() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ]));
    let sum: PhysicalExprRef =
        Arc::new(BinaryExpr::new(lit(1i64), datafusion_expr::Operator::Plus, lit(2i64)));
    let row = |a: PhysicalExprRef, b: Option<&str>| vec![a, lit(ScalarValue::from(b))];
    let all = vec![
        row(lit(1i64), Some("x")),
        row(sum, None),
        row(lit(ScalarValue::Int64(None)), Some("")),
    ];
    let expected = ["1 | x", "3 | ∅", "∅ | "].map(str::to_owned);
    let make =
        || -> PlanRef { Arc::new(ValuesExec::try_new(Arc::clone(&schema), all.clone()).unwrap()) };
    driving::assert_drives(make, &expected);
    assert_eq!(rows::of(&collected(&make(), 1)), expected);
    assert_eq!(make().statistics(None).unwrap().num_rows, Precision::Exact(3));
    assert!(ValuesExec::try_new(Arc::clone(&schema), vec![vec![lit(1i64)]]).is_err());
}

#[test]
fn no_rows_and_one_row_of_nulls() {
    let schema = batches::mixed_schema();
    let none = || -> PlanRef { Arc::new(EmptyExec::new(Arc::clone(&schema))) };
    driving::assert_drives(none, &[]);
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8View, true)]));
    let one = || -> PlanRef { Arc::new(PlaceholderRowExec::new(Arc::clone(&schema))) };
    driving::assert_drives(one, &["∅".to_owned()]);
    let nothing: PlanRef = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
    assert_eq!(collected(&nothing, 8)[0].num_rows(), 1);
}
