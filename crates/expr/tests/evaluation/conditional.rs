//! `AND`, `OR`, `CASE`, `COALESCE`: three values, short circuit, guards.

use crate::common::{
    Expr, batch, bin, bools, check, col, error_of, eval, ints, null, scalar_of, strs,
};
use arrow::array::{ArrayRef, AsArray, BooleanArray, DictionaryArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::Operator;
use planish_expr::PhysicalExpr;
use planish_expr::expressions::*;
use planish_expr::udf::ScalarFunctionExpr;
use planish_expr::utils::guards_first;
use std::sync::Arc;

#[test]
fn and_or_are_three_valued() {
    let (t, f, n) = (Some(true), Some(false), None);
    let (mut a, mut b) = (vec![], vec![]);
    for x in [t, f, n] {
        for y in [t, f, n] {
            a.push(x);
            b.push(y);
        }
    }
    let both = batch(vec![("a", bools(&a)), ("b", bools(&b))]);
    check(bin(col(0), Operator::And, col(1)), &both, bools(&[t, f, n, f, f, f, n, f, n]));
    check(bin(col(0), Operator::Or, col(1)), &both, bools(&[t, t, t, t, f, n, t, n, n]));
    for scalar in [t, f, n] {
        for op in [Operator::And, Operator::Or] {
            let right = Arc::new(BooleanArray::from(vec![scalar; 9]));
            let arrays = batch(vec![("a", bools(&a)), ("b", right)]);
            let expected = eval(&bin(col(0), op, col(1)), &arrays);
            let constant = lit(ScalarValue::Boolean(scalar));
            check(bin(col(0), op, Arc::clone(&constant)), &arrays, Arc::clone(&expected));
            check(bin(constant, op, col(0)), &arrays, expected);
        }
    }
}

/// Random three-valued chains, with and without the short cut, give equal rows.
#[test]
fn sparse_and_dense_right_sides_agree() {
    let rows = 100;
    for step in [1, 2, 7, 50] {
        let a = ints(&(0..rows).map(|i| (i % 11 != 3).then_some(i % step)).collect::<Vec<_>>());
        let b = ints(&(0..rows).map(|i| (i % 13 != 5).then_some(i)).collect::<Vec<_>>());
        let batch = batch(vec![("a", a), ("b", b)]);
        for op in [Operator::And, Operator::Or] {
            let left = bin(col(0), Operator::Eq, lit(0i64));
            let right = bin(col(1), Operator::Lt, lit(60i64));
            let whole = |e: &Expr| e.evaluate_array(&batch).unwrap().as_boolean().clone();
            let expected = match op {
                Operator::And => arrow::compute::and_kleene(&whole(&left), &whole(&right)),
                _ => arrow::compute::or_kleene(&whole(&left), &whole(&right)),
            };
            let expected: ArrayRef = Arc::new(expected.unwrap());
            check(bin(Arc::clone(&left), op, Arc::clone(&right)), &batch, Arc::clone(&expected));
            // The same with a right side that can fail, hence is never evaluated densely.
            let one = bin(lit(1i64), Operator::Divide, bin(col(1), Operator::Plus, lit(1i64)));
            let risky = bin(one, Operator::GtEq, lit(0i64));
            let risky = bin(right, Operator::And, risky);
            check(bin(left, op, risky), &batch, expected);
        }
    }
}

#[test]
fn a_guard_is_evaluated_first() {
    use Operator::{And, Divide, Eq, Gt, NotEq, Or};
    let x = ints(&[Some(0), Some(5), None, Some(50), Some(0), Some(7)]);
    let b = batch(vec![("a", x)]);
    let quotient = || bin(lit(100i64), Divide, col(0));
    let (t, f, n) = (Some(true), Some(false), None);
    let and = bin(bin(col(0), NotEq, lit(0i64)), And, bin(quotient(), Gt, lit(3i64)));
    check(Arc::clone(&and), &b, bools(&[f, t, n, f, f, t]));
    let or = bin(bin(col(0), Eq, lit(0i64)), Or, bin(quotient(), Gt, lit(3i64)));
    check(or, &b, bools(&[t, t, n, f, t, t]));
    // A guard that is a constant, in front and behind.
    let never = bin(lit(false), And, bin(quotient(), Gt, lit(3i64)));
    check(never, &b, bools(&[f; 6]));
    // A guard far out in a chain.
    let chain = bin(and, And, bin(quotient(), NotEq, lit(20i64)));
    check(chain, &b, bools(&[f, f, n, f, f, t]));
    let case: Expr = Arc::new(
        CaseExpr::try_new(None, vec![(bin(col(0), NotEq, lit(0i64)), quotient())], None).unwrap(),
    );
    check(case, &b, ints(&[None, Some(20), None, Some(2), None, Some(14)]));
    let else_: Expr = Arc::new(
        CaseExpr::try_new(None, vec![(bin(col(0), Eq, lit(0i64)), lit(-1i64))], Some(quotient()))
            .unwrap(),
    );
    check(else_, &b, ints(&[Some(-1), Some(20), None, Some(2), Some(-1), Some(14)]));
    let zero_is_null: Expr = Arc::new(
        CaseExpr::try_new(
            Some(col(0)),
            vec![(lit(0i64), lit(0i64)), (lit(5i64), lit(1i64))],
            Some(quotient()),
        )
        .unwrap(),
    );
    check(zero_is_null, &b, ints(&[Some(0), Some(1), None, Some(2), Some(0), Some(14)]));
    let first =
        batch(vec![("a", ints(&[Some(1), None, None])), ("b", ints(&[Some(0), Some(4), None]))]);
    let coalesce: Expr = Arc::new(
        CoalesceExpr::try_new(vec![col(0), bin(lit(100i64), Divide, col(1)), lit(9i64)]).unwrap(),
    );
    check(coalesce, &first, ints(&[Some(1), Some(25), Some(9)]));
}

#[test]
fn a_cast_behind_a_guard_sees_no_dirt() {
    let b = batch(vec![("a", strs(&[Some("12"), Some("x1"), None, Some("7")]))]);
    let cast = || -> Expr { Arc::new(CastExpr::new(col(0), DataType::Int64)) };
    let message = error_of(&cast(), &b);
    assert!(message.contains("x1") && message.contains("Int64"), "{message}");
    let digits = || bin(col(0), Operator::RegexMatch, lit("^[0-9]+$"));
    let guarded = bin(digits(), Operator::And, bin(cast(), Operator::Gt, lit(10i64)));
    check(guarded, &b, bools(&[Some(true), Some(false), None, Some(false)]));
    let case: Expr = Arc::new(CaseExpr::try_new(None, vec![(digits(), cast())], None).unwrap());
    check(case, &b, ints(&[Some(12), None, None, Some(7)]));
    let tried: Expr = Arc::new(TryCastExpr::new(col(0), DataType::Int64));
    check(tried, &b, ints(&[Some(12), None, None, Some(7)]));
    // The dirt is in the dictionary, but in no row.
    let codes = arrow::array::Int32Array::from(vec![Some(0), None, Some(0)]);
    let dictionary = DictionaryArray::new(codes, strs(&[Some("12"), Some("x1")]));
    let b = batch(vec![("a", Arc::new(dictionary))]);
    check(cast(), &b, ints(&[Some(12), None, Some(12)]));
}

#[test]
fn case_forms() {
    let b = batch(vec![
        ("a", ints(&[Some(1), Some(2), None, Some(3)])),
        ("b", strs(&[Some("p"), Some("q"), Some("r"), None])),
    ]);
    let case = |operand, branches, otherwise| -> Expr {
        Arc::new(CaseExpr::try_new(operand, branches, otherwise).unwrap())
    };
    let is = |v: i64| bin(col(0), Operator::Eq, lit(v));
    check(
        case(None, vec![(is(1), lit("one")), (is(2), col(1))], Some(lit("many"))),
        &b,
        strs(&[Some("one"), Some("q"), Some("many"), Some("many")]),
    );
    check(
        case(None, vec![(is(1), lit("one")), (is(2), lit("two"))], None),
        &b,
        strs(&[Some("one"), Some("two"), None, None]),
    );
    check(case(None, vec![(lit(true), col(1))], Some(lit("z"))), &b, b.column(1).unwrap());
    check(
        case(Some(bin(col(0), Operator::Plus, lit(1i64))), vec![(lit(2i64), col(1))], None),
        &b,
        strs(&[Some("p"), None, None, None]),
    );
    check(
        case(Some(col(0)), vec![(null(&DataType::Int64), lit("null"))], Some(lit("other"))),
        &b,
        strs(&[Some("other"); 4]),
    );
    let literal = case(None, vec![(lit(false), lit(1i64))], Some(lit(2i64)));
    assert_eq!(scalar_of(&literal), ScalarValue::from(2i64));
}

#[test]
fn case_nullability_is_the_logical_plans() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, false),
    ]);
    let nullable = |branches, otherwise| {
        CaseExpr::try_new(None, branches, otherwise).unwrap().nullable(&schema).unwrap()
    };
    let not_null: Expr = Arc::new(IsNullExpr::is_not_null(col(0)));
    let positive = bin(col(0), Operator::Gt, lit(0i64));
    assert!(!nullable(vec![(Arc::clone(&not_null), col(0))], Some(col(1))));
    assert!(!nullable(vec![(positive, col(0))], Some(col(1))));
    assert!(nullable(vec![(bin(col(1), Operator::Gt, lit(0i64)), col(0))], Some(col(1))));
    assert!(nullable(vec![(not_null, col(0))], None));
}

