//! `Filter` becomes a `FilterExec`. The front end has put cheap conjuncts before expensive ones,
//! guards or not; here those that can fail go last.

use crate::planner::Lowering;
use datafusion_common::Result;
use datafusion_expr::Filter;
use planish_expr::utils::guards_first;
use planish_plan::PlanRef;
use planish_plan::operators::filter::FilterExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_filter(&self, node: &Filter) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let predicate = self.expr(&node.predicate, node.input.schema())?;
        let predicate = guards_first(&predicate, &input.schema());
        Ok(Arc::new(FilterExec::try_new(predicate, input)?))
    }
}
