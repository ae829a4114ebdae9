//! Sort keys in a form that compares by machine words.
//!
//! Keys of at most 64 (or 128) bits together, NULL flags included, are packed into one word (or
//! two) whose unsigned order is the wanted order. All others are encoded by `arrow::row`, with
//! the first eight bytes at hand and the rest read only for ties.

use crate::floats::normalize_floats;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Schema, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::{Result, internal_err, not_impl_err};
use planish_batch::{Batch, RowRef};
use planish_expr::{PhysicalExprRef, PhysicalSortExpr};
use std::cmp::Ordering;

/// Encodes the sort keys of batches.
pub(crate) struct KeyEncoder {
    exprs: Vec<PhysicalExprRef>,
    layout: Layout,
}

enum Layout {
    Packed(Vec<Packing>),
    Rows(RowConverter),
}

/// How one key sits in a packed one.
struct Packing {
    /// Bits of a value.
    bits: u32,
    /// Whether a flag for NULL stands before them.
    flag: bool,
    options: SortOptions,
}

/// Which implementation of [`Keys`] an encoder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    Word,
    Pair,
    Rows,
}

impl KeyEncoder {
    /// An encoder of `keys` (bound) over batches of `schema`, and the form it makes.
    pub(crate) fn try_new(keys: &[PhysicalSortExpr], schema: &Schema) -> Result<(Self, KeyForm)> {
        let exprs = keys.iter().map(|key| std::sync::Arc::clone(&key.expr)).collect();
        let mut packing = Vec::with_capacity(keys.len());
        let mut total = 0;
        for key in keys {
            let field = key.expr.return_field(schema)?;
            let Some(bits) = width(field.data_type()) else { break };
            // A decimal leaves room beside its extremes: NULL needs no flag.
            let flag = field.is_nullable() && bits < 128;
            total += bits + u32::from(flag);
            packing.push(Packing { bits, flag, options: key.options });
        }
        if packing.len() == keys.len() && total <= 128 {
            let form = if total <= 64 { KeyForm::Word } else { KeyForm::Pair };
            return Ok((KeyEncoder { exprs, layout: Layout::Packed(packing) }, form));
        }
        let fields = keys
            .iter()
            .map(|key| {
                let data_type = key.expr.data_type(schema)?;
                Ok(SortField::new_with_options(data_type, key.options))
            })
            .collect::<Result<Vec<_>>>()?;
        for (field, key) in fields.iter().zip(keys) {
            if !RowConverter::supports_fields(std::slice::from_ref(field)) {
                return not_impl_err!(
                    "sorting by {}, which is {}",
                    key.expr,
                    key.expr.data_type(schema)?
                );
            }
        }
        let layout = Layout::Rows(RowConverter::new(fields)?);
        Ok((KeyEncoder { exprs, layout }, KeyForm::Rows))
    }

    fn packed<W: Word>(&self, batch: &Batch) -> Result<Vec<W>> {
        let Layout::Packed(packing) = &self.layout else {
            return internal_err!("sort keys are not packed");
        };
        let mut words = vec![W::default(); batch.num_rows()];
        for (expr, packing) in self.exprs.iter().zip(packing) {
            pack(&mut words, &key_array(expr, batch)?, packing)?;
        }
        Ok(words)
    }

    fn rows(&self, batch: &Batch) -> Result<Rows> {
        let Layout::Rows(converter) = &self.layout else {
            return internal_err!("sort keys are packed");
        };
        let arrays =
            self.exprs.iter().map(|expr| key_array(expr, batch)).collect::<Result<Vec<_>>>()?;
        Ok(converter.convert_columns(&arrays)?)
    }
}

/// A key's values, equal floats made one: `-0.0` and `0.0` are ties.
fn key_array(expr: &PhysicalExprRef, batch: &Batch) -> Result<ArrayRef> {
    normalize_floats(&expr.evaluate_array(batch)?)
}

/// Bits of a value of a type that can be packed.
fn width(data_type: &DataType) -> Option<u32> {
    Some(match data_type {
        DataType::Boolean => 1,
        DataType::Int8 | DataType::UInt8 => 8,
        DataType::Int16 | DataType::UInt16 => 16,
        DataType::Int32
        | DataType::UInt32
        | DataType::Float32
        | DataType::Date32
        | DataType::Time32(_) => 32,
        DataType::Int64
        | DataType::UInt64
        | DataType::Float64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => 64,
        DataType::Decimal128(..) => 128,
        _ => return None,
    })
}

/// An unsigned integer that keys are packed into, the leading key in the high bits.
trait Word: Copy + Default {
    fn append(self, bits: u32, code: u128) -> Self;
}

