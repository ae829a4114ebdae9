//! Peers: rows of a partition that are equal in all ORDER BY keys.

use arrow::array::ArrayRef;
use arrow::compute::partition;
use datafusion_common::Result;
use std::collections::VecDeque;
use std::ops::Range;

/// Where the peer groups of a partition start, as far as its rows are known; the first ones may
/// have been forgotten.
#[derive(Debug, Default)]
pub(super) struct Peers {
    starts: VecDeque<usize>,
    forgotten: usize,
}

impl Peers {
    /// Notes the rows from `from` on, whose keys, and those of the row before unless there is
    /// none, are `keys`. Without keys all rows are peers.
    ///
    /// # Errors
    /// When keys cannot be compared.
    pub(super) fn extend(&mut self, keys: &[ArrayRef], from: usize) -> Result<()> {
        if from == 0 {
            self.starts.push_back(0);
        }
        if keys.is_empty() {
            return Ok(());
        }
        let first = from.saturating_sub(1);
        for range in partition(keys)?.ranges().into_iter().skip(1) {
            self.starts.push_back(first + range.start);
        }
        Ok(())
    }

    /// The first row of group `group`; `None`: it is not known.
    pub(super) fn start(&self, group: usize) -> Option<usize> {
        self.starts.get(group.checked_sub(self.forgotten)?).copied()
    }

    /// The group of `row`, which is `from` or a later one.
    pub(super) fn group_of(&self, row: usize, from: usize) -> usize {
        let mut group = from;
        while self.start(group + 1).is_some_and(|next| next <= row) {
            group += 1;
        }
        group
    }

    /// Forgets the groups before `group`.
    pub(super) fn forget_before(&mut self, group: usize) {
        while self.forgotten < group && self.starts.len() > 1 {
            self.starts.pop_front();
            self.forgotten += 1;
        }
    }

    /// All groups of a partition of `len` rows of which none was forgotten.
    pub(super) fn ranges(&self, len: usize) -> Vec<Range<usize>> {
        let ends = self.starts.iter().skip(1).copied().chain([len]);
        self.starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.starts.capacity() * size_of::<usize>()
    }
}
