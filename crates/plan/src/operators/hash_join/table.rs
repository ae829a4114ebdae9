//! The hash table: from a key's code to the build rows that have it.
//!
//! Build rows are numbered. The table gives the first row of a code; further rows with the same
//! code are chained through `next`, ascending. The layout is chosen once all codes are known,
//! from their number and span:
//!
//! - *dense*: an array over the span, when that is hardly longer than the rows are many;
//! - *ranked*: a bit per code of the span, and an array of the codes that are there, when the
//!   span is longer, yet not out of proportion (surrogate keys, whole or filtered);
//! - *hashed*: open addressing otherwise.
//!
//! Keys of several columns are recoded by the values they really have, where that makes their
//! codes short. A table whose codes are all different keeps no chains. Byte keys are coded by
//! hash; the bytes are kept, and [`JoinTable::verifies`] compares them.

use crate::context::TaskContext;
use crate::operators::hash_join::keys::{Codes, KeyBatch};
use crate::operators::hash_join::layout::{Dense, Filling, Hashed, Ranked};
use crate::operators::hash_join::pack::Code;
use crate::operators::hash_join::recode::{Recode, Spans};
use crate::operators::join_state::NO_ROW;
use datafusion_common::{Result, internal_err};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows below which one task builds the table.
const PARALLEL_ROWS: usize = 256 * 1024;

/// Tasks that build one table, at most: each looks at all codes and keeps its share.
const MAX_BUILD_TASKS: usize = 8;

/// Codes that a dense array may span whatever the number of rows.
const SMALL_SPAN: u64 = 1 << 16;

/// From codes to build rows.
pub(crate) struct JoinTable {
    layout: Layout,
    recode: Option<Recode>,
    /// The next row with the same code; absent when all codes are different.
    next: Option<Vec<AtomicU32>>,
    bytes: Option<ByteArena>,
}

enum Layout {
    Empty,
    Dense(Dense),
    Ranked(Ranked),
    Narrow(Hashed<u64>),
    Wide(Hashed<u128>),
}