impl Word for u64 {
    #[inline]
    fn append(self, bits: u32, code: u128) -> Self {
        self.unbounded_shl(bits) | code as u64
    }
}

impl Word for u128 {
    #[inline]
    fn append(self, bits: u32, code: u128) -> Self {
        self.unbounded_shl(bits) | code
    }
}

fn pack<W: Word>(words: &mut [W], array: &ArrayRef, packing: &Packing) -> Result<()> {
    macro_rules! signed {
        ($($physical:ty, $unsigned:ty);+) => {
            match packing.bits {
                $(<$unsigned>::BITS => {
                    let flip = 1 << (<$unsigned>::BITS - 1);
                    let values = physical::<$physical>(array)?;
                    append(words, array, packing, |row| {
                        u128::from(values[row] as $unsigned ^ flip)
                    })
                })+
                bits => internal_err!("{bits} bits of {}", array.data_type()),
            }
        };
    }
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            append(words, array, packing, |row| u128::from(values.value(row)))
        }
        DataType::UInt8 => unsigned::<UInt8Type, W>(words, array, packing),
        DataType::UInt16 => unsigned::<UInt16Type, W>(words, array, packing),
        DataType::UInt32 => unsigned::<UInt32Type, W>(words, array, packing),
        DataType::UInt64 => unsigned::<UInt64Type, W>(words, array, packing),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            append(words, array, packing, |row| {
                let bits = values[row].to_bits();
                u128::from(bits ^ (((bits as i32 >> 31) as u32) | 1 << 31))
            })
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            append(words, array, packing, |row| {
                let bits = values[row].to_bits();
                u128::from(bits ^ (((bits as i64 >> 63) as u64) | 1 << 63))
            })
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            append(words, array, packing, |row| values[row] as u128 ^ 1 << 127)
        }
        _ => signed!(Int8Type, u8; Int16Type, u16; Int32Type, u32; Int64Type, u64),
    }
}

fn unsigned<T: ArrowPrimitiveType<Native: Into<u128>>, W: Word>(
    words: &mut [W],
    array: &ArrayRef,
    packing: &Packing,
) -> Result<()> {
    let values = array.as_primitive::<T>().values();
    append(words, array, packing, |row| values[row].into())
}

/// The values of a primitive array as those of its physical type.
fn physical<T: ArrowPrimitiveType>(
    array: &ArrayRef,
) -> Result<arrow::buffer::ScalarBuffer<T::Native>> {
    let data = array.to_data();
    let Some(buffer) = data.buffers().first() else {
        return internal_err!("{} is not primitive", array.data_type());
    };
    Ok(arrow::buffer::ScalarBuffer::new(buffer.clone(), data.offset(), data.len()))
}

/// Appends one key to each word; `code_of` gives a value's code in ascending order.
#[inline]
fn append<W: Word>(
    words: &mut [W],
    array: &ArrayRef,
    packing: &Packing,
    code_of: impl Fn(usize) -> u128,
) -> Result<()> {
    let Packing { bits, flag, options } = *packing;
    let all_ones = u128::MAX >> (128 - bits);
    let flip = if options.descending { all_ones } else { 0 };
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        // Values come after NULLs that are first, so their flag is one.
        let flag_bit = u128::from(flag && options.nulls_first).unbounded_shl(bits);
        for (row, word) in words.iter_mut().enumerate() {
            *word = word.append(bits + u32::from(flag), (code_of(row) ^ flip) | flag_bit);
        }
        return Ok(());
    };
    let (null, value_flag) = match (flag, bits) {
        (true, _) if options.nulls_first => (0, 1u128.unbounded_shl(bits)),
        (true, _) => (1u128.unbounded_shl(bits), 0),
        (false, 128) if options.nulls_first => (0, 0),
        (false, 128) => (u128::MAX, 0),
        (false, _) => return internal_err!("a sort key declared NOT NULL has NULLs"),
    };
    for (row, word) in words.iter_mut().enumerate() {
        let code = if nulls.is_null(row) { null } else { (code_of(row) ^ flip) | value_flag };
        *word = word.append(bits + u32::from(flag), code);
    }
    Ok(())
}

