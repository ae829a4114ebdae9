//! All expressions of a logical plan, those of its subqueries included: finding and rewriting.

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Expr, LogicalPlan};

/// Whether `test` holds for any part of any expression.
pub(crate) fn any(plan: &LogicalPlan, test: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(test(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// `plan` with every part of every expression given to `rewrite`, inner ones first, together with
/// the columns that it may name. Output columns keep their names.
pub(crate) fn rewrite(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let schema = merge_schema(&node.inputs());
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|part| rewrite(part, &schema))?;
            Ok(Transformed::new(name.restore(expr.data), expr.transformed, expr.tnr))
        })
    })
    .data()
}
