//! From arrays to bits of keys: the loops over rows.

use super::interner::BytesInterner;
use super::packed::Key;
use arrow::array::{Array, ArrayData, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeType, ByteArrayType, ByteViewType};
use datafusion_common::Result;

/// The values of an array of fixed width, as unsigned words of that width.
pub(super) fn native<T: ArrowNativeType>(data: &ArrayData) -> &[T] {
    &data.buffers()[0].typed_data::<T>()[data.offset()..data.offset() + data.len()]
}

pub(super) fn widened<T: Copy + Into<u64>>(values: &[T]) -> impl Iterator<Item = u64> {
    values.iter().map(|v| (*v).into())
}

/// Ors the bits of `values` into `keys`; those of NULLs count as zero.
#[inline]
pub(super) fn pack<K: Key>(
    keys: &mut [K],
    at: u32,
    nulls: Option<&NullBuffer>,
    values: impl Iterator<Item = u64>,
) {
    match nulls {
        None => keys.iter_mut().zip(values).for_each(|(key, bits)| key.or_bits(bits, at)),
        Some(nulls) => {
            for ((key, bits), valid) in keys.iter_mut().zip(values).zip(nulls) {
                key.or_bits(if valid { bits } else { 0 }, at);
            }
        }
    }
}

pub(super) fn intern_all<'a, K: Key>(
    strings: &mut BytesInterner,
    keys: &mut [K],
    at: u32,
    nulls: Option<&NullBuffer>,
    value: impl Fn(usize) -> &'a [u8],
) -> Result<()> {
    let nulls = nulls.filter(|n| n.null_count() > 0);
    for (i, key) in keys.iter_mut().enumerate() {
        if nulls.is_none_or(|n| n.is_valid(i)) {
            key.or_bits(u64::from(strings.intern(value(i))?), at);
        }
    }
    Ok(())
}

pub(super) fn intern_bytes<T: ByteArrayType, K: Key>(
    strings: &mut BytesInterner,
    array: &ArrayRef,
    at: u32,
    keys: &mut [K],
) -> Result<()> {
    let values = array.as_bytes::<T>();
    intern_all(strings, keys, at, values.nulls(), |i| values.value(i).as_ref())
}

pub(super) fn intern_views<T: ByteViewType, K: Key>(
    strings: &mut BytesInterner,
    array: &ArrayRef,
    at: u32,
    keys: &mut [K],
) -> Result<()> {
    let values = array.as_byte_view::<T>();
    intern_all(strings, keys, at, values.nulls(), |i| values.value(i).as_ref())
}
