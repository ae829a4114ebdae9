//! [`SlotTable`]: open addressing from 32-bit hashes to the numbers of entries kept elsewhere.
//!
//! A slot is one word: the hash above, the entry's number plus one below, zero when vacant. The
//! home of a hash is its upper bits, so growing moves slots in order and needs no keys.

/// Slots that a fresh table has.
const MIN_BITS: u32 = 8;

/// Hash to entry number.
#[derive(Debug)]
pub(super) struct SlotTable {
    slots: Vec<u64>,
    bits: u32,
    len: usize,
}

impl SlotTable {
    pub(super) fn new() -> Self {
        SlotTable { slots: vec![0; 1 << MIN_BITS], bits: MIN_BITS, len: 0 }
    }

    /// Makes room for `additional` entries, at most 5/8 of the slots being taken.
    pub(super) fn reserve(&mut self, additional: usize) {
        while (self.len + additional) * 8 > self.slots.len() * 5 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let bits = self.bits + 1;
        let mut slots = vec![0u64; 1 << bits];
        let mask = slots.len() - 1;
        for &slot in self.slots.iter().filter(|slot| **slot != 0) {
            let mut at = home((slot >> 32) as u32, bits);
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        self.slots = slots;
        self.bits = bits;
    }

    /// The slot at the home of `hash`: where most searches end.
    #[inline]
    pub(super) fn first(&self, hash: u32) -> u64 {
        self.slots[home(hash, self.bits)]
    }

    /// The entry with this hash that `eq` accepts, or the vacant slot where it belongs.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u32,
        mut eq: impl FnMut(usize) -> bool,
    ) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = home(hash, self.bits);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let entry = slot as u32 as usize - 1;
            if (slot >> 32) as u32 == hash && eq(entry) {
                return Ok(entry);
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts `entry` into the slot that [`Self::find`] said is vacant.
    #[inline]
    pub(super) fn fill(&mut self, vacant: usize, hash: u32, entry: usize) {
        self.slots[vacant] = (u64::from(hash) << 32) | (entry as u64 + 1);
        self.len += 1;
    }

    pub(super) fn size(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}

#[inline]
fn home(hash: u32, bits: u32) -> usize {
    (hash >> (32 - bits)) as usize
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const SALT: u64 = 0x243f_6a88_85a3_08d3;

/// The full product of `a` and `b`, folded to one word.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A hash of some words.
#[inline]
pub(super) fn hash_words(words: &[u64]) -> u32 {
    let mut state = SALT;
    for &word in words {
        state = fold(word ^ state, MIX);
    }
    (state >> 32) as u32
}

/// A hash of a byte string.
#[inline]
pub(super) fn hash_bytes(bytes: &[u8]) -> u32 {
    let mut state = SALT ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = fold(u64::from_le_bytes(word) ^ state, MIX);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        state = fold(u64::from_le_bytes(word) ^ state, MIX);
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_after_growth_and_despite_equal_hashes() {
        let mut table = SlotTable::new();
        let keys: Vec<u64> = (0..5000).map(|i| i * 7).collect();
        // Few hashes: long chains.
        let hash = |key: u64| (hash_words(&[key]) & 0xff) << 24;
        for (i, &key) in keys.iter().enumerate() {
            table.reserve(1);
            let vacant = table.find(hash(key), |e| keys[e] == key).unwrap_err();
            table.fill(vacant, hash(key), i);
        }
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(table.find(hash(key), |e| keys[e] == key), Ok(i));
        }
        assert!(table.find(hash(3), |e| keys[e] == 3).is_err());
    }

    #[test]
    fn hashes_spread() {
        let mut homes: Vec<usize> = (0..4096u64).map(|i| home(hash_words(&[i]), 12)).collect();
        homes.sort_unstable();
        homes.dedup();
        assert!(homes.len() > 2300, "{} homes for 4096 consecutive keys", homes.len());
        assert_ne!(hash_bytes(b"abcdefgh"), hash_bytes(b"abcdefgh\0"));
    }
}
