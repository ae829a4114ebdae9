//! How one key column becomes bits of a packed key, and back.
//!
//! Values of fixed width are their own bits; byte strings and wide values are interned to codes
//! of 32 bits first. Dictionaries are interned once per entry that occurs, not once per row.

use super::bits::{intern_all, intern_bytes, intern_views, native, pack, widened};
use super::interner::BytesInterner;
use super::known::KnownCodes;
use super::packed::Key;
use crate::floats::{normal16, normal32, normal64};
use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, UInt32Array, make_array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{
    BinaryType, BinaryViewType, DataType, IntervalUnit, LargeBinaryType, LargeUtf8Type,
    StringViewType, Utf8Type,
};
use datafusion_common::{Result, exec_err, internal_err};
use planish_batch::{Column, Form, NO_ROW, Selection};
use std::sync::Arc;

/// The way from a column's values to bits.
#[derive(Debug)]
enum Kind {
    /// Every value is NULL.
    Null,
    Bool,
    /// The value's own bytes.
    Fixed(usize),
    /// A float, its bits normalized.
    Float(usize),
    /// A 128-bit decimal of at most 18 digits, as 64 bits.
    NarrowDecimal,
    /// A code; zero is NULL.
    Interned(Box<BytesInterner>),
}

/// One key column: its type, its codec, and where its bits are.
#[derive(Debug)]
pub(super) struct KeyColumn {
    data_type: DataType,
    kind: Kind,
    at: u32,
    null_at: Option<u32>,
    known: KnownCodes,
}

impl KeyColumn {
    /// A codec for a column, or `None` for types that do not pack.
    pub(super) fn for_type(data_type: &DataType) -> Option<KeyColumn> {
        Some(KeyColumn {
            data_type: data_type.clone(),
            kind: kind_of(data_type)?,
            at: 0,
            null_at: None,
            known: KnownCodes::default(),
        })
    }

    /// Bits of the value.
    pub(super) fn width(&self) -> u32 {
        match &self.kind {
            Kind::Null => 0,
            Kind::Bool => 1,
            Kind::Fixed(bytes) | Kind::Float(bytes) => *bytes as u32 * 8,
            Kind::NarrowDecimal => 64,
            Kind::Interned(_) => 32,
        }
    }

    /// Whether NULL needs a bit of its own.
    pub(super) fn needs_null_bit(&self) -> bool {
        !matches!(self.kind, Kind::Null | Kind::Interned(_))
    }

    /// Says where the bits go; without a place for the null bit, NULL has the bits of zero and
    /// is told apart by the caller.
    pub(super) fn place(&mut self, at: u32, null_at: Option<u32>) {
        self.at = at;
        self.null_at = null_at;
    }

    pub(super) fn size(&self) -> usize {
        match &self.kind {
            Kind::Interned(strings) => strings.size() + self.known.size(),
            _ => 0,
        }
    }

    /// Adds the bits of `column` to `keys`, which have as many rows. Returns the column's NULLs
    /// when they have no bit.
    pub(super) fn encode<K: Key>(
        &mut self,
        column: &Column,
        keys: &mut [K],
    ) -> Result<Option<NullBuffer>> {
        match column.form() {
            Form::Constant(value) if !keys.is_empty() => {
                let mut one = [K::ZERO];
                let nulls = self.encode_array(&value.to_array_of_size(1)?, &mut one)?;
                keys.iter_mut().for_each(|key| key.merge(one[0]));
                Ok(nulls.map(|_| NullBuffer::new_null(keys.len())))
            }
            Form::Encoded(array) if self.takes_encoded(array) => self.encode_array(array, keys),
            Form::Selected(bases, selection) if self.encode_selected(bases, selection, keys)? => {
                Ok(None)
            }
            _ => self.encode_array(&column.values()?, keys),
        }
    }

    fn takes_encoded(&self, array: &ArrayRef) -> bool {
        match (&self.kind, array.data_type()) {
            (Kind::Interned(_), DataType::Dictionary(_, value)) => **value == self.data_type,
            (Kind::NarrowDecimal, DataType::Int64) => true,
            _ => false,
        }
    }

