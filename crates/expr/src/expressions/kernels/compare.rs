//! Comparisons, as SQL wants them: `-0.0 = 0.0`, `NaN = NaN`, and NaN is greater than all other
//! numbers. (Arrow compares floats in total order, where the zeros differ.)

use super::{Operand, apply_binary};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Datum, PrimitiveArray, Scalar,
    make_comparator, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Operator};
use std::cmp::Ordering;
use std::sync::Arc;

/// `left op right` for a comparison operator; both sides have one type, dictionaries aside.
pub(in crate::expressions) fn compare(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<ColumnarValue> {
    apply_binary(left, right, |l, r| Ok(Arc::new(compare_datums(op, l, r)?) as ArrayRef))
}

fn compare_datums(op: Operator, left: &dyn Datum, right: &dyn Datum) -> Result<BooleanArray> {
    let ((l, l_scalar), (r, r_scalar)) = (left.get(), right.get());
    let (l_type, r_type) = (value_type(l.data_type()), value_type(r.data_type()));
    if *l_type == DataType::Null && l_type != r_type {
        let typed = new_null_array(r_type, l.len());
        return compare_datums(op, &typed_datum(&typed, l_scalar), right);
    }
    if *r_type == DataType::Null && l_type != r_type {
        let typed = new_null_array(l_type, r.len());
        return compare_datums(op, left, &typed_datum(&typed, r_scalar));
    }
    if l_type.is_floating() && l_type == r_type {
        let (l, r) = (cast(l, l_type)?, cast(r, r_type)?);
        return match l_type {
            DataType::Float16 => floats::<Float16Type>(op, &l, l_scalar, &r, r_scalar),
            DataType::Float32 => floats::<Float32Type>(op, &l, l_scalar, &r, r_scalar),
            _ => floats::<Float64Type>(op, &l, l_scalar, &r, r_scalar),
        };
    }
    if l_type.is_nested() || r_type.is_nested() {
        return nested(op, (l, l_scalar), (r, r_scalar));
    }
    Ok(match op {
        Operator::Eq => cmp::eq(left, right)?,
        Operator::NotEq => cmp::neq(left, right)?,
        Operator::Lt => cmp::lt(left, right)?,
        Operator::LtEq => cmp::lt_eq(left, right)?,
        Operator::Gt => cmp::gt(left, right)?,
        Operator::GtEq => cmp::gt_eq(left, right)?,
        Operator::IsDistinctFrom => cmp::distinct(left, right)?,
        Operator::IsNotDistinctFrom => cmp::not_distinct(left, right)?,
        other => return internal_err!("{other} is not a comparison"),
    })
}

/// An untyped NULL, now of the other side's type.
fn typed_datum(array: &ArrayRef, scalar: bool) -> Operand {
    let array = Arc::clone(array);
    if scalar { Operand::Scalar(Scalar::new(array)) } else { Operand::Array(array) }
}

fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value,
        DataType::RunEndEncoded(_, value) => value.data_type(),
        other => other,
    }
}

fn floats<T: ArrowPrimitiveType>(
    op: Operator,
    l: &dyn Array,
    l_scalar: bool,
    r: &dyn Array,
    r_scalar: bool,
) -> Result<BooleanArray>
where
    T::Native: PartialOrd,
{
    let (l, r) = (l.as_primitive::<T>(), r.as_primitive::<T>());
    let bits = match op {
        Operator::Eq | Operator::IsNotDistinctFrom => bits(l, l_scalar, r, r_scalar, equal),
        Operator::NotEq | Operator::IsDistinctFrom => {
            bits(l, l_scalar, r, r_scalar, |a, b| !equal(a, b))
        }
        Operator::Lt => bits(l, l_scalar, r, r_scalar, less),
        Operator::LtEq => bits(l, l_scalar, r, r_scalar, |a, b| !less(b, a)),
        Operator::Gt => bits(l, l_scalar, r, r_scalar, |a, b| less(b, a)),
        Operator::GtEq => bits(l, l_scalar, r, r_scalar, |a, b| !less(a, b)),
        other => return internal_err!("{other} is not a comparison"),
    };
    Ok(with_nulls(op, bits, (l, l_scalar), (r, r_scalar)))
}

