//! Making sorted runs of one input partition, in memory or, when that is scarce, on disk.

use super::keys::{KeyEncoder, Keys};
use super::top_k::TopK;
use crate::context::TaskContext;
use crate::dynamic_filters::DynamicFilter;
use crate::execute::BatchStream;
use crate::spill::{SpillFileWriter, Spilled, owned};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use planish_batch::{Batch, RetainedBytes, RowRef, gather_rows};
use planish_expr::PhysicalSortExpr;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

/// Rows per run: sorting one takes a few milliseconds, after which the task yields.
const RUN_ROWS: usize = 128 * 1024;

/// Largest `fetch` for which candidates are kept in a bounded set.
pub(super) const TOP_K_MAX: usize = 64 * 1024;

/// Bytes per batch of a spilled run: a merge holds one batch of each run.
pub(super) const SPILLED_BATCH_BYTES: usize = 64 * 1024;

/// Batches between two chances for other tasks.
const YIELD_EVERY: usize = 8;

/// What the parts of a sort know.
pub(super) struct Settings {
    pub(super) keys: Vec<PhysicalSortExpr>,
    pub(super) encoder: KeyEncoder,
    pub(super) schema: SchemaRef,
    pub(super) fetch: usize,
    pub(super) node: usize,
    pub(super) pressure: Arc<Pressure>,
    pub(super) ctx: Arc<TaskContext>,
    /// Where to say what the worst of the first `fetch` rows is.
    pub(super) dynamic: Option<Arc<DynamicFilter>>,
}

/// How partitions of one sort ask each other for memory: a partition that gets none, and has
/// nothing to spill itself, raises the count; the others spill when they see it.
#[derive(Default)]
pub(super) struct Pressure(AtomicU64);

/// A sort key's item and the row it belongs to.
pub(super) type Entry<K> = (<K as Keys>::Item, RowRef);

/// The order of two entries over batches with these keys.
#[inline]
pub(super) fn order<K: Keys>(keys: &[K], a: &Entry<K>, b: &Entry<K>) -> Ordering {
    a.0.cmp(&b.0).then_with(|| K::tie_of(keys, a.1, b.1))
}

/// One partition's rows, sorted: either runs in memory or runs on disk.
pub(super) struct Sorted<K: Keys> {
    pub(super) batches: Vec<Batch>,
    pub(super) keys: Vec<K>,
    pub(super) runs: Vec<Vec<Entry<K>>>,
    pub(super) spilled: Vec<Spilled>,
    pub(super) reservation: MemoryReservation,
}

/// Reads `input` to its end and sorts it.
pub(super) async fn collect<K: Keys>(
    mut input: BatchStream,
    settings: Arc<Settings>,
) -> Result<Sorted<K>> {
    let mut batches = 0;
    let mut runs = RunBuilder::<K>::new(&settings);
    if settings.fetch <= TOP_K_MAX {
        let mut top = TopK::<K>::new(&settings);
        let mut fits = true;
        while fits && let Some(batch) = input.next().await {
            fits = top.push(&batch?)?;
            batches += 1;
            if batches % YIELD_EVERY == 0 {
                tokio::task::yield_now().await;
            }
        }
        if fits {
            return Ok(top.finish());
        }
        // Even `fetch` rows are too many for the memory: sorted on disk, they are not.
        runs.sorted = top.finish();
        runs.spill()?;
    }
    while let Some(batch) = input.next().await {
        runs.push(&batch?)?;
        batches += 1;
        if batches % YIELD_EVERY == 0 {
            tokio::task::yield_now().await;
        }
    }
    runs.finish()
}

struct RunBuilder<'a, K: Keys> {
    settings: &'a Settings,
    sorted: Sorted<K>,
    /// Rows not yet in a run.
    entries: Vec<Entry<K>>,
    retained: RetainedBytes,
    /// Once memory was short, batches are copied out of the larger arrays they may lie in.
    tight: bool,
    pressure_seen: u64,
}