/// The encoded keys of a batch's rows.
pub(crate) trait Keys: Sized + Send + Sync + 'static {
    /// Compares rows, up to ties that [`Self::tie`] decides.
    type Item: Copy + Ord + Send + Sync + 'static;

    /// The keys of all rows of `batch`.
    fn encode(encoder: &KeyEncoder, batch: &Batch) -> Result<Self>;

    /// The item of a row.
    fn item(&self, row: usize) -> Self::Item;

    /// The order of two rows (of keys `a` and `b`) whose items are equal.
    fn tie(a: &Self, a_row: usize, b: &Self, b_row: usize) -> Ordering;

    /// As [`Self::tie`], for rows of many batches.
    fn tie_of(keys: &[Self], a: RowRef, b: RowRef) -> Ordering;

    /// Lets go of what only [`Self::item`] needs.
    fn for_ties(self) -> Self;

    /// The keys, [for ties](Self::for_ties), of the rows `refs` of many batches.
    fn gather(encoder: &KeyEncoder, keys: &[Self], refs: &[RowRef]) -> Result<Self>;

    /// Bytes held.
    fn size(&self) -> usize;
}

/// Keys of at most 64 bits.
pub(crate) struct WordKeys(Vec<u64>);

/// Keys of at most 128 bits.
pub(crate) struct PairKeys(Vec<(u64, u64)>);

/// Keys of any type and length.
pub(crate) struct RowKeys(Rows);

impl Keys for WordKeys {
    type Item = u64;

    fn encode(encoder: &KeyEncoder, batch: &Batch) -> Result<Self> {
        Ok(WordKeys(encoder.packed::<u64>(batch)?))
    }

    #[inline]
    fn item(&self, row: usize) -> u64 {
        self.0[row]
    }

    #[inline]
    fn tie(_: &Self, _: usize, _: &Self, _: usize) -> Ordering {
        Ordering::Equal
    }

    #[inline]
    fn tie_of(_: &[Self], _: RowRef, _: RowRef) -> Ordering {
        Ordering::Equal
    }

    fn for_ties(self) -> Self {
        WordKeys(vec![])
    }

    fn gather(_: &KeyEncoder, _: &[Self], _: &[RowRef]) -> Result<Self> {
        Ok(WordKeys(vec![]))
    }

    fn size(&self) -> usize {
        self.0.len() * size_of::<u64>()
    }
}

impl Keys for PairKeys {
    type Item = (u64, u64);

    fn encode(encoder: &KeyEncoder, batch: &Batch) -> Result<Self> {
        let words = encoder.packed::<u128>(batch)?;
        Ok(PairKeys(words.into_iter().map(|w| ((w >> 64) as u64, w as u64)).collect()))
    }

    #[inline]
    fn item(&self, row: usize) -> (u64, u64) {
        self.0[row]
    }

    #[inline]
    fn tie(_: &Self, _: usize, _: &Self, _: usize) -> Ordering {
        Ordering::Equal
    }

    #[inline]
    fn tie_of(_: &[Self], _: RowRef, _: RowRef) -> Ordering {
        Ordering::Equal
    }

    fn for_ties(self) -> Self {
        PairKeys(vec![])
    }

    fn gather(_: &KeyEncoder, _: &[Self], _: &[RowRef]) -> Result<Self> {
        Ok(PairKeys(vec![]))
    }

    fn size(&self) -> usize {
        self.0.len() * size_of::<(u64, u64)>()
    }
}

impl Keys for RowKeys {
    type Item = u64;

    fn encode(encoder: &KeyEncoder, batch: &Batch) -> Result<Self> {
        Ok(RowKeys(encoder.rows(batch)?))
    }

    #[inline]
    fn item(&self, row: usize) -> u64 {
        let row = self.0.row(row);
        match row.data().first_chunk::<8>() {
            Some(first) => u64::from_be_bytes(*first),
            None => {
                let mut first = [0; 8];
                first[..row.data().len()].copy_from_slice(row.data());
                u64::from_be_bytes(first)
            }
        }
    }

    #[inline]
    fn tie(a: &Self, a_row: usize, b: &Self, b_row: usize) -> Ordering {
        a.0.row(a_row).data().cmp(b.0.row(b_row).data())
    }

    #[inline]
    fn tie_of(keys: &[Self], a: RowRef, b: RowRef) -> Ordering {
        let (of_a, of_b) = (&keys[a.chunk() as usize], &keys[b.chunk() as usize]);
        Self::tie(of_a, a.row() as usize, of_b, b.row() as usize)
    }

    fn for_ties(self) -> Self {
        self
    }

    fn gather(encoder: &KeyEncoder, keys: &[Self], refs: &[RowRef]) -> Result<Self> {
        let Layout::Rows(converter) = &encoder.layout else {
            return internal_err!("sort keys are packed");
        };
        let mut rows = converter.empty_rows(refs.len(), 0);
        for r in refs {
            rows.push(keys[r.chunk() as usize].0.row(r.row() as usize));
        }
        Ok(RowKeys(rows))
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
