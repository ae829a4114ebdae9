//! `SortPreservingMergeExec`: sorted partitions as one sorted partition.
//!
//! One task per input partition runs ahead of the merge through a bounded channel, so the
//! partitions run in parallel. See [`crate::operators::sort`] for how rows are merged.

use crate::context::{TaskContext, node_id};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::coalesce_partitions::prefetched;
use crate::operators::limit::limited;
use crate::operators::passing::{limit_statistics, narrowed, offer_filters, project_ordering};
use crate::operators::projection::ProjectionExec;
use crate::operators::sort::{bind_keys, merge_sorted};
use crate::properties::PlanProperties;
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use planish_expr::sort_expr::display_ordering;
use planish_expr::{LexOrdering, Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The rows of all partitions of the input, each sorted by `expr`, in that order.
#[derive(Debug)]
pub struct SortPreservingMergeExec {
    input: PlanRef,
    expr: LexOrdering,
    limit: Option<usize>,
    properties: PlanProperties,
}

impl SortPreservingMergeExec {
    /// A merge of the partitions of `input`, each of which must be sorted by `expr`.
    pub fn new(expr: LexOrdering, input: PlanRef) -> Self {
        let mut properties = input.properties().clone();
        if input.partition_count() > 1 {
            // Other orders hold within each partition, not across them.
            properties.equivalences.clear_orderings();
        }
        properties.equivalences.add_ordering(expr.clone());
        properties.partitioning = Partitioning::UnknownPartitioning(1);
        SortPreservingMergeExec { input, expr, limit: None, properties }
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

    /// The order.
    pub fn expr(&self) -> &LexOrdering {
        &self.expr
    }
}

impl ExecutionPlan for SortPreservingMergeExec {
    fn name(&self) -> &'static str {
        "SortPreservingMergeExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let node = SortPreservingMergeExec::new(self.expr.clone(), Arc::clone(&children[0]));
        Ok(Arc::new(node.with_limit(self.limit)))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display_ordering(&self.expr))?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", fetch={limit}"))
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.expr.iter().map(|key| Arc::clone(&key.expr)).collect()
    }

    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        vec![Some(self.expr.clone())]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        if partition != 0 {
            return internal_err!("SortPreservingMergeExec has no partition {partition}");
        }
        let mut inputs = (0..self.input.partition_count())
            .map(|partition| execute_stream(&self.input, partition, ctx))
            .collect::<Result<Vec<_>>>()?;
        let fetch = self.limit.unwrap_or(usize::MAX);
        if inputs.len() == 1 {
            let only = inputs.remove(0);
            return Ok(if self.limit.is_some() { limited(only, 0, fetch) } else { only });
        }
        let (node, ctx) = (node_id(self), Arc::clone(ctx));
        let (expr, schema) = (self.expr.clone(), self.schema());
        Ok(Box::pin(try_stream! {
            if fetch == 0 {
                return;
            }
            let keys = bind_keys(&expr, &ctx).await?;
            let exchanged = ctx.metrics().node(node).counter("exchanged_rows");
            let inputs = inputs.into_iter().map(|i| prefetched(i, node, &ctx)).collect();
            let mut merged = merge_sorted(inputs, &keys, schema, ctx.batch_size(), fetch)?;
            while let Some(batch) = merged.next().await {
                let batch = batch?;
                exchanged.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                yield batch;
            }
        }))
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        Ok(limit_statistics(self.input.statistics(None)?, 0, self.limit))
    }
}

impl Pushdown for SortPreservingMergeExec {
    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        let node = SortPreservingMergeExec::new(self.expr.clone(), Arc::clone(&self.input));
        Some(Arc::new(node.with_limit(fetch)))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let Some(expr) = project_ordering(&self.expr, projection)? else { return Ok(None) };
        let below = narrowed(projection, &self.input)?;
        Ok(below.map(|below| {
            Arc::new(SortPreservingMergeExec::new(expr, below).with_limit(self.limit)) as PlanRef
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
