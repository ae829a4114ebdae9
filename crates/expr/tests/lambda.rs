//! Lambdas of array functions: what a body sees, and on which values it runs.
#![allow(clippy::unwrap_used, clippy::panic)]
// Helpers of tests count as tests.

use arrow::array::{Array, ArrayRef, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{HigherOrderUDF, Operator};
use planish_batch::Batch;
use planish_expr::expressions::*;
use planish_expr::projection::{merge_repeats_work, update_expr};
use planish_expr::udf::{HigherOrderFunctionExpr, ScalarFunctionExpr};
use planish_expr::{PhysicalExprRef, ProjectionExpr, ProjectionExprs, can_fail, is_volatile};
use std::sync::Arc;

type Expr = PhysicalExprRef;

/// `l`, a list of integers, and `a`, an integer.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("l", DataType::new_list(DataType::Int64, true), true),
        Field::new("a", DataType::Int64, true),
    ]))
}

fn l() -> Expr {
    Arc::new(Column::new("l", 0))
}

fn a() -> Expr {
    Arc::new(Column::new("a", 1))
}

fn bin(l: Expr, op: Operator, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, op, r))
}

fn plus(l: Expr, r: Expr) -> Expr {
    bin(l, Operator::Plus, r)
}

fn param(name: &str) -> FieldRef {
    Arc::new(Field::new(name, DataType::Int64, true))
}

fn variable(level: usize, name: &str) -> Expr {
    Arc::new(LambdaVariable::new(level, param(name)))
}

fn lambda(level: usize, name: &str, body: Expr) -> Expr {
    Arc::new(LambdaExpr::try_new(level, vec![param(name)], body).unwrap())
}

fn function(name: &str) -> Arc<HigherOrderUDF> {
    let all = datafusion_functions_nested::all_default_higher_order_functions();
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let options = Arc::new(ConfigOptions::default());
    Arc::new(HigherOrderFunctionExpr::try_new(function(name), args, &schema(), options).unwrap())
}

/// `array_transform(list, x -> body)`.
fn transform(list: Expr, level: usize, body: Expr) -> Expr {
    call("array_transform", vec![list, lambda(level, "x", body)])
}

fn random() -> Expr {
    let all = datafusion_functions::all_default_functions();
    let fun = all.into_iter().find(|f| f.name() == "random").unwrap();
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, vec![], &schema(), options).unwrap())
}

fn lists(rows: Vec<Option<Vec<Option<i64>>>>) -> ListArray {
    ListArray::from_iter_primitive::<Int64Type, _, _>(rows)
}

fn batch(list: ListArray, a: Vec<Option<i64>>) -> Batch {
    let rows = list.len();
    let columns: Vec<ArrayRef> = vec![Arc::new(list), Arc::new(Int64Array::from(a))];
    Batch::from_arrays(schema(), columns, rows).unwrap()
}

fn evaluate(expr: &Expr, batch: &Batch) -> ArrayRef {
    expr.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap()
}

fn sample() -> Batch {
    let rows = vec![Some(vec![Some(1), None, Some(3)]), None, Some(vec![]), Some(vec![Some(7)])];
    batch(lists(rows), vec![Some(10), Some(20), Some(30), None])
}

#[test]
fn a_body_reads_its_variable_and_the_row_it_stands_in() {
    let expr = transform(l(), 0, plus(variable(0, "x"), a()));
    assert_eq!(expr.to_string(), "array_transform(l@0, x -> x + a@1)");
    let expected =
        lists(vec![Some(vec![Some(11), None, Some(13)]), None, Some(vec![]), Some(vec![None])]);
    assert_eq!(evaluate(&expr, &sample()).as_ref(), &expected as &dyn Array);
}

#[test]
fn a_lambda_within_a_lambda_reads_both_variables_unless_one_hides_the_other() {
    // For every x the list l with y + x; element by element the sum with `a` as well.
    let inner = |body| call("array_transform", vec![l(), lambda(1, "y", body)]);
    let both = plus(plus(variable(0, "x"), variable(1, "y")), a());
    let one = batch(lists(vec![Some(vec![Some(1), Some(2)])]), vec![Some(100)]);
    let expr = transform(l(), 0, inner(both));
    let nested = evaluate(&expr, &one);
    let values = nested.as_any().downcast_ref::<ListArray>().unwrap().value(0);
    let expected = lists(vec![Some(vec![Some(102), Some(103)]), Some(vec![Some(103), Some(104)])]);
    assert_eq!(values.as_ref(), &expected as &dyn Array);

    // An expression with a lambda from level 0 that is put into a body: its variable is its own.
    let own = call("array_transform", vec![l(), lambda(0, "y", plus(variable(0, "y"), a()))]);
    let expr = transform(l(), 0, own);
    let nested = evaluate(&expr, &one);
    let values = nested.as_any().downcast_ref::<ListArray>().unwrap().value(0);
    let expected = lists(vec![Some(vec![Some(101), Some(102)]); 2]);
    assert_eq!(values.as_ref(), &expected as &dyn Array);
}

