//! `OutputRequirementExec`: a pin that holds what a query promised about its output.
//!
//! It stands in a plan only while the plan is optimized: it requires the order and distribution
//! that rules must not lose. Executed, it hands its input on.

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics};
use planish_expr::projection::project_expr;
use planish_expr::sort_expr::display_ordering;
use planish_expr::{Distribution, LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use std::fmt;
use std::sync::Arc;

/// Requires an order and a distribution of its input, and is otherwise nothing.
#[derive(Debug)]
pub struct OutputRequirementExec {
    input: PlanRef,
    ordering: Option<LexOrdering>,
    distribution: Distribution,
    properties: PlanProperties,
}

impl OutputRequirementExec {
    /// A pin on `input`.
    pub fn new(input: PlanRef, ordering: Option<LexOrdering>, distribution: Distribution) -> Self {
        let properties = input.properties().clone();
        OutputRequirementExec { input, ordering, distribution, properties }
    }

    /// What is pinned.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// The order that was promised.
    pub fn ordering(&self) -> Option<&LexOrdering> {
        self.ordering.as_ref()
    }

    /// The distribution that was promised.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }
}

impl ExecutionPlan for OutputRequirementExec {
    fn name(&self) -> &'static str {
        "OutputRequirementExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(OutputRequirementExec::new(
            Arc::clone(&children[0]),
            self.ordering.clone(),
            self.distribution.clone(),
        )))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ordering) = &self.ordering {
            write!(f, "order_by={}, ", display_ordering(ordering))?;
        }
        write!(f, "dist={}", self.distribution)
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![self.distribution.clone()]
    }

    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        vec![self.ordering.clone()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        execute_stream(&self.input, partition, ctx)
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.input.statistics(partition)
    }
}

impl Pushdown for OutputRequirementExec {
    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    /// A projection of columns goes below when it keeps what the pin names.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let exprs = projection.exprs();
        if exprs.column_only_indices().is_none() {
            return Ok(None);
        }
        let mut ordering = None;
        if let Some(keys) = &self.ordering {
            let mut moved = vec![];
            for key in keys {
                let Some(expr) = project_expr(&key.expr, exprs)? else { return Ok(None) };
                moved.push(PhysicalSortExpr::new(expr, key.options));
            }
            ordering = Some(moved);
        }
        let distribution = match &self.distribution {
            Distribution::HashPartitioned(keys) => {
                let mut moved = vec![];
                for key in keys {
                    let Some(expr) = project_expr(key, exprs)? else { return Ok(None) };
                    moved.push(expr);
                }
                Distribution::HashPartitioned(moved)
            }
            other => other.clone(),
        };
        let below = projection.with_input(Arc::clone(&self.input))?;
        Ok(Some(Arc::new(OutputRequirementExec::new(below, ordering, distribution))))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(FilterDescription::all_supported(parent_filters, children))
    }
}
