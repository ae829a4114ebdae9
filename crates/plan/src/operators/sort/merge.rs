//! Merging sorted streams: a heap of cursors, one per input, that hands on whole runs.
//!
//! The winner's rows are taken up to the first that lies behind the runner-up, found by
//! galloping; a long run is handed on as a slice of its batch. Otherwise rows are collected as
//! references and leave as one selection: values do not move here.

use super::keys::{KeyEncoder, KeyForm, Keys, PairKeys, RowKeys, WordKeys};
use crate::execute::BatchStream;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::Result;
use futures::StreamExt;
use planish_batch::{Batch, RowRef, gather_rows};
use planish_expr::PhysicalSortExpr;
use std::sync::Arc;

/// The first `fetch` rows of the merged `inputs`, each sorted by `keys` (bound).
pub(crate) fn merge_sorted(
    inputs: Vec<BatchStream>,
    keys: &[PhysicalSortExpr],
    schema: SchemaRef,
    batch_size: usize,
    fetch: usize,
) -> Result<BatchStream> {
    let (encoder, form) = KeyEncoder::try_new(keys, &schema)?;
    let output = Output { schema, batch_size, fetch };
    Ok(match form {
        KeyForm::Word => merge::<WordKeys>(inputs, encoder, output),
        KeyForm::Pair => merge::<PairKeys>(inputs, encoder, output),
        KeyForm::Rows => merge::<RowKeys>(inputs, encoder, output),
    })
}

struct Output {
    schema: SchemaRef,
    batch_size: usize,
    fetch: usize,
}

fn merge<K: Keys>(inputs: Vec<BatchStream>, encoder: KeyEncoder, output: Output) -> BatchStream {
    Box::pin(try_stream! {
        let Output { schema, batch_size, fetch } = output;
        let mut left = fetch;
        let mut tree: Tree<K> = Tree::default();
        let mut window = Window { batches: vec![], refs: Vec::with_capacity(batch_size) };
        for input in inputs {
            if let Some(cursor) = Cursor::start(input, &encoder, &mut window).await? {
                tree.insert(cursor);
            }
        }
        while left > 0 && let Some((cursor, run)) = tree.next_run() {
            let run = run.min(left);
            let (chunk, row) = (cursor.chunk, cursor.row);
            if run * 2 >= batch_size {
                if !window.refs.is_empty() {
                    yield gather_rows(&schema, &window.batches, &window.refs)?;
                    window.refs.clear();
                }
                yield window.batches[chunk].slice(row, run).with_schema(Arc::clone(&schema));
                left -= run;
                tree.advance(run);
            } else {
                let run = run.min(batch_size - window.refs.len());
                window.refs.extend((row..row + run).map(|r| RowRef::new(chunk as u32, r as u32)));
                left -= run;
                tree.advance(run);
                if window.refs.len() == batch_size {
                    yield gather_rows(&schema, &window.batches, &window.refs)?;
                    window.refs.clear();
                }
            }
            if window.refs.is_empty() {
                tree.compact(&mut window);
            }
            if left > 0 && tree.needs_batch() {
                tree.refill(&encoder, &mut window).await?;
            }
        }
        if !window.refs.is_empty() {
            yield gather_rows(&schema, &window.batches, &window.refs)?;
        }
    })
}

/// The batches that rows waiting to be emitted, or cursors, lie in.
struct Window {
    batches: Vec<Batch>,
    refs: Vec<RowRef>,
}

/// An input and the row it is at.
struct Cursor<K: Keys> {
    input: BatchStream,
    keys: K,
    item: K::Item,
    /// The current batch's place in the window.
    chunk: usize,
    row: usize,
    rows: usize,
}

impl<K: Keys> Cursor<K> {
    async fn start(
        mut input: BatchStream,
        encoder: &KeyEncoder,
        window: &mut Window,
    ) -> Result<Option<Self>> {
        let Some((keys, rows)) = next_keys::<K>(&mut input, encoder, window).await? else {
            return Ok(None);
        };
        let (item, chunk) = (keys.item(0), window.batches.len() - 1);
        Ok(Some(Cursor { input, keys, item, chunk, row: 0, rows }))
    }

    /// Whether this cursor's row comes before that of `other`.
    #[inline]
    fn before(&self, other: &Self) -> bool {
        match self.item.cmp(&other.item) {
            std::cmp::Ordering::Equal => {
                K::tie(&self.keys, self.row, &other.keys, other.row).is_lt()
            }
            ordering => ordering.is_lt(),
        }
    }

