//! One hash per row, equal for equal values however they are encoded: plain strings, views and
//! dictionaries hash alike, as do -0.0 and 0.0, all NaNs, and integers of any width.

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{ArrowNativeType, DataType, IntervalDayTime, IntervalMonthDayNano, i256};
use arrow::row::{RowConverter, SortField};
use arrow::{downcast_dictionary_array, downcast_primitive_array};
use datafusion_common::Result;
use foldhash::quality::FixedState;
use half::f16;
use std::hash::{BuildHasher, Hasher};

/// The hash of NULL, in every type.
const NULL_HASH: u64 = 0x5851_f42d_4c95_7f2d;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// Hashes each of `rows` rows over `arrays` (all of them that long) into `hashes`, which is
/// cleared first. No arrays: all rows hash alike.
///
/// # Errors
/// When a nested type cannot be hashed.
pub fn hash_rows(arrays: &[ArrayRef], rows: usize, hashes: &mut Vec<u64>) -> Result<()> {
    hashes.clear();
    hashes.resize(rows, SEED);
    for (i, array) in arrays.iter().enumerate() {
        if i == 0 {
            hash_array(array.as_ref(), |row, hash| hashes[row] = hash)?;
        } else {
            hash_array(array.as_ref(), |row, hash| {
                hashes[row] = fold(hashes[row].rotate_left(23) ^ hash, MULTIPLIER);
            })?;
        }
    }
    Ok(())
}

