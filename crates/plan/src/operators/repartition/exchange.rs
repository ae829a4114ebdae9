//! The queues between the inputs and the outputs of one repartitioning, in one execution.
//!
//! A supervisor task, started when the first output is polled, runs one task per input
//! partition. A task waits while *every* live output has enough queued: as soon as one output
//! starves, all tasks go on, so reading one output alone never hangs; its siblings' rows pile up
//! (charged to the memory pool) unless they were dropped, in which case their rows are too.
//! The last output to be dropped aborts all tasks; where some outputs were never asked for,
//! `TaskContext::cancel` does.

use crate::context::{Task, TaskContext};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::PlanRef;
use crate::hashing::{hash_rows, partition_of};
use crate::spill::exhausted;
use async_stream::try_stream;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use planish_batch::{Batch, BatchCoalescer, RetainedBytes, Selection};
use planish_expr::{Partitioning, PhysicalExprRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Batches per output after which inputs wait, if it holds for all outputs.
const ENOUGH: usize = 4;

/// Batches between two resets of what counts as already charged: an address may come again.
const RECOUNT: usize = 64;

/// A queued batch and the memory it is charged with, given back when the batch is taken.
type Message = Result<(Batch, MemoryReservation)>;

/// The state that the partitions of a repartitioning share. The tasks share its queues only:
/// when it goes, so do they.
pub(super) struct Exchange {
    queues: Arc<Queues>,
    receivers: Vec<Mutex<Option<UnboundedReceiver<Message>>>>,
    /// Senders until the work starts, then the supervisor until the last output is gone.
    work: Mutex<Work>,
    /// Outputs not dropped yet.
    remaining: AtomicUsize,
}

/// How full the outputs are.
struct Queues {
    outputs: Vec<Output>,
    space: Notify,
}

enum Work {
    Ready(Vec<UnboundedSender<Message>>),
    Running(#[expect(dead_code, reason = "dropping it aborts the work")] Task<()>),
    Over,
}

#[derive(Default)]
struct Output {
    queued: AtomicUsize,
    dropped: AtomicBool,
}

impl Exchange {
    pub(super) fn new(outputs: usize) -> Self {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..outputs)
            .map(|_| {
                let (sender, receiver) = unbounded_channel();
                (sender, Mutex::new(Some(receiver)))
            })
            .unzip();
        let queues = Queues {
            outputs: (0..outputs).map(|_| Output::default()).collect(),
            space: Notify::new(),
        };
        Exchange {
            queues: Arc::new(queues),
            receivers,
            work: Mutex::new(Work::Ready(senders)),
            remaining: AtomicUsize::new(outputs),
        }
    }

    /// The rows of output `partition`.
    pub(super) fn output(
        self: Arc<Self>,
        partition: usize,
        input: PlanRef,
        partitioning: &Partitioning,
        node: usize,
        ctx: &Arc<TaskContext>,
    ) -> Result<BatchStream> {
        let Some(receiver) = self.receivers.get(partition) else {
            return internal_err!("RepartitionExec has no partition {partition}");
        };
        let Some(mut receiver) = receiver.lock().take() else {
            return internal_err!("partition {partition} of RepartitionExec is read twice");
        };
        let attached = Attached { exchange: Arc::clone(&self), partition };
        let partitioning = partitioning.clone();
        let ctx = Arc::clone(ctx);
        Ok(Box::pin(try_stream! {
            let exchange = Arc::clone(&attached.exchange);
            exchange.start(input, partitioning, node, &ctx);
            while let Some(message) = receiver.recv().await {
                let (batch, charged) = message?;
                exchange.queues.outputs[partition].queued.fetch_sub(1, Ordering::AcqRel);
                exchange.queues.space.notify_waiters();
                drop(charged);
                yield batch;
            }
            drop(attached);
        }))
    }

    /// Spawns the work, unless that was done before.
    fn start(
        &self,
        input: PlanRef,
        partitioning: Partitioning,
        node: usize,
        ctx: &Arc<TaskContext>,
    ) {
        let mut work = self.work.lock();
        match std::mem::replace(&mut *work, Work::Over) {
            Work::Ready(senders) => {
                let queues = Arc::clone(&self.queues);
                let dealer = Dealer { queues, partitioning, senders, node };
                let task_ctx = Arc::clone(ctx);
                *work = Work::Running(ctx.spawn(async move {
                    if let Err(error) = dealer.run_inputs(&input, &task_ctx).await {
                        let error = Arc::new(error);
                        for sender in &dealer.senders {
                            // A closed channel belongs to a dropped output.
                            let _ = sender.send(Err(DataFusionError::Shared(Arc::clone(&error))));
                        }
                    }
                }));
            }
            other => *work = other,
        }
    }
}

impl Queues {
    /// Waits while every output that still counts has enough rows queued.
    async fn wait_for_space(&self) {
        loop {
            let freed = self.space.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let starving = self.outputs.iter().any(|output| {
                !output.dropped.load(Ordering::Acquire)
                    && output.queued.load(Ordering::Acquire) < ENOUGH
            });
            if starving {
                return;
            }
            freed.await;
        }
    }
}

/// An output's stream, seen from the exchange.
struct Attached {
    exchange: Arc<Exchange>,
    partition: usize,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let exchange = &self.exchange;
        exchange.queues.outputs[self.partition].dropped.store(true, Ordering::Release);
        exchange.queues.space.notify_waiters();
        if exchange.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            let work = std::mem::replace(&mut *exchange.work.lock(), Work::Over);
            drop(work);
        }
    }
}

