//! Join keys as codes: one integer per row, equal exactly when the keys are equal (or, for keys
//! that do not fit an integer, a hash of bytes to be verified).
//!
//! - columns that fit 64 (128) bits together are packed into a `u64` (`u128`), each flipped so
//!   that codes of one integer column keep its order: the table asks for their span;
//! - a single string or binary column is hashed and compared in place;
//! - everything else is row-encoded, hashed and compared as bytes.
//!
//! `-0.0` is `0.0` and all NaNs are one. Under `NullEqualsNull`, NULL is a key like any other;
//! otherwise rows with a NULL in any key column are listed as NULL and never match.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, StringArray, StringViewArray, make_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::{NullEquality, Result, internal_err, plan_err};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use std::hash::BuildHasher;
use std::sync::Arc;

/// An integer that stands for a key.
pub(crate) trait Code: Copy + Eq + Default + Send + Sync + 'static {
    /// This code with `bits` more bits below it.
    fn append(self, bits: u32, lane: u128) -> Self;
    /// A hash whose high bits are as good as its low ones.
    fn hash(self) -> u64;
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

/// The codes of the rows of one batch.
pub(crate) enum Codes {
    /// Packed into 64 bits.
    Narrow(Vec<u64>),
    /// Packed into 128 bits.
    Wide(Vec<u128>),
    /// Hashes of bytes, and the bytes.
    Bytes(Vec<u64>, ByteKeys),
}

/// The keys of the rows of one batch.
pub(crate) struct KeyBatch {
    /// One code per row.
    pub(crate) codes: Codes,
    /// Rows that match nothing because a key is NULL; their codes mean nothing.
    pub(crate) nulls: Option<NullBuffer>,
    /// Smallest and largest of narrow codes, NULL rows aside.
    pub(crate) span: Option<(u64, u64)>,
}

impl KeyBatch {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.codes {
            Codes::Narrow(codes) => codes.len(),
            Codes::Wide(codes) => codes.len(),
            Codes::Bytes(hashes, _) => hashes.len(),
        }
    }

    /// Whether row `i` may match anything.
    #[inline]
    pub(crate) fn is_valid(&self, i: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i))
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        match &self.codes {
            Codes::Narrow(codes) => codes.len() * 8,
            Codes::Wide(codes) => codes.len() * 16,
            Codes::Bytes(hashes, keys) => hashes.len() * 8 + keys.size(),
        }
    }
}

/// Keys as bytes.
pub(crate) enum ByteKeys {
    /// Strings.
    Utf8(StringArray),
    /// Strings with long offsets.
    LargeUtf8(LargeStringArray),
    /// String views.
    Utf8View(StringViewArray),
    /// Binary.
    Binary(BinaryArray),
    /// Binary with long offsets.
    LargeBinary(LargeBinaryArray),
    /// Binary views.
    BinaryView(BinaryViewArray),
    /// Several or other columns, row-encoded.
    Rows(Rows),
}

impl ByteKeys {
    /// The bytes of row `i`; a NULL row has some.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        match self {
            ByteKeys::Utf8(array) => array.value(i).as_bytes(),
            ByteKeys::LargeUtf8(array) => array.value(i).as_bytes(),
            ByteKeys::Utf8View(array) => array.value(i).as_bytes(),
            ByteKeys::Binary(array) => array.value(i),
            ByteKeys::LargeBinary(array) => array.value(i),
            ByteKeys::BinaryView(array) => array.value(i),
            ByteKeys::Rows(rows) => rows.row(i).data(),
        }
    }

    fn size(&self) -> usize {
        match self {
            ByteKeys::Rows(rows) => rows.size(),
            // The arrays are the build batch's own.
            _ => 0,
        }
    }

    fn hashes(&self, rows: usize) -> Vec<u64> {
        let hasher = foldhash::fast::FixedState::with_seed(0x706c_616e_6973_6821);
        (0..rows).map(|i| hasher.hash_one(self.get(i))).collect()
    }
}

/// How the keys of a join become codes; the same for both sides.
#[derive(Clone, Debug)]
pub(crate) struct KeyEncoder {
    form: KeyForm,
    columns: Vec<KeyColumn>,
    null_equals_null: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyForm {
    Narrow,
    Wide,
    Bytes,
    Rows,
}

#[derive(Clone, Debug)]
struct KeyColumn {
    /// The type that both sides are brought to: plain values.
    data_type: DataType,
    /// Bits of a value when packed.
    bits: Option<u32>,
}

impl KeyEncoder {
    /// An encoder for key columns of these types, `(left, right)` each.
    ///
    /// # Errors
    /// A plan error when the two sides of a key have types that cannot be compared.
    pub(crate) fn try_new(
        types: &[(DataType, DataType)],
        null_equality: NullEquality,
    ) -> Result<Self> {
        let null_equals_null = null_equality == NullEquality::NullEqualsNull;
        let columns = types
            .iter()
            .map(|(left, right)| {
                let (left, right) = (plain(left), plain(right));
                if left != right && !(is_bytes(left) && is_bytes(right)) {
                    return plan_err!("a join key compares {left} with {right}");
                }
                Ok(KeyColumn { data_type: left.clone(), bits: packed_bits(left) })
            })
            .collect::<Result<Vec<_>>>()?;
        let null_bit = u32::from(null_equals_null);
        let total: Option<u32> = columns.iter().map(|c| Some(c.bits? + null_bit)).sum();
        let form = match (total, columns.as_slice()) {
            (Some(0..=64), _) => KeyForm::Narrow,
            (Some(65..=128), _) => KeyForm::Wide,
            (_, [only]) if is_bytes(&only.data_type) && !null_equals_null => KeyForm::Bytes,
            _ => KeyForm::Rows,
        };
        Ok(KeyEncoder { form, columns, null_equals_null })
    }

