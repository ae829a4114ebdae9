//! `RepartitionExec`: rows dealt anew to partitions, batch by batch or by the hash of a key.
//!
//! Rows move as selections: a batch is never copied, its pieces share its columns. Each output
//! has a queue of its own, so any of them may be read alone or dropped ([`exchange`]). The queues
//! are charged to the memory pool; what does not fit ends in the documented error.

mod exchange;

use crate::context::{TaskContext, node_id};
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::passing::{narrows, offer_filters};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics, internal_err};
use exchange::Exchange;
use planish_expr::projection::project_expr;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;

/// The input's rows, spread over partitions anew.
#[derive(Debug)]
pub struct RepartitionExec {
    input: PlanRef,
    partitioning: Partitioning,
    properties: PlanProperties,
}

impl RepartitionExec {
    /// The rows of `input` spread as `partitioning` says, which must be round robin or hash.
    ///
    /// # Errors
    /// An internal error for another partitioning, no partitions or no hash keys.
    pub fn try_new(input: PlanRef, partitioning: Partitioning) -> Result<Self> {
        match &partitioning {
            Partitioning::RoundRobinBatch(n) if *n > 0 => {}
            Partitioning::Hash(keys, n) if *n > 0 && !keys.is_empty() => {
                for key in keys {
                    key.data_type(&input.schema())?;
                }
            }
            other => return internal_err!("RepartitionExec cannot make {other}"),
        }
        let mut properties = input.properties().clone();
        if input.partition_count() > 1 {
            properties.equivalences.clear_orderings();
        }
        properties.partitioning = partitioning.clone();
        Ok(RepartitionExec { input, partitioning, properties })
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// How rows are spread.
    pub fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }
}

impl ExecutionPlan for RepartitionExec {
    fn name(&self) -> &'static str {
        "RepartitionExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let input = Arc::clone(&children[0]);
        Ok(Arc::new(RepartitionExec::try_new(input, self.partitioning.clone())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = self.input.partition_count();
        write!(f, "partitioning={}, input_partitions={inputs}", self.partitioning)
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        match &self.partitioning {
            Partitioning::Hash(keys, _) => keys.clone(),
            _ => vec![],
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.input.partition_count() <= 1]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![matches!(self.partitioning, Partitioning::Hash(..))]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let node = node_id(self);
        let outputs = self.partitioning.partition_count();
        let exchange = ctx.state(node, || Exchange::new(outputs));
        let input = Arc::clone(&self.input);
        exchange.output(partition, input, &self.partitioning, node, ctx)
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let input = self.input.statistics(None)?;
        if partition.is_none() {
            return Ok(input);
        }
        let share = |p: Precision<usize>| match p {
            Precision::Exact(n) | Precision::Inexact(n) => {
                Precision::Inexact(n.div_ceil(self.partitioning.partition_count()))
            }
            Precision::Absent => Precision::Absent,
        };
        let mut statistics = input.to_inexact();
        statistics.num_rows = share(statistics.num_rows);
        statistics.total_byte_size = share(statistics.total_byte_size);
        Ok(statistics)
    }
}

impl Pushdown for RepartitionExec {
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        if !narrows(projection, self.schema().fields().len()) {
            return Ok(None);
        }
        let partitioning = match &self.partitioning {
            Partitioning::Hash(keys, n) => {
                let keys = keys
                    .iter()
                    .map(|key| project_expr(key, projection.exprs()))
                    .collect::<Result<Option<Vec<_>>>>()?;
                let Some(keys) = keys else { return Ok(None) };
                Partitioning::Hash(keys, *n)
            }
            other => other.clone(),
        };
        let below = projection.with_input(Arc::clone(&self.input))?;
        Ok(Some(Arc::new(RepartitionExec::try_new(below, partitioning)?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(offer_filters(parent_filters, children))
    }
}
