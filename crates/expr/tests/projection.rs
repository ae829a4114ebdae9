//! The projection algebra: every sentence of its reference, and the rewrites in both directions.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion_expr::Operator;
use planish_batch::{Batch, Form};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, Literal, lit};
use planish_expr::projection::{
    ProjectionExpr, ProjectionExprs, merge_repeats_work, project_expr, reassign_expr_columns,
    unproject_expr, update_expr,
};
use std::sync::Arc;

type Expr = PhysicalExprRef;

fn col(name: &str, index: usize) -> Expr {
    Arc::new(Column::new(name, index))
}

fn add(l: Expr, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, Operator::Plus, r))
}

fn named(expr: Expr, alias: &str) -> ProjectionExpr {
    ProjectionExpr { expr, alias: alias.to_string() }
}

fn schema() -> SchemaRef {
    let unit = [("unit".to_owned(), "km".to_owned())];
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, false).with_metadata(unit.into()),
        Field::new("b", DataType::Int64, true),
        Field::new("c", DataType::Int64, true),
    ]))
}

fn permuted() -> ProjectionExprs {
    ProjectionExprs::from_indices(&[2, 0, 1], &schema())
}

#[test]
fn the_articles_example_in_both_directions() {
    // Over the projection's output: a@1 + b@2 becomes a@0 + b@1, and c@0 becomes c@2.
    let sum = add(col("a", 1), col("b", 2));
    let below = unproject_expr(&sum, &permuted()).unwrap().unwrap();
    assert_eq!(below.to_string(), "a@0 + b@1");
    let c = unproject_expr(&col("c", 0), &permuted()).unwrap().unwrap();
    assert_eq!(c.to_string(), "c@2");
    // And back again.
    let above = project_expr(&below, &permuted()).unwrap().unwrap();
    assert_eq!(above.to_string(), "a@1 + b@2");
    assert_eq!(project_expr(&c, &permuted()).unwrap().unwrap().to_string(), "c@0");
}

#[test]
fn there_is_no_partial_rewrite() {
    let only_a = ProjectionExprs::from_indices(&[0], &schema());
    let sum = add(col("a", 0), col("b", 1));
    assert!(project_expr(&sum, &only_a).unwrap().is_none(), "b is not shown");
    assert!(unproject_expr(&sum, &only_a).unwrap().is_none(), "there is no column 1");
    let swapped = add(col("b", 1), col("a", 0));
    assert!(project_expr(&swapped, &only_a).unwrap().is_none(), "whichever comes first");
    let constant = add(lit(1i64), lit(2i64));
    let same = project_expr(&constant, &only_a).unwrap().unwrap();
    assert!(same.eq(&constant), "what has no column is its own rewrite");
}

#[test]
fn a_computed_subexpression_becomes_a_reference_to_it() {
    let computed = ProjectionExprs::new([
        named(col("c", 2), "c"),
        named(add(col("a", 0), col("b", 1)), "sum"),
    ]);
    let expr = add(add(col("a", 0), col("b", 1)), col("c", 2));
    let above = update_expr(&expr, computed.as_ref(), false).unwrap().unwrap();
    assert_eq!(above.to_string(), "sum@1 + c@0");
    let below = update_expr(&above, computed.as_ref(), true).unwrap().unwrap();
    assert!(below.eq(&expr));
    let other = add(col("a", 0), col("c", 2));
    assert!(update_expr(&other, computed.as_ref(), false).unwrap().is_none());
}

