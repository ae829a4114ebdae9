//! `Distinct` becomes an aggregation by all columns.

use crate::planner::Lowering;
use datafusion_common::{Result, not_impl_err};
use datafusion_expr::{Aggregate, Distinct, Expr};
use planish_plan::PlanRef;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_distinct(&self, node: &Distinct) -> Result<PlanRef> {
        match node {
            Distinct::All(input) => {
                let keys: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
                if keys.is_empty() {
                    return not_impl_err!("DISTINCT over no columns");
                }
                let group = Aggregate::try_new(Arc::clone(input), keys, vec![])?;
                self.lower_aggregate(&group)
            }
            Distinct::On(_) => not_impl_err!(
                "DISTINCT ON is not supported with the rule replace_distinct_aggregate left out"
            ),
        }
    }
}
