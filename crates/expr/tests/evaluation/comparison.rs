//! Comparisons, `IN` lists, tests of NULL and truth.

use crate::common::{Expr, batch, bin, bools, check, col, floats, ints, null, strs};
use arrow::array::{ArrayRef, DictionaryArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_batch::Column as BatchColumn;
use planish_expr::expressions::*;
use std::sync::Arc;

#[test]
fn comparisons_of_integers_and_strings() {
    let b = batch(vec![
        ("a", ints(&[Some(1), Some(2), None, None])),
        ("b", ints(&[Some(1), Some(3), Some(3), None])),
    ]);
    let (t, f) = (Some(true), Some(false));
    check(bin(col(0), Operator::Eq, col(1)), &b, bools(&[t, f, None, None]));
    check(bin(col(0), Operator::NotEq, col(1)), &b, bools(&[f, t, None, None]));
    check(bin(col(0), Operator::Lt, col(1)), &b, bools(&[f, t, None, None]));
    check(bin(lit(2i64), Operator::GtEq, col(1)), &b, bools(&[t, f, f, None]));
    check(bin(col(0), Operator::IsDistinctFrom, col(1)), &b, bools(&[f, t, t, f]));
    check(bin(col(0), Operator::IsNotDistinctFrom, col(1)), &b, bools(&[t, f, f, t]));
    check(bin(col(0), Operator::Eq, null(&DataType::Int64)), &b, bools(&[None; 4]));
    check(bin(col(0), Operator::Eq, lit(ScalarValue::Null)), &b, bools(&[None; 4]));
    check(
        bin(col(0), Operator::IsNotDistinctFrom, lit(ScalarValue::Null)),
        &b,
        bools(&[f, f, t, t]),
    );
    let s = batch(vec![("a", strs(&[Some("x"), None, Some("")]))]);
    check(bin(col(0), Operator::Gt, lit("a")), &s, bools(&[t, None, f]));
}

#[test]
fn floats_compare_as_sql_wants() {
    let nan = f64::NAN;
    let b = batch(vec![
        ("a", floats(&[Some(-0.0), Some(nan), Some(nan), Some(1.0), None, None])),
        ("b", floats(&[Some(0.0), Some(-nan), Some(f64::INFINITY), Some(nan), Some(1.0), None])),
    ]);
    let (t, f, n) = (Some(true), Some(false), None);
    check(bin(col(0), Operator::Eq, col(1)), &b, bools(&[t, t, f, f, n, n]));
    check(bin(col(0), Operator::NotEq, col(1)), &b, bools(&[f, f, t, t, n, n]));
    check(bin(col(0), Operator::Lt, col(1)), &b, bools(&[f, f, f, t, n, n]));
    check(bin(col(0), Operator::LtEq, col(1)), &b, bools(&[t, t, f, t, n, n]));
    check(bin(col(0), Operator::Gt, col(1)), &b, bools(&[f, f, t, f, n, n]));
    check(bin(col(0), Operator::GtEq, col(1)), &b, bools(&[t, t, t, f, n, n]));
    check(bin(col(0), Operator::IsDistinctFrom, col(1)), &b, bools(&[f, f, t, t, t, f]));
    check(bin(col(0), Operator::IsNotDistinctFrom, col(1)), &b, bools(&[t, t, f, f, f, t]));
    check(bin(col(0), Operator::Eq, lit(0.0)), &b, bools(&[t, f, f, f, n, n]));
    check(bin(col(0), Operator::IsDistinctFrom, lit(nan)), &b, bools(&[t, f, f, t, t, t]));
    let in_list = Arc::new(InListExpr::new(col(0), vec![lit(0.0), lit(nan)], false));
    check(in_list, &b, bools(&[t, t, t, f, n, n]));
}

#[test]
fn dictionaries_runs_and_narrowed_decimals_are_compared_as_they_are() {
    let (t, f, n) = (Some(true), Some(false), None);
    let codes: DictionaryArray<Int32Type> =
        vec![Some("x"), None, Some("y"), Some("x")].into_iter().collect();
    let field = |t: &DataType| Arc::new(Schema::new(vec![Field::new("a", t.clone(), true)]));
    let utf8 = DataType::Utf8;
    let encoded = BatchColumn::encoded(Arc::new(codes), &utf8);
    let b = Batch::try_new(field(&utf8), vec![encoded], 4).unwrap();
    let before = planish_batch::counters::gathered_bytes();
    let equal = bin(col(0), Operator::Eq, lit("x"));
    assert_eq!(&equal.evaluate_array(&b).unwrap(), &bools(&[t, n, f, t]));
    let like: Expr = Arc::new(LikeExpr::new(LikeKind::Like, false, col(0), lit("%y")));
    assert_eq!(&like.evaluate_array(&b).unwrap(), &bools(&[f, n, t, f]));
    let in_list: Expr = Arc::new(InListExpr::new(col(0), vec![lit("y"), lit("z")], true));
    assert_eq!(&in_list.evaluate_array(&b).unwrap(), &bools(&[t, n, f, t]));
    assert_eq!(planish_batch::counters::gathered_bytes(), before, "nothing was decoded");

    let decimal = DataType::Decimal128(15, 2);
    let narrowed = BatchColumn::encoded(ints(&[Some(100), None, Some(250)]), &decimal);
    let b = Batch::try_new(field(&decimal), vec![narrowed], 3).unwrap();
    let two = lit(ScalarValue::Decimal128(Some(200), 15, 2));
    let greater = bin(col(0), Operator::Gt, two);
    assert_eq!(&greater.evaluate_array(&b).unwrap(), &bools(&[f, n, t]));
    assert_eq!(planish_batch::counters::gathered_bytes(), before, "nothing was decoded");
}

#[test]
fn in_lists() {
    let b = batch(vec![("a", ints(&[Some(1), Some(2), None]))]);
    let (t, f, n) = (Some(true), Some(false), None);
    let expr = |list: Vec<Expr>, negated| Arc::new(InListExpr::new(col(0), list, negated));
    let nothing = || null(&DataType::Int64);
    check(expr(vec![lit(1i64), lit(5i64)], false), &b, bools(&[t, f, n]));
    check(expr(vec![lit(1i64), lit(5i64)], true), &b, bools(&[f, t, n]));
    check(expr(vec![lit(1i64), nothing()], false), &b, bools(&[t, n, n]));
    check(expr(vec![lit(1i64), nothing()], true), &b, bools(&[f, n, n]));
    check(expr(vec![nothing()], false), &b, bools(&[n, n, n]));
    check(expr(vec![], false), &b, bools(&[f, f, f]));
    check(
        expr(vec![lit(1i64), bin(col(0), Operator::Plus, lit(0i64))], false),
        &b,
        bools(&[t, t, n]),
    );
    check(
        expr((0..100i64).filter(|i| i % 2 == 0).map(lit).collect(), false),
        &b,
        bools(&[f, t, n]),
    );
    let views: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("a string longer than twelve bytes"),
        Some("short"),
        None,
    ]));
    let v = batch(vec![("a", views)]);
    let view = |s: &str| lit(ScalarValue::Utf8View(Some(s.to_owned())));
    let many = (0..10).map(|i| view(&i.to_string())).chain([view("short")]).collect();
    check(Arc::new(InListExpr::new(col(0), many, false)), &v, bools(&[f, t, n]));
}

