//! `Sort` becomes a `SortExec`, with a `fetch` a top-k.

use crate::expr::create_sort_expr;
use crate::planner::Lowering;
use datafusion_common::Result;
use datafusion_expr::{Sort, SortExpr};
use planish_expr::LexOrdering;
use planish_plan::PlanRef;
use planish_plan::operators::sort::SortExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_sort(&self, node: &Sort) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let ordering = self.ordering(&node.expr, node.input.schema())?;
        Ok(Arc::new(SortExec::new(ordering, input).with_limit(node.fetch)))
    }

    /// Sort keys over rows of `input`.
    pub(crate) fn ordering(
        &self,
        keys: &[SortExpr],
        input: &datafusion_common::DFSchema,
    ) -> Result<LexOrdering> {
        let context = self.expr_context();
        keys.iter().map(|key| create_sort_expr(key, input, &context)).collect()
    }
}
