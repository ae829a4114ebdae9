//! The layouts of a table: arrays by code, and open addressing by hash.
//!
//! All of them give the first row of a code. They are filled by several tasks at once, each of
//! which looks at all codes and takes those of its share, so that no two tasks write one element:
//! that the elements are atomic is for the compiler's sake.

use crate::operators::hash_join::keys::KeyBatch;
use crate::operators::hash_join::pack::Code;
use crate::operators::join_state::NO_ROW;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// `count` times [`NO_ROW`].
pub(crate) fn none_rows(count: usize) -> Vec<AtomicU32> {
    std::iter::repeat_with(|| AtomicU32::new(NO_ROW)).take(count).collect()
}

/// The share of `worker` among `workers` of `0..len`.
fn share(len: usize, worker: usize, workers: usize) -> std::ops::Range<usize> {
    let each = len.div_ceil(workers);
    (worker * each).min(len)..((worker + 1) * each).min(len)
}

/// The build keys while a table is filled, and the chains that come of it.
pub(crate) struct Filling {
    /// The keys.
    pub(crate) keys: Vec<KeyBatch>,
    starts: Vec<u32>,
    /// The next row with the same code.
    pub(crate) next: Vec<AtomicU32>,
    /// Whether there is any.
    pub(crate) duplicates: AtomicBool,
}

impl Filling {
    /// `keys`, their rows numbered in order.
    pub(crate) fn new(keys: Vec<KeyBatch>) -> Self {
        let mut rows = 0;
        let starts = keys
            .iter()
            .map(|k| {
                let start = rows as u32;
                rows += k.len();
                start
            })
            .collect();
        Filling { keys, starts, next: none_rows(rows), duplicates: AtomicBool::new(false) }
    }

    /// Calls `visit` with each code and its row, the last row first: chains built by prepending
    /// ascend.
    fn rows_backwards<C: Code>(&self, mut visit: impl FnMut(C, u32)) {
        for (keys, &start) in self.keys.iter().zip(&self.starts).rev() {
            let codes = C::codes(&keys.codes).iter().enumerate().rev();
            match &keys.nulls {
                None => codes.for_each(|(i, &code)| visit(code, start + i as u32)),
                Some(nulls) => codes
                    .filter(|(i, _)| nulls.is_valid(*i))
                    .for_each(|(i, &code)| visit(code, start + i as u32)),
            }
        }
    }

    /// Makes `row` the head of a chain; true when there was one before.
    #[inline]
    fn prepend(&self, head: &AtomicU32, row: u32) -> bool {
        let old = head.load(Ordering::Relaxed);
        head.store(row, Ordering::Relaxed);
        if old == NO_ROW {
            return false;
        }
        self.next[row as usize].store(old, Ordering::Relaxed);
        true
    }

    fn note_duplicates(&self, any: bool) {
        if any {
            self.duplicates.store(true, Ordering::Relaxed);
        }
    }
}

/// One head per code of the span.
pub(crate) struct Dense {
    low: u64,
    heads: Vec<AtomicU32>,
}

impl Dense {
    /// Bytes for `slots` codes.
    pub(crate) fn bytes(slots: u64) -> usize {
        slots as usize * 4
    }

    /// An empty array of `slots` codes from `low` on.
    pub(crate) fn new(low: u64, slots: u64) -> Self {
        Dense { low, heads: none_rows(slots as usize) }
    }

    /// Takes the codes that are this worker's.
    pub(crate) fn fill(&self, filling: &Filling, worker: usize, workers: usize) {
        let own = share(self.heads.len(), worker, workers);
        let mut duplicates = false;
        filling.rows_backwards(|code: u64, row| {
            let slot = code.wrapping_sub(self.low) as usize;
            if own.contains(&slot) {
                duplicates |= filling.prepend(&self.heads[slot], row);
            }
        });
        filling.note_duplicates(duplicates);
    }

    /// The head of each code.
    pub(crate) fn heads(&self, codes: &[u64]) -> Vec<u32> {
        let find = |&code: &u64| match self.heads.get(code.wrapping_sub(self.low) as usize) {
            Some(head) => head.load(Ordering::Relaxed),
            None => NO_ROW,
        };
        codes.iter().map(find).collect()
    }
}

/// A bit per code of the span, and one head per code that is there: a code's head is found by
/// counting the bits before its own. Small enough for the cache where [`Dense`] is not.
pub(crate) struct Ranked {
    low: u64,
    words: Vec<Word>,
    heads: Vec<AtomicU32>,
}

/// 64 codes, and the number of codes there are before them.
struct Word {
    bits: u64,
    rank: u32,
}

impl Word {
    /// The place of the head of bit `bit`, if it is set.
    #[inline]
    fn place(&self, bit: u32) -> Option<usize> {
        let mask = 1u64 << bit;
        if self.bits & mask == 0 {
            return None;
        }
        Some((self.rank + (self.bits & (mask - 1)).count_ones()) as usize)
    }
}

impl Ranked {
    /// Bytes for `slots` codes, of which at most `rows` are there.
    pub(crate) fn bytes(slots: u64, rows: usize) -> usize {
        // While it is filled, the bare bits are there as well.
        slots.div_ceil(64) as usize * (size_of::<Word>() + 8) + rows * 4
    }

    /// Empty bits for `slots` codes, to be filled first.
    pub(crate) fn bits(slots: u64) -> Vec<AtomicU64> {
        std::iter::repeat_with(AtomicU64::default).take(slots.div_ceil(64) as usize).collect()
    }

