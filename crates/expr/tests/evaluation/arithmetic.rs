//! Arithmetic: integers, floats, decimals, dates and intervals, bits.

use crate::common::{batch, bin, check, col, error_of, eval, floats, ints, null, scalar_of};
use arrow::array::{ArrayRef, AsArray, Date32Array, Decimal128Array};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_expr::expressions::*;
use std::sync::Arc;

#[test]
fn arithmetic() {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let b = batch(vec![
        ("a", ints(&[Some(7), None, Some(-7), Some(i64::MAX)])),
        ("b", ints(&[Some(2), Some(3), None, Some(1)])),
    ]);
    check(bin(col(0), Plus, col(1)), &b, ints(&[Some(9), None, None, Some(i64::MIN)]));
    check(bin(col(0), Minus, lit(1i64)), &b, ints(&[Some(6), None, Some(-8), Some(i64::MAX - 1)]));
    check(bin(lit(2i64), Multiply, col(1)), &b, ints(&[Some(4), Some(6), None, Some(2)]));
    check(bin(col(0), Divide, col(1)), &b, ints(&[Some(3), None, None, Some(i64::MAX)]));
    check(bin(col(0), Modulo, lit(4i64)), &b, ints(&[Some(3), None, Some(-3), Some(3)]));
    check(bin(col(0), Plus, null(&DataType::Int64)), &b, ints(&[None; 4]));
    let zero = bin(col(0), Divide, lit(0i64));
    assert!(error_of(&zero, &b).contains("Divide by zero"));
    let f = batch(vec![("a", floats(&[Some(1.0), Some(0.0), None]))]);
    let by_zero = eval(&bin(col(0), Divide, lit(0.0)), &f);
    assert!(by_zero.as_primitive::<arrow::datatypes::Float64Type>().value(0).is_infinite());
    assert!(by_zero.as_primitive::<arrow::datatypes::Float64Type>().value(1).is_nan());
    assert_eq!(scalar_of(&bin(lit(1i64), Plus, lit(2i64))), ScalarValue::from(3i64));
}

#[test]
fn decimals_agree_with_arrow() {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let decimal = |p, s, v: &[Option<i128>]| -> ArrayRef {
        Arc::new(Decimal128Array::from(v.to_vec()).with_precision_and_scale(p, s).unwrap())
    };
    let wide = [Some(123_456_789_012_345), None, Some(-5), Some(10)];
    for (p2, s2) in [(12, 2), (18, 4), (20, 2), (30, 10), (38, 2)] {
        let b = batch(vec![
            ("a", decimal(15, 2, &wide)),
            ("b", decimal(p2, s2, &[Some(7), Some(3), Some(100_000_000_000), None])),
        ]);
        type Kernel = fn(
            &dyn arrow::array::Datum,
            &dyn arrow::array::Datum,
        ) -> std::result::Result<ArrayRef, arrow::error::ArrowError>;
        let kernels: [(Operator, Kernel); 5] = [
            (Plus, arrow::compute::kernels::numeric::add),
            (Minus, arrow::compute::kernels::numeric::sub),
            (Multiply, arrow::compute::kernels::numeric::mul),
            (Divide, arrow::compute::kernels::numeric::div),
            (Modulo, arrow::compute::kernels::numeric::rem),
        ];
        for (op, kernel) in kernels {
            let expected = kernel(&b.column(0).unwrap(), &b.column(1).unwrap()).unwrap();
            check(bin(col(0), op, col(1)), &b, expected);
        }
    }
}

#[test]
fn dates_times_and_intervals() {
    use Operator::{Minus, Plus};
    let dates = |v: &[Option<i32>]| -> ArrayRef { Arc::new(Date32Array::from(v.to_vec())) };
    let b = batch(vec![
        ("a", dates(&[Some(10), None, Some(0)])),
        ("b", dates(&[Some(3), Some(1), Some(40)])),
    ]);
    check(bin(col(0), Minus, col(1)), &b, ints(&[Some(7), None, Some(-40)]));
    let month = ScalarValue::new_interval_mdn(1, 0, 0);
    check(bin(col(0), Plus, lit(month)), &b, dates(&[Some(41), None, Some(31)]));
    let hour = 3_600_000_000i64;
    let times: ArrayRef =
        Arc::new(arrow::array::Time64MicrosecondArray::from(vec![Some(23 * hour), None]));
    let b = batch(vec![("a", times)]);
    let two_hours = ScalarValue::new_interval_mdn(5, 5, 2 * 3_600_000_000_000);
    let later: ArrayRef =
        Arc::new(arrow::array::Time64MicrosecondArray::from(vec![Some(hour), None]));
    check(bin(col(0), Plus, lit(two_hours.clone())), &b, Arc::clone(&later));
    check(bin(lit(two_hours), Plus, col(0)), &b, later);
}

#[test]
fn bits() {
    use Operator::{BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, BitwiseXor};
    let b = batch(vec![("a", ints(&[Some(6), None])), ("b", ints(&[Some(3), Some(1)]))]);
    check(bin(col(0), BitwiseAnd, col(1)), &b, ints(&[Some(2), None]));
    check(bin(col(0), BitwiseOr, lit(1i64)), &b, ints(&[Some(7), None]));
    check(bin(lit(1i64), BitwiseXor, col(1)), &b, ints(&[Some(2), Some(0)]));
    check(bin(col(0), BitwiseShiftLeft, lit(2i64)), &b, ints(&[Some(24), None]));
    check(bin(col(0), BitwiseShiftRight, lit(1i64)), &b, ints(&[Some(3), None]));
}
