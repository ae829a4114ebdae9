//! `PlaceholderRowExec`: one row of NULLs, for a SELECT without FROM.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue, Statistics};
use planish_batch::{Batch, Column};
use planish_expr::Partitioning;
use planish_expr::equivalence::EquivalenceProperties;
use std::fmt;
use std::sync::Arc;

/// A relation with one row of NULLs.
#[derive(Debug)]
pub struct PlaceholderRowExec {
    properties: PlanProperties,
}

impl PlaceholderRowExec {
    /// One row of NULLs of `schema`.
    pub fn new(schema: SchemaRef) -> Self {
        let equivalences = EquivalenceProperties::new(schema);
        let properties = PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(1));
        PlaceholderRowExec { properties }
    }
}

impl ExecutionPlan for PlaceholderRowExec {
    fn name(&self) -> &'static str {
        "PlaceholderRowExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(PlaceholderRowExec::new(self.schema())))
    }

    fn fmt_details(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let schema = self.schema();
        let columns = schema
            .fields()
            .iter()
            .map(|f| Ok(Column::constant(ScalarValue::try_new_null(f.data_type())?, 1)))
            .collect::<Result<Vec<_>>>()?;
        let row = Batch::try_new(schema, columns, 1)?;
        Ok(Box::pin(futures::stream::iter([Ok(row)])))
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Exact(1);
        Ok(statistics)
    }
}

impl Pushdown for PlaceholderRowExec {}
