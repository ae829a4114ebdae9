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

use crate::floats::normalize_floats;
use crate::operators::hash_join::pack::{Code, append_lanes, packed_bits};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::{NullEquality, Result, internal_err, plan_err};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use std::hash::BuildHasher;

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

    /// The widths in bits of the values packed into one code, the highest first; empty when
    /// codes are hashes, or hold a value wider than 64 bits.
    pub(crate) fn lanes(&self) -> Vec<u32> {
        let null_bit = self.null_equals_null.then_some(1);
        let widths: Vec<u32> =
            self.columns.iter().flat_map(|c| c.bits.into_iter().chain(null_bit)).collect();
        let packed = matches!(self.form, KeyForm::Narrow | KeyForm::Wide);
        if packed && widths.iter().all(|&bits| bits <= 64) { widths } else { vec![] }
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
        Ok(KeyBatch { codes, nulls })
    }

    /// Plain values, floats canonical; in row form, of the very type the encoder was made for.
    fn plain_array(&self, array: ArrayRef, column: &KeyColumn) -> Result<ArrayRef> {
        let actual = plain(array.data_type());
        let wanted = if self.form == KeyForm::Rows { &column.data_type } else { actual };
        let array =
            if array.data_type() == wanted { array } else { cast(&array, &wanted.clone())? };
        normalize_floats(&array)
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

/// The rows of `keys` that match nothing because a key is NULL.
pub(crate) fn null_rows(keys: &KeyBatch) -> BooleanBuffer {
    match &keys.nulls {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(keys.len()),
    }
}
