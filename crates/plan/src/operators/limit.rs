//! `GlobalLimitExec` and `LocalLimitExec`: some rows of the whole, or the first rows of each
//! partition.
//!
//! Both drop their input as soon as they have their rows, which cancels the work below.

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::passing::{limit_statistics, local_limit_statistics, narrowed};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use async_stream::try_stream;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use planish_expr::Distribution;
use std::fmt;
use std::sync::Arc;

/// `OFFSET skip LIMIT fetch` over a single partition.
#[derive(Debug)]
pub struct GlobalLimitExec {
    input: PlanRef,
    skip: usize,
    limit: Option<usize>,
    properties: PlanProperties,
}

impl GlobalLimitExec {
    /// The rows of `input` after the first `skip`, at most `fetch` of them.
    pub fn new(input: PlanRef, skip: usize, fetch: Option<usize>) -> Self {
        let properties = input.properties().clone();
        GlobalLimitExec { input, skip, limit: fetch, properties }
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// How many rows are left out first.
    pub fn skip(&self) -> usize {
        self.skip
    }

    /// How many rows are given at most.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }
}

impl ExecutionPlan for GlobalLimitExec {
    fn name(&self) -> &'static str {
        "GlobalLimitExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(GlobalLimitExec::new(Arc::clone(&children[0]), self.skip, self.limit)))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skip={}, fetch=", self.skip)?;
        match self.limit {
            Some(limit) => write!(f, "{limit}"),
            None => f.write_str("None"),
        }
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        if self.input.partition_count() != 1 {
            return internal_err!(
                "GlobalLimitExec over {} partitions",
                self.input.partition_count()
            );
        }
        let input = execute_stream(&self.input, partition, ctx)?;
        Ok(limited(input, self.skip, self.limit.unwrap_or(usize::MAX)))
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        Ok(limit_statistics(self.input.statistics(None)?, self.skip, self.limit))
    }
}

impl Pushdown for GlobalLimitExec {
    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        Some(Arc::new(GlobalLimitExec::new(Arc::clone(&self.input), self.skip, fetch)))
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.skip == 0
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let below = narrowed(projection, &self.input)?;
        Ok(below
            .map(|below| Arc::new(GlobalLimitExec::new(below, self.skip, self.limit)) as PlanRef))
    }
}

/// The first rows of each partition.
#[derive(Debug)]
pub struct LocalLimitExec {
    input: PlanRef,
    limit: usize,
    properties: PlanProperties,
}

impl LocalLimitExec {
    /// At most `fetch` rows of each partition of `input`.
    pub fn new(input: PlanRef, fetch: usize) -> Self {
        let properties = input.properties().clone();
        LocalLimitExec { input, limit: fetch, properties }
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// How many rows each partition gives at most.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl ExecutionPlan for LocalLimitExec {
    fn name(&self) -> &'static str {
        "LocalLimitExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(LocalLimitExec::new(Arc::clone(&children[0]), self.limit)))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fetch={}", self.limit)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        Ok(limited(execute_stream(&self.input, partition, ctx)?, 0, self.limit))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        local_limit_statistics(&self.input, partition, self.limit)
    }
}

impl Pushdown for LocalLimitExec {
    fn fetch(&self) -> Option<usize> {
        Some(self.limit)
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        Some(Arc::new(LocalLimitExec::new(Arc::clone(&self.input), fetch?)))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let below = narrowed(projection, &self.input)?;
        Ok(below.map(|below| Arc::new(LocalLimitExec::new(below, self.limit)) as PlanRef))
    }
}

/// Rows `skip..skip + fetch` of a stream. The input is dropped with the last of them, before
/// they are handed on; without any wanted it is never polled.
pub(crate) fn limited(input: BatchStream, skip: usize, fetch: usize) -> BatchStream {
    Box::pin(try_stream! {
        let mut input = Some(input).filter(|_| fetch > 0);
        let (mut skip, mut left) = (skip, fetch);
        while let Some(stream) = &mut input {
            let Some(batch) = stream.next().await else { break };
            let batch = batch?;
            let skipped = skip.min(batch.num_rows());
            skip -= skipped;
            let rows = left.min(batch.num_rows() - skipped);
            left -= rows;
            if left == 0 {
                input = None;
            }
            if rows > 0 {
                yield batch.slice(skipped, rows);
            }
        }
    })
}
