//! [`BytesInterner`]: byte strings to small codes, each string stored once.
//!
//! Code 0 is NULL. Strings are kept as Arrow views: up to 12 bytes within the view, longer ones
//! in blocks, which become the buffers of the emitted array without a copy.

use super::slots::{SlotTable, hash_bytes, hash_words};
use arrow::array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeBinaryArray, GenericBinaryArray, GenericStringArray,
    OffsetSizeTrait, StringViewArray, make_array, make_view,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err, internal_err};
use std::sync::Arc;

/// Blocks grow from the one size to the other.
const FIRST_BLOCK: usize = 1 << 12;
const LAST_BLOCK: usize = 1 << 20;
const INLINE: usize = 12;

/// Byte strings by code.
#[derive(Debug)]
pub(super) struct BytesInterner {
    slots: SlotTable,
    /// The view of each code, from code 1.
    views: Vec<u128>,
    blocks: Vec<Vec<u8>>,
    /// Codes of the strings of one byte; zero when not yet seen.
    single: Box<[u32; 256]>,
}

impl BytesInterner {
    pub(super) fn new() -> Self {
        BytesInterner {
            slots: SlotTable::new(),
            views: vec![],
            blocks: vec![],
            single: Box::new([0; 256]),
        }
    }

    /// The code of `bytes`, from 1.
    ///
    /// # Errors
    /// When there are too many, or too long, strings to be numbered.
    #[inline]
    pub(super) fn intern(&mut self, bytes: &[u8]) -> Result<u32> {
        if let [byte] = bytes {
            let code = self.single[usize::from(*byte)];
            if code != 0 {
                return Ok(code);
            }
        }
        self.intern_slow(bytes)
    }

    fn intern_slow(&mut self, bytes: &[u8]) -> Result<u32> {
        self.slots.reserve(1);
        if bytes.len() <= INLINE {
            let view = make_view(bytes, 0, 0);
            let hash = hash_words(&[view as u64, (view >> 64) as u64]);
            return Ok(match self.slots.find(hash, |i| self.views[i] == view) {
                Ok(entry) => entry as u32 + 1,
                Err(vacant) => {
                    let code = self.push(vacant, hash, view)?;
                    if let [byte] = bytes {
                        self.single[usize::from(*byte)] = code;
                    }
                    code
                }
            });
        }
        let hash = hash_bytes(bytes);
        let view = make_view(bytes, 0, 0);
        let found = self.slots.find(hash, |i| {
            self.views[i] as u64 == view as u64 && self.long(self.views[i]) == bytes
        });
        match found {
            Ok(entry) => Ok(entry as u32 + 1),
            Err(vacant) => {
                let view = self.store(bytes)?;
                self.push(vacant, hash, view)
            }
        }
    }

    fn push(&mut self, vacant: usize, hash: u32, view: u128) -> Result<u32> {
        if self.views.len() >= u32::MAX as usize - 2 {
            return exec_err!("more than {} distinct strings in one group column", u32::MAX - 2);
        }
        self.slots.fill(vacant, hash, self.views.len());
        self.views.push(view);
        Ok(self.views.len() as u32)
    }

    fn store(&mut self, bytes: &[u8]) -> Result<u128> {
        if bytes.len() > i32::MAX as usize {
            return exec_err!("a string of {} bytes in a group column", bytes.len());
        }
        let full = self.blocks.last().is_none_or(|b| b.len() + bytes.len() > b.capacity());
        if full {
            let size = LAST_BLOCK.min(FIRST_BLOCK << self.blocks.len().min(16));
            self.blocks.push(Vec::with_capacity(size.max(bytes.len())));
        }
        let block = self.blocks.len() - 1;
        let offset = self.blocks[block].len();
        self.blocks[block].extend_from_slice(bytes);
        Ok(make_view(bytes, block as u32, offset as u32))
    }

    /// The bytes of a view longer than [`INLINE`].
    #[inline]
    fn long(&self, view: u128) -> &[u8] {
        let (len, block, offset) =
            (view as u32 as usize, (view >> 64) as u32 as usize, (view >> 96) as usize);
        &self.blocks[block][offset..offset + len]
    }

    pub(super) fn size(&self) -> usize {
        self.slots.size()
            + self.views.capacity() * size_of::<u128>()
            + self.blocks.iter().map(Vec::capacity).sum::<usize>()
    }

