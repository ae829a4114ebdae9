//! How many bytes were gathered on this thread: laziness made visible.
//!
//! Gathering happens inside whatever operator first reads a column, always synchronously, so a
//! thread-local total read before and after an operator's work is that operator's share.

use std::cell::Cell;

thread_local! {
    static GATHERED: Cell<u64> = const { Cell::new(0) };
}

/// Total bytes gathered by this thread since it started.
pub fn gathered_bytes() -> u64 {
    GATHERED.with(Cell::get)
}

pub(crate) fn add_gathered(bytes: usize) {
    GATHERED.with(|total| total.set(total.get() + bytes as u64));
}
