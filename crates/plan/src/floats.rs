//! One bit pattern per set of equal floats: `-0.0` becomes `0.0`, every NaN the same NaN.
//!
//! SQL's `=` says they are equal, their bits do not: grouping, join and sort keys go through here.

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type};
use datafusion_common::Result;
use std::sync::Arc;

/// Whether values of this type are, or hold, floats.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::Dictionary(_, value) => has_floats(value),
        DataType::RunEndEncoded(_, value) => has_floats(value.data_type()),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|f| has_floats(f.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, f)| has_floats(f.data_type())),
        _ => false,
    }
}

type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// The bits that stand for all floats equal to the one of bits `bits`, whose exponent is all
/// ones in `infinity` and whose sign is `sign`.
macro_rules! normal_bits {
    ($name:ident, $type:ty, $infinity:expr, $nan:expr) => {
        #[inline]
        pub(crate) fn $name(bits: $type) -> $type {
            let magnitude = bits & (<$type>::MAX >> 1);
            if magnitude == 0 {
                0
            } else if magnitude > $infinity {
                $nan
            } else {
                bits
            }
        }
    };
}

normal_bits!(normal16, u16, 0x7c00, 0x7e00);
normal_bits!(normal32, u32, 0x7f80_0000, 0x7fc0_0000);
normal_bits!(normal64, u64, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000);

/// `array` with equal floats made bitwise equal, at any depth.
///
/// # Errors
/// When an array cannot be rebuilt.
pub(crate) fn normalize_floats(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float16 => Arc::new(
            array
                .as_primitive::<Float16Type>()
                .unary::<_, Float16Type>(|v| F16::from_bits(normal16(v.to_bits()))),
        ),
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| f32::from_bits(normal32(v.to_bits()))),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| f64::from_bits(normal64(v.to_bits()))),
        ),
        nested if has_floats(nested) => {
            let data = array.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| Ok(normalize_floats(&make_array(child.clone()))?.to_data()))
                .collect::<Result<Vec<_>>>()?;
            make_array(data.into_builder().child_data(children).build()?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, StructArray};
    use arrow::datatypes::{Field, Fields};

    #[test]
    fn zeros_and_nans_are_one_at_any_depth() {
        let floats: ArrayRef =
            Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, -1.5]));
        let fields = Fields::from(vec![Field::new("x", DataType::Float64, false)]);
        let nested: ArrayRef = Arc::new(StructArray::new(fields, vec![floats], None));
        let normal = normalize_floats(&nested).unwrap();
        let bits: Vec<u64> = normal
            .as_struct()
            .column(0)
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .map(|v| v.to_bits())
            .collect();
        assert_eq!(bits[0], bits[1]);
        assert_eq!(bits[2], bits[3]);
        assert_eq!(f64::from_bits(bits[4]), -1.5);
    }
}
