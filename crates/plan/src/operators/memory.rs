//! `MemoryScanExec`: batches that are already there.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics, internal_err};
use planish_batch::Batch;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{LexOrdering, Partitioning};
use std::fmt;
use std::sync::Arc;

/// A scan of in-memory batches, one list per partition.
#[derive(Debug)]
pub struct MemoryScanExec {
    partitions: Arc<[Vec<RecordBatch>]>,
    table_schema: SchemaRef,
    projection: Option<Vec<usize>>,
    ordering: Option<LexOrdering>,
    fetch: Option<usize>,
    properties: PlanProperties,
}

impl MemoryScanExec {
    /// A scan of `partitions`, of whose columns `projection` are wanted, in that order.
    ///
    /// # Errors
    /// When a batch's types are not those of `table_schema`.
    pub fn try_new(
        partitions: impl Into<Arc<[Vec<RecordBatch>]>>,
        table_schema: SchemaRef,
        projection: Option<Vec<usize>>,
    ) -> Result<Self> {
        let partitions = partitions.into();
        for batch in partitions.iter().flatten() {
            let types = batch
                .schema()
                .fields()
                .iter()
                .zip(table_schema.fields())
                .all(|(a, b)| a.data_type() == b.data_type());
            if !types || batch.num_columns() != table_schema.fields().len() {
                return internal_err!("a batch of {} in a table of {table_schema}", batch.schema());
            }
        }
        Self::build(partitions, table_schema, projection, None, None)
    }

    /// The same scan, of which each partition is known to be in this order (over the output).
    ///
    /// # Errors
    /// None at present.
    pub fn try_with_ordering(&self, ordering: LexOrdering) -> Result<Self> {
        Self::build(
            Arc::clone(&self.partitions),
            Arc::clone(&self.table_schema),
            self.projection.clone(),
            Some(ordering),
            self.fetch,
        )
    }

    fn build(
        partitions: Arc<[Vec<RecordBatch>]>,
        table_schema: SchemaRef,
        projection: Option<Vec<usize>>,
        ordering: Option<LexOrdering>,
        fetch: Option<usize>,
    ) -> Result<Self> {
        let schema = match &projection {
            Some(indices) => Arc::new(table_schema.project(indices)?),
            None => Arc::clone(&table_schema),
        };
        let mut equivalences = EquivalenceProperties::new(schema);
        if let Some(ordering) = &ordering {
            equivalences.add_ordering(ordering.clone());
        }
        let count = partitions.len().max(1);
        let properties =
            PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(count));
        Ok(MemoryScanExec { partitions, table_schema, projection, ordering, fetch, properties })
    }
}

impl ExecutionPlan for MemoryScanExec {
    fn name(&self) -> &'static str {
        "MemoryScanExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(Self::build(
            Arc::clone(&self.partitions),
            Arc::clone(&self.table_schema),
            self.projection.clone(),
            self.ordering.clone(),
            self.fetch,
        )?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batches: usize = self.partitions.iter().map(Vec::len).sum();
        write!(f, "partitions={}, batches={batches}", self.partitions.len())?;
        if let Some(indices) = &self.projection {
            let names: Vec<String> = indices
                .iter()
                .map(|&i| format!("{}@{i}", self.table_schema.field(i).name()))
                .collect();
            write!(f, ", projection=[{}]", names.join(", "))?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        Ok(())
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let partitions = Arc::clone(&self.partitions);
        let schema = self.schema();
        let projection = self.projection.clone();
        let mut left = self.fetch.unwrap_or(usize::MAX);
        let size = ctx.batch_size();
        Ok(Box::pin(async_stream::try_stream! {
            let batches = partitions.get(partition).map_or(&[][..], Vec::as_slice);
            for batch in batches {
                let batch = Batch::from_record_batch(batch);
                let batch = match &projection {
                    Some(indices) => batch.project(indices, Arc::clone(&schema))?,
                    None => batch.with_schema(Arc::clone(&schema)),
                };
                let mut offset = 0;
                while offset < batch.num_rows() && left > 0 {
                    let rows = size.min(batch.num_rows() - offset).min(left);
                    yield batch.slice(offset, rows);
                    offset += rows;
                    left -= rows;
                }
            }
        }))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        let (mut rows, mut bytes) = (0, 0);
        for (i, batches) in self.partitions.iter().enumerate() {
            if partition.is_none_or(|p| p == i) {
                let taken: usize = batches.iter().map(RecordBatch::num_rows).sum();
                rows += taken.min(self.fetch.unwrap_or(usize::MAX));
                bytes += batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
            }
        }
        statistics.num_rows = Precision::Exact(rows);
        statistics.total_byte_size = Precision::Inexact(bytes);
        Ok(statistics)
    }
}

impl Pushdown for MemoryScanExec {
    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        let scan = Self::build(
            Arc::clone(&self.partitions),
            Arc::clone(&self.table_schema),
            self.projection.clone(),
            self.ordering.clone(),
            fetch,
        );
        scan.ok().map(|scan| Arc::new(scan) as PlanRef)
    }

    /// A projection of columns becomes this scan's own.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let Some(indices) = projection.exprs().column_only_indices() else { return Ok(None) };
        let renamed = projection
            .exprs()
            .iter()
            .zip(&indices)
            .any(|(e, &i)| e.alias != *self.schema().field(i).name());
        if renamed {
            return Ok(None);
        }
        let through: Vec<usize> = match &self.projection {
            Some(own) => indices.iter().map(|&i| own[i]).collect(),
            None => indices,
        };
        let ordering = projection.properties().output_ordering().cloned();
        let scan = Self::build(
            Arc::clone(&self.partitions),
            Arc::clone(&self.table_schema),
            Some(through),
            ordering,
            self.fetch,
        )?;
        Ok(Some(Arc::new(scan)))
    }
}
