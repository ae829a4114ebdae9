//! [`PackedKeys`]: groups by keys that fit into a few words.

use super::KeyTable;
use super::codec::KeyColumn;
use super::slots::{SlotTable, hash_words};
use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use datafusion_common::{Result, internal_err};
use planish_batch::Column;
use std::fmt::Debug;

/// Rows that are looked up together, so that their cache misses overlap.
const CHUNK: usize = 1024;

/// A key of a fixed number of bits.
pub(super) trait Key: Copy + Eq + Debug + Send + Sync + 'static {
    const ZERO: Self;
    /// Bits of a key.
    const BITS: u32;
    /// A column's bits may not lie across a multiple of this.
    const WORD: u32;

    fn or_bits(&mut self, bits: u64, at: u32);
    fn merge(&mut self, other: Self);
    fn bits(self, at: u32, width: u32) -> u64;
    fn hash(self) -> u32;
}

#[inline]
fn low_bits(bits: u64, width: u32) -> u64 {
    if width >= 64 { bits } else { bits & ((1 << width) - 1) }
}

impl Key for u64 {
    const ZERO: Self = 0;
    const BITS: u32 = 64;
    const WORD: u32 = 64;

    #[inline]
    fn or_bits(&mut self, bits: u64, at: u32) {
        *self |= bits << at;
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        *self |= other;
    }

    #[inline]
    fn bits(self, at: u32, width: u32) -> u64 {
        if width == 0 { 0 } else { low_bits(self >> at, width) }
    }

    #[inline]
    fn hash(self) -> u32 {
        hash_words(&[self])
    }
}

impl Key for u128 {
    const ZERO: Self = 0;
    const BITS: u32 = 128;
    const WORD: u32 = 128;

    #[inline]
    fn or_bits(&mut self, bits: u64, at: u32) {
        *self |= u128::from(bits) << at;
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        *self |= other;
    }

    #[inline]
    fn bits(self, at: u32, width: u32) -> u64 {
        if width == 0 { 0 } else { low_bits((self >> at) as u64, width) }
    }

    #[inline]
    fn hash(self) -> u32 {
        hash_words(&[self as u64, (self >> 64) as u64])
    }
}

impl<const N: usize> Key for [u64; N] {
    const ZERO: Self = [0; N];
    const BITS: u32 = 64 * N as u32;
    const WORD: u32 = 64;

    #[inline]
    fn or_bits(&mut self, bits: u64, at: u32) {
        self[(at / 64) as usize] |= bits << (at % 64);
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        self.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
    }

    #[inline]
    fn bits(self, at: u32, width: u32) -> u64 {
        if width == 0 { 0 } else { low_bits(self[(at / 64) as usize] >> (at % 64), width) }
    }

    #[inline]
    fn hash(self) -> u32 {
        hash_words(&self)
    }
}

/// Groups by packed keys, numbered in the order in which they first came.
#[derive(Debug)]
pub(super) struct PackedKeys<K> {
    columns: Vec<KeyColumn>,
    keys: Vec<K>,
    slots: SlotTable,
    /// Whether there is one column and it takes all bits, so that NULL has none.
    alone: bool,
    /// The group of NULL when a single column takes all bits.
    null_group: Option<usize>,
    scratch: Vec<K>,
}

impl<K: Key> PackedKeys<K> {
    /// Groups by `columns` (nullable as told), or the columns back when they need more bits.
    pub(super) fn try_new(
        mut columns: Vec<KeyColumn>,
        nullable: &[bool],
    ) -> std::result::Result<Self, Vec<KeyColumn>> {
        let alone = columns.len() == 1 && columns[0].width() == K::BITS;
        let mut at = 0;
        for (column, nullable) in columns.iter_mut().zip(nullable) {
            let width = column.width();
            if at / K::WORD != (at + width).saturating_sub(1).max(at) / K::WORD {
                at = at.next_multiple_of(K::WORD);
            }
            let null_at = (*nullable && column.needs_null_bit() && !alone).then_some(at + width);
            column.place(at, null_at);
            at += width + u32::from(null_at.is_some());
        }
        // A column of no bits may stand at the very end, where a shift would overflow.
        if at > K::BITS || columns.iter().any(|c| c.width() == 0) && at >= K::BITS {
            return Err(columns);
        }
        Ok(PackedKeys {
            columns,
            alone,
            keys: vec![],
            slots: SlotTable::new(),
            null_group: None,
            scratch: vec![],
        })
    }

    fn intern_keys(&mut self, keys: &[K], groups: &mut Vec<usize>) {
        let mut hashes = [0u32; CHUNK];
        let mut firsts = [0u64; CHUNK];
        for chunk in keys.chunks(CHUNK) {
            self.slots.reserve(chunk.len());
            for ((key, hash), first) in chunk.iter().zip(&mut hashes).zip(&mut firsts) {
                *hash = key.hash();
                *first = self.slots.first(*hash);
            }
            for ((key, &hash), &first) in chunk.iter().zip(&hashes).zip(&firsts) {
                let likely = (first as u32 as usize).wrapping_sub(1);
                let hit = (first >> 32) as u32 == hash && self.keys.get(likely) == Some(key);
                groups.push(if hit { likely } else { self.find_or_insert(*key, hash) });
            }
        }
    }

    fn find_or_insert(&mut self, key: K, hash: u32) -> usize {
        match self.slots.find(hash, |i| self.keys[i] == key) {
            Ok(group) => group,
            Err(vacant) => {
                self.slots.fill(vacant, hash, self.keys.len());
                self.keys.push(key);
                self.keys.len() - 1
            }
        }
    }

    fn intern_nullable(&mut self, keys: &[K], nulls: &NullBuffer, groups: &mut Vec<usize>) {
        for (key, valid) in keys.iter().zip(nulls) {
            let group = if valid {
                self.slots.reserve(1);
                self.find_or_insert(*key, key.hash())
            } else {
                // NULL is in no slot: its key would be that of zero.
                *self.null_group.get_or_insert_with(|| {
                    self.keys.push(K::ZERO);
                    self.keys.len() - 1
                })
            };
            groups.push(group);
        }
    }
}

impl<K: Key> KeyTable for PackedKeys<K> {
    fn intern(&mut self, columns: &[Column], rows: usize, groups: &mut Vec<usize>) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.resize(rows, K::ZERO);
        let mut nulls = None;
        for (codec, column) in self.columns.iter_mut().zip(columns) {
            nulls = codec.encode(column, &mut scratch)?.or(nulls);
        }
        if nulls.is_some() && !self.alone {
            return internal_err!("NULL in a group column declared NOT NULL");
        }
        groups.reserve(rows);
        match nulls {
            None => self.intern_keys(&scratch, groups),
            Some(nulls) => self.intern_nullable(&scratch, &nulls, groups),
        }
        self.scratch = scratch;
        Ok(())
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn size(&self) -> usize {
        self.slots.size()
            + (self.keys.capacity() + self.scratch.capacity()) * size_of::<K>()
            + self.columns.iter().map(KeyColumn::size).sum::<usize>()
    }

    fn emit(&mut self) -> Result<Vec<ArrayRef>> {
        let keys = std::mem::take(&mut self.keys);
        self.slots = SlotTable::new();
        let null_group = self.null_group.take();
        self.columns.iter_mut().map(|column| column.emit(&keys, null_group)).collect()
    }
}
