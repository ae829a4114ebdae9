//! From pairs of rows with equal keys to output batches.
//!
//! Pairs of many groups are collected as references before a join condition looks at them, so
//! that it runs over whole batches however small the groups are. What a join type makes of a
//! streamed row is known once all its pairs were looked at.

use super::side::Side;
use crate::operators::join_filter::Residual;
use crate::operators::sort::keys::Keys;
use arrow::array::BooleanArray;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{JoinType, Result};
use planish_batch::{Batch, Column, RowRef, Selection, gather_rows};
use std::sync::Arc;

/// Pairs of rows: of the streamed and of the buffered input's window; either may be none.
#[derive(Default)]
struct Pairs {
    streamed: Vec<RowRef>,
    buffered: Vec<RowRef>,
}

impl Pairs {
    fn push(&mut self, streamed: RowRef, buffered: RowRef) {
        self.streamed.push(streamed);
        self.buffered.push(buffered);
    }

    fn len(&self) -> usize {
        self.streamed.len()
    }

    fn clear(&mut self) {
        self.streamed.clear();
        self.buffered.clear();
    }
}

/// Collects what comes out of a merge join.
pub(crate) struct Output {
    /// As if the streamed input were the left one.
    join_type: JoinType,
    streamed_is_left: bool,
    schema: SchemaRef,
    /// The columns of the streamed and of the buffered input in `schema`.
    streamed_schema: SchemaRef,
    buffered_schema: SchemaRef,
    target: usize,
    residual: Option<Residual>,
    /// Pairs that the condition did not look at yet.
    candidates: Pairs,
    /// What comes out, and for marks whether the row matched.
    decided: Pairs,
    marks: Vec<bool>,
    /// The streamed row whose pairs were seen last, and whether one of them held.
    open: Option<(RowRef, bool)>,
}

impl Output {
    /// Output of `schema` in batches of at most `target` rows. `join_type` is that of the join
    /// with the streamed input on the left.
    pub(crate) fn new(
        join_type: JoinType,
        streamed_is_left: bool,
        schema: SchemaRef,
        streamed_columns: usize,
        target: usize,
        residual: Option<Residual>,
    ) -> Self {
        let part = |range: std::ops::Range<usize>| {
            let range =
                range.start.min(schema.fields().len())..range.end.min(schema.fields().len());
            Arc::new(Schema::new(schema.fields()[range].to_vec()))
        };
        let all = schema.fields().len();
        let (streamed_schema, buffered_schema) = if streamed_is_left || !shows_both(join_type) {
            (part(0..streamed_columns), part(streamed_columns..all))
        } else {
            (part(all - streamed_columns..all), part(0..all - streamed_columns))
        };
        Output {
            join_type,
            streamed_is_left,
            schema,
            streamed_schema,
            buffered_schema,
            target: target.max(1),
            residual,
            candidates: Pairs::default(),
            decided: Pairs::default(),
            marks: vec![],
            open: None,
        }
    }

    /// Whether a streamed row and a buffered row of equal keys need to be looked at one by one.
    pub(crate) fn needs_pairs(&self) -> bool {
        self.residual.is_some() || shows_both(self.join_type)
    }

    /// Whether streamed rows without a match come out.
    pub(crate) fn keeps_streamed(&self) -> bool {
        !matches!(self.join_type, JoinType::Inner | JoinType::LeftSemi)
    }

    /// Whether buffered rows without a match come out.
    pub(crate) fn keeps_buffered(&self) -> bool {
        self.join_type == JoinType::Full
    }

    /// Whether buffered rows of a group may be without a match.
    pub(crate) fn group_rows_may_miss(&self) -> bool {
        self.keeps_buffered() && self.residual.is_some()
    }