#[test]
fn guards_go_first() {
    use Operator::{And, Divide, Gt, NotEq};
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ]);
    let cast: Expr = Arc::new(CastExpr::new(col(1), DataType::Int64));
    let dirty = bin(cast, Gt, lit(1i64));
    let digits = bin(col(1), Operator::RegexMatch, lit("^[0-9]+$"));
    let quotient = bin(bin(lit(100i64), Divide, col(0)), Gt, lit(3i64));
    let not_zero = bin(col(0), NotEq, lit(0i64));
    let and = |l: &Expr, r: &Expr| bin(Arc::clone(l), And, Arc::clone(r));
    let shows = |predicate: &Expr, text: &str| {
        assert_eq!(guards_first(predicate, &schema).to_string(), text);
    };
    let sorted = "b@1 ~ ^[0-9]+$ AND CAST(b@1 AS Int64) > 1";
    shows(&and(&dirty, &digits), sorted);
    shows(&and(&digits, &dirty), sorted);
    shows(
        &and(&and(&quotient, &dirty), &and(&digits, &not_zero)),
        "b@1 ~ ^[0-9]+$ AND a@0 != 0 AND 100 / a@0 > 3 AND CAST(b@1 AS Int64) > 1",
    );
    shows(&dirty, "CAST(b@1 AS Int64) > 1");
    // What is volatile has the rows that its neighbours leave it.
    let random = ScalarFunctionExpr::try_new(
        datafusion_functions::math::random(),
        vec![],
        &schema,
        Arc::new(ConfigOptions::new()),
    );
    let chance = bin(Arc::new(random.unwrap()), Gt, lit(0.5));
    let mixed = and(&and(&dirty, &chance), &digits);
    shows(&mixed, &mixed.to_string());
}