/// The bytes of all build keys.
struct ByteArena {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteArena {
    #[inline]
    fn get(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.data[start..self.ends[row]]
    }
}

/// The layout a table will have, and what it costs.
pub(crate) struct TablePlan {
    choice: Choice,
    recode: Option<Recode>,
    /// Bytes the table will take, beside the keys.
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Dense { low: u64, slots: u64 },
    Ranked { low: u64, slots: u64 },
    Narrow,
    Wide,
}

/// An array for codes within a span, if that is worth it for `rows` rows.
fn by_span(low: u64, slots: u64, rows: usize) -> Option<Choice> {
    let rows = rows as u64;
    if slots <= SMALL_SPAN || slots <= rows.saturating_mul(2) {
        Some(Choice::Dense { low, slots })
    } else if slots / 128 <= rows {
        Some(Choice::Ranked { low, slots })
    } else {
        None
    }
}

/// Chooses the layout for keys with these spans and lanes.
pub(crate) fn plan_table(keys: &[KeyBatch], spans: &Spans, lanes: &[u32]) -> TablePlan {
    let rows: usize = keys.iter().map(KeyBatch::len).sum();
    let wide = keys.iter().any(|k| matches!(k.codes, Codes::Wide(_)));
    let mut recode = None;
    let choice = match spans.only() {
        Some((low, high)) => by_span(low, (high - low).saturating_add(1), rows),
        None => {
            recode = Recode::try_new(spans, lanes);
            let array = recode.as_ref().and_then(|recode| by_span(0, recode.count(), rows));
            // Narrow codes gain nothing by others that are as sparse.
            if array.is_none() && !wide {
                recode = None;
            }
            array
        }
    };
    let narrow = !wide || recode.is_some();
    let choice = choice.unwrap_or(if narrow { Choice::Narrow } else { Choice::Wide });
    let table = match choice {
        Choice::Dense { slots, .. } => Dense::bytes(slots),
        Choice::Ranked { slots, .. } => Ranked::bytes(slots, rows),
        Choice::Narrow => Hashed::<u64>::bytes(rows),
        Choice::Wide => Hashed::<u128>::bytes(rows),
    };
    let recoded = if recode.is_some() { rows * 8 } else { 0 };
    let arena: usize = keys.iter().map(arena_bytes).sum();
    TablePlan { choice, recode, bytes: table + rows * 4 + recoded + arena }
}

fn arena_bytes(keys: &KeyBatch) -> usize {
    match &keys.codes {
        Codes::Bytes(hashes, bytes) => {
            (0..hashes.len()).map(|i| bytes.get(i).len() + size_of::<usize>()).sum()
        }
        _ => 0,
    }
}

impl JoinTable {
    /// The table of `keys`, whose rows are numbered in order.
    ///
    /// # Errors
    /// When a build task fails.
    pub(crate) async fn build(
        keys: Vec<KeyBatch>,
        plan: TablePlan,
        ctx: &Arc<TaskContext>,
        node: usize,
    ) -> Result<Self> {
        let rows: usize = keys.iter().map(KeyBatch::len).sum();
        let workers = ctx.options().execution.target_partitions.clamp(1, MAX_BUILD_TASKS);
        let workers = if rows < PARALLEL_ROWS { 1 } else { workers.next_power_of_two() };
        let TablePlan { choice, recode, .. } = plan;
        if keys.is_empty() {
            return Ok(JoinTable { layout: Layout::Empty, recode, next: None, bytes: None });
        }
        let bytes = arena(&keys);
        let keys = match &recode {
            Some(recode) => keys.into_iter().map(|keys| recode.rebuild(keys)).collect(),
            None => keys,
        };
        let build = TableBuild { filling: Arc::new(Filling::new(keys)), workers, ctx, node };
        let layout = match choice {
            Choice::Dense { low, slots } => Layout::Dense(build.dense(low, slots).await?),
            Choice::Ranked { low, slots } => Layout::Ranked(build.ranked(low, slots).await?),
            Choice::Narrow => Layout::Narrow(build.hashed().await?),
            Choice::Wide => Layout::Wide(build.hashed().await?),
        };
        let filled = unshared(build.filling)?;
        let next = filled.duplicates.into_inner().then_some(filled.next);
        Ok(JoinTable { layout, recode, next, bytes })
    }

    /// Whether no key has two build rows.
    pub(crate) fn is_unique(&self) -> bool {
        self.next.is_none()
    }

    /// Whether codes are hashes, to be verified with [`Self::verifies`].
    pub(crate) fn needs_verification(&self) -> bool {
        self.bytes.is_some()
    }

    /// The next build row with the code of `row`, or [`NO_ROW`].
    #[inline]
    pub(crate) fn next(&self, row: u32) -> u32 {
        match &self.next {
            Some(next) => next[row as usize].load(Ordering::Relaxed),
            None => NO_ROW,
        }
    }

    /// Whether build row `build`, of an equal code, has the key of probe row `probe`.
    #[inline]
    pub(crate) fn verifies(&self, build: u32, keys: &KeyBatch, probe: u32) -> bool {
        match (&self.bytes, &keys.codes) {
            (Some(arena), Codes::Bytes(_, bytes)) => arena.get(build) == bytes.get(probe as usize),
            _ => true,
        }
    }