    /// Sets the bits that are this worker's.
    pub(crate) fn fill_bits(
        bits: &[AtomicU64],
        low: u64,
        filling: &Filling,
        worker: usize,
        workers: usize,
    ) {
        let own = share(bits.len(), worker, workers);
        filling.rows_backwards(|code: u64, _| {
            let offset = code.wrapping_sub(low);
            let word = (offset / 64) as usize;
            if own.contains(&word) {
                let old = bits[word].load(Ordering::Relaxed);
                bits[word].store(old | 1 << (offset % 64), Ordering::Relaxed);
            }
        });
    }

    /// The table over all bits, its heads to be filled next.
    pub(crate) fn new(low: u64, bits: &[AtomicU64]) -> Self {
        let mut rank = 0;
        let words = bits
            .iter()
            .map(|bits| {
                let bits = bits.load(Ordering::Relaxed);
                let word = Word { bits, rank };
                rank += bits.count_ones();
                word
            })
            .collect();
        Ranked { low, words, heads: none_rows(rank as usize) }
    }

    /// Takes the heads that are this worker's.
    pub(crate) fn fill(&self, filling: &Filling, worker: usize, workers: usize) {
        let own = share(self.words.len(), worker, workers);
        let mut duplicates = false;
        filling.rows_backwards(|code: u64, row| {
            let offset = code.wrapping_sub(self.low);
            let word = (offset / 64) as usize;
            if own.contains(&word)
                && let Some(place) = self.words[word].place((offset % 64) as u32)
            {
                duplicates |= filling.prepend(&self.heads[place], row);
            }
        });
        filling.note_duplicates(duplicates);
    }

    /// The head of each code.
    pub(crate) fn heads(&self, codes: &[u64]) -> Vec<u32> {
        let find = |&code: &u64| {
            let offset = code.wrapping_sub(self.low);
            let Some(word) = self.words.get((offset / 64) as usize) else { return NO_ROW };
            match word.place((offset % 64) as u32) {
                Some(place) => self.heads[place].load(Ordering::Relaxed),
                None => NO_ROW,
            }
        };
        codes.iter().map(find).collect()
    }
}

/// Open addressing with linear probing, in regions by the hash's high bits.
pub(crate) struct Hashed<C> {
    regions: Vec<Vec<Slot<C>>>,
    region_bits: u32,
}

/// A code and the head of its chain; [`NO_ROW`] in a free slot.
#[derive(Clone, Copy)]
pub(crate) struct Slot<C> {
    code: C,
    head: u32,
}

impl<C: Code> Hashed<C> {
    /// Bytes for `rows` rows.
    pub(crate) fn bytes(rows: usize) -> usize {
        capacity(rows) * size_of::<Slot<C>>()
    }

    /// The table of regions, `2^region_bits` of them.
    pub(crate) fn new(regions: Vec<Vec<Slot<C>>>, region_bits: u32) -> Self {
        Hashed { regions, region_bits }
    }

    /// One region, filled.
    pub(crate) fn fill_region(filling: &Filling, region: usize, region_bits: u32) -> Vec<Slot<C>> {
        let mut rows = 0;
        filling.rows_backwards(|code: C, _| {
            rows += usize::from(region_of(code.hash(), region_bits) == region);
        });
        let mut slots = vec![Slot { code: C::default(), head: NO_ROW }; capacity(rows)];
        let mut duplicates = false;
        filling.rows_backwards(|code: C, row| {
            let hash = code.hash();
            if region_of(hash, region_bits) != region {
                return;
            }
            let mut at = slot_of(hash, region_bits, slots.len());
            loop {
                let slot = &mut slots[at];
                if slot.head == NO_ROW {
                    *slot = Slot { code, head: row };
                    return;
                }
                if slot.code == code {
                    filling.next[row as usize].store(slot.head, Ordering::Relaxed);
                    slot.head = row;
                    duplicates = true;
                    return;
                }
                at = if at + 1 == slots.len() { 0 } else { at + 1 };
            }
        });
        filling.note_duplicates(duplicates);
        slots
    }

    /// The head of each code.
    pub(crate) fn heads(&self, codes: &[C]) -> Vec<u32> {
        match self.regions.as_slice() {
            [only] => codes.iter().map(|&code| find(only, code, code.hash(), 0)).collect(),
            regions => codes
                .iter()
                .map(|&code| {
                    let hash = code.hash();
                    let region = &regions[region_of(hash, self.region_bits)];
                    find(region, code, hash, self.region_bits)
                })
                .collect(),
        }
    }
}

fn capacity(rows: usize) -> usize {
    // At most 4/7 full: probe sequences stay short, and a slot is always free.
    rows + rows / 4 * 3 + 4
}

#[inline]
fn region_of(hash: u64, region_bits: u32) -> usize {
    if region_bits == 0 { 0 } else { (hash >> (64 - region_bits)) as usize }
}

/// The slot of a hash, scaled to the region's length by the bits below the region's.
#[inline]
fn slot_of(hash: u64, region_bits: u32, slots: usize) -> usize {
    ((u128::from(hash << region_bits) * slots as u128) >> 64) as usize
}

#[inline]
fn find<C: Code>(slots: &[Slot<C>], code: C, hash: u64, region_bits: u32) -> u32 {
    let mut at = slot_of(hash, region_bits, slots.len());
    loop {
        let slot = &slots[at];
        if slot.head == NO_ROW || slot.code == code {
            return slot.head;
        }
        at = if at + 1 == slots.len() { 0 } else { at + 1 };
    }
}
