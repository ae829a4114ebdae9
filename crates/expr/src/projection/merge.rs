//! When two projections may become one.

use super::ProjectionExprs;
use crate::analysis::column_uses;
use crate::expressions::Literal;
use crate::{PhysicalExprRef, is_volatile};

/// Whether composing `outer` on top of `inner` would evaluate some expression of `inner` more
/// often than before, or at another place, in a way that matters.
///
/// - A volatile expression stays where it is: composed, it could be evaluated more often, on
///   fewer rows (in a branch of `CASE`), or move on with `outer` to where there are other rows.
/// - An expensive one (`ExpressionPlacement::KeepInPlace`) may move, but not multiply.
/// - Literals, columns and cheap accesses to parts of columns may do both.
///
/// An expression that can fail is evaluated on no row that it was not evaluated on before: a
/// projection hands on every row, so at most a branch of `outer` narrows them.
pub fn merge_repeats_work(inner: &ProjectionExprs, outer: &ProjectionExprs) -> bool {
    let uses = column_uses(outer.iter().map(|e| &e.expr));
    inner.iter().enumerate().any(|(i, e)| {
        let times = uses.get(&i).copied().unwrap_or(0);
        is_volatile(&e.expr) || (times > 1 && !is_cheap(&e.expr))
    })
}

/// Whether evaluating `expr` again costs next to nothing.
fn is_cheap(expr: &PhysicalExprRef) -> bool {
    expr.placement().should_push_to_leaves() || expr.is::<Literal>()
}
