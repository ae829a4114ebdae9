//! Three-valued logic on bitmaps.

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::DataType;
use arrow::util::bit_util;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use std::sync::Arc;

/// A boolean operand: one truth value for all rows, or one per row.
pub(in crate::expressions) enum Bools {
    Scalar(Option<bool>),
    Array(BooleanArray),
}

impl Bools {
    /// A value of type Boolean, or of type Null.
    pub(in crate::expressions) fn new(value: &ColumnarValue) -> Result<Self> {
        match value {
            ColumnarValue::Scalar(ScalarValue::Boolean(value)) => Ok(Bools::Scalar(*value)),
            ColumnarValue::Scalar(value) if value.is_null() => Ok(Bools::Scalar(None)),
            ColumnarValue::Array(array) => match array.data_type() {
                DataType::Boolean => Ok(Bools::Array(array.as_boolean().clone())),
                DataType::Null => Ok(Bools::Scalar(None)),
                other => internal_err!("{other} is not a truth value"),
            },
            ColumnarValue::Scalar(value) => {
                internal_err!("{value} of type {} is not a truth value", value.data_type())
            }
        }
    }

    /// The operand as a value of type Boolean.
    pub(in crate::expressions) fn into_value(self) -> ColumnarValue {
        match self {
            Bools::Scalar(value) => ColumnarValue::Scalar(ScalarValue::Boolean(value)),
            Bools::Array(array) => ColumnarValue::Array(Arc::new(array)),
        }
    }
}

/// `left AND right`.
pub(in crate::expressions) fn and_kleene(left: Bools, right: Bools) -> Result<Bools> {
    Ok(match (left, right) {
        (Bools::Scalar(Some(true)), other) | (other, Bools::Scalar(Some(true))) => other,
        (Bools::Scalar(Some(false)), _) | (_, Bools::Scalar(Some(false))) => {
            Bools::Scalar(Some(false))
        }
        (Bools::Scalar(None), Bools::Scalar(None)) => Bools::Scalar(None),
        // NULL AND false is false, all else is NULL.
        (Bools::Scalar(None), Bools::Array(array)) | (Bools::Array(array), Bools::Scalar(None)) => {
            let is_false = known(&!array.values(), &array);
            let rows = array.len();
            Bools::Array(BooleanArray::new(
                BooleanBuffer::new_unset(rows),
                Some(NullBuffer::new(is_false)),
            ))
        }
        (Bools::Array(l), Bools::Array(r)) => Bools::Array(compute::and_kleene(&l, &r)?),
    })
}

/// `left OR right`.
pub(in crate::expressions) fn or_kleene(left: Bools, right: Bools) -> Result<Bools> {
    Ok(match (left, right) {
        (Bools::Scalar(Some(false)), other) | (other, Bools::Scalar(Some(false))) => other,
        (Bools::Scalar(Some(true)), _) | (_, Bools::Scalar(Some(true))) => {
            Bools::Scalar(Some(true))
        }
        (Bools::Scalar(None), Bools::Scalar(None)) => Bools::Scalar(None),
        // NULL OR true is true, all else is NULL.
        (Bools::Scalar(None), Bools::Array(array)) | (Bools::Array(array), Bools::Scalar(None)) => {
            let is_true = known(array.values(), &array);
            let rows = array.len();
            Bools::Array(BooleanArray::new(
                BooleanBuffer::new_set(rows),
                Some(NullBuffer::new(is_true)),
            ))
        }
        (Bools::Array(l), Bools::Array(r)) => Bools::Array(compute::or_kleene(&l, &r)?),
    })
}

/// `bits` where `array` is valid.
fn known(bits: &BooleanBuffer, array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        Some(nulls) => bits & nulls.inner(),
        None => bits.clone(),
    }
}

/// One truth value per row of `mask`: those of `values`, in order, where the mask is set, and
/// `elsewhere` in the other rows.
pub(crate) fn scatter(
    mask: &BooleanBuffer,
    values: &BooleanArray,
    elsewhere: bool,
) -> BooleanArray {
    let spread = |bits: &BooleanBuffer, elsewhere: bool| {
        let bytes = bit_util::ceil(mask.len(), 8);
        let mut out = if elsewhere {
            MutableBuffer::new(bytes).with_bitset(bytes, true)
        } else {
            MutableBuffer::new_null(mask.len())
        };
        let slice = out.as_slice_mut();
        for (k, i) in mask.set_indices().enumerate() {
            if bits.value(k) {
                bit_util::set_bit(slice, i);
            } else {
                bit_util::unset_bit(slice, i);
            }
        }
        BooleanBuffer::new(out.into(), 0, mask.len())
    };
    let nulls = values
        .nulls()
        .filter(|n| n.null_count() > 0)
        .map(|n| NullBuffer::new(spread(n.inner(), true)));
    BooleanArray::new(spread(values.values(), elsewhere), nulls)
}
