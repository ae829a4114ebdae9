//! `SubqueryAlias` only changes qualifiers, which physical plans do not have.

use crate::planner::Lowering;
use datafusion_common::Result;
use datafusion_expr::SubqueryAlias;
use planish_plan::PlanRef;

impl Lowering {
    pub(crate) fn lower_subquery_alias(&self, node: &SubqueryAlias) -> Result<PlanRef> {
        self.lower(&node.input)
    }
}
