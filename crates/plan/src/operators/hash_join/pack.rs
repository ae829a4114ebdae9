//! Fixed-width values as bits of an integer code.

use crate::operators::hash_join::keys::Codes;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion_common::{Result, internal_err};

/// An integer that stands for a key.
pub(crate) trait Code: Copy + Eq + Default + Send + Sync + 'static {
    /// This code with `bits` more bits below it.
    fn append(self, bits: u32, lane: u128) -> Self;
    /// A hash whose high bits are as good as its low ones.
    fn hash(self) -> u64;
    /// The value `shift` bits from the right, as wide as `mask`.
    fn lane(self, shift: u32, mask: u64) -> u64;
    /// The codes of this type (hashes count as such); none when they are of the other.
    fn codes(codes: &Codes) -> &[Self];
}

impl Code for u64 {
    #[inline]
    fn append(self, bits: u32, lane: u128) -> Self {
        if bits >= 64 { lane as u64 } else { (self << bits) | lane as u64 }
    }

    #[inline]
    fn hash(self) -> u64 {
        fold(self ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93)
    }

    #[inline]
    fn lane(self, shift: u32, mask: u64) -> u64 {
        (self >> shift) & mask
    }

    fn codes(codes: &Codes) -> &[Self] {
        match codes {
            Codes::Narrow(codes) | Codes::Bytes(codes, _) => codes,
            Codes::Wide(_) => &[],
        }
    }
}

impl Code for u128 {
    #[inline]
    fn append(self, bits: u32, lane: u128) -> Self {
        if bits >= 128 { lane } else { (self << bits) | lane }
    }

    #[inline]
    fn hash(self) -> u64 {
        (fold(self as u64 ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93) ^ (self >> 64) as u64)
            .hash()
    }

    #[inline]
    fn lane(self, shift: u32, mask: u64) -> u64 {
        (self >> shift) as u64 & mask
    }

    fn codes(codes: &Codes) -> &[Self] {
        match codes {
            Codes::Wide(codes) => codes,
            Codes::Narrow(_) | Codes::Bytes(..) => &[],
        }
    }
}

/// The two halves of a 128-bit product, folded.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// Bits of a value of a type that can be packed.
pub(crate) fn packed_bits(data_type: &DataType) -> Option<u32> {
    Some(match data_type {
        DataType::Boolean => 1,
        DataType::Int8 | DataType::UInt8 => 8,
        DataType::Int16 | DataType::UInt16 | DataType::Float16 => 16,
        DataType::Int32
        | DataType::UInt32
        | DataType::Float32
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Interval(IntervalUnit::YearMonth)
        | DataType::Decimal32(..) => 32,
        DataType::Int64
        | DataType::UInt64
        | DataType::Float64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => 64,
        DataType::Decimal128(..) => 128,
        _ => return None,
    })
}

/// Appends the values of `array`, `bits` wide, to the codes; NULL appends zeros.
pub(crate) fn append_lanes<C: Code>(
    codes: &mut [C],
    array: &ArrayRef,
    bits: u32,
    nulls: Option<&NullBuffer>,
) -> Result<()> {
    fn each<C: Code, T: ArrowPrimitiveType>(
        codes: &mut [C],
        values: &PrimitiveArray<T>,
        bits: u32,
        nulls: Option<&NullBuffer>,
        lane: impl Fn(T::Native) -> u128,
    ) {
        let pairs = codes.iter_mut().zip(values.values());
        match nulls {
            None => pairs.for_each(|(code, &value)| *code = code.append(bits, lane(value))),
            Some(nulls) => pairs.zip(nulls).for_each(|((code, &value), valid)| {
                *code = code.append(bits, if valid { lane(value) } else { 0 });
            }),
        }
    }
    macro_rules! lanes {
        ($type:ty, $lane:expr) => {
            each(codes, array.as_primitive::<$type>(), bits, nulls, $lane)
        };
    }
    match array.data_type() {
        DataType::Boolean => {
            for (i, code) in codes.iter_mut().enumerate() {
                let valid = nulls.is_none_or(|nulls| nulls.is_valid(i));
                let value = valid && array.as_boolean().value(i);
                *code = code.append(bits, u128::from(value));
            }
        }
        DataType::Int8 => lanes!(Int8Type, |v| u128::from(v as u8 ^ (1 << 7))),
        DataType::Int16 => lanes!(Int16Type, |v| u128::from(v as u16 ^ (1 << 15))),
        DataType::Int32 => lanes!(Int32Type, |v| u128::from(v as u32 ^ (1 << 31))),
        DataType::Int64 => lanes!(Int64Type, |v| u128::from(v as u64 ^ (1 << 63))),
        DataType::UInt8 => lanes!(UInt8Type, u128::from),
        DataType::UInt16 => lanes!(UInt16Type, u128::from),
        DataType::UInt32 => lanes!(UInt32Type, u128::from),
        DataType::UInt64 => lanes!(UInt64Type, u128::from),
        DataType::Float16 => lanes!(Float16Type, |v| u128::from(v.to_bits())),
        DataType::Float32 => lanes!(Float32Type, |v| u128::from(v.to_bits())),
        DataType::Float64 => lanes!(Float64Type, |v| u128::from(v.to_bits())),
        DataType::Decimal128(..) => lanes!(Decimal128Type, |v| v as u128 ^ (1 << 127)),
        other => {
            let physical = match packed_bits(other) {
                Some(32) => DataType::Int32,
                Some(64) => DataType::Int64,
                _ => return internal_err!("join keys of {other} cannot be packed"),
            };
            let data = array.to_data().into_builder().data_type(physical).build()?;
            return append_lanes(codes, &make_array(data), bits, nulls);
        }
    }
    Ok(())
}
