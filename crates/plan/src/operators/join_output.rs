//! From matching row numbers to output batches, for every join type.
//!
//! A [`PairSource`](crate::operators::join_probe::PairSource) finds, for the rows of a probe
//! batch, the build rows that match (after any residual condition), and tells [`JoinOutput`],
//! which knows what the join type makes of them: pairs to emit, probe rows to emit, or marks on
//! build rows. Output batches are selections over
//! the build side and over the probe batches: no value moves here. Small results of several
//! probe batches are joined by index into one batch.

use crate::operators::join_schema::{shows_left, shows_right};
use crate::operators::join_state::{BuildRows, NO_ROW};
use arrow::array::{BooleanArray, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion_common::{JoinType, Result, ScalarValue};
use planish_batch::{Batch, Column, RowRef, Selection, gather_rows};
use std::sync::Arc;

/// Probe batches that may wait, unread, for a batch of output to fill up.
const MAX_PENDING_BATCHES: usize = 32;

/// Collects matches and turns them into batches.
pub(crate) struct JoinOutput {
    join_type: JoinType,
    schema: SchemaRef,
    right_schema: SchemaRef,
    build: Arc<BuildRows>,
    target: usize,
    /// Pending output: row `probe_rows[i]` of the probe batch whose segment `i` lies in, beside
    /// build row `build_rows[i]` (for join types that show the left side).
    probes: Vec<Segment>,
    build_rows: Vec<u32>,
    probe_rows: Vec<u32>,
    /// Right and Full: probe rows of the current batch below this one are decided.
    decided: u32,
    /// RightSemi, RightAnti and RightMark: which rows of the current batch have a match.
    hits: BooleanBufferBuilder,
    /// A batch that is complete as it is.
    complete: Option<Batch>,
}

/// A probe batch and the number of pending rows before its own.
struct Segment {
    start: usize,
    batch: Batch,
}

impl JoinOutput {
    /// Output of `schema` in batches of at most `target` rows.
    pub(crate) fn new(
        join_type: JoinType,
        schema: SchemaRef,
        right_schema: SchemaRef,
        build: Arc<BuildRows>,
        target: usize,
    ) -> Self {
        JoinOutput {
            join_type,
            schema,
            right_schema,
            build,
            target: target.max(1),
            probes: vec![],
            build_rows: vec![],
            probe_rows: vec![],
            decided: 0,
            hits: BooleanBufferBuilder::new(0),
            complete: None,
        }
    }

    /// The build side.
    pub(crate) fn build(&self) -> &BuildRows {
        &self.build
    }

    /// The join type.
    pub(crate) fn join_type(&self) -> JoinType {
        self.join_type
    }

    /// Rows an output batch should have, which is also how many pairs a step should look at.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// The next probe batch.
    pub(crate) fn start(&mut self, probe: &Batch) {
        if shows_right(self.join_type) {
            self.probes.push(Segment { start: self.probe_rows.len(), batch: probe.clone() });
        }
        self.decided = 0;
        if !shows_left(self.join_type) {
            self.hits = BooleanBufferBuilder::new(probe.num_rows());
            self.hits.append_n(probe.num_rows(), false);
        }
    }

    /// Matching pairs of the current probe batch, ascending by probe row. No more pairs will
    /// come for probe rows below `decided`.
    pub(crate) fn pairs(&mut self, build: &[u32], probe: &[u32], decided: usize) {
        debug_assert_eq!(build.len(), probe.len());
        match self.join_type {
            JoinType::Inner => self.append(build, probe),
            JoinType::Left => {
                self.mark(build);
                self.append(build, probe);
            }
            JoinType::Right => self.append_with_unmatched(build, probe, decided as u32),
            JoinType::Full => {
                self.mark(build);
                self.append_with_unmatched(build, probe, decided as u32);
            }
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => self.mark(build),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                probe.iter().for_each(|&row| self.hits.set_bit(row as usize, true));
            }
        }
    }

    /// RightSemi, RightAnti and RightMark: which rows of the current probe batch match, all at
    /// once.
    pub(crate) fn set_hits(&mut self, hits: impl Iterator<Item = bool>) {
        for (row, hit) in hits.enumerate() {
            if hit {
                self.hits.set_bit(row, true);
            }
        }
    }

    /// Whether it is known already that this pair decides nothing.
    #[inline]
    pub(crate) fn is_settled(&self, build: u32, probe: u32) -> bool {
        match self.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                self.build.matched().is_some_and(|matched| matched.get(build))
            }
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                self.hits.get_bit(probe as usize)
            }
            _ => false,
        }
    }

    /// Whether [`Self::is_settled`] can be true at all.
    pub(crate) fn settles_pairs(&self) -> bool {
        self.settles_probe_rows() || !shows_right(self.join_type)
    }

    /// Whether one match of a probe row decides all there is to know of it.
    pub(crate) fn settles_probe_rows(&self) -> bool {
        !shows_left(self.join_type)
    }

    fn mark(&self, build: &[u32]) {
        if let Some(matched) = self.build.matched() {
            build.iter().for_each(|&row| matched.set(row));
        }
    }

    fn append(&mut self, build: &[u32], probe: &[u32]) {
        self.build_rows.extend_from_slice(build);
        self.probe_rows.extend_from_slice(probe);
    }

    /// Appends the pairs, with each decided row that has none beside "no row", in probe order.
    fn append_with_unmatched(&mut self, build: &[u32], probe: &[u32], decided: u32) {
        let mut next = self.decided;
        for (&build, &probe) in build.iter().zip(probe) {
            self.append_unmatched(next..probe);
            self.build_rows.push(build);
            self.probe_rows.push(probe);
            next = probe + 1;
        }
        self.append_unmatched(next..decided);
        self.decided = next.max(decided);
    }

    fn append_unmatched(&mut self, rows: std::ops::Range<u32>) {
        let missing = self.build_rows.len() + rows.len();
        self.build_rows.resize(missing, NO_ROW);
        self.probe_rows.extend(rows);
    }

    /// All matches of the current probe batch are known.
    pub(crate) fn finish_batch(&mut self, probe: &Batch) -> Result<()> {
        match self.join_type {
            JoinType::Right | JoinType::Full => self.pairs(&[], &[], probe.num_rows()),
            JoinType::RightSemi => {
                let hits = self.hits.finish();
                self.probe_rows.extend(hits.set_indices_u32());
            }
            JoinType::RightAnti => {
                let misses = !&self.hits.finish();
                self.probe_rows.extend(misses.set_indices_u32());
            }
            JoinType::RightMark => {
                let hits = self.hits.finish();
                self.complete = Some(marked(probe, hits, &self.schema)?);
                self.probes.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// The next batch that is full, or, `between` probe batches, worth handing on.
    pub(crate) fn ready(&mut self, between: bool) -> Result<Option<Batch>> {
        if let Some(batch) = self.complete.take() {
            return Ok(Some(batch));
        }
        let rows = self.probe_rows.len();
        if rows >= self.target {
            return self.emit(self.target).map(Some);
        }
        let enough = rows * 2 >= self.target || self.probes.len() >= MAX_PENDING_BATCHES;
        if between && enough && rows > 0 {
            return self.emit(rows).map(Some);
        }
        if between && rows == 0 {
            self.probes.clear();
        }
        Ok(None)
    }

    /// What is left, if anything.
    pub(crate) fn flush(&mut self) -> Result<Option<Batch>> {
        let rows = self.probe_rows.len().min(self.target);
        if rows == 0 { Ok(None) } else { self.emit(rows).map(Some) }
    }

    /// The first `rows` pending rows as a batch.
    fn emit(&mut self, rows: usize) -> Result<Batch> {
        let right = self.emit_right(rows)?;
        let batch = if shows_left(self.join_type) {
            let build_rows = take_front(&mut self.build_rows, rows);
            let left = if self.build.len() == 0 {
                null_rows(self.build.rows.schema(), rows)?
            } else {
                let selection = match self.join_type {
                    JoinType::Right | JoinType::Full => Selection::nullable_rows(build_rows),
                    _ => Selection::rows(build_rows),
                };
                self.build.rows.select(&Arc::new(selection))
            };
            left.zip(&right, Arc::clone(&self.schema))?
        } else {
            right.with_schema(Arc::clone(&self.schema))
        };
        let drained = self.probe_rows.is_empty();
        let current = self.probes.len().saturating_sub(1);
        // Segments that lie before what is left are done; the last one may still be current.
        let done = if drained {
            current
        } else {
            self.probes.iter().filter(|s| s.start <= rows).count().saturating_sub(1)
        };
        self.probes.drain(..done);
        for segment in &mut self.probes {
            segment.start = segment.start.saturating_sub(rows);
        }
        Ok(batch)
    }

    fn emit_right(&mut self, rows: usize) -> Result<Batch> {
        let taken = take_front(&mut self.probe_rows, rows);
        // The segments that these rows lie in; a segment may be empty.
        let end = self.probes.iter().take_while(|s| s.start < rows).count();
        let begin = self.probes[..end].iter().rposition(|s| s.start == 0).unwrap_or(0);
        let segments = &self.probes[begin..end];
        if let [only] = segments {
            let whole = taken.len() == only.batch.num_rows()
                && taken.iter().enumerate().all(|(i, &row)| row as usize == i);
            return Ok(if whole {
                only.batch.clone()
            } else {
                only.batch.select(&Arc::new(Selection::rows(taken)))
            });
        }
        let mut refs = Vec::with_capacity(rows);
        for (chunk, segment) in segments.iter().enumerate() {
            let until = segments.get(chunk + 1).map_or(rows, |next| next.start);
            let own = &taken[segment.start.min(until)..until];
            refs.extend(own.iter().map(|&row| RowRef::new(chunk as u32, row)));
        }
        let batches: Vec<Batch> = segments.iter().map(|s| s.batch.clone()).collect();
        gather_rows(&self.right_schema, &batches, &refs)
    }

    /// The next build rows that the join type emits by their marks, from row `from` on, which
    /// is moved behind them.
    pub(crate) fn build_rows(&self, from: &mut usize) -> Result<Option<Batch>> {
        let Some(matched) = self.build.matched() else { return Ok(None) };
        let total = self.build.len();
        while *from < total {
            let to = total.min(*from + self.target);
            let bits = matched.bits(*from, to);
            let base = *from as u32;
            *from = to;
            if self.join_type == JoinType::LeftMark {
                let rows = self.build.rows.slice(base as usize, to - base as usize);
                return marked(&rows, bits, &self.schema).map(Some);
            }
            let wanted = if self.join_type == JoinType::LeftSemi { bits } else { !&bits };
            let rows: Vec<u32> = wanted.set_indices_u32().map(|row| base + row).collect();
            if rows.is_empty() {
                continue;
            }
            let count = rows.len();
            let left = self.build.rows.select(&Arc::new(Selection::rows(rows)));
            return Ok(Some(if shows_right(self.join_type) {
                left.zip(&null_rows(&self.right_schema, count)?, Arc::clone(&self.schema))?
            } else {
                left.with_schema(Arc::clone(&self.schema))
            }));
        }
        Ok(None)
    }
}

fn take_front(rows: &mut Vec<u32>, count: usize) -> Vec<u32> {
    let rest = rows.split_off(count);
    std::mem::replace(rows, rest)
}

fn marked(batch: &Batch, mark: BooleanBuffer, schema: &SchemaRef) -> Result<Batch> {
    let mut columns = batch.columns().to_vec();
    columns.push(Column::flat(Arc::new(BooleanArray::new(mark, None))));
    Batch::try_new(Arc::clone(schema), columns, batch.num_rows())
}

fn null_rows(schema: &SchemaRef, rows: usize) -> Result<Batch> {
    let columns = schema
        .fields()
        .iter()
        .map(|f| Ok(Column::constant(ScalarValue::try_new_null(f.data_type())?, rows)))
        .collect::<Result<Vec<_>>>()?;
    Batch::try_new(Arc::clone(schema), columns, rows)
}
