//! The ends of sums, differences, products and quotients.

use super::bounds::{ValueBounds, compare, is_nan};
use crate::PhysicalExpr;
use crate::expressions::{BinaryExpr, Column};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_batch::Batch;
use std::cmp::Ordering;
use std::sync::Arc;

/// The bounds of `left op right`: the least and the greatest of what the engine itself makes of
/// the operands' ends. `None` when an end is not known, something may overflow, or a divisor
/// may be zero.
pub(super) fn corners(
    op: Operator,
    left: &ValueBounds,
    right: &ValueBounds,
) -> Option<ValueBounds> {
    if left.all_null || right.all_null {
        return Some(ValueBounds::of_value(&ScalarValue::Null));
    }
    let (l_low, l_high) = (left.lower.as_ref()?, left.upper.as_ref()?);
    let (r_low, r_high) = (right.lower.as_ref()?, right.upper.as_ref()?);
    let numbers = [l_low, r_low].iter().all(|v| v.data_type().is_numeric());
    let defined = match op {
        Operator::Plus | Operator::Minus | Operator::Multiply => true,
        Operator::Divide => excludes_zero(r_low, r_high),
        _ => false,
    };
    if !numbers || !defined {
        return None;
    }
    let pairs = [(l_low, r_low), (l_low, r_high), (l_high, r_low), (l_high, r_high)];
    if pairs.iter().any(|(l, r)| integers_overflow(op, l, r)) {
        return None;
    }
    let results = evaluate(op, &pairs)?;
    if results.iter().any(|v| v.is_null() || is_nan(v)) {
        return None;
    }
    let extreme = |keep: Ordering| {
        let mut best = results.first()?;
        for value in &results {
            if compare(value, best)? == keep {
                best = value;
            }
        }
        Some(best.clone())
    };
    // Of finite numbers, none of these makes a NaN; infinite ones may.
    let finite = pairs.iter().all(|(l, r)| is_finite(l) && is_finite(r));
    Some(ValueBounds {
        may_be_nan: left.may_be_nan || right.may_be_nan || !finite,
        may_be_null: left.may_be_null || right.may_be_null,
        all_null: false,
        lower: Some(extreme(Ordering::Less)?),
        upper: Some(extreme(Ordering::Greater)?),
    })
}

fn excludes_zero(low: &ScalarValue, high: &ScalarValue) -> bool {
    let Ok(zero) = ScalarValue::new_zero(&low.data_type()) else { return false };
    compare(low, &zero) == Some(Ordering::Greater) || compare(high, &zero) == Some(Ordering::Less)
}

fn is_finite(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(v)) => v.is_finite(),
        ScalarValue::Float32(Some(v)) => v.is_finite(),
        ScalarValue::Float64(Some(v)) => v.is_finite(),
        _ => true,
    }
}

/// Whether integers wrap around. Decimals that overflow are an error.
fn integers_overflow(op: Operator, left: &ScalarValue, right: &ScalarValue) -> bool {
    let data_type = left.data_type();
    if !data_type.is_integer() {
        return false;
    }
    let (Some(l), Some(r)) = (integer(left), integer(right)) else { return true };
    let exact = match op {
        Operator::Plus => l.checked_add(r),
        Operator::Minus => l.checked_sub(r),
        Operator::Multiply => l.checked_mul(r),
        _ => l.checked_div(r),
    };
    let Some(exact) = exact else { return true };
    let Some(max) = max_of(&data_type) else { return true };
    let min = if data_type.is_unsigned_integer() { 0 } else { -max - 1 };
    !(min..=max).contains(&exact)
}

fn max_of(data_type: &DataType) -> Option<i128> {
    let bits = data_type.primitive_width()? * 8;
    let bits = if data_type.is_unsigned_integer() { bits } else { bits - 1 };
    Some((1i128 << bits) - 1)
}

fn integer(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(v) => v.map(i128::from),
        ScalarValue::Int16(v) => v.map(i128::from),
        ScalarValue::Int32(v) => v.map(i128::from),
        ScalarValue::Int64(v) => v.map(i128::from),
        ScalarValue::UInt8(v) => v.map(i128::from),
        ScalarValue::UInt16(v) => v.map(i128::from),
        ScalarValue::UInt32(v) => v.map(i128::from),
        ScalarValue::UInt64(v) => v.map(i128::from),
        _ => None,
    }
}

/// `left op right` of each pair, as the engine evaluates it.
fn evaluate(op: Operator, pairs: &[(&ScalarValue, &ScalarValue)]) -> Option<Vec<ScalarValue>> {
    let array = |side: Vec<&ScalarValue>| -> Option<ArrayRef> {
        ScalarValue::iter_to_array(side.into_iter().cloned()).ok()
    };
    let left = array(pairs.iter().map(|(l, _)| *l).collect())?;
    let right = array(pairs.iter().map(|(_, r)| *r).collect())?;
    let schema = Arc::new(Schema::new(vec![
        Field::new("l", left.data_type().clone(), false),
        Field::new("r", right.data_type().clone(), false),
    ]));
    let batch = Batch::from_arrays(schema, vec![left, right], pairs.len()).ok()?;
    let operand = |name, i| Arc::new(Column::new(name, i)) as crate::PhysicalExprRef;
    let expr = BinaryExpr::new(operand("l", 0), op, operand("r", 1));
    let results = expr.evaluate_array(&batch).ok()?;
    (0..pairs.len()).map(|i| ScalarValue::try_from_array(&results, i).ok()).collect()
}