#[test]
fn tests_of_null_and_truth() {
    let (t, f) = (Some(true), Some(false));
    let b = batch(vec![("a", bools(&[t, f, None]))]);
    check(Arc::new(IsNullExpr::is_null(col(0))), &b, bools(&[f, f, t]));
    check(Arc::new(IsNullExpr::is_not_null(col(0))), &b, bools(&[t, t, f]));
    check(Arc::new(IsBoolExpr::new(col(0), true, false)), &b, bools(&[t, f, f]));
    check(Arc::new(IsBoolExpr::new(col(0), true, true)), &b, bools(&[f, t, t]));
    check(Arc::new(IsBoolExpr::new(col(0), false, false)), &b, bools(&[f, t, f]));
    check(Arc::new(IsBoolExpr::new(col(0), false, true)), &b, bools(&[t, f, t]));
    check(Arc::new(NotExpr::new(col(0))), &b, bools(&[f, t, None]));
    let n = batch(vec![("a", ints(&[Some(1), None, Some(i64::MIN)]))]);
    check(Arc::new(NegativeExpr::new(col(0))), &n, ints(&[Some(-1), None, Some(i64::MIN)]));
    let between = |negated| Arc::new(BetweenExpr::new(col(0), negated, lit(0i64), lit(5i64)));
    check(between(false), &n, bools(&[t, None, f]));
    check(between(true), &n, bools(&[f, None, t]));
}
