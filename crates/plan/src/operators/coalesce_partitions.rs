//! `CoalescePartitionsExec`: all partitions as one, in no particular order.
//!
//! One task per input partition feeds a bounded channel, so the partitions run in parallel and
//! wait when nobody reads. Dropping the stream aborts the tasks.

use crate::context::{TaskContext, node_id};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::limit::limited;
use crate::operators::passing::{limit_statistics, narrowed, offer_filters};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches that a partition may be ahead of the reader.
const AHEAD: usize = 2;

/// All rows of the input in one partition.
#[derive(Debug)]
pub struct CoalescePartitionsExec {
    input: PlanRef,
    limit: Option<usize>,
    properties: PlanProperties,
}

impl CoalescePartitionsExec {
    /// All partitions of `input` as one.
    pub fn new(input: PlanRef) -> Self {
        let mut properties = input.properties().clone();
        if input.partition_count() > 1 {
            properties.equivalences.clear_orderings();
        }
        properties.partitioning = Partitioning::UnknownPartitioning(1);
        CoalescePartitionsExec { input, limit: None, properties }
    }

    /// As [`Pushdown::with_fetch`], on an owned node.
    #[must_use]
    pub fn with_limit(mut self, fetch: Option<usize>) -> Self {
        self.limit = fetch;
        self
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
}

impl ExecutionPlan for CoalescePartitionsExec {
    fn name(&self) -> &'static str {
        "CoalescePartitionsExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let node = CoalescePartitionsExec::new(Arc::clone(&children[0]));
        Ok(Arc::new(node.with_limit(self.limit)))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit.map_or(Ok(()), |limit| write!(f, "fetch={limit}"))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.input.partition_count() <= 1]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        if partition != 0 {
            return internal_err!("CoalescePartitionsExec has no partition {partition}");
        }
        let mut inputs = (0..self.input.partition_count())
            .map(|partition| execute_stream(&self.input, partition, ctx))
            .collect::<Result<Vec<_>>>()?;
        let batches = match inputs.len() {
            1 => inputs.remove(0),
            _ => coalesced(inputs, node_id(self), Arc::clone(ctx)),
        };
        Ok(match self.limit {
            Some(limit) => limited(batches, 0, limit),
            None => batches,
        })
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        Ok(limit_statistics(self.input.statistics(None)?, 0, self.limit))
    }
}

fn coalesced(inputs: Vec<BatchStream>, node: usize, ctx: Arc<TaskContext>) -> BatchStream {
    Box::pin(try_stream! {
        let exchanged = ctx.metrics().node(node).counter("exchanged_rows");
        let (sender, mut batches) = mpsc::channel(AHEAD * inputs.len().max(1));
        let tasks: Vec<_> = inputs
            .into_iter()
            .map(|input| ctx.spawn_for(node, forward(input, sender.clone())))
            .collect();
        drop(sender);
        while let Some(batch) = batches.recv().await {
            let batch: Batch = batch?;
            exchanged.fetch_add(batch.num_rows() as u64, std::sync::atomic::Ordering::Relaxed);
            yield batch;
        }
        // A task that panicked closed its end of the channel without a word.
        for task in tasks {
            task.await?;
        }
    })
}

/// `input` run ahead of its reader in a task of its own, which ends with the stream.
pub(crate) fn prefetched(input: BatchStream, node: usize, ctx: &TaskContext) -> BatchStream {
    let (sender, mut batches) = mpsc::channel(AHEAD);
    let task = ctx.spawn_for(node, forward(input, sender));
    Box::pin(try_stream! {
        while let Some(batch) = batches.recv().await {
            yield batch?;
        }
        task.await?;
    })
}

/// Sends all of `input`, or up to its first error; ends early when nobody listens.
async fn forward(mut input: BatchStream, sender: mpsc::Sender<Result<Batch>>) {
    while let Some(batch) = input.next().await {
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            break;
        }
    }
}

impl Pushdown for CoalescePartitionsExec {
    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        let node = CoalescePartitionsExec::new(Arc::clone(&self.input));
        Some(Arc::new(node.with_limit(fetch)))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let below = narrowed(projection, &self.input)?;
        Ok(below.map(|below| {
            Arc::new(CoalescePartitionsExec::new(below).with_limit(self.limit)) as PlanRef
        }))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(match self.limit {
            Some(_) => FilterDescription::all_unsupported(parent_filters, children),
            None => offer_filters(parent_filters, children),
        })
    }
}