/// Which of `partitions` partitions a row with this hash belongs to. Independent of the bits
/// that a hash table over the same hashes looks at.
#[inline]
pub fn partition_of(hash: u64, partitions: usize) -> usize {
    let mixed = fold(hash ^ NULL_HASH, SEED);
    ((u128::from(mixed) * partitions as u128) >> 64) as usize
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn hash_word(word: u64) -> u64 {
    fold(word ^ SEED, MULTIPLIER)
}

#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(SEED).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// Calls `put` with the hash of each row of `array`, in order.
fn hash_array(array: &dyn Array, mut put: impl FnMut(usize, u64)) -> Result<()> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    // Each arm gives the hash of a row that is not NULL.
    macro_rules! put_all {
        ($hash_of:expr) => {{
            let hash_of = $hash_of;
            match &nulls {
                None => (0..array.len()).for_each(|row| put(row, hash_of(row))),
                Some(nulls) => (0..array.len()).for_each(|row| {
                    put(row, if nulls.is_null(row) { NULL_HASH } else { hash_of(row) });
                }),
            }
        }};
    }
    downcast_primitive_array!(
        array => {
            let values = array.values();
            put_all!(|row: usize| values[row].hash_native())
        },
        DataType::Null => put_all!(|_| NULL_HASH),
        DataType::Boolean => {
            let values = array.as_boolean().values();
            put_all!(|row| hash_word(u64::from(values.value(row))))
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            put_all!(|row| hash_bytes(values.value(row).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            put_all!(|row| hash_bytes(values.value(row).as_bytes()))
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            put_all!(|row| hash_bytes(values.value(row).as_bytes()))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            put_all!(|row| hash_bytes(values.value(row)))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            put_all!(|row| hash_bytes(values.value(row)))
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            put_all!(|row| hash_bytes(values.value(row)))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            put_all!(|row| hash_bytes(values.value(row)))
        }
        DataType::Dictionary(..) => hash_dictionary(array, put)?,
        DataType::RunEndEncoded(_, values) => {
            let plain = arrow::compute::cast(array, values.data_type())?;
            hash_array(plain.as_ref(), put)?;
        }
        _ => {
            let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
            let rows = converter.convert_columns(&[make_array(array.to_data())])?;
            put_all!(|row| hash_bytes(rows.row(row).data()))
        }
    );
    Ok(())
}

/// Each entry of a dictionary is hashed once.
fn hash_dictionary(array: &dyn Array, mut put: impl FnMut(usize, u64)) -> Result<()> {
    downcast_dictionary_array!(
        array => {
            let mut entries = vec![NULL_HASH; array.values().len()];
            // Through `dyn`: a generic closure would instantiate this function without end.
            let fill: &mut dyn FnMut(usize, u64) = &mut |entry, hash| entries[entry] = hash;
            hash_array(array.values().as_ref(), fill)?;
            for (row, key) in array.keys().iter().enumerate() {
                put(row, key.map_or(NULL_HASH, |key| entries[key.as_usize()]));
            }
        },
        other => datafusion_common::internal_err!("{other} is no dictionary")?
    );
    Ok(())
}

/// Hashing of the values of primitive arrays.
trait HashNative: Copy {
    fn hash_native(self) -> u64;
}

macro_rules! hash_as_integer {
    ($($native:ty),+) => {$(
        impl HashNative for $native {
            #[inline]
            fn hash_native(self) -> u64 {
                hash_word(self as i64 as u64)
            }
        }
    )+};
}
hash_as_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

impl HashNative for i128 {
    #[inline]
    fn hash_native(self) -> u64 {
        match i64::try_from(self) {
            Ok(narrow) => narrow.hash_native(),
            Err(_) => fold(hash_word(self as u64), (self >> 64) as u64 ^ SEED),
        }
    }
}

impl HashNative for i256 {
    fn hash_native(self) -> u64 {
        let (low, high) = self.to_parts();
        match self.to_i128() {
            Some(narrow) => narrow.hash_native(),
            None => fold((low as i128).hash_native(), high.hash_native() ^ SEED),
        }
    }
}

macro_rules! hash_as_float {
    ($($native:ty),+) => {$(
        impl HashNative for $native {
            #[inline]
            fn hash_native(self) -> u64 {
                let value = f64::from(self);
                // One zero and one NaN.
                let bits = match value {
                    0.0 => 0,
                    _ if value.is_nan() => f64::NAN.to_bits(),
                    _ => value.to_bits(),
                };
                hash_word(bits)
            }
        }
    )+};
}
hash_as_float!(f32, f64, f16);

impl HashNative for IntervalDayTime {
    fn hash_native(self) -> u64 {
        fold(self.days.hash_native(), self.milliseconds.hash_native() ^ SEED)
    }
}

impl HashNative for IntervalMonthDayNano {
    fn hash_native(self) -> u64 {
        let days = fold(self.months.hash_native(), self.days.hash_native() ^ SEED);
        fold(days, self.nanoseconds.hash_native() ^ SEED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};
    use arrow::compute::cast;
    use std::sync::Arc;

    fn hashes(arrays: &[ArrayRef]) -> Vec<u64> {
        let mut out = vec![];
        hash_rows(arrays, arrays[0].len(), &mut out).unwrap();
        out
    }

    #[test]
    fn strings_hash_alike_in_every_encoding() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            None,
            Some("a longer one, no view"),
            Some("a"),
        ]));
        let expected = hashes(&[Arc::clone(&plain)]);
        assert_eq!(expected[0], expected[3]);
        assert_ne!(expected[0], expected[2]);
        let dictionary =
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8View));
        for other in [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, dictionary] {
            assert_eq!(hashes(&[cast(&plain, &other).unwrap()]), expected, "{other}");
        }
    }

    #[test]
    fn zeros_are_one_and_so_are_nans() {
        let array = Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]);
        let h = hashes(&[Arc::new(array)]);
        assert_eq!(h[0], h[1]);
        assert_eq!(h[2], h[3]);
        assert_ne!(h[0], h[4]);
    }

    #[test]
    fn integers_and_narrow_decimals_hash_by_value() {
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(-3), None, Some(70_000)]));
        let wide = cast(&narrow, &DataType::Int64).unwrap();
        assert_eq!(hashes(&[narrow]), hashes(&[Arc::clone(&wide)]));
        let decimal = cast(&wide, &DataType::Decimal128(20, 0)).unwrap();
        assert_eq!(hashes(&[wide]), hashes(&[decimal]));
    }

    #[test]
    fn the_order_of_columns_counts() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let b: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
        let (ab, ba) = (hashes(&[Arc::clone(&a), Arc::clone(&b)]), hashes(&[b, a]));
        assert_ne!(ab[0], ab[1]);
        assert_eq!(ab[0], ba[1]);
    }

    #[test]
    fn partitions_are_about_even() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8000));
        let mut counts = [0; 8];
        hashes(&[keys]).into_iter().for_each(|h| counts[partition_of(h, 8)] += 1);
        assert!(counts.iter().all(|&n| (800..1200).contains(&n)), "{counts:?}");
    }
}
