//! Interval analysis: between which values an expression's values lie, given those of columns.
//!
//! Interval arithmetic after Moore, "Interval Analysis" (1966), on the corners: `+ - * /` are
//! monotonic in each operand as long as nothing overflows and no divisor is zero, so the
//! extremes are among the four results of the operands' ends. Where that does not hold, nothing
//! is known.

use super::arithmetic::corners;
use super::truth::possible_truth;
use crate::expressions::{
    BinaryExpr, CaseExpr, CastExpr, CoalesceExpr, Column, Literal, NegativeExpr, TryCastExpr,
};
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{ScalarValue, Statistics};
use datafusion_expr::Operator;
use std::cmp::Ordering;

/// What values an expression may have. NaN, which is greater than all numbers, is told apart,
/// since the statistics of files leave it out.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueBounds {
    /// No value is less; `None` when that is not known.
    pub lower: Option<ScalarValue>,
    /// No value is greater, NaN aside; `None` when that is not known.
    pub upper: Option<ScalarValue>,
    /// Whether a value may be NaN.
    pub may_be_nan: bool,
    /// Whether a value may be NULL.
    pub may_be_null: bool,
    /// Whether all values are NULL.
    pub all_null: bool,
}

impl ValueBounds {
    /// Anything may be.
    pub fn unknown() -> Self {
        ValueBounds {
            lower: None,
            upper: None,
            may_be_nan: true,
            may_be_null: true,
            all_null: false,
        }
    }

    /// Exactly `value`.
    pub fn of_value(value: &ScalarValue) -> Self {
        let null = value.is_null();
        let known = || (!null && !is_nan(value)).then(|| value.clone());
        ValueBounds {
            lower: known(),
            upper: known(),
            may_be_nan: is_nan(value),
            may_be_null: null,
            all_null: null,
        }
    }

    /// Values from `lower` to `upper`; NaN among them, if the type has it.
    pub fn between(lower: ScalarValue, upper: ScalarValue, may_be_null: bool) -> Self {
        let known = |end: ScalarValue| (!end.is_null() && !is_nan(&end)).then_some(end);
        ValueBounds {
            may_be_nan: lower.data_type().is_floating(),
            lower: known(lower),
            upper: known(upper),
            may_be_null,
            all_null: false,
        }
    }

    /// What statistics say of column `column`, exact or not: an estimate, nothing to prune by.
    pub fn estimate(stats: &Statistics, schema: &Schema, column: usize) -> Self {
        let (Some(known), Some(field)) =
            (stats.column_statistics.get(column), schema.fields().get(column))
        else {
            return ValueBounds::unknown();
        };
        let may_be_null =
            field.is_nullable() && known.null_count.get_value().is_none_or(|nulls| *nulls > 0);
        let end = |value: Option<&ScalarValue>| {
            value.cloned().unwrap_or_else(|| typed_null(field.data_type()))
        };
        ValueBounds::between(
            end(known.min_value.get_value()),
            end(known.max_value.get_value()),
            may_be_null,
        )
    }

    /// Whether every value that is not NULL is one and the same.
    pub(super) fn is_single(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => {
                !self.may_be_nan && compare(lower, upper) == Some(Ordering::Equal)
            }
            _ => false,
        }
    }

    /// The values of either.
    fn or(self, other: Self) -> Self {
        if self.all_null || other.all_null {
            let all_null = self.all_null && other.all_null;
            let values = if self.all_null { other } else { self };
            return ValueBounds { may_be_null: true, all_null, ..values };
        }
        let outer = |a: Option<ScalarValue>, b: Option<ScalarValue>, keep: Ordering| {
            let (a, b) = (a?, b?);
            let order = compare(&a, &b)?;
            Some(if order == keep { a } else { b })
        };
        ValueBounds {
            lower: outer(self.lower, other.lower, Ordering::Less),
            upper: outer(self.upper, other.upper, Ordering::Greater),
            may_be_nan: self.may_be_nan || other.may_be_nan,
            may_be_null: self.may_be_null || other.may_be_null,
            all_null: false,
        }
    }
}

