//! The merge: both inputs walk forward, and stop together at equal keys.
//!
//! One input is streamed, the other buffered: of it, the rows of one key are held while the
//! streamed rows of that key go by. Textbook sort-merge join (Graefe, "Query Evaluation
//! Techniques for Large Databases", ACM Computing Surveys 25(2), 1993, section 5.2).

use super::output::Output;
use super::side::Side;
use crate::execute::BatchStream;
use crate::operators::join_state::grow;
use crate::operators::sort::keys::Keys;
use async_stream::try_stream;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use planish_batch::{Batch, RetainedBytes, RowRef};
use std::cmp::Ordering;
use std::ops::Range;

/// Batches of an input that may wait, unread, for a batch of output to fill up.
const MAX_WAITING: usize = 32;

/// The state of one partition's merge.
pub(crate) struct Merge<K: Keys> {
    /// The input whose rows go by.
    pub(crate) streamed: Side<K>,
    /// The input of which rows of one key are held.
    pub(crate) buffered: Side<K>,
    /// Where rows go.
    pub(crate) out: Output,
    /// Accounts for a group that spans batches.
    pub(crate) reservation: MemoryReservation,
    /// Whether what is found leaves before an input is waited for.
    pub(crate) eager: bool,
    /// The operator's name, for errors.
    pub(crate) name: &'static str,
}

/// Buffered rows of one key.
#[derive(Default)]
struct Group {
    /// Rows of batches of the window.
    pieces: Vec<(u32, Range<usize>)>,
    bytes: RetainedBytes,
}

/// Where in the pairs of a run of streamed rows and a group one is.
struct Cursor {
    row: usize,
    end: usize,
    piece: usize,
    at: usize,
}

impl<K: Keys> Merge<K> {
    /// The rows of the join.
    pub(crate) fn run(mut self) -> BatchStream {
        Box::pin(try_stream! {
            let mut group = Group::default();
            loop {
                if self.has_output() {
                    for batch in self.flush(None, false)? {
                        yield batch;
                    }
                }
                if self.must_wait().await {
                    for batch in self.flush_all(None, false)? {
                        yield batch;
                    }
                }
                self.refill().await?;
                match (self.streamed.at_end(), self.buffered.at_end()) {
                    (false, false) => {}
                    (false, true) if self.out.keeps_streamed() => {
                        self.skip_streamed(self.streamed.rows - self.streamed.row);
                        continue;
                    }
                    (true, false) if self.out.keeps_buffered() => {
                        self.skip_buffered(self.buffered.rows - self.buffered.row);
                        continue;
                    }
                    _ => break,
                }
                if !self.walk() {
                    continue;
                }
                while self.hold(&mut group) {
                    if self.eager && !self.out.is_empty() && !self.buffered.is_ready().await {
                        for batch in self.flush_all(Some(&mut group), false)? {
                            yield batch;
                        }
                    }
                    self.buffered.refill().await?;
                    if self.buffered.at_end() || !self.buffered.continues {
                        break;
                    }
                    self.account(&mut group)?;
                }
                loop {
                    let run = self.streamed.run_equal();
                    let row = self.streamed.row;
                    let mut cursor = Cursor { row, end: row + run, piece: 0, at: 0 };
                    while self.pair(&group, &mut cursor) {
                        for batch in self.flush(Some(&mut group), cursor.is_within())? {
                            yield batch;
                        }
                    }
                    self.streamed.row += run;
                    if self.streamed.row < self.streamed.rows {
                        break;
                    }
                    if (self.eager && !self.out.is_empty() && !self.streamed.is_ready().await)
                        || self.waits_too_long()
                    {
                        for batch in self.flush_all(Some(&mut group), false)? {
                            yield batch;
                        }
                    }
                    self.streamed.refill().await?;
                    if self.streamed.at_end() || !self.streamed.continues {
                        break;
                    }
                }
                if self.out.group_rows_may_miss() {
                    for (chunk, rows) in &group.pieces {
                        self.out.buffered(*chunk, rows.clone());
                    }
                }
                group.pieces.clear();
                group.bytes.clear();
                self.reservation.free();
            }
            for batch in self.flush_all(None, false)? {
                yield batch;
            }
        })
    }

    fn has_output(&self) -> bool {
        self.out.is_full() || self.out.has_candidates() || self.waits_too_long()
    }

    fn waits_too_long(&self) -> bool {
        self.streamed.window.len() > MAX_WAITING || self.buffered.window.len() > MAX_WAITING
    }

    /// Whether rows wait to leave and an input has nothing to give right now.
    async fn must_wait(&mut self) -> bool {
        if !self.eager || self.out.is_empty() {
            return false;
        }
        (self.streamed.needs_batch() && !self.streamed.is_ready().await)
            || (self.buffered.needs_batch() && !self.buffered.is_ready().await)
    }

    async fn refill(&mut self) -> Result<()> {
        if self.streamed.needs_batch() {
            self.streamed.refill().await?;
        }
        if self.buffered.needs_batch() {
            self.buffered.refill().await?;
        }
        Ok(())
    }

