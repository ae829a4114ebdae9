//! `ProjectionExec`: a list of named expressions per row.
//!
//! Columns are handed on in the form they are in, so a projection of columns alone costs nothing
//! per row; only computations evaluate.

use crate::context::TaskContext;
use crate::display::bracketed;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use crate::pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase, OfferedFilter, Pushdown,
};
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use planish_expr::projection::{
    ProjectionExpr, ProjectionExprs, merge_repeats_work, unproject_expr,
};
use planish_expr::{Partitioning, PhysicalExprRef, can_fail, is_volatile};
use std::fmt;
use std::sync::Arc;

/// One output column per expression.
#[derive(Debug)]
pub struct ProjectionExec {
    exprs: ProjectionExprs,
    input: PlanRef,
    properties: PlanProperties,
    overrides_metadata: bool,
}

impl ProjectionExec {
    /// The projection of `input` by `exprs`, with the schema that the expressions yield.
    ///
    /// # Errors
    /// When an expression does not fit the input.
    pub fn try_new(exprs: impl Into<ProjectionExprs>, input: PlanRef) -> Result<Self> {
        let exprs = exprs.into();
        let schema = Arc::new(exprs.project_schema(&input.schema())?);
        Self::build(exprs, input, schema, false)
    }

    /// As [`Self::try_new`], with the output schema given: its types must be those of the
    /// expressions; where its metadata differs, the projection *overrides metadata* and is not
    /// swapped with other operators.
    ///
    /// # Errors
    /// When types differ, or an expression does not fit the input.
    pub fn try_new_with_schema(
        exprs: impl Into<ProjectionExprs>,
        input: PlanRef,
        schema: SchemaRef,
    ) -> Result<Self> {
        let exprs = exprs.into();
        let own = exprs.project_schema(&input.schema())?;
        if own.fields().len() != schema.fields().len() {
            return internal_err!(
                "{} expressions for {} fields",
                exprs.as_ref().len(),
                schema.fields().len()
            );
        }
        for (own, given) in own.fields().iter().zip(schema.fields()) {
            if own.data_type() != given.data_type() {
                return internal_err!(
                    "{} is {}, its field says {}",
                    own.name(),
                    own.data_type(),
                    given.data_type()
                );
            }
        }
        let overrides = own.metadata() != schema.metadata()
            || own.fields().iter().zip(schema.fields()).any(|(a, b)| a.metadata() != b.metadata());
        Self::build(exprs, input, schema, overrides)
    }

    fn build(
        exprs: ProjectionExprs,
        input: PlanRef,
        schema: SchemaRef,
        overrides_metadata: bool,
    ) -> Result<Self> {
        let properties = project_properties(input.properties(), &exprs, schema)?;
        Ok(ProjectionExec { exprs, input, properties, overrides_metadata })
    }

    /// The expressions, over the input's output.
    pub fn exprs(&self) -> &ProjectionExprs {
        &self.exprs
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// Whether the output's metadata is not what the expressions yield by themselves.
    pub fn overrides_metadata(&self) -> bool {
        self.overrides_metadata
    }

    /// The same expressions over another input with the columns they use.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub fn with_input(&self, input: PlanRef) -> Result<PlanRef> {
        Ok(if self.overrides_metadata {
            Arc::new(Self::try_new_with_schema(self.exprs.clone(), input, self.schema())?)
        } else {
            Arc::new(Self::try_new(self.exprs.clone(), input)?)
        })
    }
}

/// What is known of the output of `exprs`, of schema `output`, over an input of `properties`.
pub(crate) fn project_properties(
    properties: &PlanProperties,
    exprs: &ProjectionExprs,
    output: SchemaRef,
) -> Result<PlanProperties> {
    let mapping = exprs.projection_mapping(properties.schema())?;
    let partitioning = match &properties.partitioning {
        Partitioning::Hash(keys, n) => {
            let equivalences = &properties.equivalences;
            let shown = keys.iter().map(|key| equivalences.project_expr(key, &mapping));
            let shown = shown.collect::<Option<Vec<_>>>();
            shown.map_or(Partitioning::UnknownPartitioning(*n), |keys| Partitioning::Hash(keys, *n))
        }
        other => other.clone(),
    };
    Ok(PlanProperties {
        equivalences: properties.equivalences.project(&mapping, output),
        partitioning,
        boundedness: properties.boundedness,
        emission: properties.emission,
    })
}

impl ExecutionPlan for ProjectionExec {
    fn name(&self) -> &'static str {
        "ProjectionExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        self.with_input(Arc::clone(&children[0]))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expr={}", bracketed(self.exprs.iter()))
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.exprs.expr_iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![self.exprs.column_only_indices().is_none()]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let mut input = execute_stream(&self.input, partition, ctx)?;
        let exprs = self.exprs.clone();
        let schema = self.schema();
        let ctx = Arc::clone(ctx);
        Ok(Box::pin(try_stream! {
            let mut bound = vec![];
            for e in &exprs {
                bound.push(ProjectionExpr::new(ctx.bind(&e.expr).await?, e.alias.clone()));
            }
            let exprs = ProjectionExprs::from(bound);
            while let Some(batch) = input.next().await {
                yield exprs.project_batch(&batch?, &schema)?;
            }
        }))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.exprs.project_statistics(self.input.statistics(partition)?, &self.input.schema())
    }
}

impl Pushdown for ProjectionExec {
    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    /// Two projections become one, unless that would repeat work.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        if self.overrides_metadata || merge_repeats_work(&self.exprs, &projection.exprs) {
            return Ok(None);
        }
        let merged = self.exprs.try_merge(&projection.exprs)?;
        Ok(Some(Arc::new(ProjectionExec::try_new(merged, Arc::clone(&self.input))?)))
    }

    /// Filters pass in the input's coordinates. One that reads a computed column would repeat
    /// the computation below, so it stays, as does one that would reach a failing expression.
    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let input_schema = self.input.schema();
        let mut offered = vec![];
        for filter in parent_filters {
            let cheap = planish_expr::utils::column_indices(filter).into_iter().all(|i| {
                self.exprs.as_ref().get(i).is_some_and(|e| {
                    e.expr.placement().should_push_to_leaves()
                        || e.expr.is::<planish_expr::expressions::Literal>()
                })
            });
            // Rows dropped below would hide an error, or a volatile value, of a computed column.
            let safe = self
                .exprs
                .iter()
                .all(|e| !is_volatile(&e.expr) && !can_fail(&e.expr, &input_schema));
            let unprojected = if cheap && safe && !is_volatile(filter) {
                unproject_expr(filter, &self.exprs)?
            } else {
                None
            };
            offered.push(unprojected.map_or(OfferedFilter::Unsupported, OfferedFilter::Supported));
        }
        let child = ChildFilterDescription { parent_filters: offered, self_filters: vec![] };
        Ok(FilterDescription { children: vec![child] })
    }
}
