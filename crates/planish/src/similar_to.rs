//! `SIMILAR TO` with a constant pattern becomes a match of a regular expression.
//!
//! The front end evaluates constant expressions itself, and takes the pattern for a regular
//! expression that may match anywhere: `'abc' SIMILAR TO 'b'` would be true. What it sees instead
//! means the same to both.

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::Like;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use planish_expr::expressions::similar_to_regex;

/// `plan` without `SIMILAR TO` over constant patterns.
pub(crate) fn as_regular_expressions(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_has_it(&plan)? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|part| Ok(as_regular_expression(part)))?;
            Ok(Transformed::yes(name.restore(expr.data)))
        })
    })
    .data()
}

fn plan_has_it(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(matches!(part, Expr::SimilarTo(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

fn as_regular_expression(expr: Expr) -> Transformed<Expr> {
    let Expr::SimilarTo(like) = expr else { return Transformed::no(expr) };
    match regular_expression(&like) {
        Some(pattern) => {
            let op = if like.negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
            let pattern = Expr::Literal(pattern, None);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(like.expr, op, Box::new(pattern))))
        }
        None => Transformed::no(Expr::SimilarTo(like)),
    }
}

/// The constant pattern as a regular expression, in the type that it has; a wrong one stays what
/// it is, and is an error of the rows that it is compared with.
fn regular_expression(like: &Like) -> Option<ScalarValue> {
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else { return None };
    let regex = |text: &str| similar_to_regex(text, like.escape_char.unwrap_or('\\')).ok();
    match pattern {
        ScalarValue::Utf8(Some(text)) => regex(text).map(|r| ScalarValue::Utf8(Some(r))),
        ScalarValue::LargeUtf8(Some(text)) => regex(text).map(|r| ScalarValue::LargeUtf8(Some(r))),
        ScalarValue::Utf8View(Some(text)) => regex(text).map(|r| ScalarValue::Utf8View(Some(r))),
        _ => None,
    }
}
