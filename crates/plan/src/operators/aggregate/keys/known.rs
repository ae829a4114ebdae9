//! [`KnownCodes`]: codes of the rows of arrays that many batches refer to (dictionaries, build
//! sides of joins), so that a string is hashed once per row of its base, not once per reference.

use arrow::array::{Array, ArrayRef};
use std::collections::HashMap;
use std::sync::Arc;

/// A row whose code is not known.
const UNSEEN: u32 = u32::MAX;
/// A row whose code is being found.
const PENDING: u32 = u32::MAX - 1;
/// Codes kept at most, over all bases.
const MAX_CODES: usize = 1 << 22;

/// Codes by base array.
#[derive(Debug, Default)]
pub(super) struct KnownCodes {
    bases: HashMap<usize, BaseCodes>,
    codes: usize,
}

/// The codes of one base's rows.
#[derive(Debug)]
pub(super) struct BaseCodes {
    /// Kept so that its address stays its own.
    base: ArrayRef,
    codes: Vec<u32>,
}

impl KnownCodes {
    /// What is known of `bases`; to be put back after use.
    pub(super) fn take(&mut self, bases: &[ArrayRef]) -> Vec<BaseCodes> {
        bases
            .iter()
            .map(|base| match self.bases.remove(&address(base)) {
                Some(known) => {
                    self.codes -= known.codes.len();
                    known
                }
                None => BaseCodes { base: Arc::clone(base), codes: vec![UNSEEN; base.len()] },
            })
            .collect()
    }

    /// Keeps `known` for later batches, instead of what came before when that gets too much.
    pub(super) fn put_back(&mut self, known: Vec<BaseCodes>) {
        let added: usize = known.iter().map(|k| k.codes.len()).sum();
        if self.codes + added > MAX_CODES {
            self.bases.clear();
            self.codes = 0;
        }
        for known in known {
            let len = known.codes.len();
            let before = self.bases.insert(address(&known.base), known);
            self.codes = self.codes + len - before.map_or(0, |b| b.codes.len());
        }
    }

    pub(super) fn size(&self) -> usize {
        self.codes * size_of::<u32>()
    }
}

impl BaseCodes {
    #[inline]
    pub(super) fn is_unseen(&self, row: usize) -> bool {
        self.codes[row] == UNSEEN
    }

    #[inline]
    pub(super) fn mark_pending(&mut self, row: usize) {
        self.codes[row] = PENDING;
    }

    /// Notes the codes of `rows`.
    pub(super) fn learn(&mut self, rows: &[u32], codes: &[u64]) {
        for (row, code) in rows.iter().zip(codes) {
            self.codes[*row as usize] = *code as u32;
        }
    }

    /// The code of a row that was learnt.
    #[inline]
    pub(super) fn code(&self, row: usize) -> u32 {
        self.codes[row]
    }
}

fn address(base: &ArrayRef) -> usize {
    Arc::as_ptr(base).cast::<()>() as usize
}