    /// Rows that pairs should be cut into.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// Whether [`Self::take`] should be called before more is pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.decided.len() >= self.target
    }

    /// Whether pairs wait for [`Self::decide`].
    pub(crate) fn has_candidates(&self) -> bool {
        self.candidates.len() >= self.target
    }

    /// Whether nothing waits to come out.
    pub(crate) fn is_empty(&self) -> bool {
        self.decided.len() == 0 && self.candidates.len() == 0
    }

    /// Whether no further pair of the streamed row at hand changes anything.
    pub(crate) fn is_settled(&self, streamed: RowRef) -> bool {
        !shows_both(self.join_type) && self.open == Some((streamed, true))
    }

    /// A pair of equal keys.
    pub(crate) fn pair(&mut self, streamed: RowRef, buffered: RowRef) {
        let to = if self.residual.is_some() { &mut self.candidates } else { &mut self.decided };
        to.push(streamed, buffered);
    }

    /// Streamed rows that match, of a join that shows no buffered row and has no condition.
    pub(crate) fn matched(&mut self, chunk: u32, rows: std::ops::Range<usize>) {
        for row in rows {
            self.streamed_row(RowRef::new(chunk, row as u32), true);
        }
    }

    /// Streamed rows that no buffered row equals.
    pub(crate) fn unmatched(&mut self, chunk: u32, rows: std::ops::Range<usize>) {
        if !self.keeps_streamed() {
            return;
        }
        for row in rows {
            let row = RowRef::new(chunk, row as u32);
            if self.residual.is_some() {
                self.candidates.push(row, RowRef::NONE);
            } else {
                self.streamed_row(row, false);
            }
        }
    }

    /// Buffered rows that may come out by themselves: those that found no match.
    pub(crate) fn buffered(&mut self, chunk: u32, rows: std::ops::Range<usize>) {
        if self.keeps_buffered() {
            rows.for_each(|row| self.pair(RowRef::NONE, RowRef::new(chunk, row as u32)));
        }
    }

    /// A streamed row of which all is known.
    fn streamed_row(&mut self, row: RowRef, matched: bool) {
        match self.join_type {
            JoinType::Left | JoinType::Full | JoinType::LeftAnti if !matched => {
                self.decided.push(row, RowRef::NONE);
            }
            JoinType::LeftSemi if matched => self.decided.push(row, RowRef::NONE),
            JoinType::LeftMark => {
                self.decided.push(row, RowRef::NONE);
                self.marks.push(matched);
            }
            _ => {}
        }
    }

    /// Looks at the pairs collected. `open`: whether the last streamed row has more of them.
    pub(crate) fn decide<K: Keys>(
        &mut self,
        streamed: &Side<K>,
        buffered: &mut Side<K>,
        open: bool,
    ) -> Result<()> {
        if self.residual.is_none() {
            return Ok(());
        }
        let candidates = std::mem::take(&mut self.candidates);
        let held = self.holding(&candidates, &streamed.window, &buffered.window)?;
        let mut held = held.iter().flatten();
        for (&s, &b) in candidates.streamed.iter().zip(&candidates.buffered) {
            if !s.is_none() && !b.is_none() {
                if self.open.is_none_or(|(row, _)| row != s) {
                    self.close();
                    self.open = Some((s, false));
                }
                if held.next() == Some(true) {
                    self.open = Some((s, true));
                    if shows_both(self.join_type) {
                        self.decided.push(s, b);
                    }
                    if self.keeps_buffered() {
                        buffered.hit(b.chunk(), b.row());
                    }
                }
                continue;
            }
            self.close();
            if b.is_none() {
                self.streamed_row(s, false);
            } else if !buffered.is_hit(b.chunk(), b.row()) {
                self.decided.push(s, b);
            }
        }
        if !open {
            self.close();
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some((row, hit)) = self.open.take() {
            self.streamed_row(row, hit);
        }
    }

    /// For which of the pairs of two rows the condition holds.
    fn holding(
        &self,
        candidates: &Pairs,
        streamed: &[Batch],
        buffered: &[Batch],
    ) -> Result<Option<arrow::buffer::BooleanBuffer>> {
        let both = candidates.streamed.iter().zip(&candidates.buffered);
        let (s, b): (Vec<RowRef>, Vec<RowRef>) =
            both.filter(|(s, b)| !s.is_none() && !b.is_none()).unzip();
        let Some(residual) = self.residual.as_ref().filter(|_| !s.is_empty()) else {
            return Ok(None);
        };
        let (left, left_rows, right, right_rows) = match self.streamed_is_left {
            true => (streamed, s, buffered, b),
            false => (buffered, b, streamed, s),
        };
        let left = gather(left, &left_rows, |batch| residual.left_side(batch))?;
        let right = gather(right, &right_rows, |batch| residual.probe_side(batch))?;
        residual.evaluate(&left, &right).map(Some)
    }

    /// What is decided, as batches. The windows' batches are needed no longer.
    pub(crate) fn take(&mut self, streamed: &[Batch], buffered: &[Batch]) -> Result<Vec<Batch>> {
        let rows = self.decided.len();
        if rows == 0 {
            return Ok(vec![]);
        }
        let part = |schema: &SchemaRef, window: &[Batch], refs: &[RowRef]| {
            if window.is_empty() {
                return gather_rows(schema, &[], refs);
            }
            gather(window, refs, |batch| Ok(batch.with_schema(Arc::clone(schema))))
        };
        let of_streamed = match self.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Full => {
                part(&self.streamed_schema, streamed, &self.decided.streamed)?
            }
            _ => self.streamed_part(streamed)?,
        };
        let whole = if !shows_both(self.join_type) {
            of_streamed
        } else {
            let of_buffered = part(&self.buffered_schema, buffered, &self.decided.buffered)?;
            let (left, right) = match self.streamed_is_left {
                true => (of_streamed, of_buffered),
                false => (of_buffered, of_streamed),
            };
            left.zip(&right, Arc::clone(&self.schema))?
        };
        self.decided.clear();
        self.marks.clear();
        let starts = (0..rows).step_by(self.target);
        Ok(starts.map(|at| whole.slice(at, self.target.min(rows - at))).collect())
    }

    /// Rows of the streamed input alone, with their mark if there is one.
    fn streamed_part(&self, window: &[Batch]) -> Result<Batch> {
        let rows = gather(window, &self.decided.streamed, |batch| Ok(batch.clone()))?;
        if self.join_type != JoinType::LeftMark {
            return Ok(rows.with_schema(Arc::clone(&self.schema)));
        }
        let marks = Column::flat(Arc::new(BooleanArray::from(self.marks.clone())));
        let columns = rows.columns().iter().cloned().chain([marks]).collect();
        Batch::try_new(Arc::clone(&self.schema), columns, rows.num_rows())
    }

    /// The streamed batch at hand is now the first of its window.
    pub(crate) fn rebase(&mut self) {
        if let Some((row, hit)) = self.open {
            self.open = Some((RowRef::new(0, row.row()), hit));
        }
    }
}

fn shows_both(join_type: JoinType) -> bool {
    matches!(join_type, JoinType::Inner | JoinType::Left | JoinType::Full)
}

/// The rows `refs` of some columns of a window's batches.
fn gather(
    window: &[Batch],
    refs: &[RowRef],
    columns: impl Fn(&Batch) -> Result<Batch>,
) -> Result<Batch> {
    let present = || refs.iter().filter(|r| !r.is_none()).map(|r| r.chunk());
    let first = present().min().unwrap_or(0);
    let last = present().max().unwrap_or(0).min(window.len().saturating_sub(1) as u32);
    let used = window[first as usize..=last as usize].iter().map(columns);
    let used = used.collect::<Result<Vec<Batch>>>()?;
    if let [only] = &used[..] {
        let rows = refs.iter().map(|r| if r.is_none() { planish_batch::NO_ROW } else { r.row() });
        return Ok(only.select(&Arc::new(Selection::nullable_rows(rows.collect()))));
    }
    let schema = Arc::clone(used[0].schema());
    let refs: Vec<RowRef> = refs
        .iter()
        .map(|r| if r.is_none() { *r } else { RowRef::new(r.chunk() - first, r.row()) })
        .collect();
    gather_rows(&schema, &used, &refs)
}
