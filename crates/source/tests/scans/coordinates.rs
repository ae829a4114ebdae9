//! The scan's output and its table: the way there and back, with columns permuted, repeated and
//! dropped; and what a scan that computes takes in.

use crate::common::*;
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_expr::expressions::{BinaryExpr, Column, Literal};
use planish_expr::{PhysicalExprRef, ProjectionExpr, ProjectionExprs};
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::{PlanRef, collect};
use planish_source::{DataSourceExec, FileScanConfig};
use std::sync::Arc;
use tempfile::tempdir;

/// Two of the columns that [`sample`] has: `id`, and `i`, which has NULLs.
const ID: usize = 0;
const I: usize = 1;

fn col(plan: &PlanRef, i: usize) -> PhysicalExprRef {
    Arc::new(Column::new(plan.schema().field(i).name(), i))
}

fn bin(l: PhysicalExprRef, op: Operator, r: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(l, op, r))
}

fn seven() -> PhysicalExprRef {
    Arc::new(Literal::new(ScalarValue::Int64(Some(7))))
}

fn config(plan: &PlanRef) -> &FileScanConfig {
    plan.downcast_ref::<DataSourceExec>().unwrap().config()
}

async fn only_batch(plan: &PlanRef) -> Batch {
    let batches = collect(plan, &ctx(&options(1, 8192))).await.unwrap();
    assert_eq!(batches.len(), 1);
    batches.into_iter().next().unwrap()
}

#[tokio::test]
async fn expressions_go_to_the_table_and_back() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 50)], 50);
    let table = table(&path).await.unwrap();
    let options = options(1, 8192);
    let whole = table.scan(None, &options).unwrap();
    let of_table = only_batch(&whole).await;
    for code in 0..27usize {
        let indices = [code % 3, code / 3 % 3, code / 9];
        let scan = table.scan(Some(&indices), &options).unwrap();
        let of_output = only_batch(&scan).await;
        for at in 0..3 {
            let above = bin(col(&scan, at), Operator::Eq, col(&scan, at));
            let below = config(&scan).output_to_table(&above).unwrap().unwrap();
            let value = above.evaluate_array(&of_output).unwrap();
            assert_eq!(&below.evaluate_array(&of_table).unwrap(), &value, "{indices:?} {at}");
            let again = config(&scan).table_to_output(&below).unwrap().unwrap();
            assert_eq!(&again.evaluate_array(&of_output).unwrap(), &value, "{indices:?} {at}");
        }
        for (i, name) in [(ID, "id"), (I, "i")] {
            let column: PhysicalExprRef = Arc::new(Column::new(name, i));
            let shown = config(&scan).table_to_output(&column).unwrap();
            assert_eq!(shown.is_some(), indices.contains(&i), "{indices:?} {name}");
        }
        let missing: PhysicalExprRef = Arc::new(Column::new("missing", 3));
        let sum = bin(col(&scan, 0), Operator::Eq, missing);
        assert!(config(&scan).output_to_table(&sum).unwrap().is_none(), "never in part");
    }
}

/// A scan of `id + 7 AS x, i`.
async fn computing(dir: &std::path::Path) -> PlanRef {
    let path = dir.join("t.parquet");
    write_parquet(&path, &[sample(0, 20)], 20);
    let whole = table(&path).await.unwrap().scan(None, &options(1, 8192)).unwrap();
    let exprs = ProjectionExprs::new([
        ProjectionExpr::new(bin(col(&whole, ID), Operator::Plus, seven()), "x"),
        ProjectionExpr::new(col(&whole, I), "i"),
    ]);
    let config = config(&whole).clone().with_projection(exprs);
    Arc::new(DataSourceExec::try_new(config).unwrap())
}

fn swapped(scan: &PlanRef, exprs: Vec<(PhysicalExprRef, &str)>) -> Option<PlanRef> {
    let exprs: ProjectionExprs =
        exprs.into_iter().map(|(e, name)| ProjectionExpr::new(e, name)).collect();
    let projection = ProjectionExec::try_new(exprs, Arc::clone(scan)).unwrap();
    scan.try_swapping_with_projection(&projection).unwrap()
}

#[tokio::test]
async fn a_computing_scan_takes_columns_once() {
    let dir = tempdir().unwrap();
    let scan = computing(dir.path()).await;
    let (x, i) = (|| (col(&scan, 0), "x"), || (col(&scan, 1), "i"));
    let once = swapped(&scan, vec![i(), x(), i()]).unwrap();
    let options = options(1, 8192);
    let wanted: Vec<String> = run(&scan, &options)
        .await
        .unwrap()
        .iter()
        .map(|row| {
            let (x, i) = row.split_once('|').unwrap();
            format!("{i}|{x}|{i}")
        })
        .collect();
    assert_eq!(run(&once, &options).await.unwrap(), wanted);
    assert!(swapped(&scan, vec![x(), x()]).is_none(), "id + 7 would be computed twice");
    let twice = bin(x().0, Operator::Plus, x().0);
    assert!(swapped(&scan, vec![(twice, "y")]).is_none(), "computations stay above");
}

#[tokio::test]
async fn computed_columns_go_to_the_table_as_what_they_are() {
    let dir = tempdir().unwrap();
    let scan = computing(dir.path()).await;
    let above = bin(col(&scan, 0), Operator::Gt, seven());
    let below = config(&scan).output_to_table(&above).unwrap().unwrap();
    assert_eq!(below.to_string(), "id@0 + 7 > 7");
    assert_eq!(config(&scan).table_to_output(&below).unwrap().unwrap().to_string(), "x@0 > 7");
    let id: PhysicalExprRef = Arc::new(Column::new("id", ID));
    assert!(config(&scan).table_to_output(&id).unwrap().is_none(), "only its sum is shown");
}