/// NaN equals NaN.
#[expect(clippy::eq_op, reason = "x != x is the branchless test for NaN")]
fn equal<N: PartialOrd + Copy>(a: N, b: N) -> bool {
    (a == b) | ((a != a) & (b != b))
}

/// NaN is the greatest.
#[expect(clippy::eq_op, reason = "x != x is the branchless test for NaN")]
fn less<N: PartialOrd + Copy>(a: N, b: N) -> bool {
    (a < b) | ((a == a) & (b != b))
}

fn bits<T: ArrowPrimitiveType>(
    l: &PrimitiveArray<T>,
    l_scalar: bool,
    r: &PrimitiveArray<T>,
    r_scalar: bool,
    f: impl Fn(T::Native, T::Native) -> bool,
) -> BooleanBuffer {
    match (l_scalar, r_scalar) {
        (true, false) => {
            let (a, r) = (l.value(0), r.values());
            BooleanBuffer::collect_bool(r.len(), |i| f(a, r[i]))
        }
        (false, true) => {
            let (l, b) = (l.values(), r.value(0));
            BooleanBuffer::collect_bool(l.len(), |i| f(l[i], b))
        }
        _ => {
            let (l, r) = (l.values(), r.values());
            BooleanBuffer::collect_bool(l.len().min(r.len()), |i| f(l[i], r[i]))
        }
    }
}

/// The result of a comparison whose bits say what holds where both sides are valid.
fn with_nulls(
    op: Operator,
    bits: BooleanBuffer,
    left: (&dyn Array, bool),
    right: (&dyn Array, bool),
) -> BooleanArray {
    let rows = bits.len();
    let (l, r) = (validity(left, rows), validity(right, rows));
    if l.is_none() && r.is_none() {
        return BooleanArray::new(bits, None);
    }
    if !matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) {
        return BooleanArray::new(bits, NullBuffer::union(l.as_ref(), r.as_ref()));
    }
    let all = || BooleanBuffer::new_set(rows);
    let l = l.map_or_else(all, NullBuffer::into_inner);
    let r = r.map_or_else(all, NullBuffer::into_inner);
    let both = &l & &r;
    let bits = if op == Operator::IsDistinctFrom {
        &(&both & &bits) | &(&l ^ &r)
    } else {
        &(&both & &bits) | &!&(&l | &r)
    };
    BooleanArray::new(bits, None)
}

fn validity((array, scalar): (&dyn Array, bool), rows: usize) -> Option<NullBuffer> {
    let nulls = array.logical_nulls().filter(|n| n.null_count() > 0)?;
    Some(if scalar { NullBuffer::new_null(rows) } else { nulls })
}

/// Lists, structs and maps: value by value; a NULL inside counts as equal to a NULL, and sorts
/// last.
fn nested(
    op: Operator,
    left: (&dyn Array, bool),
    right: (&dyn Array, bool),
) -> Result<BooleanArray> {
    let options = SortOptions { descending: false, nulls_first: false };
    let compare = make_comparator(left.0, right.0, options)?;
    let holds: fn(Ordering) -> bool = match op {
        Operator::Eq | Operator::IsNotDistinctFrom => Ordering::is_eq,
        Operator::NotEq | Operator::IsDistinctFrom => Ordering::is_ne,
        Operator::Lt => Ordering::is_lt,
        Operator::LtEq => Ordering::is_le,
        Operator::Gt => Ordering::is_gt,
        Operator::GtEq => Ordering::is_ge,
        other => return internal_err!("{other} is not a comparison"),
    };
    let at = |scalar: bool, i: usize| if scalar { 0 } else { i };
    let bits = BooleanBuffer::collect_bool(super::rows(left, right), |i| {
        holds(compare(at(left.1, i), at(right.1, i)))
    });
    Ok(with_nulls(op, bits, left, right))
}