#[test]
fn values_that_no_row_shows_do_not_reach_a_body_that_can_fail() {
    let expr = transform(l(), 0, bin(lit(12i64), Operator::Divide, variable(0, "x")));
    assert!(can_fail(&expr, &schema()));
    // Zeros before, under the NULL of and after the rows in use.
    let values = Int64Array::from(vec![0, 3, 0, 4, 6, 0]);
    let offsets = OffsetBuffer::new(vec![0, 1, 2, 3, 5, 6].into());
    let nulls = NullBuffer::from(vec![true, true, false, true, true]);
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let list = ListArray::new(field, offsets, Arc::new(values), Some(nulls)).slice(1, 3);
    let rows = batch(list, vec![None; 3]);
    let expected = lists(vec![Some(vec![Some(4)]), None, Some(vec![Some(3), Some(2)])]);
    assert_eq!(evaluate(&expr, &rows).as_ref(), &expected as &dyn Array);

    let seen = batch(lists(vec![Some(vec![Some(0)])]), vec![None]);
    assert!(expr.evaluate(&seen).is_err());
}

#[test]
fn no_rows_no_body() {
    let expr = transform(l(), 0, bin(lit(12i64), Operator::Divide, lit(0i64)));
    assert_eq!(evaluate(&expr, &batch(lists(vec![]), vec![])).len(), 0);
}

#[test]
fn volatility_and_columns_show_through_a_lambda() {
    let expr =
        call("array_filter", vec![l(), lambda(0, "x", bin(random(), Operator::Lt, lit(2.0f64)))]);
    assert!(is_volatile(&expr));
    assert_eq!(evaluate(&expr, &sample()).as_ref(), sample().column(0).unwrap().as_ref());
    assert!(!is_volatile(&transform(l(), 0, variable(0, "x"))));
    let uses = planish_expr::analysis::column_uses([&transform(l(), 0, a())]);
    assert_eq!(uses.into_keys().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_projection_with_work_or_chance_does_not_merge_into_a_body() {
    let below = |a: Expr| -> ProjectionExprs {
        let exprs = [ProjectionExpr::new(l(), "l"), ProjectionExpr::new(a, "a")];
        exprs.into_iter().collect()
    };
    let above: ProjectionExprs =
        [ProjectionExpr::new(transform(l(), 0, plus(variable(0, "x"), a())), "r")]
            .into_iter()
            .collect();
    assert!(merge_repeats_work(&below(plus(a(), lit(1i64))), &above));
    assert!(merge_repeats_work(&below(random()), &above));
    assert!(!merge_repeats_work(&below(a()), &above));
    assert!(!merge_repeats_work(&below(lit(1i64)), &above));
}

#[test]
fn a_rewritten_body_reads_the_columns_of_its_new_input() {
    let expr = transform(l(), 0, plus(variable(0, "x"), a()));
    let swapped = [ProjectionExpr::new(a(), "a"), ProjectionExpr::new(l(), "l")];
    let over: Expr = update_expr(&expr, &swapped, false).unwrap().unwrap();
    assert_eq!(over.to_string(), "array_transform(l@1, x -> x + a@0)");
    let [list, a] = [0, 1].map(|i| sample().column(i).unwrap());
    let fields = schema();
    let turned = Arc::new(Schema::new(vec![fields.field(1).clone(), fields.field(0).clone()]));
    let turned = Batch::from_arrays(turned, vec![a, list], 4).unwrap();
    assert_eq!(evaluate(&over, &turned).as_ref(), evaluate(&expr, &sample()).as_ref());
}

#[test]
fn equal_lambdas_are_equal() {
    let expr = |name: &str| call("array_transform", vec![l(), lambda(0, name, a())]);
    assert_eq!(&expr("x"), &expr("x"));
    assert_ne!(&expr("x"), &call("array_transform", vec![l(), lambda(0, "x", lit(1i64))]));
}

#[test]
fn outside_of_its_function_a_lambda_is_our_own_fault() {
    for expr in [lambda(0, "x", a()), variable(0, "x")] {
        let error = expr.evaluate(&sample()).unwrap_err().to_string();
        assert!(error.contains("was evaluated outside of"), "{error}");
    }
}
