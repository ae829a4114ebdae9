//! `ValuesExec`: rows of expressions without an input (`VALUES (1, 'a'), (2, 'b')`).

use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::datatypes::{Schema, SchemaRef};
use async_stream::try_stream;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue, Statistics, internal_err};
use datafusion_expr::ColumnarValue;
use planish_batch::{Batch, Column};
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;

/// Rows of expressions, each evaluated when the plan runs.
#[derive(Debug)]
pub struct ValuesExec {
    rows: Arc<[Vec<PhysicalExprRef>]>,
    properties: PlanProperties,
}

impl ValuesExec {
    /// These rows, of the types of `schema`.
    ///
    /// # Errors
    /// When a row has another number of values.
    pub fn try_new(
        schema: SchemaRef,
        rows: impl Into<Arc<[Vec<PhysicalExprRef>]>>,
    ) -> Result<Self> {
        let rows = rows.into();
        if let Some(row) = rows.iter().find(|row| row.len() != schema.fields().len()) {
            return internal_err!("{} values for {} columns", row.len(), schema.fields().len());
        }
        let equivalences = EquivalenceProperties::new(schema);
        let properties = PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(1));
        Ok(ValuesExec { rows, properties })
    }
}

impl ExecutionPlan for ValuesExec {
    fn name(&self) -> &'static str {
        "ValuesExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(ValuesExec::try_new(self.schema(), Arc::clone(&self.rows))?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows={}", self.rows.len())
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.rows.iter().flatten().cloned().collect()
    }

    fn execute(&self, _partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let rows = Arc::clone(&self.rows);
        let schema = self.schema();
        let ctx = Arc::clone(ctx);
        Ok(Box::pin(try_stream! {
            for chunk in rows.chunks(ctx.batch_size()) {
                let mut bound = Vec::with_capacity(chunk.len());
                for row in chunk {
                    bound.push(ctx.bind_all(row).await?);
                }
                yield evaluate_rows(&schema, &bound)?;
            }
        }))
    }

    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Exact(self.rows.len());
        Ok(statistics)
    }
}

fn evaluate_rows(schema: &SchemaRef, rows: &[Vec<PhysicalExprRef>]) -> Result<Batch> {
    let one_row = Batch::try_new(Arc::new(Schema::empty()), vec![], 1)?;
    let columns = (0..schema.fields().len())
        .map(|i| {
            let values = rows
                .iter()
                .map(|row| match row[i].evaluate(&one_row)? {
                    ColumnarValue::Scalar(value) => Ok(value),
                    ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
                })
                .collect::<Result<Vec<_>>>()?;
            let array = ScalarValue::iter_to_array(values)?;
            let declared = schema.field(i).data_type();
            Ok(Column::flat(if array.data_type() == declared {
                array
            } else {
                arrow::compute::cast(&array, declared)?
            }))
        })
        .collect::<Result<Vec<_>>>()?;
    Batch::try_new(Arc::clone(schema), columns, rows.len())
}

impl Pushdown for ValuesExec {}
