//! Which of the columns that an operator makes it hands on: a projection that an operator took
//! in. Two coordinate systems meet here, the columns *made* and those of the *output*.

use crate::execute::BatchStream;
use crate::execution_plan::PlanRef;
use crate::operators::join_schema::{shows_left, shows_right};
use crate::operators::projection::{ProjectionExec, project_properties};
use crate::properties::PlanProperties;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::{JoinType, Result, Statistics, internal_err};
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::Column;
use planish_expr::projection::{ProjectionExpr, ProjectionExprs, unproject_expr};
use std::fmt;
use std::sync::Arc;

/// All columns an operator makes, or some of them in some order.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    made: SchemaRef,
    indices: Option<Arc<[usize]>>,
}

impl Emitted {
    /// All columns of `made`.
    pub(crate) fn all(made: SchemaRef) -> Self {
        Emitted { made, indices: None }
    }

    /// Those at `indices` of the columns made; `None`: all.
    pub(crate) fn only(made: SchemaRef, indices: Option<Arc<[usize]>>) -> Self {
        Emitted { made, indices }
    }

    /// The schema of the columns made.
    pub(crate) fn made(&self) -> &SchemaRef {
        &self.made
    }

    /// Which columns are handed on; `None`: all, as they are made.
    pub(crate) fn as_slice(&self) -> Option<&[usize]> {
        self.indices.as_deref()
    }

    /// As [`Self::as_slice`], shared.
    pub(crate) fn indices(&self) -> Option<Arc<[usize]>> {
        self.indices.clone()
    }

    /// `output`, indices of output columns, as indices of the columns made.
    pub(crate) fn made_indices(&self, output: &[usize]) -> Arc<[usize]> {
        match &self.indices {
            Some(own) => output.iter().map(|&i| own[i]).collect(),
            None => output.into(),
        }
    }

    /// The same columns of the output of a join with its inputs in each other's place, the left
    /// one of `left` columns; `None` when this one hands on all it makes.
    pub(crate) fn swapped(&self, left: usize, join_type: JoinType) -> Option<Arc<[usize]>> {
        let indices = self.indices.as_ref()?;
        if !shows_left(join_type) || !shows_right(join_type) {
            return Some(Arc::clone(indices));
        }
        let right = self.made.fields().len() - left;
        Some(indices.iter().map(|&i| if i < left { right + i } else { i - left }).collect())
    }

    /// The same, as a projection of the columns made.
    pub(crate) fn exprs(&self) -> Option<ProjectionExprs> {
        let indices = self.indices.as_ref()?;
        Some(ProjectionExprs::from_indices(indices, &self.made))
    }

    /// `expr`, over the output, over the columns made.
    pub(crate) fn output_to_made(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let Some(exprs) = self.exprs() else { return Ok(Arc::clone(expr)) };
        match unproject_expr(expr, &exprs)? {
            Some(expr) => Ok(expr),
            None => internal_err!("{expr} is not over the output [{exprs}]"),
        }
    }

    /// `filters`, over the output, over the columns made.
    pub(crate) fn filters_to_made(
        &self,
        filters: &[PhysicalExprRef],
    ) -> Result<Vec<PhysicalExprRef>> {
        filters.iter().map(|filter| self.output_to_made(filter)).collect()
    }

    /// What is known of the output, given what is known of the columns made.
    pub(crate) fn properties(&self, made: PlanProperties) -> Result<PlanProperties> {
        let Some(exprs) = self.exprs() else { return Ok(made) };
        let schema = Arc::new(exprs.project_schema(&self.made)?);
        project_properties(&made, &exprs, schema)
    }

    /// Statistics of the output, given those of the columns made.
    pub(crate) fn statistics(&self, made: Statistics) -> Result<Statistics> {
        match self.exprs() {
            Some(exprs) => exprs.project_statistics(made, &self.made),
            None => Ok(made),
        }
    }

    /// The output of a batch of the columns made.
    pub(crate) fn batch(&self, made: Batch, output: &SchemaRef) -> Result<Batch> {
        match &self.indices {
            Some(indices) => made.project(indices, Arc::clone(output)),
            None => Ok(made),
        }
    }

    /// The output of batches of the columns made.
    pub(crate) fn stream(&self, mut made: BatchStream, output: SchemaRef) -> BatchStream {
        if self.indices.is_none() {
            return made;
        }
        let emitted = self.clone();
        Box::pin(try_stream! {
            while let Some(batch) = made.next().await {
                yield emitted.batch(batch?, &output)?;
            }
        })
    }

    /// The output of a plan that makes these columns.
    pub(crate) fn over(&self, made: PlanRef) -> Result<PlanRef> {
        Ok(match self.exprs() {
            Some(exprs) => Arc::new(ProjectionExec::try_new(exprs, made)?),
            None => made,
        })
    }

    /// `projection`, over the output, as one over `input`, which has the columns made; `None` when
    /// it computes something or overrides metadata.
    pub(crate) fn projection_of_made(
        &self,
        projection: &ProjectionExec,
        input: &PlanRef,
    ) -> Result<Option<ProjectionExec>> {
        if projection.overrides_metadata() {
            return Ok(None);
        }
        let Some(indices) = projection.exprs().column_only_indices() else { return Ok(None) };
        let made = self.made_indices(&indices);
        let exprs: ProjectionExprs = made
            .iter()
            .zip(projection.exprs())
            .map(|(&i, e)| {
                let column = Column::new(self.made.field(i).name(), i);
                ProjectionExpr::new(Arc::new(column), e.alias.clone())
            })
            .collect();
        ProjectionExec::try_new(exprs, Arc::clone(input)).map(Some)
    }

    /// `projection=[b@1, a@0]` after `separator`, or nothing.
    pub(crate) fn fmt(&self, f: &mut fmt::Formatter<'_>, separator: &str) -> fmt::Result {
        match self.exprs() {
            Some(exprs) => write!(f, "{separator}projection=[{exprs}]"),
            None => Ok(()),
        }
    }
}