/// Over all permutations, with repeats and drops: unproject, then evaluate below, is to evaluate
/// above; and projecting again gives an expression of the same value.
#[test]
fn rewrites_commute_with_evaluation() {
    let arrays: Vec<ArrayRef> = (0..3i64)
        .map(|i| Arc::new(Int64Array::from(vec![i, 10 * i, 100 * i + 7])) as ArrayRef)
        .collect();
    let fields = ["a", "b", "c"].map(|n| Field::new(n, DataType::Int64, true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
    let batch = Batch::from_arrays(Arc::clone(&schema), arrays, 3).unwrap();
    for code in 0..81usize {
        let indices = [code % 3, code / 3 % 3, code / 9 % 3, code / 27];
        let projection = ProjectionExprs::from_indices(&indices, &schema);
        let output: SchemaRef = Arc::new(projection.project_schema(&schema).unwrap());
        let projected = projection.project_batch(&batch, &output).unwrap();
        for (i, j) in [(0, 1), (3, 2), (1, 1)] {
            let name = |k: usize| output.field(k).name().clone();
            let above = add(col(&name(i), i), add(col(&name(j), j), lit(5i64)));
            let below = unproject_expr(&above, &projection).unwrap().unwrap();
            let value = above.evaluate_array(&projected).unwrap();
            assert_eq!(&below.evaluate_array(&batch).unwrap(), &value, "{indices:?}");
            let again = project_expr(&below, &projection).unwrap().unwrap();
            assert_eq!(&again.evaluate_array(&projected).unwrap(), &value, "{indices:?}");
        }
        for (k, field) in schema.fields().iter().enumerate() {
            let shown = project_expr(&col(field.name(), k), &projection).unwrap();
            assert_eq!(shown.is_some(), indices.contains(&k), "{indices:?} {k}");
        }
    }
}

#[test]
fn from_indices_keeps_order_and_duplicates() {
    let projection = ProjectionExprs::from_indices(&[2, 0, 1], &schema());
    let names: Vec<_> = projection.iter().map(|e| e.alias.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"]);
    let repeated = ProjectionExprs::from_indices(&[0, 0, 1], &schema());
    assert_eq!(repeated.as_ref().len(), 3);
    assert!(repeated.as_ref()[0].expr.eq(&repeated.as_ref()[1].expr));
}

#[test]
#[should_panic(expected = "out of")]
fn from_indices_panics_out_of_bounds() {
    ProjectionExprs::from_indices(&[3], &schema());
}

#[test]
fn iteration_and_conversion() {
    let exprs = vec![named(col("a", 0), "x"), named(lit(1i64), "one")];
    let projection = ProjectionExprs::new(exprs.clone());
    assert_eq!(projection, ProjectionExprs::from(exprs.clone()));
    assert_eq!(projection, ProjectionExprs::from(exprs.as_slice()));
    assert_eq!(projection, exprs.iter().cloned().collect::<ProjectionExprs>());
    assert_eq!(projection.iter().cloned().collect::<Vec<_>>(), exprs);
    assert_eq!((&projection).into_iter().cloned().collect::<Vec<_>>(), exprs);
    assert_eq!(projection.clone().into_iter().collect::<Vec<_>>(), exprs);
    assert_eq!(projection.as_ref(), exprs.as_slice());
    let bare: Vec<Expr> = projection.expr_iter().collect();
    assert!(bare[0].eq(&exprs[0].expr) && bare[1].eq(&exprs[1].expr));
    assert_eq!(projection.to_string(), "a@0 AS x, 1 AS one");
    assert_eq!(permuted().to_string(), "c@2, a@0, b@1");
    assert!(format!("{projection:?}").contains("ProjectionExprs"));
}

#[test]
fn try_merge_composes_and_refuses() {
    let base = ProjectionExprs::new([
        named(col("c", 2), "x"),
        named(col("b", 1), "y"),
        named(col("a", 0), "z"),
    ]);
    let top = ProjectionExprs::new([
        named(add(col("x", 0), lit(1i64)), "c1"),
        named(add(col("y", 1), col("z", 2)), "c2"),
    ]);
    let merged = base.try_merge(&top).unwrap();
    assert_eq!(merged.to_string(), "c@2 + 1 AS c1, b@1 + a@0 AS c2");
    let bad = ProjectionExprs::new([named(col("w", 3), "w")]);
    assert!(base.try_merge(&bad).is_err());
}

#[test]
fn merging_is_not_wise_when_work_repeats() {
    let inner = ProjectionExprs::new([
        named(add(col("a", 0), col("b", 1)), "sum"),
        named(col("c", 2), "c"),
    ]);
    let once = ProjectionExprs::new([named(add(col("sum", 0), col("c", 1)), "x")]);
    let twice = ProjectionExprs::new([named(add(col("sum", 0), col("sum", 0)), "x")]);
    let columns = ProjectionExprs::new([named(add(col("c", 1), col("c", 1)), "x")]);
    assert!(!merge_repeats_work(&inner, &once));
    assert!(merge_repeats_work(&inner, &twice));
    assert!(!merge_repeats_work(&inner, &columns));
}

#[test]
fn column_indices_are_ascending_and_unique() {
    let projection = ProjectionExprs::new([
        named(add(col("c", 2), col("a", 0)), "x"),
        named(add(col("a", 0), lit(1i64)), "y"),
    ]);
    assert_eq!(projection.column_indices(), [0, 2]);
    assert_eq!(projection.column_only_indices(), None);
    let columns = ProjectionExprs::from_indices(&[2, 0, 2], &schema());
    assert_eq!(columns.column_indices(), [0, 2]);
    assert_eq!(columns.ordered_column_indices(), [2, 0, 2]);
    assert_eq!(columns.column_only_indices(), Some(vec![2, 0, 2]));
}

#[test]
#[should_panic(expected = "not a column reference")]
fn ordered_column_indices_panics_on_a_computation() {
    ProjectionExprs::new([named(add(col("a", 0), lit(1i64)), "x")]).ordered_column_indices();
}

#[test]
#[should_panic(expected = "not a column reference")]
fn ordered_column_indices_panics_on_a_literal() {
    ProjectionExprs::new([named(lit(42i64), "x")]).ordered_column_indices();
}

#[test]
fn project_schema_renames_and_keeps_metadata() {
    let projection =
        ProjectionExprs::new([named(col("a", 0), "x"), named(add(col("a", 0), col("b", 1)), "y")]);
    let output = projection.project_schema(&schema()).unwrap();
    assert_eq!(output.field(0).name(), "x");
    assert_eq!(output.field(0).metadata().get("unit").unwrap(), "km");
    assert!(!output.field(0).is_nullable());
    assert_eq!((output.field(1).name().as_str(), output.field(1).is_nullable()), ("y", true));
    let wrong = ProjectionExprs::new([named(col("d", 9), "d")]);
    assert!(wrong.project_schema(&schema()).is_err());
}

#[test]
fn project_statistics_follows_columns() {
    let column = |min: i64| ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: Precision::Exact(ScalarValue::from(min)),
        ..ColumnStatistics::new_unknown()
    };
    let stats = Statistics {
        num_rows: Precision::Exact(10),
        total_byte_size: Precision::Exact(240),
        column_statistics: vec![column(1), column(2), column(3)],
    };
    let projection = ProjectionExprs::new([
        named(col("c", 2), "c"),
        named(col("a", 0), "a"),
        named(add(col("b", 1), lit(1i64)), "b"),
        named(lit(7i64), "seven"),
    ]);
    let out = projection.project_statistics(stats, &schema()).unwrap();
    assert_eq!(out.num_rows, Precision::Exact(10));
    assert_eq!(out.column_statistics.len(), 4);
    assert_eq!(out.column_statistics[0], column(3));
    assert_eq!(out.column_statistics[1], column(1));
    assert_eq!(out.column_statistics[2].min_value, Precision::Absent, "nothing is made up");
    let seven = Precision::Exact(ScalarValue::from(7i64));
    assert_eq!(out.column_statistics[3].max_value, seven);
}

#[test]
fn project_batch_copies_nothing() {
    let arrays: Vec<ArrayRef> =
        (0..3).map(|i| Arc::new(Int64Array::from(vec![i, i + 1])) as ArrayRef).collect();
    let batch = Batch::from_arrays(schema(), arrays, 2).unwrap();
    let projection = ProjectionExprs::new([named(col("c", 2), "c"), named(lit(7i64), "seven")]);
    let output: SchemaRef = Arc::new(projection.project_schema(&schema()).unwrap());
    let out = projection.project_batch(&batch, &output).unwrap();
    assert!(Arc::ptr_eq(&out.column(0).unwrap(), &batch.column(2).unwrap()));
    assert!(matches!(out.columns()[1].form(), Form::Constant(_)));
    assert_eq!(out.column(1).unwrap().len(), 2);
}

#[test]
fn the_mapping_shows_each_source_with_all_its_targets() {
    let projection = ProjectionExprs::new([
        named(col("b", 1), "x"),
        named(add(col("a", 0), lit(1i64)), "y"),
        named(col("b", 1), "z"),
    ]);
    let mapping = projection.projection_mapping(&schema()).unwrap();
    let (_, targets) = mapping.iter().find(|(source, _)| source.eq(&&col("b", 1))).unwrap();
    assert_eq!(targets, &[Column::new("x", 0), Column::new("z", 2)]);
    let next = add(col("a", 0), lit(1i64));
    assert_eq!(mapping.project(&next).unwrap().to_string(), "y@1");
    assert!(mapping.project(&col("a", 0)).is_none());
    let out_of_bounds = ProjectionExprs::new([named(col("q", 9), "q")]);
    assert!(out_of_bounds.projection_mapping(&schema()).is_err());
}

#[test]
fn reassigning_goes_by_name_and_refuses_doubt() {
    let file = Schema::new(vec![
        Field::new("b", DataType::Int64, true),
        Field::new("a", DataType::Int64, true),
        Field::new("x", DataType::Int64, true),
        Field::new("x", DataType::Int64, true),
    ]);
    let moved = reassign_expr_columns(&add(col("a", 0), col("b", 1)), &file).unwrap();
    assert_eq!(moved.to_string(), "a@1 + b@0");
    assert!(reassign_expr_columns(&col("c", 2), &file).is_err());
    assert!(reassign_expr_columns(&col("x", 0), &file).is_err(), "two columns of that name");
    let literal: Expr = Arc::new(Literal::new(ScalarValue::from(1i64)));
    assert!(reassign_expr_columns(&literal, &file).unwrap().eq(&literal));
}
