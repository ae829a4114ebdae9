//! The projection algebra: every sentence of its reference, and the rewrites in both directions.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion_expr::Operator;
use planish_batch::{Batch, Form, Selection};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, Column, Literal, lit};
use planish_expr::projection::{
    ProjectionExpr, ProjectionExprs, project_expr, reassign_expr_columns, unproject_expr,
    update_expr,
};
use planish_expr::udf::ScalarFunctionExpr;
use std::sync::Arc;

type Expr = PhysicalExprRef;

fn function(name: &str, args: Vec<Expr>) -> Expr {
    let all = datafusion_functions::all_default_functions();
    let fun = all.into_iter().find(|f| f.name() == name).unwrap();
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, &schema(), options).unwrap())
}

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
    assert!(repeated.iter().all(|e| e.expr.is::<Column>()));
    assert_eq!(ProjectionExprs::from_indices(&[], &schema()).as_ref(), &[]);
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
    let mut other = permuted();
    other.clone_from(&projection);
    assert_eq!(other, projection);
    let _: std::slice::Iter<'_, ProjectionExpr> = (&projection).into_iter();
    let _: std::vec::IntoIter<ProjectionExpr> = projection.into_iter();
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
fn ordered_column_indices_panics_on_what_is_not_a_column() {
    let case = CaseExpr::try_new(None, vec![(lit(true), col("a", 0))], None).unwrap();
    let not_columns: [Expr; 6] = [
        add(col("a", 0), lit(1i64)),
        Arc::new(CastExpr::new(col("a", 0), DataType::Int32)),
        function("abs", vec![col("a", 0)]),
        lit(42i64),
        lit("hello"),
        Arc::new(case),
    ];
    for expr in not_columns {
        let text = expr.to_string();
        let projection = ProjectionExprs::new([named(col("a", 0), "a"), named(expr, "x")]);
        let ask = std::panic::AssertUnwindSafe(|| projection.ordered_column_indices());
        let panic = std::panic::catch_unwind(ask).unwrap_err();
        let message = panic.downcast::<String>().unwrap();
        assert_eq!(*message, format!("{text} is not a column reference"));
    }
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
fn project_schema_is_that_of_the_references_example() {
    // SELECT a AS x, b + 1 AS y over [a: Int32, b: Int32, c: Int32].
    let int = |name: &str| Field::new(name, DataType::Int32, false);
    let input = Schema::new(vec![int("a"), int("b"), int("c")]);
    let next = add(col("b", 1), lit(1i32));
    let projection = ProjectionExprs::new([named(col("a", 0), "x"), named(next, "y")]);
    let output = projection.project_schema(&input).unwrap();
    assert_eq!(output, Schema::new(vec![int("x"), int("y")]));
    assert_eq!(projection.column_indices(), [0, 1]);
}

fn statistics_of(rows: Precision<usize>) -> Statistics {
    let column = |min: i64, max: i64| ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: Precision::Exact(ScalarValue::from(min)),
        max_value: Precision::Exact(ScalarValue::from(max)),
        sum_value: Precision::Exact(ScalarValue::from(100i64)),
        distinct_count: Precision::Exact(5),
        byte_size: Precision::Exact(80),
    };
    Statistics {
        num_rows: rows,
        total_byte_size: Precision::Exact(240),
        column_statistics: vec![column(1, 10), column(2, 20), column(3, 30)],
    }
}

#[test]
fn project_statistics_follows_columns() {
    let stats = statistics_of(Precision::Exact(10));
    let projection = ProjectionExprs::new([
        named(col("c", 2), "z"),
        named(col("a", 0), "a"),
        named(col("c", 2), "c"),
    ]);
    let out = projection.project_statistics(stats.clone(), &schema()).unwrap();
    assert_eq!(out.num_rows, Precision::Exact(10));
    let of = |i: usize| stats.column_statistics[i].clone();
    assert_eq!(out.column_statistics, [of(2), of(0), of(2)]);
    assert_eq!(out.total_byte_size, Precision::Inexact(240));
    let wrong = ProjectionExprs::new([named(col("d", 9), "d")]);
    assert!(wrong.project_statistics(stats, &schema()).is_err());
}

#[test]
fn statistics_of_computations_are_estimates() {
    let projection = ProjectionExprs::new([
        named(add(col("a", 0), lit(1i64)), "next"),
        named(add(col("a", 0), col("b", 1)), "sum"),
        named(function("random", vec![]), "r"),
        named(function("abs", vec![col("a", 0)]), "f"),
    ]);
    let stats = statistics_of(Precision::Exact(10));
    let out = projection.project_statistics(stats, &schema()).unwrap().column_statistics;
    let inexact = |v: i64| Precision::Inexact(ScalarValue::from(v));
    assert_eq!((&out[0].min_value, &out[0].max_value), (&inexact(2), &inexact(11)));
    // An upper estimate: the known values of `a`, and NULL, which statistics do not count.
    assert_eq!(out[0].distinct_count, Precision::Inexact(6));
    assert_eq!((&out[1].min_value, &out[1].max_value), (&inexact(3), &inexact(30)));
    assert_eq!(out[1].distinct_count, Precision::Inexact(10), "no more than rows");
    assert_eq!(out[2], ColumnStatistics::new_unknown());
    assert_eq!((&out[3].min_value, &out[3].max_value), (&Precision::Absent, &Precision::Absent));
    for column in &out {
        assert_ne!(column.distinct_count.is_exact(), Some(true));
        assert_eq!(column.sum_value, Precision::Absent);
    }
    // Where the schema says so: `a` has no NULL, `b` may have.
    assert_eq!(out[0].null_count, Precision::Exact(0));
    assert_eq!(out[1].null_count, Precision::Absent);
}