/// Deals the rows of all inputs to the outputs.
struct Dealer {
    queues: Arc<Queues>,
    partitioning: Partitioning,
    senders: Vec<UnboundedSender<Message>>,
    node: usize,
}

impl Dealer {
    async fn run_inputs(&self, input: &PlanRef, ctx: &Arc<TaskContext>) -> Result<()> {
        let keys: Option<Arc<[PhysicalExprRef]>> = match &self.partitioning {
            Partitioning::Hash(keys, _) => Some(ctx.bind_all(keys).await?.into()),
            _ => None,
        };
        let exchanged = ctx.metrics().node(self.node).counter("exchanged_rows");
        let mut tasks = FuturesUnordered::new();
        for partition in 0..input.partition_count() {
            let schema = input.schema();
            let input = execute_stream(input, partition, ctx)?;
            let coalescer = || BatchCoalescer::new(Arc::clone(&schema), ctx.batch_size());
            let lane = Lane {
                queues: Arc::clone(&self.queues),
                coalescers: self.senders.iter().map(|_| coalescer()).collect(),
                senders: self.senders.clone(),
                keys: keys.clone(),
                // Inputs begin with different outputs, so that short inputs spread, too.
                next: partition % self.senders.len(),
                reservation: ctx.reservation("RepartitionExec", false),
                charge: Charge::default(),
                hashes: vec![],
            };
            tasks.push(ctx.spawn_for(self.node, lane.deal_all(input, Arc::clone(&exchanged))));
        }
        while let Some(done) = tasks.next().await {
            done??;
        }
        Ok(())
    }
}

/// One input partition's way to all outputs.
struct Lane {
    queues: Arc<Queues>,
    senders: Vec<UnboundedSender<Message>>,
    coalescers: Vec<BatchCoalescer>,
    keys: Option<Arc<[PhysicalExprRef]>>,
    next: usize,
    reservation: MemoryReservation,
    charge: Charge,
    hashes: Vec<u64>,
}

impl Lane {
    async fn deal_all(mut self, mut input: BatchStream, exchanged: Arc<AtomicU64>) -> Result<()> {
        while let Some(batch) = input.next().await {
            let batch = batch?;
            exchanged.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            self.deal(batch)?;
            self.queues.wait_for_space().await;
        }
        for output in 0..self.senders.len() {
            if let Some(rest) = self.coalescers[output].finish()? {
                self.send(output, rest)?;
            }
        }
        Ok(())
    }

    fn deal(&mut self, batch: Batch) -> Result<()> {
        self.charge.add(&batch);
        let Some(keys) = self.keys.clone() else {
            let output = self.next;
            self.next = (output + 1) % self.senders.len();
            return self.send(output, batch);
        };
        let arrays =
            keys.iter().map(|key| key.evaluate_array(&batch)).collect::<Result<Vec<_>>>()?;
        hash_rows(&arrays, batch.num_rows(), &mut self.hashes)?;
        let mut rows: Vec<Vec<u32>> = vec![vec![]; self.senders.len()];
        for (row, &hash) in self.hashes.iter().enumerate() {
            rows[partition_of(hash, self.senders.len())].push(row as u32);
        }
        for (output, rows) in rows.into_iter().enumerate() {
            if rows.is_empty() || self.queues.outputs[output].dropped.load(Ordering::Acquire) {
                continue;
            }
            let piece = match rows.len() == batch.num_rows() {
                true => batch.clone(),
                false => batch.select(&Arc::new(Selection::rows(rows))),
            };
            if let Some(full) = self.coalescers[output].push(piece)? {
                self.send(output, full)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, output: usize, batch: Batch) -> Result<()> {
        if batch.num_rows() == 0 || self.queues.outputs[output].dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        let bytes = self.charge.take(batch.num_rows());
        let charged = self.reservation.new_empty();
        charged.try_grow(bytes).map_err(|_| exhausted("RepartitionExec", bytes))?;
        self.queues.outputs[output].queued.fetch_add(1, Ordering::AcqRel);
        // It fails when the output was dropped in the meantime: then nobody wants the rows.
        let _ = self.senders[output].send(Ok((batch, charged)));
        Ok(())
    }
}

/// Bytes kept alive by rows that were dealt but not sent yet. Pieces of a batch share its
/// arrays, so each piece carries its share by rows.
#[derive(Default)]
struct Charge {
    bytes: usize,
    rows: usize,
    batches: usize,
    seen: RetainedBytes,
}

impl Charge {
    fn add(&mut self, batch: &Batch) {
        self.batches += 1;
        if self.batches.is_multiple_of(RECOUNT) {
            self.seen.clear();
        }
        self.bytes += self.seen.add(batch);
        self.rows += batch.num_rows();
    }

    fn take(&mut self, rows: usize) -> usize {
        let share = (self.bytes as f64 * rows as f64 / self.rows.max(1) as f64) as usize;
        let share = share.min(self.bytes);
        self.bytes -= share;
        self.rows = self.rows.saturating_sub(rows);
        share
    }
}
