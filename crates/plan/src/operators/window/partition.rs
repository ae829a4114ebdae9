//! One partition: its buffered columns, and the functions that run over them.

use super::call::WindowExpr;
use super::columns::Columns;
use super::evaluate::Evaluator;
use super::frame::View;
use super::peers::Peers;
use arrow::array::{Array, ArrayRef};
use arrow::compute::{SortOptions, concat};
use datafusion_common::Result;

/// The rows of one partition that are still needed, and what was found out about them.
pub(super) struct Partition {
    evaluators: Vec<Evaluator>,
    /// The buffered columns, of rows `base..joined`, and pieces that are to be joined to them.
    columns: Vec<ArrayRef>,
    pieces: Vec<Vec<ArrayRef>>,
    base: usize,
    joined: usize,
    len: usize,
    peers: Peers,
}

impl Partition {
    /// A partition without rows; `streams`: it yields results before its end.
    ///
    /// # Errors
    /// What the functions refuse.
    pub(super) fn new(
        exprs: &[WindowExpr],
        options: &[SortOptions],
        columns: &Columns,
        streams: bool,
    ) -> Result<Self> {
        let evaluators = exprs
            .iter()
            .zip(&columns.reads)
            .map(|(expr, reads)| Evaluator::new(expr, options, reads.clone(), streams))
            .collect::<Result<Vec<_>>>()?;
        Ok(Partition {
            evaluators,
            columns: vec![],
            pieces: vec![],
            base: 0,
            joined: 0,
            len: 0,
            peers: Peers::default(),
        })
    }

    /// Adds `rows` rows, whose columns are `columns`.
    pub(super) fn push(&mut self, columns: Vec<ArrayRef>, rows: usize) {
        self.pieces.push(columns);
        self.len += rows;
    }

    /// Whether enough rows came to look at them: joining the buffered ones again and again would
    /// cost more than all the rest.
    pub(super) fn is_due(&self) -> bool {
        (self.len - self.joined) * 4 >= self.joined - self.base
    }

    /// The results that are known by now, for each function those of its next rows.
    ///
    /// # Errors
    /// Those of the functions.
    pub(super) fn advance(
        &mut self,
        keys: std::ops::Range<usize>,
        ended: bool,
    ) -> Result<Vec<ArrayRef>> {
        let from = self.joined;
        self.join()?;
        if self.len > from {
            let known = from.saturating_sub(1).max(self.base) - self.base;
            let new: Vec<ArrayRef> = self.columns[keys.clone()]
                .iter()
                .map(|c| c.slice(known, c.len() - known))
                .collect();
            self.peers.extend(&new, from)?;
        }
        let view = View {
            columns: &self.columns,
            keys: &self.columns[keys],
            base: self.base,
            len: self.len,
            ended,
            peers: &self.peers,
        };
        let results = self.evaluators.iter_mut().map(|e| e.advance(&view)).collect();
        if !ended {
            self.forget();
        }
        results
    }

    fn join(&mut self) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        self.joined = self.len;
        if self.columns.is_empty() {
            let mut pieces = pieces.into_iter();
            self.columns = pieces.next().unwrap_or_default();
            return self.join_all(&pieces.collect::<Vec<_>>());
        }
        self.join_all(&pieces)
    }

    fn join_all(&mut self, pieces: &[Vec<ArrayRef>]) -> Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        for (i, column) in self.columns.iter_mut().enumerate() {
            let mut parts: Vec<&dyn Array> = vec![column.as_ref()];
            parts.extend(pieces.iter().map(|piece| piece[i].as_ref()));
            *column = concat(&parts)?;
        }
        Ok(())
    }

    /// Lets go of rows that no function reads again. The last one stays, for its peers.
    fn forget(&mut self) {
        let needed = self.evaluators.iter().map(Evaluator::needs_from).min().unwrap_or(self.len);
        let needed = needed.min(self.len.saturating_sub(1));
        if needed > self.base {
            let gone = needed - self.base;
            for column in &mut self.columns {
                *column = column.slice(gone, column.len() - gone);
            }
            self.base = needed;
        }
        let group = self.evaluators.iter().map(Evaluator::needs_group).min().unwrap_or(usize::MAX);
        self.peers.forget_before(group);
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        let columns = self.columns.iter().chain(self.pieces.iter().flatten());
        let held: usize =
            columns.map(|c| c.to_data().get_slice_memory_size().unwrap_or_default()).sum();
        held + self.peers.size() + self.evaluators.iter().map(Evaluator::size).sum::<usize>()
    }
}
