//! `SIMILAR TO` with a constant pattern becomes a match of a regular expression.
//!
//! The front end evaluates constant expressions itself, and takes the pattern for a regular
//! expression that may match anywhere: `'abc' SIMILAR TO 'b'` would be true. What it sees instead
//! means the same to both.

use crate::plan_expressions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::Like;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use planish_expr::expressions::similar_to_regex;

/// `plan` without `SIMILAR TO` over constant patterns.
pub(crate) fn as_regular_expressions(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, |part| matches!(part, Expr::SimilarTo(_)))? {
        return Ok(plan);
    }
    plan_expressions::rewrite(plan, |part, _| Ok(as_regular_expression(part)))
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
