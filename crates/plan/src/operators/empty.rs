//! `EmptyExec`: no rows.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use planish_expr::Partitioning;
use planish_expr::equivalence::EquivalenceProperties;
use std::fmt;
use std::sync::Arc;

/// A relation without rows.
#[derive(Debug)]
pub struct EmptyExec {
    properties: PlanProperties,
}

impl EmptyExec {
    /// No rows of `schema`.
    pub fn new(schema: SchemaRef) -> Self {
        let equivalences = EquivalenceProperties::new(schema);
        let properties = PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(1));
        EmptyExec { properties }
    }
}

impl ExecutionPlan for EmptyExec {
    fn name(&self) -> &'static str {
        "EmptyExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(EmptyExec::new(self.schema())))
    }

    fn fmt_details(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        Ok(Box::pin(futures::stream::empty()))
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Exact(0);
        Ok(statistics)
    }
}

impl Pushdown for EmptyExec {}