impl<'a, K: Keys> RunBuilder<'a, K> {
    fn new(settings: &'a Settings) -> Self {
        let reservation = settings.ctx.reservation("SortExec", true);
        let empty =
            Sorted { batches: vec![], keys: vec![], runs: vec![], spilled: vec![], reservation };
        RunBuilder {
            settings,
            sorted: empty,
            entries: vec![],
            retained: RetainedBytes::default(),
            tight: false,
            pressure_seen: settings.pressure.0.load(Atomic::Relaxed),
        }
    }

    fn push(&mut self, batch: &Batch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = K::encode(&self.settings.encoder, batch)?;
        let mut batch = if self.tight { owned(batch)? } else { batch.compact()? };
        let asked = self.settings.pressure.0.load(Atomic::Relaxed);
        if std::mem::replace(&mut self.pressure_seen, asked) != asked {
            self.spill()?;
        }
        let mut needed = self.needed(&batch, &keys);
        if self.sorted.reservation.try_grow(needed).is_err() {
            self.spill()?;
            if !std::mem::replace(&mut self.tight, true) {
                batch = owned(&batch)?;
            }
            needed = self.needed(&batch, &keys);
            if self.sorted.reservation.try_grow(needed).is_err() {
                // One batch is what a sort cannot do without.
                self.pressure_seen = self.settings.pressure.0.fetch_add(1, Atomic::Relaxed) + 1;
                self.sorted.reservation.grow(needed);
            }
        }
        let chunk = self.sorted.batches.len() as u32;
        let rows = 0..batch.num_rows();
        self.entries.extend(rows.map(|r| (keys.item(r), RowRef::new(chunk, r as u32))));
        self.sorted.batches.push(batch);
        self.sorted.keys.push(keys.for_ties());
        if self.entries.len() >= RUN_ROWS {
            self.close_run();
        }
        Ok(())
    }

    /// Bytes that keeping a batch takes, until its rows were merged or spilled: the batch, its
    /// keys, and three times its entries (those of the run, those of the merge, and the
    /// references that come out).
    fn needed(&mut self, batch: &Batch, keys: &K) -> usize {
        self.retained.add(batch) + keys.size() + 3 * batch.num_rows() * size_of::<Entry<K>>()
    }

    fn close_run(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.entries);
        let keys = &self.sorted.keys;
        run.sort_unstable_by(|a, b| order(keys, a, b));
        run.truncate(self.settings.fetch);
        self.sorted.runs.push(run);
    }

    fn spill(&mut self) -> Result<()> {
        self.close_run();
        self.retained.clear();
        self.sorted.spill(self.settings)
    }

    fn finish(mut self) -> Result<Sorted<K>> {
        self.close_run();
        if !self.sorted.spilled.is_empty() {
            self.spill()?;
        }
        Ok(self.sorted)
    }
}

impl<K: Keys> Sorted<K> {
    /// Writes all runs in memory to disk, as one.
    pub(super) fn spill(&mut self, settings: &Settings) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.runs).into_iter().flatten();
        let refs = merged_refs(&self.keys, entries.collect(), settings.fetch);
        let all = gather_rows(&settings.schema, &self.batches, &refs)?;
        let schema = Arc::clone(&settings.schema);
        let mut writer = SpillFileWriter::try_new("SortExec", schema, &settings.ctx)?;
        writer.write_pieces(&all, SPILLED_BATCH_BYTES)?;
        let (spilled, bytes) = writer.finish()?;
        let metrics = settings.ctx.metrics().node(settings.node);
        metrics.add("spilled_bytes", bytes);
        metrics.add("spilled_runs", 1);
        self.spilled.push(spilled);
        self.batches.clear();
        self.keys.clear();
        self.reservation.free();
        Ok(())
    }
}

/// The rows of several sorted runs, one after the other in `entries`, in order.
pub(super) fn merged_refs<K: Keys>(
    keys: &[K],
    mut entries: Vec<Entry<K>>,
    fetch: usize,
) -> Vec<RowRef> {
    // The standard library's stable sort finds the runs and merges them.
    entries.sort_by(|a, b| order(keys, a, b));
    entries.into_iter().take(fetch).map(|(_, row)| row).collect()
}