    fn encode_array<K: Key>(
        &mut self,
        array: &ArrayRef,
        keys: &mut [K],
    ) -> Result<Option<NullBuffer>> {
        if let Kind::Interned(_) = self.kind {
            self.encode_interned(array, keys)?;
            return Ok(None);
        }
        let decoded;
        let array = match array.data_type() {
            DataType::Dictionary(_, value) => {
                decoded = cast(array, value)?;
                &decoded
            }
            _ => array,
        };
        let nulls = array.logical_nulls().filter(|n| n.null_count() > 0);
        let (at, valid, data) = (self.at, nulls.as_ref(), array.to_data());
        match &self.kind {
            Kind::Null | Kind::Interned(_) => return Ok(None),
            Kind::Bool => {
                pack(keys, at, valid, array.as_boolean().values().iter().map(u64::from));
            }
            Kind::Fixed(1) => pack(keys, at, valid, widened(native::<u8>(&data))),
            Kind::Fixed(2) => pack(keys, at, valid, widened(native::<u16>(&data))),
            Kind::Fixed(4) => pack(keys, at, valid, widened(native::<u32>(&data))),
            Kind::Fixed(_) => pack(keys, at, valid, widened(native::<u64>(&data))),
            Kind::Float(2) => {
                let bits = native::<u16>(&data).iter().map(|v| u64::from(normal16(*v)));
                pack(keys, at, valid, bits);
            }
            Kind::Float(4) => {
                let bits = native::<u32>(&data).iter().map(|v| u64::from(normal32(*v)));
                pack(keys, at, valid, bits);
            }
            Kind::Float(_) => {
                pack(keys, at, valid, native::<u64>(&data).iter().map(|v| normal64(*v)));
            }
            Kind::NarrowDecimal if *array.data_type() == DataType::Int64 => {
                pack(keys, at, valid, widened(native::<u64>(&data)));
            }
            Kind::NarrowDecimal => {
                let values = native::<i128>(&data);
                let fits = |(i, v): (usize, &i128)| {
                    i128::from(*v as i64) == *v || valid.is_some_and(|n| n.is_null(i))
                };
                if !values.iter().enumerate().all(fits) {
                    return exec_err!("a group key exceeds the digits of {}", self.data_type);
                }
                pack(keys, at, valid, values.iter().map(|v| *v as u64));
            }
        }
        let (Some(nulls), Some(null_at)) = (&nulls, self.null_at) else { return Ok(nulls) };
        for (key, valid) in keys.iter_mut().zip(nulls) {
            key.or_bits(u64::from(!valid), null_at);
        }
        Ok(None)
    }

    fn encode_interned<K: Key>(&mut self, array: &ArrayRef, keys: &mut [K]) -> Result<()> {
        let at = self.at;
        if let DataType::Dictionary(..) = array.data_type() {
            return self.encode_dictionary(array, keys);
        }
        let Kind::Interned(strings) = &mut self.kind else { return Ok(()) };
        match array.data_type() {
            DataType::Utf8 => intern_bytes::<Utf8Type, K>(strings, array, at, keys),
            DataType::LargeUtf8 => intern_bytes::<LargeUtf8Type, K>(strings, array, at, keys),
            DataType::Binary => intern_bytes::<BinaryType, K>(strings, array, at, keys),
            DataType::LargeBinary => intern_bytes::<LargeBinaryType, K>(strings, array, at, keys),
            DataType::Utf8View => intern_views::<StringViewType, K>(strings, array, at, keys),
            DataType::BinaryView => intern_views::<BinaryViewType, K>(strings, array, at, keys),
            DataType::FixedSizeBinary(_) => {
                let values = array.as_fixed_size_binary();
                intern_all(strings, keys, at, values.nulls(), |i| values.value(i))
            }
            DataType::Decimal128(..) | DataType::Interval(_) => {
                let width = array.data_type().primitive_width().unwrap_or(16);
                let data = array.to_data();
                let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
                let value = |i: usize| &bytes[i * width..(i + 1) * width];
                intern_all(strings, keys, at, array.nulls(), value)
            }
            other => internal_err!("no codes for {other}"),
        }
    }

    /// Each dictionary entry is interned when a row first uses it.
    fn encode_dictionary<K: Key>(&mut self, array: &ArrayRef, keys: &mut [K]) -> Result<()> {
        let dictionary = array.as_any_dictionary();
        if dictionary.values().is_empty() {
            // All keys are NULL.
            return Ok(());
        }
        let entries = dictionary.normalized_keys();
        let bases = std::slice::from_ref(dictionary.values());
        match dictionary.keys().nulls().filter(|n| n.null_count() > 0) {
            None => self.encode_bases(bases, keys, |i| Some((0, entries[i]))),
            Some(nulls) => {
                self.encode_bases(bases, keys, |i| nulls.is_valid(i).then(|| (0, entries[i])))
            }
        }
    }

