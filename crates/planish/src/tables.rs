//! The tables that a session makes: rows in memory, files, views.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::LogicalPlan;
use planish_plan::PlanRef;
use planish_plan::operators::memory::MemoryScanExec;
use planish_planner::Table;
use std::sync::Arc;

/// Rows in memory.
#[derive(Clone, Debug)]
pub struct MemTable {
    schema: SchemaRef,
    partitions: Arc<[Vec<RecordBatch>]>,
}

impl MemTable {
    /// A table of batches, one list per partition.
    ///
    /// # Errors
    /// When a batch's columns are not of the types of `schema`.
    pub fn try_new(schema: SchemaRef, partitions: Vec<Vec<RecordBatch>>) -> Result<Self> {
        for batch in partitions.iter().flatten() {
            let same = batch.num_columns() == schema.fields().len()
                && batch
                    .schema()
                    .fields()
                    .iter()
                    .zip(schema.fields())
                    .all(|(a, b)| a.data_type() == b.data_type());
            if !same {
                return plan_err!("a batch of {} in a table of {schema}", batch.schema());
            }
        }
        Ok(MemTable { schema, partitions: partitions.into() })
    }
}

#[async_trait]
impl Table for MemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    async fn scan(&self, projection: Option<&[usize]>, _: &ConfigOptions) -> Result<PlanRef> {
        Ok(Arc::new(MemoryScanExec::try_new(
            Arc::clone(&self.partitions),
            Arc::clone(&self.schema),
            projection.map(<[usize]>::to_vec),
        )?))
    }
}

/// A named query.
#[derive(Clone, Debug)]
pub(crate) struct View {
    plan: LogicalPlan,
}

impl View {
    pub(crate) fn new(plan: LogicalPlan) -> Self {
        View { plan }
    }
}

#[async_trait]
impl Table for View {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }

    async fn scan(&self, _: Option<&[usize]>, _: &ConfigOptions) -> Result<PlanRef> {
        internal_err!("a view is replaced by its query before tables are scanned")
    }

    fn view_plan(&self) -> Option<&LogicalPlan> {
        Some(&self.plan)
    }
}
