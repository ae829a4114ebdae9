//! `Filter` becomes a `FilterExec`.

use crate::planner::Lowering;
use datafusion_common::Result;
use datafusion_expr::Filter;
use planish_plan::PlanRef;
use planish_plan::operators::filter::FilterExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_filter(&self, node: &Filter) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let predicate = self.expr(&node.predicate, node.input.schema())?;
        Ok(Arc::new(FilterExec::try_new(predicate, input)?))
    }
}
