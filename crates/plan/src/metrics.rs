//! What each operator of one execution did: rows, own time, gathered bytes, and counters.

use parking_lot::Mutex;
use planish_batch::counters::gathered_bytes;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Metrics of one execution, by node.
#[derive(Debug, Default)]
pub struct MetricsRegistry {
    nodes: Mutex<HashMap<usize, Arc<NodeMetrics>>>,
}

impl MetricsRegistry {
    /// The metrics of node `id` (see [`crate::node_id`]).
    pub fn node(&self, id: usize) -> Arc<NodeMetrics> {
        Arc::clone(self.nodes.lock().entry(id).or_default())
    }
}

/// Metrics of one operator, over all of its partitions.
#[derive(Debug, Default)]
pub struct NodeMetrics {
    rows: AtomicU64,
    batches: AtomicU64,
    nanos: AtomicU64,
    gathered: AtomicU64,
    counters: Mutex<BTreeMap<&'static str, Arc<AtomicU64>>>,
}

impl NodeMetrics {
    /// Rows handed on.
    pub fn output_rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Batches handed on.
    pub fn output_batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Nanoseconds of work in this operator, its inputs' aside, over all threads.
    pub fn elapsed_nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    /// Bytes of column values that this operator caused to be gathered.
    pub fn gathered_bytes(&self) -> u64 {
        self.gathered.load(Ordering::Relaxed)
    }

    /// The named counter, made at first use: `spilled_bytes`, `exchanged_rows`, ...
    pub fn counter(&self, name: &'static str) -> Arc<AtomicU64> {
        Arc::clone(self.counters.lock().entry(name).or_default())
    }

    /// Adds to a named counter.
    pub fn add(&self, name: &'static str, by: usize) {
        self.counter(name).fetch_add(by as u64, Ordering::Relaxed);
    }

    /// All named counters.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.lock().iter().map(|(k, v)| (*k, v.load(Ordering::Relaxed))).collect()
    }

    pub(crate) fn count_batch(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs `work`, charging its time and gathered bytes to this node; what nested calls charge
    /// elsewhere is not counted twice.
    pub(crate) fn measure<R>(&self, work: impl FnOnce() -> R) -> R {
        let outer = NESTED.replace(Nested::default());
        let (start, gathered_before) = (Instant::now(), gathered_bytes());
        let result = work();
        let total = Nested {
            nanos: start.elapsed().as_nanos() as u64,
            gathered: gathered_bytes() - gathered_before,
        };
        let nested = NESTED.replace(Nested {
            nanos: outer.nanos + total.nanos,
            gathered: outer.gathered + total.gathered,
        });
        self.nanos.fetch_add(total.nanos.saturating_sub(nested.nanos), Ordering::Relaxed);
        self.gathered.fetch_add(total.gathered.saturating_sub(nested.gathered), Ordering::Relaxed);
        result
    }
}

/// What nested `measure` calls on this thread took.
#[derive(Clone, Copy, Default)]
struct Nested {
    nanos: u64,
    gathered: u64,
}

thread_local! {
    static NESTED: Cell<Nested> = const { Cell::new(Nested { nanos: 0, gathered: 0 }) };
}