fn typed_null(data_type: &DataType) -> ScalarValue {
    ScalarValue::try_new_null(data_type).unwrap_or(ScalarValue::Null)
}

pub(super) fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(v)) => v.is_nan(),
        ScalarValue::Float32(Some(v)) => v.is_nan(),
        ScalarValue::Float64(Some(v)) => v.is_nan(),
        _ => false,
    }
}

/// How two values that are not NULL compare in SQL; `None` for NaN and for different types.
pub(super) fn compare(a: &ScalarValue, b: &ScalarValue) -> Option<Ordering> {
    match (a, b) {
        // -0.0 equals 0.0, which the total order of `ScalarValue` denies.
        (ScalarValue::Float16(Some(a)), ScalarValue::Float16(Some(b))) => a.partial_cmp(b),
        (ScalarValue::Float32(Some(a)), ScalarValue::Float32(Some(b))) => a.partial_cmp(b),
        (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) => a.partial_cmp(b),
        _ if a.data_type() != b.data_type() || a.data_type().is_nested() => None,
        _ => a.partial_cmp(b),
    }
}

/// Between which values those of `expr` lie in rows of `schema` that are not an error; `columns`
/// says it of the columns.
pub fn value_bounds(
    expr: &PhysicalExprRef,
    schema: &Schema,
    columns: &dyn Fn(usize) -> ValueBounds,
) -> ValueBounds {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return columns(column.index());
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return ValueBounds::of_value(literal.value());
    }
    let known = if is_volatile(expr) { None } else { of_computation(expr, schema, columns) };
    known.unwrap_or_else(|| {
        let field = expr.return_field(schema);
        ValueBounds {
            may_be_null: field.as_ref().map_or(true, |f| f.is_nullable()),
            may_be_nan: field.map_or(true, |f| f.data_type().is_floating()),
            ..ValueBounds::unknown()
        }
    })
}

/// `None` when nothing is known.
fn of_computation(
    expr: &PhysicalExprRef,
    schema: &Schema,
    columns: &dyn Fn(usize) -> ValueBounds,
) -> Option<ValueBounds> {
    let of = |e: &PhysicalExprRef| value_bounds(e, schema, columns);
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema).ok()?;
        return of_cast(of(cast.expr()), &from, cast.cast_type());
    }
    if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        let from = cast.expr().data_type(schema).ok()?;
        let bounds = of_cast(of(cast.expr()), &from, cast.cast_type())?;
        return Some(ValueBounds { may_be_null: true, ..bounds });
    }
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        let data_type = negative.expr().data_type(schema).ok()?;
        let zero = ValueBounds::of_value(&ScalarValue::new_zero(&data_type).ok()?);
        let bounds = corners(Operator::Minus, &zero, &of(negative.expr()))?;
        // A difference of decimals has a digit more.
        return of_cast(bounds, &data_type, &data_type);
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        return of_case(case, schema, columns);
    }
    if let Some(coalesce) = expr.downcast_ref::<CoalesceExpr>() {
        return of_coalesce(coalesce, &of);
    }
    if expr.data_type(schema).ok()? == DataType::Boolean {
        return Some(possible_truth(expr, schema, columns).into());
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    corners(*binary.op(), &of(binary.left()), &of(binary.right()))
}

/// Both ends, cast, when the cast keeps the order of values.
fn of_cast(bounds: ValueBounds, from: &DataType, to: &DataType) -> Option<ValueBounds> {
    if bounds.all_null {
        return Some(bounds);
    }
    if !is_monotonic(from, to) {
        return None;
    }
    let end = |end: Option<ScalarValue>| {
        end.and_then(|v| v.cast_to(to).ok()).filter(|v| !v.is_null() && !is_nan(v))
    };
    Some(ValueBounds {
        lower: end(bounds.lower),
        upper: end(bounds.upper),
        may_be_nan: bounds.may_be_nan && to.is_floating(),
        ..bounds
    })
}