    /// The keys `exprs` (one per key column) of the rows of `batch`.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(crate) fn encode(&self, exprs: &[PhysicalExprRef], batch: &Batch) -> Result<KeyBatch> {
        let mut arrays = Vec::with_capacity(exprs.len());
        for (expr, column) in exprs.iter().zip(&self.columns) {
            arrays.push(self.plain_array(expr.evaluate_array(batch)?, column)?);
        }
        let nulls = if self.null_equals_null {
            None
        } else {
            arrays.iter().fold(None, |all, array| {
                NullBuffer::union(all.as_ref(), array.logical_nulls().as_ref())
            })
        };
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let rows = batch.num_rows();
        let codes = match self.form {
            KeyForm::Narrow => Codes::Narrow(self.pack(&arrays, rows)?),
            KeyForm::Wide => Codes::Wide(self.pack(&arrays, rows)?),
            KeyForm::Bytes => bytes(&arrays[0])?,
            KeyForm::Rows => {
                let fields =
                    self.columns.iter().map(|c| SortField::new(c.data_type.clone())).collect();
                let keys = ByteKeys::Rows(RowConverter::new(fields)?.convert_columns(&arrays)?);
                Codes::Bytes(keys.hashes(rows), keys)
            }
        };
        let span = match &codes {
            Codes::Narrow(codes) => span(codes, nulls.as_ref()),
            _ => None,
        };
        Ok(KeyBatch { codes, nulls, span })
    }

    /// Plain values, floats canonical; in row form, of the very type the encoder was made for.
    fn plain_array(&self, array: ArrayRef, column: &KeyColumn) -> Result<ArrayRef> {
        let actual = plain(array.data_type());
        let wanted = if self.form == KeyForm::Rows { &column.data_type } else { actual };
        let array =
            if array.data_type() == wanted { array } else { cast(&array, &wanted.clone())? };
        Ok(canonical_floats(array))
    }

    fn pack<C: Code>(&self, arrays: &[ArrayRef], rows: usize) -> Result<Vec<C>> {
        let mut codes = vec![C::default(); rows];
        for (array, column) in arrays.iter().zip(&self.columns) {
            let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            append_lanes(&mut codes, array, column.bits.unwrap_or(0), nulls.as_ref())?;
            if self.null_equals_null {
                for (i, code) in codes.iter_mut().enumerate() {
                    let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i));
                    *code = code.append(1, u128::from(valid));
                }
            }
        }
        Ok(codes)
    }
}

/// The type of the values of an encoded type.
fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other,
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

fn packed_bits(data_type: &DataType) -> Option<u32> {
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

/// `-0.0` becomes `0.0`, every NaN the same one.
pub(crate) fn canonical_floats(array: ArrayRef) -> ArrayRef {
    macro_rules! canonical {
        ($type:ty) => {{
            type Native = <$type as ArrowPrimitiveType>::Native;
            let zero = Native::default();
            let nan = zero / zero;
            let values = array.as_primitive::<$type>();
            Arc::new(values.unary::<_, $type>(|v| {
                if v == zero {
                    zero
                } else if v.is_nan() {
                    nan
                } else {
                    v
                }
            }))
        }};
    }
    match array.data_type() {
        DataType::Float16 => canonical!(Float16Type),
        DataType::Float32 => canonical!(Float32Type),
        DataType::Float64 => canonical!(Float64Type),
        _ => array,
    }
}

/// Appends the values of `array`, `bits` wide, to the codes; NULL appends zeros.
fn append_lanes<C: Code>(
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

fn bytes(array: &ArrayRef) -> Result<Codes> {
    let keys = match array.data_type() {
        DataType::Utf8 => ByteKeys::Utf8(array.as_string::<i32>().clone()),
        DataType::LargeUtf8 => ByteKeys::LargeUtf8(array.as_string::<i64>().clone()),
        DataType::Utf8View => ByteKeys::Utf8View(array.as_string_view().clone()),
        DataType::Binary => ByteKeys::Binary(array.as_binary::<i32>().clone()),
        DataType::LargeBinary => ByteKeys::LargeBinary(array.as_binary::<i64>().clone()),
        DataType::BinaryView => ByteKeys::BinaryView(array.as_binary_view().clone()),
        other => return internal_err!("join keys of {other} are not bytes"),
    };
    Ok(Codes::Bytes(keys.hashes(array.len()), keys))
}

fn span(codes: &[u64], nulls: Option<&NullBuffer>) -> Option<(u64, u64)> {
    let widen = |span: Option<(u64, u64)>, code: u64| match span {
        Some((low, high)) => Some((low.min(code), high.max(code))),
        None => Some((code, code)),
    };
    match nulls {
        None => codes.iter().fold(None, |span, &code| widen(span, code)),
        Some(nulls) => nulls.valid_indices().fold(None, |span, row| widen(span, codes[row])),
    }
}

/// The rows of `keys` that match nothing because a key is NULL.
pub(crate) fn null_rows(keys: &KeyBatch) -> BooleanBuffer {
    match &keys.nulls {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(keys.len()),
    }
}
