//! Running a plan: streams, their instrumentation, and collecting.

use crate::context::{TaskContext, node_id};
use crate::execution_plan::PlanRef;
use crate::metrics::NodeMetrics;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use futures::{Stream, TryStreamExt};
use planish_batch::Batch;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The batches of one partition.
pub type BatchStream = Pin<Box<dyn Stream<Item = Result<Batch>> + Send>>;

/// Runs `partition` of `plan`; rows, time and gathered bytes are counted in the context.
///
/// # Errors
/// As [`crate::ExecutionPlan::execute`].
pub fn execute_stream(
    plan: &PlanRef,
    partition: usize,
    ctx: &Arc<TaskContext>,
) -> Result<BatchStream> {
    let metrics = ctx.metrics().node(node_id(plan.as_ref()));
    let inner = metrics.measure(|| plan.execute(partition, ctx))?;
    Ok(Box::pin(Instrumented {
        inner,
        metrics,
        schema: plan.schema(),
        name: plan.name(),
        _ctx: Arc::clone(ctx),
    }))
}

struct Instrumented {
    inner: BatchStream,
    metrics: Arc<NodeMetrics>,
    schema: SchemaRef,
    name: &'static str,
    /// Keeps shared state (and the tasks in it) alive as long as anyone reads.
    _ctx: Arc<TaskContext>,
}

impl Stream for Instrumented {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let polled = this.metrics.measure(|| this.inner.as_mut().poll_next(cx));
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            this.metrics.count_batch(batch.num_rows());
            if cfg!(debug_assertions) {
                check_schema(this.name, &this.schema, batch);
            }
        }
        polled
    }
}

fn check_schema(name: &str, promised: &SchemaRef, batch: &Batch) {
    for (promised, column) in promised.fields().iter().zip(batch.columns()) {
        assert_eq!(promised.data_type(), &column.data_type(), "{name}: {}", promised.name());
    }
    assert_eq!(promised.fields().len(), batch.num_columns(), "{name}: number of columns");
}

/// All batches of all partitions, partition by partition. Each partition runs as a task of its
/// own on the context's runtime.
///
/// # Errors
/// The first error of any partition.
pub async fn collect_partitioned(
    plan: &PlanRef,
    ctx: &Arc<TaskContext>,
) -> Result<Vec<Vec<Batch>>> {
    let tasks = (0..plan.partition_count())
        .map(|partition| {
            let stream = execute_stream(plan, partition, ctx)?;
            Ok(ctx.spawn(stream.try_collect::<Vec<Batch>>()))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut out = Vec::with_capacity(tasks.len());
    for task in tasks {
        out.push(task.await??);
    }
    Ok(out)
}

/// All batches of all partitions.
///
/// # Errors
/// The first error of any partition.
pub async fn collect(plan: &PlanRef, ctx: &Arc<TaskContext>) -> Result<Vec<Batch>> {
    Ok(collect_partitioned(plan, ctx).await?.into_iter().flatten().collect())
}

/// The same plan with every node in one place only: a node that occurs twice is copied, since
/// per-execution state hangs on node identity.
///
/// # Errors
/// When a node cannot be rebuilt.
pub fn unshare_nodes(plan: PlanRef) -> Result<PlanRef> {
    let mut seen = HashSet::new();
    plan.transform_down(|node: PlanRef| {
        if seen.insert(node_id(node.as_ref())) {
            return Ok(Transformed::no(node));
        }
        let children = node.children().into_iter().map(Arc::clone).collect();
        let copy = node.with_new_children(children)?;
        seen.insert(node_id(copy.as_ref()));
        Ok(Transformed::yes(copy))
    })
    .data()
}