/// Whether a value that is not less never becomes less: numbers, and dates and timestamps whose
/// zone stays.
fn is_monotonic(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    match (from, to) {
        (Timestamp(_, a), Timestamp(_, b)) => a == b,
        (Date32, Date64 | Timestamp(_, None)) => true,
        _ => from == to || (from.is_numeric() && to.is_numeric()),
    }
}

fn of_case(
    case: &CaseExpr,
    schema: &Schema,
    columns: &dyn Fn(usize) -> ValueBounds,
) -> Option<ValueBounds> {
    let reached = case.when_then().iter().filter(|(when, _)| {
        case.operand().is_some() || possible_truth(when, schema, columns).may_be_true
    });
    let values = reached.map(|(_, then)| value_bounds(then, schema, columns));
    let otherwise = match case.otherwise() {
        Some(otherwise) => value_bounds(otherwise, schema, columns),
        None => ValueBounds::of_value(&ScalarValue::Null),
    };
    Some(values.fold(otherwise, ValueBounds::or))
}

fn of_coalesce(
    coalesce: &CoalesceExpr,
    of: &dyn Fn(&PhysicalExprRef) -> ValueBounds,
) -> Option<ValueBounds> {
    let mut may_be_null = true;
    let mut all: Option<ValueBounds> = None;
    for arg in coalesce.args() {
        let bounds = of(arg);
        may_be_null &= bounds.may_be_null;
        let last = !bounds.may_be_null;
        all = Some(match all {
            Some(before) => before.or(bounds),
            None => bounds,
        });
        if last {
            break;
        }
    }
    all.map(|bounds| ValueBounds { may_be_null, ..bounds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::lit;
    use arrow::datatypes::{Field, TimeUnit};
    use std::sync::Arc;

    /// The bounds of `expr` over one column of bounds `low` and `high`.
    fn over(
        low: ScalarValue,
        high: ScalarValue,
        expr: impl Fn(PhysicalExprRef) -> PhysicalExprRef,
    ) -> (Option<ScalarValue>, Option<ScalarValue>) {
        let schema = Schema::new(vec![Field::new("a", low.data_type(), false)]);
        let known = ValueBounds::between(low, high, false);
        let expr = expr(Arc::new(Column::new("a", 0)));
        let bounds = value_bounds(&expr, &schema, &|_| known.clone());
        (bounds.lower, bounds.upper)
    }

    fn cast_to(data_type: DataType) -> impl Fn(PhysicalExprRef) -> PhysicalExprRef {
        move |a| Arc::new(CastExpr::new(a, data_type.clone()))
    }

    fn some(
        low: impl Into<ScalarValue>,
        high: impl Into<ScalarValue>,
    ) -> (Option<ScalarValue>, Option<ScalarValue>) {
        (Some(low.into()), Some(high.into()))
    }

    fn decimal(value: i128, precision: u8, scale: i8) -> ScalarValue {
        ScalarValue::Decimal128(Some(value), precision, scale)
    }

    #[test]
    fn products_take_the_extreme_of_all_corners() {
        let times = |by: i64| {
            move |a| Arc::new(BinaryExpr::new(a, Operator::Multiply, lit(by))) as PhysicalExprRef
        };
        assert_eq!(
            over(ScalarValue::from(-2i64), ScalarValue::from(5i64), times(-3)),
            some(-15i64, 6i64)
        );
        let square = |a: PhysicalExprRef| {
            Arc::new(BinaryExpr::new(Arc::clone(&a), Operator::Multiply, a)) as PhysicalExprRef
        };
        // The two operands are not known to be one column.
        assert_eq!(
            over(ScalarValue::from(-2i64), ScalarValue::from(5i64), square),
            some(-10i64, 25i64)
        );
    }

    #[test]
    fn a_divisor_that_may_be_zero_leaves_nothing_known() {
        let hundred = |a: PhysicalExprRef| {
            Arc::new(BinaryExpr::new(lit(100i64), Operator::Divide, a)) as PhysicalExprRef
        };
        let of = |low: i64, high: i64| over(low.into(), high.into(), hundred);
        assert_eq!(of(2, 50), some(2i64, 50i64));
        assert_eq!(of(-50, -2), some(-50i64, -2i64));
        assert_eq!(of(0, 50), (None, None));
        assert_eq!(of(-1, 1), (None, None));
    }

    #[test]
    fn overflow_leaves_nothing_known() {
        let next = |a: PhysicalExprRef| {
            Arc::new(BinaryExpr::new(a, Operator::Plus, lit(1i64))) as PhysicalExprRef
        };
        let of = |low: i64, high: i64| over(low.into(), high.into(), next);
        assert_eq!(of(0, i64::MAX - 1), some(1i64, i64::MAX));
        assert_eq!(of(0, i64::MAX), (None, None));
        let negative = |a: PhysicalExprRef| Arc::new(NegativeExpr::new(a)) as PhysicalExprRef;
        let of = |low: i8, high: i8| over(low.into(), high.into(), negative);
        assert_eq!(of(-127, 5), some(-5i8, 127i8));
        assert_eq!(of(-128, 5), (None, None));
    }

    #[test]
    fn decimals_keep_their_scale() {
        let (low, high) = (decimal(-150, 5, 2), decimal(1000, 5, 2));
        let twice = |a: PhysicalExprRef| {
            let two = lit(decimal(20, 3, 1));
            Arc::new(BinaryExpr::new(a, Operator::Multiply, two)) as PhysicalExprRef
        };
        let wide = |v| decimal(v, 9, 3);
        assert_eq!(over(low.clone(), high.clone(), twice), some(wide(-3000), wide(20000)));
        let negative = |a: PhysicalExprRef| Arc::new(NegativeExpr::new(a)) as PhysicalExprRef;
        assert_eq!(over(low, high, negative), some(decimal(-1000, 5, 2), decimal(150, 5, 2)));
    }

    #[test]
    fn casts_that_keep_the_order_keep_the_bounds() {
        let of =
            |to: DataType| over(ScalarValue::from(-3i32), ScalarValue::from(7i32), cast_to(to));
        assert_eq!(of(DataType::Int64), some(-3i64, 7i64));
        assert_eq!(of(DataType::Float64), some(-3f64, 7f64));
        assert_eq!(
            of(DataType::Decimal128(10, 2)),
            some(decimal(-300, 10, 2), decimal(700, 10, 2))
        );
        // "-3" is less than "7", and "10" less than "9".
        assert_eq!(of(DataType::Utf8), (None, None));
        let day = |n| ScalarValue::Date32(Some(n));
        let second = DataType::Timestamp(TimeUnit::Second, None);
        let at = |n| ScalarValue::TimestampSecond(Some(n), None);
        assert_eq!(over(day(-1), day(1), cast_to(second.clone())), some(at(-86400), at(86400)));
        // Local time goes back an hour once a year.
        let berlin = ScalarValue::TimestampSecond(Some(0), Some("Europe/Berlin".into()));
        assert_eq!(over(berlin.clone(), berlin, cast_to(second)), (None, None));
    }

    #[test]
    fn nan_bounds_say_nothing() {
        let bounds =
            ValueBounds::between(ScalarValue::from(f64::NAN), ScalarValue::from(1f64), false);
        assert_eq!((bounds.lower, bounds.upper), (None, Some(ScalarValue::from(1f64))));
        assert!(bounds.may_be_nan, "statistics of files leave NaN out");
        assert!(
            !ValueBounds::between(ScalarValue::from(1i64), ScalarValue::from(2i64), false)
                .may_be_nan
        );
    }
}
