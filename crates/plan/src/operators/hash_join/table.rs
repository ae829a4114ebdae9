//! The hash table: from a key's code to the build rows that have it.
//!
//! Build rows are numbered. The table gives the first row of a code; further rows with the same
//! code are chained through `next`, ascending. The layout is chosen once all codes are known:
//!
//! - *dense*: an array over the codes' span, when it is not much longer than the rows are many
//!   (surrogate keys nearly always);
//! - *open addressing* otherwise, split into regions by the hash's high bits so that several
//!   tasks can fill it.
//!
//! A table whose codes are all different keeps no chains. Byte keys are coded by hash; the bytes
//! are kept, and [`JoinTable::verifies`] compares them.

use crate::context::TaskContext;
use crate::operators::hash_join::keys::{Codes, KeyBatch};
use crate::operators::hash_join::pack::Code;
use crate::operators::join_state::NO_ROW;
use datafusion_common::{Result, internal_err};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Rows below which one task builds the table.
const PARALLEL_ROWS: usize = 256 * 1024;

/// Tasks that build one table, at most: each looks at all codes and keeps its share.
const MAX_BUILD_TASKS: usize = 8;

/// Slots that a dense array may have whatever the number of rows.
const SMALL_SPAN: u64 = 1 << 16;

/// Slots up to which a dense array may be sparser than usual.
const MEDIUM_SPAN: u64 = 1 << 22;

/// From codes to build rows.
pub(crate) struct JoinTable {
    layout: Layout,
    /// The next row with the same code; absent when all codes are different.
    next: Option<Vec<AtomicU32>>,
    bytes: Option<ByteArena>,
}

enum Layout {
    Empty,
    Dense { low: u64, slots: Vec<AtomicU32> },
    Narrow(HashTable<u64>),
    Wide(HashTable<u128>),
}

struct HashTable<C> {
    regions: Vec<Vec<Slot<C>>>,
    region_bits: u32,
}

#[derive(Clone, Copy)]
struct Slot<C> {
    code: C,
    head: u32,
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
    dense: Option<(u64, u64)>,
    /// Bytes the table will take, beside the keys.
    pub(crate) bytes: usize,
}

/// Chooses the layout for these keys.
pub(crate) fn plan_table(keys: &[KeyBatch]) -> TablePlan {
    let rows: usize = keys.iter().map(KeyBatch::len).sum();
    let span =
        keys.iter().filter_map(|k| k.span).reduce(|(a, b), (low, high)| (a.min(low), b.max(high)));
    let count = rows as u64;
    let dense = span.filter(|(low, high)| {
        let slots = (high - low).saturating_add(1);
        slots <= SMALL_SPAN
            || slots <= count.saturating_mul(4)
            || (slots <= MEDIUM_SPAN && slots <= count.saturating_mul(32))
    });
    let wide = keys.iter().any(|k| matches!(k.codes, Codes::Wide(_)));
    let table = match dense {
        Some((low, high)) => (high - low + 1) as usize * 4,
        None if wide => capacity(rows) * size_of::<Slot<u128>>(),
        None => capacity(rows) * size_of::<Slot<u64>>(),
    };
    let arena: usize = keys.iter().map(arena_bytes).sum();
    TablePlan { dense, bytes: table + rows * 4 + arena }
}

fn arena_bytes(keys: &KeyBatch) -> usize {
    match &keys.codes {
        Codes::Bytes(hashes, bytes) => {
            (0..hashes.len()).map(|i| bytes.get(i).len() + size_of::<usize>()).sum()
        }
        _ => 0,
    }
}

fn capacity(rows: usize) -> usize {
    // At most 4/7 full: probe sequences stay short, and a slot is always free.
    rows + rows / 4 * 3 + 4
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
        let wide = match keys.first().map(|k| &k.codes) {
            None => return Ok(JoinTable { layout: Layout::Empty, next: None, bytes: None }),
            Some(Codes::Wide(_)) => true,
            Some(Codes::Narrow(_) | Codes::Bytes(..)) => false,
        };
        let bytes = arena(&keys);
        let shared = Arc::new(Filling {
            starts: starts(&keys),
            keys,
            next: none_rows(rows),
            duplicates: AtomicBool::new(false),
        });
        let layout = match plan.dense {
            Some((low, high)) => {
                let slots = Arc::new(none_rows((high - low + 1) as usize));
                let task = |worker| {
                    let (shared, slots) = (Arc::clone(&shared), Arc::clone(&slots));
                    move || shared.fill_dense(low, &slots, worker, workers)
                };
                run_workers(workers, ctx, node, task).await?;
                match Arc::try_unwrap(slots) {
                    Ok(slots) => Layout::Dense { low, slots },
                    Err(_) => return internal_err!("a build task outlived the build"),
                }
            }
            None if wide => Layout::Wide(hash_table(&shared, workers, ctx, node).await?),
            None => Layout::Narrow(hash_table(&shared, workers, ctx, node).await?),
        };
        let Ok(filled) = Arc::try_unwrap(shared) else {
            return internal_err!("a build task outlived the build");
        };
        let next = filled.duplicates.into_inner().then_some(filled.next);
        Ok(JoinTable { layout, next, bytes })
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
        let mut heads = match (&self.layout, &keys.codes) {
            (Layout::Dense { low, slots }, Codes::Narrow(codes)) => {
                let find = |code: u64| match slots.get(code.wrapping_sub(*low) as usize) {
                    Some(slot) => slot.load(Ordering::Relaxed),
                    None => NO_ROW,
                };
                codes.iter().map(|&code| find(code)).collect()
            }
            (Layout::Narrow(table), Codes::Narrow(codes)) => table.heads(codes),
            (Layout::Narrow(table), Codes::Bytes(hashes, _)) => table.heads(hashes),
            (Layout::Wide(table), Codes::Wide(codes)) => table.heads(codes),
            _ => vec![NO_ROW; keys.len()],
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
}

fn none_rows(count: usize) -> Vec<AtomicU32> {
    std::iter::repeat_with(|| AtomicU32::new(NO_ROW)).take(count).collect()
}

fn starts(keys: &[KeyBatch]) -> Vec<u32> {
    let mut start = 0;
    keys.iter()
        .map(|k| {
            let own = start;
            start += k.len() as u32;
            own
        })
        .collect()
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

/// Runs `task(0)`, .., `task(workers - 1)`, in tasks of their own when there are several.
async fn run_workers<F, T>(
    workers: usize,
    ctx: &Arc<TaskContext>,
    node: usize,
    task: impl Fn(usize) -> F,
) -> Result<Vec<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if workers == 1 {
        return Ok(vec![task(0)()]);
    }
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let work = task(worker);
            ctx.spawn_for(node, async move { work() })
        })
        .collect();
    let mut out = Vec::with_capacity(workers);
    for task in tasks {
        out.push(task.await?);
    }
    Ok(out)
}