    /// The strings of `codes` as an array of `data_type`; the interner is empty afterwards.
    ///
    /// # Errors
    /// An internal error for a type whose values are not byte strings; an execution error when
    /// they do not fit into one array.
    pub(super) fn emit(&mut self, codes: &[u32], data_type: &DataType) -> Result<ArrayRef> {
        let strings = std::mem::replace(self, BytesInterner::new());
        let nulls = codes.contains(&0).then(|| codes.iter().map(|c| *c != 0).collect());
        match data_type {
            DataType::Dictionary(key, value) => {
                let all: Vec<u32> = (1..=strings.views.len() as u32).collect();
                let values = strings.array(&all, None, value)?;
                dictionary(codes, nulls, &values, key, data_type)
            }
            _ => strings.array(codes, nulls, data_type),
        }
    }

    fn array(
        self,
        codes: &[u32],
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        Ok(match data_type {
            DataType::Utf8View | DataType::BinaryView => {
                let views: ScalarBuffer<u128> = codes
                    .iter()
                    .map(|c| if *c == 0 { 0 } else { self.views[*c as usize - 1] })
                    .collect();
                let buffers: Vec<Buffer> = self.blocks.into_iter().map(Buffer::from).collect();
                if *data_type == DataType::Utf8View {
                    Arc::new(StringViewArray::try_new(views, buffers, nulls)?)
                } else {
                    Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?)
                }
            }
            DataType::Utf8 => {
                let binary = self.binary::<i32>(codes, nulls)?;
                Arc::new(GenericStringArray::<i32>::try_from_binary(binary)?)
            }
            DataType::LargeUtf8 => {
                let binary = self.binary::<i64>(codes, nulls)?;
                Arc::new(GenericStringArray::<i64>::try_from_binary(binary)?)
            }
            DataType::Binary => Arc::new(self.binary::<i32>(codes, nulls)?),
            DataType::LargeBinary => Arc::new(self.binary::<i64>(codes, nulls)?),
            DataType::FixedSizeBinary(width) => {
                let bytes = self.fixed(codes, *width as usize);
                Arc::new(FixedSizeBinaryArray::try_new(*width, bytes, nulls)?)
            }
            DataType::Decimal128(..) | DataType::Interval(_) => make_array(
                arrow::array::ArrayData::builder(data_type.clone())
                    .len(codes.len())
                    .add_buffer(self.fixed(codes, data_type.primitive_width().unwrap_or(16)))
                    .nulls(nulls)
                    .align_buffers(true)
                    .build()?,
            ),
            other => return internal_err!("strings of type {other}"),
        })
    }

    fn bytes<'a>(&'a self, view: &'a [u8; 16]) -> &'a [u8] {
        let packed = u128::from_le_bytes(*view);
        let len = packed as u32 as usize;
        if len <= INLINE { &view[4..4 + len] } else { self.long(packed) }
    }

    fn binary<O: OffsetSizeTrait>(
        &self,
        codes: &[u32],
        nulls: Option<NullBuffer>,
    ) -> Result<GenericBinaryArray<O>> {
        let mut offsets = Vec::with_capacity(codes.len() + 1);
        let mut values: Vec<u8> = vec![];
        offsets.push(O::usize_as(0));
        for &code in codes {
            if code != 0 {
                values.extend_from_slice(self.bytes(&self.views[code as usize - 1].to_le_bytes()));
            }
            let Some(offset) = O::from_usize(values.len()) else {
                return exec_err!("the strings of one group column exceed 2 GiB; use LargeUtf8");
            };
            offsets.push(offset);
        }
        Ok(GenericBinaryArray::try_new(
            OffsetBuffer::new(offsets.into()),
            Buffer::from(values),
            nulls,
        )?)
    }

    fn fixed(&self, codes: &[u32], width: usize) -> Buffer {
        let mut values: Vec<u8> = Vec::with_capacity(codes.len() * width);
        for &code in codes {
            if code == 0 {
                values.resize(values.len() + width, 0);
            } else {
                values.extend_from_slice(self.bytes(&self.views[code as usize - 1].to_le_bytes()));
            }
        }
        Buffer::from(values)
    }
}

/// A dictionary array: key `code - 1` into `values`.
fn dictionary(
    codes: &[u32],
    nulls: Option<NullBuffer>,
    values: &ArrayRef,
    key: &DataType,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let keys =
        arrow::array::UInt32Array::new(codes.iter().map(|c| c.saturating_sub(1)).collect(), nulls);
    let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
    let keys = arrow::compute::cast_with_options(&keys, key, &options)?;
    let data = keys.to_data();
    Ok(make_array(
        data.into_builder()
            .data_type(data_type.clone())
            .add_child_data(values.to_data())
            .build()?,
    ))
}
