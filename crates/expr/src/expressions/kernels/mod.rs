//! Typed kernels over arrays and scalars, on top of arrow's. A scalar stays a scalar throughout:
//! no kernel here expands one into an array.

mod arithmetic;
mod bitwise;
mod boolean;
mod compare;
mod strings;

pub(super) use arithmetic::{arithmetic, exact_decimal};
pub(super) use bitwise::bitwise;
pub(crate) use boolean::scatter;
pub(super) use boolean::{Bools, and_kleene, or_kleene};
pub(super) use compare::compare;
pub(super) use strings::{concat_strings, regex_compiles, regex_match};

use arrow::array::{Array, ArrayRef, Datum, Scalar};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use std::sync::Arc;

/// An operand as arrow's kernels take it: an array, or a scalar in an array of one.
pub(super) enum Operand {
    Array(ArrayRef),
    Scalar(Scalar<ArrayRef>),
}

impl Operand {
    pub(super) fn new(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Operand::Array(Arc::clone(array)),
            ColumnarValue::Scalar(scalar) => Operand::Scalar(scalar.to_scalar()?),
        })
    }
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            Operand::Array(array) => (array.as_ref(), false),
            Operand::Scalar(scalar) => scalar.get(),
        }
    }
}

/// `kernel` over two operands. Two scalars give a scalar.
pub(super) fn apply_binary(
    left: &ColumnarValue,
    right: &ColumnarValue,
    kernel: impl FnOnce(&dyn Datum, &dyn Datum) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let result = kernel(&Operand::new(left)?, &Operand::new(right)?)?;
    Ok(match (left, right) {
        (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        }
        _ => ColumnarValue::Array(result),
    })
}

/// `kernel` over one operand. A scalar gives a scalar.
pub(super) fn apply_unary(
    value: &ColumnarValue,
    kernel: impl FnOnce(&dyn Array) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(kernel(array)?),
        ColumnarValue::Scalar(scalar) => {
            let result = kernel(&scalar.to_array_of_size(1)?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        }
    })
}

/// The number of rows that two operands have together.
pub(super) fn rows(left: (&dyn Array, bool), right: (&dyn Array, bool)) -> usize {
    if left.1 { right.0.len() } else { left.0.len() }
}
