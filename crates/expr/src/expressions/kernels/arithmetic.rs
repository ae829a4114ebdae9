//! `+ - * / %` over numbers, decimals, dates, times, timestamps and intervals.

use super::apply_binary;
use crate::utils::check_precision;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::compute::{binary, cast};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Int64Type, IntervalMonthDayNanoType,
    IntervalUnit, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit,
};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Operator};
use std::sync::Arc;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// `left op right` for an arithmetic operator. Integers wrap around; division by zero is an
/// error, except of floats.
pub(in crate::expressions) fn arithmetic(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<ColumnarValue> {
    apply_binary(left, right, |l, r| arithmetic_datums(op, l, r))
}

fn arithmetic_datums(op: Operator, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Decimal128, Interval, Time32, Time64};
    let ((l, l_scalar), (r, r_scalar)) = (left.get(), right.get());
    match (l.data_type(), op, r.data_type()) {
        (Decimal128(..), _, Decimal128(..)) => {
            if let Some(result) = decimals(op, (l, l_scalar), (r, r_scalar))? {
                return Ok(result);
            }
        }
        (Date32, Operator::Minus, Date32) => {
            return zip_map::<Date32Type, Date32Type, Int64Type>(
                (l.as_primitive(), l_scalar),
                (r.as_primitive(), r_scalar),
                |a, b| i64::from(a) - i64::from(b),
            );
        }
        (Date64, Operator::Minus, Date64) => {
            return zip_map::<Date64Type, Date64Type, Int64Type>(
                (l.as_primitive(), l_scalar),
                (r.as_primitive(), r_scalar),
                |a, b| a.wrapping_sub(b) / MILLIS_PER_DAY,
            );
        }
        (Time32(_) | Time64(_), Operator::Plus | Operator::Minus, Interval(_)) => {
            return shift_time((l, l_scalar), (r, r_scalar), op == Operator::Minus);
        }
        (Interval(_), Operator::Plus, Time32(_) | Time64(_)) => {
            return shift_time((r, r_scalar), (l, l_scalar), false);
        }
        _ => {}
    }
    let result = match op {
        Operator::Plus => numeric::add_wrapping(left, right)?,
        Operator::Minus => numeric::sub_wrapping(left, right)?,
        Operator::Multiply => numeric::mul_wrapping(left, right)?,
        Operator::Divide => numeric::div(left, right)?,
        Operator::Modulo => numeric::rem(left, right)?,
        other => return internal_err!("{other} is not arithmetic"),
    };
    check_precision(&result)?;
    Ok(result)
}

/// `f` over rows where both sides are valid; a scalar side is read once.
fn zip_map<L: ArrowPrimitiveType, R: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    (l, l_scalar): (&PrimitiveArray<L>, bool),
    (r, r_scalar): (&PrimitiveArray<R>, bool),
    f: impl Fn(L::Native, R::Native) -> O::Native,
) -> Result<ArrayRef> {
    let array: PrimitiveArray<O> = match (l_scalar, r_scalar) {
        (true, false) if l.is_null(0) => PrimitiveArray::new_null(r.len()),
        (false, true) if r.is_null(0) => PrimitiveArray::new_null(l.len()),
        (true, false) => {
            let a = l.value(0);
            r.unary(|b| f(a, b))
        }
        (false, true) => {
            let b = r.value(0);
            l.unary(|a| f(a, b))
        }
        _ => binary(l, r, f)?,
    };
    Ok(Arc::new(array))
}

/// Sums, differences and products of decimals whose exact result always fits 128 bits, without
/// overflow checks; products of 64-bit operands in one machine multiplication. `None`: take
/// arrow's checked kernel.
fn decimals(
    op: Operator,
    (l, l_scalar): (&dyn Array, bool),
    (r, r_scalar): (&dyn Array, bool),
) -> Result<Option<ArrayRef>> {
    let (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) =
        (l.data_type(), r.data_type())
    else {
        return Ok(None);
    };
    let Some((precision, scale)) = exact_decimal(op, (*p1, *s1), (*p2, *s2)) else {
        return Ok(None);
    };
    let left = (l.as_primitive::<Decimal128Type>(), l_scalar);
    let right = (r.as_primitive::<Decimal128Type>(), r_scalar);
    type D = Decimal128Type;
    let result = match op {
        Operator::Plus if s1 == s2 => zip_map::<D, D, D>(left, right, i128::wrapping_add)?,
        Operator::Minus if s1 == s2 => zip_map::<D, D, D>(left, right, i128::wrapping_sub)?,
        // 18 digits fit 64 bits.
        Operator::Multiply if *p1 <= 18 && *p2 <= 18 => {
            zip_map::<D, D, D>(left, right, |a, b| i128::from(a as i64) * i128::from(b as i64))?
        }
        Operator::Multiply => zip_map::<D, D, D>(left, right, i128::wrapping_mul)?,
        _ => return Ok(None),
    };
    let result = result.as_primitive::<D>().clone().with_precision_and_scale(precision, scale)?;
    Ok(Some(Arc::new(result)))
}

/// Precision and scale of `left op right` when no digit can be lost; `None` when the exact
/// result may need more than 38 digits.
pub(in crate::expressions) fn exact_decimal(
    op: Operator,
    (p1, s1): (u8, i8),
    (p2, s2): (u8, i8),
) -> Option<(u8, i8)> {
    let (precision, scale) = match op {
        Operator::Plus | Operator::Minus => {
            let scale = s1.max(s2);
            let whole = (i32::from(p1) - i32::from(s1)).max(i32::from(p2) - i32::from(s2));
            (whole + i32::from(scale) + 1, i32::from(scale))
        }
        Operator::Multiply => (i32::from(p1) + i32::from(p2) + 1, i32::from(s1) + i32::from(s2)),
        _ => return None,
    };
    let fits = (1..=38).contains(&precision) && (-38..=38).contains(&scale);
    fits.then_some((precision as u8, scale as i8))
}

/// `time ± interval`: the time of day, around the clock; months and days of the interval say
/// nothing about it.
fn shift_time(
    (time, time_scalar): (&dyn Array, bool),
    (interval, interval_scalar): (&dyn Array, bool),
    negative: bool,
) -> Result<ArrayRef> {
    let interval = cast(interval, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let interval = (interval.as_primitive::<IntervalMonthDayNanoType>(), interval_scalar);
    let sign = if negative { -1i128 } else { 1 };
    // The interval counts at the resolution of the time; less than that is dropped.
    let shift = |value: i64, nanos: i64, per_unit: i64| {
        let day = i128::from(86_400_000_000_000 / per_unit);
        let moved = i128::from(value) + sign * i128::from(nanos / per_unit);
        moved.rem_euclid(day) as i64
    };
    macro_rules! shifted {
        ($time:ty, $native:ty, $per_unit:expr) => {
            zip_map::<$time, IntervalMonthDayNanoType, $time>(
                (time.as_primitive::<$time>(), time_scalar),
                interval,
                |t, i| shift(i64::from(t), i.nanoseconds, $per_unit) as $native,
            )
        };
    }
    match time.data_type() {
        DataType::Time32(TimeUnit::Second) => shifted!(Time32SecondType, i32, 1_000_000_000),
        DataType::Time32(_) => shifted!(Time32MillisecondType, i32, 1_000_000),
        DataType::Time64(TimeUnit::Microsecond) => shifted!(Time64MicrosecondType, i64, 1000),
        DataType::Time64(_) => shifted!(Time64NanosecondType, i64, 1),
        other => internal_err!("{other} is not a time"),
    }
}