    /// Whether row `row` of this cursor's batch may leave before the row of `other`.
    #[inline]
    fn row_not_after(&self, row: usize, other: &Self) -> bool {
        match self.keys.item(row).cmp(&other.item) {
            std::cmp::Ordering::Equal => K::tie(&self.keys, row, &other.keys, other.row).is_le(),
            ordering => ordering.is_lt(),
        }
    }

    /// How many rows from the current one on may leave before the row of `other`, which is not
    /// before the current one.
    fn run_before(&self, other: &Self) -> usize {
        let rest = self.rows - self.row;
        let (mut known, mut step) = (1, 1);
        while known < rest {
            let probe = (known + step).min(rest) - 1;
            if self.row_not_after(self.row + probe, other) {
                known = probe + 1;
                step *= 2;
                continue;
            }
            // The boundary lies in known..probe.
            let (mut low, mut high) = (known, probe);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.row_not_after(self.row + middle, other) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }
        known
    }
}

/// The keys of the next batch with rows, which joins the window.
async fn next_keys<K: Keys>(
    input: &mut BatchStream,
    encoder: &KeyEncoder,
    window: &mut Window,
) -> Result<Option<(K, usize)>> {
    while let Some(batch) = input.next().await {
        let batch = batch?;
        if batch.num_rows() > 0 {
            let (keys, rows) = (K::encode(encoder, &batch)?, batch.num_rows());
            window.batches.push(batch);
            return Ok(Some((keys, rows)));
        }
    }
    Ok(None)
}

/// A binary heap of cursors, the smallest row on top.
struct Tree<K: Keys> {
    cursors: Vec<Cursor<K>>,
    heap: Vec<usize>,
}

impl<K: Keys> Default for Tree<K> {
    fn default() -> Self {
        Tree { cursors: vec![], heap: vec![] }
    }
}

impl<K: Keys> Tree<K> {
    fn insert(&mut self, cursor: Cursor<K>) {
        self.heap.push(self.cursors.len());
        self.cursors.push(cursor);
        let mut child = self.heap.len() - 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if !self.before(child, parent) {
                break;
            }
            self.heap.swap(child, parent);
            child = parent;
        }
    }

    /// Whether the cursor at `a` of the heap comes before that at `b`.
    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        self.cursors[self.heap[a]].before(&self.cursors[self.heap[b]])
    }

    /// The cursor with the smallest row, and how many of its rows leave before any other.
    fn next_run(&self) -> Option<(&Cursor<K>, usize)> {
        let top = &self.cursors[*self.heap.first()?];
        let second = match self.heap.len() {
            1 => return Some((top, top.rows - top.row)),
            2 => 1,
            _ => 1 + usize::from(self.before(2, 1)),
        };
        Some((top, top.run_before(&self.cursors[self.heap[second]])))
    }

    /// Moves the top cursor `run` rows on; at the end of its batch it stays on top and
    /// [`Self::needs_batch`].
    fn advance(&mut self, run: usize) {
        let top = &mut self.cursors[self.heap[0]];
        top.row += run;
        if top.row < top.rows {
            top.item = top.keys.item(top.row);
            self.sift_down();
        }
    }

    fn needs_batch(&self) -> bool {
        self.heap.first().is_some_and(|&top| self.cursors[top].row == self.cursors[top].rows)
    }

    /// Gives the top cursor its next batch, or drops it.
    async fn refill(&mut self, encoder: &KeyEncoder, window: &mut Window) -> Result<()> {
        let top = &mut self.cursors[self.heap[0]];
        match next_keys::<K>(&mut top.input, encoder, window).await? {
            Some((keys, rows)) => {
                top.item = keys.item(0);
                (top.keys, top.rows, top.row) = (keys, rows, 0);
                top.chunk = window.batches.len() - 1;
            }
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift_down();
        Ok(())
    }

    fn sift_down(&mut self) {
        let mut parent = 0;
        loop {
            let mut child = 2 * parent + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.before(child + 1, child) {
                child += 1;
            }
            if !self.before(child, parent) {
                return;
            }
            self.heap.swap(child, parent);
            parent = child;
        }
    }

    /// Lets go of the batches that no cursor is in; called when no reference waits.
    fn compact(&mut self, window: &mut Window) {
        if window.batches.len() <= self.heap.len() {
            return;
        }
        let mut kept = Vec::with_capacity(self.heap.len());
        for &place in &self.heap {
            let cursor = &mut self.cursors[place];
            if cursor.row < cursor.rows {
                kept.push(window.batches[cursor.chunk].clone());
                cursor.chunk = kept.len() - 1;
            }
        }
        window.batches = kept;
    }
}
