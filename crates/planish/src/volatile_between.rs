//! `random() BETWEEN a AND b` draws once per row, where the front end would compare two draws.

use crate::plan_expressions;
use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::{Expr, LogicalPlan};
use planish_planner::between_once;

/// `plan`, in which `BETWEEN` over a volatile value is one call.
pub(crate) fn draw_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let draws = |part: &Expr| matches!(part, Expr::Between(b) if b.expr.is_volatile());
    if !plan_expressions::any(&plan, draws)? {
        return Ok(plan);
    }
    plan_expressions::rewrite(plan, |part, _| {
        Ok(match part {
            Expr::Between(between) if between.expr.is_volatile() => {
                Transformed::yes(between_once(between))
            }
            part => Transformed::no(part),
        })
    })
}