    /// The first build row that has the key of each probe row, or [`NO_ROW`].
    pub(crate) fn heads(&self, keys: &KeyBatch) -> Vec<u32> {
        let mut heads = match (&self.recode, &keys.codes) {
            (Some(recode), Codes::Narrow(codes)) => self.narrow_heads(&recode.apply(codes)),
            (Some(recode), Codes::Wide(codes)) => self.narrow_heads(&recode.apply(codes)),
            (_, Codes::Narrow(codes) | Codes::Bytes(codes, _)) => self.narrow_heads(codes),
            (None, Codes::Wide(codes)) => match &self.layout {
                Layout::Wide(table) => table.heads(codes),
                _ => vec![NO_ROW; codes.len()],
            },
        };
        if let Some(nulls) = &keys.nulls {
            for (head, valid) in heads.iter_mut().zip(nulls) {
                if !valid {
                    *head = NO_ROW;
                }
            }
        }
        if self.needs_verification() {
            for (probe, head) in heads.iter_mut().enumerate() {
                while *head != NO_ROW && !self.verifies(*head, keys, probe as u32) {
                    *head = self.next(*head);
                }
            }
        }
        heads
    }

    fn narrow_heads(&self, codes: &[u64]) -> Vec<u32> {
        match &self.layout {
            Layout::Dense(table) => table.heads(codes),
            Layout::Ranked(table) => table.heads(codes),
            Layout::Narrow(table) => table.heads(codes),
            Layout::Empty | Layout::Wide(_) => vec![NO_ROW; codes.len()],
        }
    }
}

fn arena(keys: &[KeyBatch]) -> Option<ByteArena> {
    let mut arena = ByteArena { data: vec![], ends: vec![] };
    for batch in keys {
        let Codes::Bytes(hashes, bytes) = &batch.codes else { return None };
        for i in 0..hashes.len() {
            arena.data.extend_from_slice(bytes.get(i));
            arena.ends.push(arena.data.len());
        }
    }
    Some(arena)
}

/// A table in the making.
struct TableBuild<'a> {
    filling: Arc<Filling>,
    workers: usize,
    ctx: &'a Arc<TaskContext>,
    node: usize,
}

impl TableBuild<'_> {
    async fn dense(&self, low: u64, slots: u64) -> Result<Dense> {
        let table = Arc::new(Dense::new(low, slots));
        let task = |worker| {
            let (filling, table, workers) =
                (Arc::clone(&self.filling), Arc::clone(&table), self.workers);
            move || table.fill(&filling, worker, workers)
        };
        self.run(task).await?;
        unshared(table)
    }

    async fn ranked(&self, low: u64, slots: u64) -> Result<Ranked> {
        let bits = Arc::new(Ranked::bits(slots));
        let task = |worker| {
            let (filling, bits, workers) =
                (Arc::clone(&self.filling), Arc::clone(&bits), self.workers);
            move || Ranked::fill_bits(&bits, low, &filling, worker, workers)
        };
        self.run(task).await?;
        let table = Arc::new(Ranked::new(low, &bits));
        let task = |worker| {
            let (filling, table, workers) =
                (Arc::clone(&self.filling), Arc::clone(&table), self.workers);
            move || table.fill(&filling, worker, workers)
        };
        self.run(task).await?;
        unshared(table)
    }

    async fn hashed<C: Code>(&self) -> Result<Hashed<C>> {
        let region_bits = self.workers.trailing_zeros();
        let task = |worker| {
            let filling = Arc::clone(&self.filling);
            move || Hashed::<C>::fill_region(&filling, worker, region_bits)
        };
        Ok(Hashed::new(self.run(task).await?, region_bits))
    }

    /// Runs `task(0)`, .., `task(workers - 1)`, in tasks of their own when there are several.
    async fn run<F, T>(&self, task: impl Fn(usize) -> F) -> Result<Vec<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.workers == 1 {
            return Ok(vec![task(0)()]);
        }
        let tasks: Vec<_> = (0..self.workers)
            .map(|worker| {
                let work = task(worker);
                self.ctx.spawn_for(self.node, async move { work() })
            })
            .collect();
        let mut out = Vec::with_capacity(self.workers);
        for task in tasks {
            out.push(task.await?);
        }
        Ok(out)
    }
}

/// What only finished tasks shared.
fn unshared<T>(shared: Arc<T>) -> Result<T> {
    match Arc::try_unwrap(shared) {
        Ok(value) => Ok(value),
        Err(_) => internal_err!("a build task outlived the build"),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
