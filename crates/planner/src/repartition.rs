//! `Repartition` (`DISTRIBUTE BY`) becomes a `RepartitionExec`.

use crate::planner::Lowering;
use datafusion_common::{Result, not_impl_err};
use datafusion_expr::logical_plan::{Partitioning as LogicalPartitioning, Repartition};
use planish_expr::Partitioning;
use planish_plan::PlanRef;
use planish_plan::operators::repartition::RepartitionExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_repartition(&self, node: &Repartition) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let schema = node.input.schema();
        let partitioning = match &node.partitioning_scheme {
            LogicalPartitioning::RoundRobinBatch(n) => Partitioning::RoundRobinBatch(*n),
            LogicalPartitioning::Hash(exprs, n) => {
                Partitioning::Hash(self.exprs(exprs, schema)?, *n)
            }
            LogicalPartitioning::DistributeBy(exprs) => {
                let count = self.options.execution.target_partitions;
                Partitioning::Hash(self.exprs(exprs, schema)?, count)
            }
            other => return not_impl_err!("repartitioning by {other:?} is not supported yet"),
        };
        Ok(Arc::new(RepartitionExec::try_new(input, partitioning)?))
    }
}
