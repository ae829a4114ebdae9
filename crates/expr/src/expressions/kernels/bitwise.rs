//! `& | # << >>` over integers.

use super::apply_binary;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::binary;
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Operator};
use std::sync::Arc;

/// The integers that have bits to work on.
trait Bits: Copy {
    fn apply(self, op: Operator, other: Self) -> Self;
}

macro_rules! impl_bits {
    ($($native:ty),+) => {
        $(impl Bits for $native {
            #[inline]
            fn apply(self, op: Operator, other: Self) -> Self {
                match op {
                    Operator::BitwiseAnd => self & other,
                    Operator::BitwiseOr => self | other,
                    Operator::BitwiseXor => self ^ other,
                    // A shift by the width or more goes around, as in PostgreSQL.
                    Operator::BitwiseShiftLeft => self.wrapping_shl(other as u32),
                    _ => self.wrapping_shr(other as u32),
                }
            }
        })+
    };
}
impl_bits!(i8, i16, i32, i64, u8, u16, u32, u64);

/// `left op right` for a bitwise operator.
pub(in crate::expressions) fn bitwise(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<ColumnarValue> {
    apply_binary(left, right, |l, r| {
        let (l, r) = (l.get(), r.get());
        match (l.0.data_type(), r.0.data_type()) {
            (DataType::Int8, DataType::Int8) => typed::<Int8Type>(op, l, r),
            (DataType::Int16, DataType::Int16) => typed::<Int16Type>(op, l, r),
            (DataType::Int32, DataType::Int32) => typed::<Int32Type>(op, l, r),
            (DataType::Int64, DataType::Int64) => typed::<Int64Type>(op, l, r),
            (DataType::UInt8, DataType::UInt8) => typed::<UInt8Type>(op, l, r),
            (DataType::UInt16, DataType::UInt16) => typed::<UInt16Type>(op, l, r),
            (DataType::UInt32, DataType::UInt32) => typed::<UInt32Type>(op, l, r),
            (DataType::UInt64, DataType::UInt64) => typed::<UInt64Type>(op, l, r),
            (l, r) => internal_err!("{l} {op} {r} is not a bitwise operation"),
        }
    })
}

fn typed<T: ArrowPrimitiveType>(
    op: Operator,
    (l, l_scalar): (&dyn Array, bool),
    (r, r_scalar): (&dyn Array, bool),
) -> Result<ArrayRef>
where
    T::Native: Bits,
{
    let (l, r) = (l.as_primitive::<T>(), r.as_primitive::<T>());
    let array: PrimitiveArray<T> = match (l_scalar, r_scalar) {
        (true, false) if l.is_null(0) => PrimitiveArray::new_null(r.len()),
        (false, true) if r.is_null(0) => PrimitiveArray::new_null(l.len()),
        (true, false) => {
            let a = l.value(0);
            r.unary(|b| a.apply(op, b))
        }
        (false, true) => {
            let b = r.value(0);
            l.unary(|a| a.apply(op, b))
        }
        _ => binary(l, r, |a, b| a.apply(op, b))?,
    };
    Ok(Arc::new(array))
}
