//! What can fail, and when it does; calls of functions.

use crate::common::{Expr, batch, bin, bools, check, col, floats, function, ints, scalar_of, strs};
use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int32Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_expr::can_fail;
use planish_expr::expressions::*;
use std::sync::Arc;

#[test]
fn scalar_functions() {
    let b = batch(vec![("a", strs(&[Some("x"), None, Some("yz")]))]);
    let upper = function("upper", vec![col(0)], b.schema());
    check(Arc::clone(&upper), &b, strs(&[Some("X"), None, Some("YZ")]));
    assert!(!can_fail(&upper, b.schema()));
    assert_eq!(upper.to_string(), "upper(a@0)");
    let constant = function("upper", vec![lit("q")], b.schema());
    assert_eq!(scalar_of(&constant), ScalarValue::from("Q"));
    let random = function("random", vec![], b.schema());
    let values = random.evaluate_array(&b).unwrap();
    assert_eq!(values.len(), 3);
    assert_ne!(values.slice(0, 1).as_ref(), values.slice(1, 1).as_ref());
    assert!(random.is_volatile_node());
}

#[test]
fn an_error_of_no_row_is_no_error() {
    let b = batch(vec![("a", ints(&[Some(1)]))]);
    let fails = bin(lit(1i64), Operator::Divide, lit(0i64));
    assert!(fails.evaluate(&b).is_err());
    assert_eq!(fails.evaluate_array(&b.slice(0, 0)).unwrap().len(), 0);
}

#[test]
fn what_can_fail() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Float64, true),
        Field::new("d", DataType::Decimal128(30, 2), true),
    ]);
    let fails = |expr: Expr| can_fail(&expr, &schema);
    let cast = |e, t| -> Expr { Arc::new(CastExpr::new(e, t)) };
    assert!(fails(bin(lit(1i64), Operator::Divide, col(0))));
    assert!(!fails(bin(col(0), Operator::Divide, lit(2i64))));
    assert!(fails(bin(col(0), Operator::Divide, lit(-1i64))));
    assert!(!fails(bin(col(0), Operator::Modulo, lit(-1i64))));
    assert!(!fails(bin(col(0), Operator::Plus, col(0))));
    assert!(!fails(bin(col(2), Operator::Divide, col(2))));
    assert!(fails(bin(col(3), Operator::Multiply, col(3))));
    assert!(!fails(bin(col(3), Operator::Plus, col(3))));
    assert!(!fails(bin(col(0), Operator::Lt, lit(1i64))));
    assert!(fails(cast(col(1), DataType::Int64)));
    assert!(fails(cast(col(0), DataType::Int32)));
    assert!(!fails(cast(col(0), DataType::Utf8)));
    assert!(!fails(cast(col(0), DataType::Decimal128(20, 0))));
    assert!(!fails(Arc::new(TryCastExpr::new(col(1), DataType::Int64))));
    assert!(!fails(bin(col(1), Operator::RegexMatch, lit("^a"))));
    assert!(fails(bin(col(1), Operator::RegexMatch, lit("("))));
}

/// Every cast that is said to be safe is tried with the extremes of its source.
#[test]
fn casts_said_to_be_safe_are() {
    let sources: Vec<ArrayRef> = vec![
        Arc::new(arrow::array::Int8Array::from(vec![i8::MIN, i8::MAX])),
        Arc::new(arrow::array::UInt8Array::from(vec![u8::MAX])),
        Arc::new(Int32Array::from(vec![i32::MIN, i32::MAX])),
        ints(&[Some(i64::MIN), Some(i64::MAX)]),
        Arc::new(arrow::array::UInt64Array::from(vec![u64::MAX])),
        floats(&[Some(f64::MAX), Some(f64::NAN), Some(f64::NEG_INFINITY)]),
        bools(&[Some(true), Some(false)]),
        strs(&[Some("zz")]),
        Arc::new(Date32Array::from(vec![i32::MIN / 2, i32::MAX / 2])),
        Arc::new(
            Decimal128Array::from(vec![99_995, -99_995]).with_precision_and_scale(5, 2).unwrap(),
        ),
        Arc::new(arrow::array::TimestampSecondArray::from(vec![i64::MAX / 2])),
        Arc::new(arrow::array::TimestampNanosecondArray::from(vec![i64::MAX])),
    ];
    let mut targets: Vec<DataType> = sources.iter().map(|s| s.data_type().clone()).collect();
    targets.extend([
        DataType::Decimal128(20, 0),
        DataType::Decimal128(4, 1),
        DataType::Decimal128(5, 1),
        DataType::Decimal128(38, 30),
        DataType::Utf8View,
        DataType::Float32,
        DataType::Int16,
    ]);
    for source in &sources {
        for target in &targets {
            let b = batch(vec![("a", Arc::clone(source))]);
            let cast: Expr = Arc::new(CastExpr::new(col(0), target.clone()));
            if !can_fail(&cast, b.schema()) {
                let value = cast.evaluate_array(&b);
                assert!(value.is_ok(), "{} to {target}: {value:?}", source.data_type());
            }
        }
    }
}