    /// As [`Self::flush_all`], when a batch of output is full or rows have waited long.
    fn flush(&mut self, group: Option<&mut Group>, open: bool) -> Result<Vec<Batch>> {
        self.out.decide(&self.streamed, &mut self.buffered, open)?;
        if self.out.is_full() || self.waits_too_long() {
            return self.flush_all(group, open);
        }
        Ok(vec![])
    }

    /// Looks at the pairs, and gives what they decide; the windows forget what nobody needs.
    /// `open`: the last streamed row has more pairs.
    fn flush_all(&mut self, group: Option<&mut Group>, open: bool) -> Result<Vec<Batch>> {
        self.out.decide(&self.streamed, &mut self.buffered, open)?;
        let batches = self.out.take(&self.streamed.window, &self.buffered.window)?;
        let unneeded = self.streamed.window.len().saturating_sub(1);
        self.streamed.forget(unneeded);
        self.out.rebase();
        let last = self.buffered.window.len().saturating_sub(1);
        let first = group.as_ref().and_then(|g| g.pieces.first()).map(|(chunk, _)| *chunk as usize);
        let unneeded = first.unwrap_or(last).min(last);
        self.buffered.forget(unneeded);
        for (chunk, _) in group.into_iter().flat_map(|g| &mut g.pieces) {
            *chunk -= unneeded as u32;
        }
        Ok(batches)
    }

    fn skip_streamed(&mut self, run: usize) {
        let row = self.streamed.row;
        self.out.unmatched(self.streamed.chunk(), row..row + run);
        self.streamed.row += run;
    }

    fn skip_buffered(&mut self, run: usize) {
        let row = self.buffered.row;
        self.out.buffered(self.buffered.chunk(), row..row + run);
        self.buffered.row += run;
    }

    /// One step of the input that is behind; true at equal keys whose rows must be paired.
    fn walk(&mut self) -> bool {
        match self.streamed.compare(&self.buffered) {
            Ordering::Less => self.skip_streamed(self.streamed.run_before(&self.buffered)),
            Ordering::Greater => self.skip_buffered(self.buffered.run_before(&self.streamed)),
            Ordering::Equal if self.streamed.is_null() => {
                self.skip_streamed(self.streamed.run_equal());
            }
            Ordering::Equal if self.out.needs_pairs() => return true,
            Ordering::Equal => {
                let (row, run) = (self.streamed.row, self.streamed.run_equal());
                self.out.matched(self.streamed.chunk(), row..row + run);
                self.streamed.row += run;
            }
        }
        false
    }

    /// Adds the buffered rows of the current key that are in the batch at hand; true when the
    /// next batch may have more.
    fn hold(&mut self, group: &mut Group) -> bool {
        let (row, run) = (self.buffered.row, self.buffered.run_equal());
        group.pieces.push((self.buffered.chunk(), row..row + run));
        self.buffered.row += run;
        self.buffered.needs_batch()
    }

    /// Accounts for the last batch of a group that spans several.
    fn account(&mut self, group: &mut Group) -> Result<()> {
        let places = match group.pieces.len() {
            1 => vec![group.pieces[0].0 as usize, self.buffered.window.len() - 1],
            _ => vec![self.buffered.window.len() - 1],
        };
        for place in places {
            let batch = self.buffered.window[place].compact()?;
            grow(&self.reservation, self.name, group.bytes.add(&batch))?;
            self.buffered.window[place] = batch;
        }
        Ok(())
    }

    /// Pairs rows up to a batch of them; true when the batch should leave before more is paired.
    fn pair(&mut self, group: &Group, cursor: &mut Cursor) -> bool {
        let chunk = self.streamed.chunk();
        let mut left = self.out.target();
        while cursor.row < cursor.end {
            let row = RowRef::new(chunk, cursor.row as u32);
            if !self.out.is_settled(row) {
                while let Some((buffered, rows)) = group.pieces.get(cursor.piece) {
                    let from = rows.start + cursor.at;
                    let run = (rows.end - from).min(left);
                    for at in from..from + run {
                        self.out.pair(row, RowRef::new(*buffered, at as u32));
                    }
                    left -= run;
                    cursor.at += run;
                    if cursor.at == rows.len() {
                        (cursor.piece, cursor.at) = (cursor.piece + 1, 0);
                    }
                    if left == 0 {
                        if cursor.piece == group.pieces.len() {
                            cursor.next_row();
                        }
                        return true;
                    }
                }
            }
            cursor.next_row();
        }
        self.out.is_full() || self.out.has_candidates()
    }
}

impl Cursor {
    /// Whether some pairs of the current row were made, and others not yet.
    fn is_within(&self) -> bool {
        self.piece > 0 || self.at > 0
    }

    fn next_row(&mut self) {
        (self.row, self.piece, self.at) = (self.row + 1, 0, 0);
    }
}
