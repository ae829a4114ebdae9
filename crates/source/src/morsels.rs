//! The queue from which the partitions of a scan take their work.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A piece of a file that one partition reads at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Morsel {
    /// Which file.
    pub(crate) file: usize,
    /// Which piece of it.
    pub(crate) index: usize,
}

/// One execution's queue: the next morsel, in file order, goes to whoever asks next. So each
/// partition's rows stay in file order, and skew leaves no core idle.
#[derive(Debug, Default)]
pub(crate) struct MorselQueue {
    next: AtomicUsize,
}

/// A partition's view of the morsels.
#[derive(Debug)]
pub(crate) enum MorselFeed {
    /// From the queue of all partitions.
    Shared(std::sync::Arc<MorselQueue>, usize),
    /// A fixed range of them.
    Fixed(Range<usize>),
}

impl MorselFeed {
    /// The position of the next morsel.
    pub(crate) fn take(&mut self) -> Option<usize> {
        match self {
            MorselFeed::Shared(queue, count) => {
                let position = queue.next.fetch_add(1, Ordering::Relaxed);
                (position < *count).then_some(position)
            }
            MorselFeed::Fixed(range) => range.next(),
        }
    }
}

/// The positions that `partition` of `partitions` gets when partitions share nothing: a
/// contiguous range, about as many as everyone else's.
pub(crate) fn fixed_range(count: usize, partition: usize, partitions: usize) -> Range<usize> {
    count * partition / partitions..count * (partition + 1) / partitions
}