#[test]
fn statistics_of_a_sum_that_may_overflow_are_unknown() {
    let mut stats = statistics_of(Precision::Exact(10));
    stats.column_statistics[0].max_value = Precision::Exact(ScalarValue::from(i64::MAX));
    let projection = ProjectionExprs::new([named(add(col("a", 0), lit(1i64)), "next")]);
    let out = projection.project_statistics(stats, &schema()).unwrap().column_statistics;
    assert_eq!((&out[0].min_value, &out[0].max_value), (&Precision::Absent, &Precision::Absent));
}

#[test]
fn statistics_of_a_literal_are_exact_only_where_there_is_a_row() {
    let null = Literal::new(ScalarValue::Int64(None));
    let projection =
        ProjectionExprs::new([named(lit(7i64), "seven"), named(Arc::new(null), "none")]);
    let of = |rows| {
        projection.project_statistics(statistics_of(rows), &schema()).unwrap().column_statistics
    };
    let seven = ScalarValue::from(7i64);
    let some = of(Precision::Exact(10));
    assert_eq!(some[0].min_value, Precision::Exact(seven.clone()));
    assert_eq!(some[0].max_value, Precision::Exact(seven.clone()));
    assert_eq!(some[0].null_count, Precision::Exact(0));
    assert_eq!(some[0].distinct_count, Precision::Exact(1));
    assert_eq!(some[1].null_count, Precision::Exact(10));
    assert_eq!(some[1].min_value, Precision::Absent);
    // min(7) over no rows is NULL.
    for rows in [Precision::Exact(0), Precision::Inexact(10), Precision::Absent] {
        assert_eq!(of(rows)[0].min_value, Precision::Inexact(seven.clone()));
        assert_eq!(of(rows)[0].distinct_count, Precision::Inexact(1));
    }
}

/// Columns are handed on as they are: the same buffers, whatever their order and number.
#[test]
fn a_column_only_projection_copies_nothing() {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(StringArray::from(vec![Some("a long enough text"), None])),
        Arc::new(StringViewArray::from(vec![Some("another long enough text"), None])),
    ];
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Utf8View, true),
    ]));
    let addresses = |array: &ArrayRef| -> Vec<usize> {
        let data = array.to_data();
        let nulls = data.nulls().map(|n| n.buffer().as_ptr() as usize);
        data.buffers().iter().map(|b| b.as_ptr() as usize).chain(nulls).collect()
    };
    let batch = Batch::from_arrays(Arc::clone(&schema), arrays.clone(), 2).unwrap();
    for indices in [vec![2, 0, 1], vec![1], vec![0, 0, 2, 2], vec![]] {
        let projection = ProjectionExprs::from_indices(&indices, &schema);
        let output: SchemaRef = Arc::new(projection.project_schema(&schema).unwrap());
        let before = planish_batch::counters::gathered_bytes();
        let out = projection.project_batch(&batch, &output).unwrap();
        assert_eq!(out.num_rows(), 2, "even without columns");
        for (position, &index) in indices.iter().enumerate() {
            let array = out.column(position).unwrap();
            assert_eq!(addresses(&array), addresses(&arrays[index]), "{indices:?}");
            assert!(Arc::ptr_eq(&array, &arrays[index]));
        }
        assert_eq!(planish_batch::counters::gathered_bytes(), before);
    }
}

/// A selection stays one: nothing is gathered for a column that is only handed on, and columns
/// that shared a selection share it still.
#[test]
fn a_column_only_projection_of_a_selection_gathers_nothing() {
    let arrays: Vec<ArrayRef> =
        (0..3).map(|i| Arc::new((i..i + 100).collect::<Int64Array>()) as ArrayRef).collect();
    let batch = Batch::from_arrays(schema(), arrays, 100).unwrap();
    let chosen = batch.select(&Arc::new(Selection::rows(vec![7, 3, 99])));
    let projection = ProjectionExprs::from_indices(&[2, 0], &schema());
    let output: SchemaRef = Arc::new(projection.project_schema(&schema()).unwrap());
    let before = planish_batch::counters::gathered_bytes();
    let out = projection.project_batch(&chosen, &output).unwrap();
    assert_eq!(planish_batch::counters::gathered_bytes(), before, "nothing was read");
    assert_eq!(out.column(0).unwrap().as_primitive::<Int64Type>().values(), &[9, 5, 101]);
    assert!(planish_batch::counters::gathered_bytes() > before, "now it was");
}

#[test]
fn literals_become_constants() {
    let arrays: Vec<ArrayRef> =
        (0..3).map(|i| Arc::new(Int64Array::from(vec![i, i + 1])) as ArrayRef).collect();
    let batch = Batch::from_arrays(schema(), arrays, 2).unwrap();
    let projection = ProjectionExprs::new([named(lit(7i64), "seven")]);
    let output: SchemaRef = Arc::new(projection.project_schema(&schema()).unwrap());
    let out = projection.project_batch(&batch, &output).unwrap();
    assert!(matches!(out.columns()[0].form(), Form::Constant(_)));
    assert_eq!(out.column(0).unwrap().len(), 2);
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
