//! The build side of a join in one execution: its rows, which of them matched, and how many
//! probe partitions are still to come.
//!
//! Rows stay in the batches they came in; the build side as a whole is one [`Batch`] whose
//! columns are selections over them. Rows are numbered in the order of partitions.

use crate::context::TaskContext;
use crate::execute::execute_stream;
use crate::execution_plan::PlanRef;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result, resources_err};
use datafusion_execution::memory_pool::{MemoryReservation, human_readable_size};
use futures::StreamExt;
use parking_lot::Mutex;
use planish_batch::{Batch, RetainedBytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub(crate) use planish_batch::NO_ROW;

/// The build side's rows, shared by all partitions that probe it.
pub(crate) struct BuildRows {
    /// All rows as one batch; values have not moved.
    pub(crate) rows: Batch,
    matched: Option<MatchedRows>,
    probes: usize,
    finished: AtomicUsize,
    /// Held as long as the rows are.
    _reservation: Arc<MemoryReservation>,
}

impl BuildRows {
    /// `batches` as the build side that `probes` partitions will probe; `track_matches` when
    /// build rows are emitted by whether they matched.
    pub(crate) fn try_new(
        schema: &SchemaRef,
        batches: &[Batch],
        probes: usize,
        track_matches: bool,
        reservation: Arc<MemoryReservation>,
    ) -> Result<Self> {
        let rows: usize = batches.iter().map(Batch::num_rows).sum();
        if rows >= NO_ROW as usize {
            return resources_err!("the build side of a join has {rows} rows, more than 2^32 - 2");
        }
        Ok(BuildRows {
            rows: Batch::concat(schema, batches)?,
            matched: track_matches.then(|| MatchedRows::new(rows)),
            probes,
            finished: AtomicUsize::new(0),
            _reservation: reservation,
        })
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// The bitmap of matched rows, if this join keeps one.
    pub(crate) fn matched(&self) -> Option<&MatchedRows> {
        self.matched.as_ref()
    }

    /// Notes that one probe partition has seen all of its rows; true for the last one, whose
    /// duty the unmatched rows are. A partition that was dropped never gets here.
    pub(crate) fn finish_probe(&self) -> bool {
        self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.probes
    }
}

/// Which build rows have found a match: bits that any partition may set.
pub(crate) struct MatchedRows {
    words: Vec<AtomicU64>,
    rows: usize,
}

impl MatchedRows {
    fn new(rows: usize) -> Self {
        MatchedRows {
            words: std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(64)).collect(),
            rows,
        }
    }

    /// Bytes of the bitmap over `rows` rows.
    pub(crate) fn bytes_for(rows: usize) -> usize {
        rows.div_ceil(64) * 8
    }

    #[inline]
    pub(crate) fn set(&self, row: u32) {
        let (word, bit) = (&self.words[row as usize / 64], 1 << (row % 64));
        // Most rows of a dimension match many times: reading first keeps the line shared.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> bool {
        self.words[row as usize / 64].load(Ordering::Relaxed) & (1 << (row % 64)) != 0
    }

    /// The bits of rows `from..to`.
    pub(crate) fn bits(&self, from: usize, to: usize) -> BooleanBuffer {
        debug_assert!(to <= self.rows);
        BooleanBuffer::collect_bool(to - from, |i| self.get((from + i) as u32))
    }
}

/// Reserves `bytes` more for the operator `name`.
///
/// # Errors
/// The documented error: it names the operator, what it needs, and the knob.
pub(crate) fn grow(reservation: &MemoryReservation, name: &str, bytes: usize) -> Result<()> {
    reservation.try_grow(bytes).map_err(|_| {
        DataFusionError::ResourcesExhausted(format!(
            "{name} needs {} more than the memory limit allows; raise it with --memory-limit or \
             SET datafusion.runtime.memory_limit",
            human_readable_size(bytes)
        ))
    })
}

/// What is collected of a build side: who asks, and where it is accounted.
#[derive(Clone)]
pub(crate) struct Collector {
    /// The input.
    pub(crate) left: PlanRef,
    /// The join's node id.
    pub(crate) node: usize,
    /// The join's name, for errors.
    pub(crate) name: &'static str,
    /// Where the batches are accounted.
    pub(crate) reservation: Arc<MemoryReservation>,
}

impl Collector {
    /// A collector of `left` for the node `node` called `name`, with a reservation of its own.
    pub(crate) fn new(
        left: &PlanRef,
        node: usize,
        name: &'static str,
        ctx: &Arc<TaskContext>,
    ) -> Self {
        let reservation = Arc::new(ctx.reservation(name, false));
        Collector { left: Arc::clone(left), node, name, reservation }
    }

    /// The batches of `partitions` of the input, in order, each with its digest. Partitions run
    /// at once, each in a task of its own; the batches are compacted and accounted.
    ///
    /// `digest` computes what the join needs to know of a batch, and its bytes.
    pub(crate) async fn collect<K, F>(
        &self,
        partitions: std::ops::Range<usize>,
        ctx: &Arc<TaskContext>,
        digest: F,
    ) -> Result<Vec<(Batch, K)>>
    where
        K: Send + 'static,
        F: Fn(&Batch) -> Result<(K, usize)> + Clone + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(RetainedBytes::default()));
        if partitions.len() == 1 {
            return self.collect_one(partitions.start, ctx, &seen, digest).await;
        }
        let tasks: Vec<_> = partitions
            .map(|partition| {
                let (this, task_ctx) = (self.clone(), Arc::clone(ctx));
                let (seen, digest) = (Arc::clone(&seen), digest.clone());
                ctx.spawn_for(self.node, async move {
                    this.collect_one(partition, &task_ctx, &seen, digest).await
                })
            })
            .collect();
        let mut out = vec![];
        for task in tasks {
            out.extend(task.await??);
        }
        Ok(out)
    }

    async fn collect_one<K>(
        &self,
        partition: usize,
        ctx: &Arc<TaskContext>,
        seen: &Mutex<RetainedBytes>,
        digest: impl Fn(&Batch) -> Result<(K, usize)>,
    ) -> Result<Vec<(Batch, K)>> {
        let mut input = execute_stream(&self.left, partition, ctx)?;
        let mut out = vec![];
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            // Keys are read first: a column that was read is kept as its values alone.
            let (key, key_bytes) = digest(&batch)?;
            let batch = batch.compact()?;
            let bytes = seen.lock().add(&batch);
            grow(&self.reservation, self.name, bytes + key_bytes)?;
            out.push((batch, key));
        }
        Ok(out)
    }
}