/// What the tasks that fill a table share. Each code belongs to one task, so the atomics never
/// see two writers of one element.
struct Filling {
    keys: Vec<KeyBatch>,
    starts: Vec<u32>,
    next: Vec<AtomicU32>,
    duplicates: AtomicBool,
}

impl Filling {
    /// Calls `visit` with each code and its row, the last row first: chains built by prepending
    /// ascend.
    fn rows_backwards<C: Code>(&self, mut visit: impl FnMut(C, u32)) {
        for (keys, &start) in self.keys.iter().zip(&self.starts).rev() {
            let codes = C::codes(&keys.codes);
            for (i, &code) in codes.iter().enumerate().rev() {
                if keys.is_valid(i) {
                    visit(code, start + i as u32);
                }
            }
        }
    }

    fn fill_dense(&self, low: u64, slots: &[AtomicU32], worker: usize, workers: usize) {
        let share = slots.len().div_ceil(workers);
        let own = worker * share..((worker + 1) * share).min(slots.len());
        let mut duplicates = false;
        self.rows_backwards(|code: u64, row| {
            let slot = (code - low) as usize;
            if own.contains(&slot) {
                let head = slots[slot].load(Ordering::Relaxed);
                slots[slot].store(row, Ordering::Relaxed);
                if head != NO_ROW {
                    self.next[row as usize].store(head, Ordering::Relaxed);
                    duplicates = true;
                }
            }
        });
        if duplicates {
            self.duplicates.store(true, Ordering::Relaxed);
        }
    }

    fn fill_region<C: Code>(&self, region: usize, region_bits: u32) -> Vec<Slot<C>> {
        let mut rows = 0;
        self.rows_backwards(|code: C, _| {
            rows += usize::from(region_of(code.hash(), region_bits) == region);
        });
        let mut slots = vec![Slot { code: C::default(), head: NO_ROW }; capacity(rows)];
        let mut duplicates = false;
        self.rows_backwards(|code: C, row| {
            let hash = code.hash();
            if region_of(hash, region_bits) != region {
                return;
            }
            let mut at = slot_of(hash, region_bits, slots.len());
            loop {
                let slot = &mut slots[at];
                if slot.head == NO_ROW {
                    *slot = Slot { code, head: row };
                    return;
                }
                if slot.code == code {
                    self.next[row as usize].store(slot.head, Ordering::Relaxed);
                    slot.head = row;
                    duplicates = true;
                    return;
                }
                at = if at + 1 == slots.len() { 0 } else { at + 1 };
            }
        });
        if duplicates {
            self.duplicates.store(true, Ordering::Relaxed);
        }
        slots
    }
}

async fn hash_table<C: Code>(
    shared: &Arc<Filling>,
    workers: usize,
    ctx: &Arc<TaskContext>,
    node: usize,
) -> Result<HashTable<C>> {
    let region_bits = workers.trailing_zeros();
    let task = |worker| {
        let shared = Arc::clone(shared);
        move || shared.fill_region::<C>(worker, region_bits)
    };
    Ok(HashTable { regions: run_workers(workers, ctx, node, task).await?, region_bits })
}

#[inline]
fn region_of(hash: u64, region_bits: u32) -> usize {
    if region_bits == 0 { 0 } else { (hash >> (64 - region_bits)) as usize }
}

/// The slot of a hash, scaled to the region's length by the bits below the region's.
#[inline]
fn slot_of(hash: u64, region_bits: u32, slots: usize) -> usize {
    ((u128::from(hash << region_bits) * slots as u128) >> 64) as usize
}

impl<C: Code> HashTable<C> {
    fn heads(&self, codes: &[C]) -> Vec<u32> {
        match self.regions.as_slice() {
            [only] => codes.iter().map(|&code| find(only, code, code.hash(), 0)).collect(),
            regions => codes
                .iter()
                .map(|&code| {
                    let hash = code.hash();
                    let region = &regions[region_of(hash, self.region_bits)];
                    find(region, code, hash, self.region_bits)
                })
                .collect(),
        }
    }
}

#[inline]
fn find<C: Code>(slots: &[Slot<C>], code: C, hash: u64, region_bits: u32) -> u32 {
    let mut at = slot_of(hash, region_bits, slots.len());
    loop {
        let slot = &slots[at];
        if slot.head == NO_ROW || slot.code == code {
            return slot.head;
        }
        at = if at + 1 == slots.len() { 0 } else { at + 1 };
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