    /// Interns rows of bases once per row of a base, where that is likely to save work: the
    /// base is a dictionary, or short, or the build side of a join. False when it is not.
    fn encode_selected<K: Key>(
        &mut self,
        bases: &[ArrayRef],
        selection: &Selection,
        keys: &mut [K],
    ) -> Result<bool> {
        let Kind::Interned(_) = self.kind else { return Ok(false) };
        match selection {
            Selection::One { rows, .. } if self.takes_encoded(&bases[0]) => {
                let nulls = rows
                    .contains(&NO_ROW)
                    .then(|| NullBuffer::from_iter(rows.iter().map(|row| *row != NO_ROW)));
                let rows = UInt32Array::new(rows.clone(), nulls);
                self.encode_dictionary(&take(bases[0].as_ref(), &rows, None)?, keys)?;
            }
            Selection::One { rows, .. }
                if *bases[0].data_type() == self.data_type
                    && !matches!(self.data_type, DataType::Dictionary(..))
                    && bases[0].len() <= keys.len() =>
            {
                self.encode_bases(bases, keys, |i| {
                    (rows[i] != NO_ROW).then(|| (0, rows[i] as usize))
                })?;
            }
            Selection::Many(..)
                if bases.iter().all(|base| *base.data_type() == self.data_type)
                    && !matches!(self.data_type, DataType::Dictionary(..)) =>
            {
                self.encode_bases(bases, keys, |i| {
                    let row = selection.get(i);
                    (!row.is_none()).then(|| (row.chunk() as usize, row.row() as usize))
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the codes of rows of `bases`; `place` says for each key which base and row.
    fn encode_bases<K: Key>(
        &mut self,
        bases: &[ArrayRef],
        keys: &mut [K],
        place: impl Fn(usize) -> Option<(usize, usize)>,
    ) -> Result<()> {
        let mut known = self.known.take(bases);
        let mut unseen: Vec<Vec<u32>> = vec![vec![]; bases.len()];
        for (base, row) in (0..keys.len()).filter_map(&place) {
            if known[base].is_unseen(row) {
                known[base].mark_pending(row);
                unseen[base].push(row as u32);
            }
        }
        let at = std::mem::replace(&mut self.at, 0);
        for ((base, rows), known) in bases.iter().zip(unseen).zip(&mut known) {
            if rows.is_empty() {
                continue;
            }
            let rows = UInt32Array::from(rows);
            let mut codes = vec![0u64; rows.len()];
            self.encode_interned(&take(base.as_ref(), &rows, None)?, &mut codes)?;
            known.learn(rows.values(), &codes);
        }
        self.at = at;
        for (i, key) in keys.iter_mut().enumerate() {
            if let Some((base, row)) = place(i) {
                key.or_bits(u64::from(known[base].code(row)), at);
            }
        }
        self.known.put_back(known);
        Ok(())
    }

    /// The column of `keys`, in its declared type; what was interned is gone afterwards.
    pub(super) fn emit<K: Key>(&mut self, keys: &[K], null_key: Option<usize>) -> Result<ArrayRef> {
        self.known = KnownCodes::default();
        let (at, width) = (self.at, self.width());
        let bits = |key: &K| key.bits(at, width);
        if let Kind::Interned(strings) = &mut self.kind {
            let codes: Vec<u32> = keys.iter().map(|k| bits(k) as u32).collect();
            return strings.emit(&codes, &self.data_type);
        }
        let nulls = match (self.null_at, null_key) {
            (Some(null_at), _) => {
                let valid = |i: usize| keys[i].bits(null_at, 1) == 0;
                Some(NullBuffer::new(BooleanBuffer::collect_bool(keys.len(), valid)))
            }
            (None, Some(null)) => {
                Some(NullBuffer::new(BooleanBuffer::collect_bool(keys.len(), |i| i != null)))
            }
            (None, None) => None,
        };
        let nulls = nulls.filter(|n| n.null_count() > 0);
        let value_type = match &self.data_type {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        let buffer = match &self.kind {
            Kind::Null => return Ok(new_null_array(&self.data_type, keys.len())),
            Kind::Bool => {
                let values = BooleanBuffer::collect_bool(keys.len(), |i| bits(&keys[i]) != 0);
                let array: ArrayRef = Arc::new(BooleanArray::new(values, nulls));
                return Ok(cast(&array, &self.data_type)?);
            }
            Kind::Fixed(1) => Buffer::from_vec(keys.iter().map(|k| bits(k) as u8).collect()),
            Kind::Fixed(2) | Kind::Float(2) => {
                Buffer::from_vec(keys.iter().map(|k| bits(k) as u16).collect())
            }
            Kind::Fixed(4) | Kind::Float(4) => {
                Buffer::from_vec(keys.iter().map(|k| bits(k) as u32).collect())
            }
            Kind::Fixed(_) | Kind::Float(_) => Buffer::from_vec(keys.iter().map(bits).collect()),
            Kind::NarrowDecimal => {
                Buffer::from_vec(keys.iter().map(|k| i128::from(bits(k) as i64)).collect())
            }
            Kind::Interned(_) => {
                return internal_err!("interned columns have no bits of their own");
            }
        };
        let array = make_array(
            ArrayData::builder(value_type.clone())
                .len(keys.len())
                .add_buffer(buffer)
                .nulls(nulls)
                .build()?,
        );
        if *value_type == self.data_type { Ok(array) } else { Ok(cast(&array, &self.data_type)?) }
    }
}

fn kind_of(data_type: &DataType) -> Option<Kind> {
    Some(match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Bool,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            Kind::Float(data_type.primitive_width()?)
        }
        DataType::Decimal128(precision, _) if *precision <= 18 => Kind::NarrowDecimal,
        DataType::Decimal128(..)
        | DataType::Interval(IntervalUnit::MonthDayNano | IntervalUnit::DayTime)
        | DataType::FixedSizeBinary(_)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => Kind::Interned(Box::new(BytesInterner::new())),
        DataType::Dictionary(_, value) if !matches!(**value, DataType::Dictionary(..)) => {
            kind_of(value)?
        }
        other => match other.primitive_width()? {
            width @ (1 | 2 | 4 | 8) => Kind::Fixed(width),
            _ => return None,
        },
    })
}
