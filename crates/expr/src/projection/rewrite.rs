//! Expressions, rewritten from one side of a projection to the other.

use super::{ProjectionExpr, ProjectionExprs};
use crate::expressions::{Column, Literal};
use crate::utils::map_columns;
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::Schema;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, internal_err};
use std::sync::Arc;

/// What became of a rewrite: nothing to do, all of it done, or some part that cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RewriteState {
    Unchanged,
    RewrittenValid,
    RewrittenInvalid,
}

/// Rewrites `expr` across a projection, in either direction; `None` when it cannot be expressed
/// on the other side. There is no partial rewrite.
///
/// With `unproject`, `expr` is over the projection's *output* and the result over its input: for
/// the projection `c@2, a@0, b@1`, `a@1 + b@2` becomes `a@0 + b@1`, and `c@0` becomes `c@2`.
/// Without, `expr` is over the *input* and the result refers to the projection's columns; a
/// subexpression equal to a projected computation becomes a reference to it. An expression
/// without columns is its own rewrite.
///
/// # Errors
/// When a node cannot be rebuilt over its new children.
pub fn update_expr(
    expr: &PhysicalExprRef,
    projected_exprs: &[ProjectionExpr],
    unproject: bool,
) -> Result<Option<PhysicalExprRef>> {
    let mut state = RewriteState::Unchanged;
    let rewritten = Arc::clone(expr)
        .transform_down(|node| {
            if state == RewriteState::RewrittenInvalid {
                return Ok(Transformed::new(node, false, TreeNodeRecursion::Stop));
            }
            let target = if unproject {
                let Some(column) = node.downcast_ref::<Column>() else {
                    return Ok(Transformed::no(node));
                };
                projected_exprs.get(column.index()).map(|e| Arc::clone(&e.expr))
            } else {
                let projected = find_projected(&node, projected_exprs);
                if projected.is_none() && !node.is::<Column>() {
                    return Ok(Transformed::no(node));
                }
                projected
            };
            match target {
                Some(target) => {
                    state = RewriteState::RewrittenValid;
                    // The replacement is in the other coordinates: not to be visited again.
                    Ok(Transformed::new(target, true, TreeNodeRecursion::Jump))
                }
                None => {
                    state = RewriteState::RewrittenInvalid;
                    Ok(Transformed::new(node, false, TreeNodeRecursion::Stop))
                }
            }
        })
        .data()?;
    Ok((state != RewriteState::RewrittenInvalid).then_some(rewritten))
}

fn find_projected(
    node: &PhysicalExprRef,
    projected_exprs: &[ProjectionExpr],
) -> Option<PhysicalExprRef> {
    if node.is::<Literal>() || is_volatile(node) {
        return None;
    }
    let position = projected_exprs.iter().position(|e| e.expr.eq(node))?;
    Some(Arc::new(Column::new(&projected_exprs[position].alias, position)))
}

/// `expr`, over the output of `projection`, as an expression over its input; `None` when it
/// refers to a column that the projection does not have.
///
/// # Errors
/// As [`update_expr`].
pub fn unproject_expr(
    expr: &PhysicalExprRef,
    projection: &ProjectionExprs,
) -> Result<Option<PhysicalExprRef>> {
    update_expr(expr, projection.as_ref(), true)
}

/// `expr`, over the input of `projection`, as an expression over its output; `None` when the
/// output does not show what it needs.
///
/// # Errors
/// As [`update_expr`].
pub fn project_expr(
    expr: &PhysicalExprRef,
    projection: &ProjectionExprs,
) -> Result<Option<PhysicalExprRef>> {
    update_expr(expr, projection.as_ref(), false)
}

/// `expr`, over all columns of a schema, as an expression over those at `kept` (ascending)
/// alone; `None` when it reads one that is not kept.
///
/// # Errors
/// As [`update_expr`].
pub fn narrow_expr(expr: &PhysicalExprRef, kept: &[usize]) -> Result<Option<PhysicalExprRef>> {
    map_columns(expr, &|column| {
        let index = kept.binary_search(&column.index()).ok()?;
        Some(Arc::new(Column::new(column.name(), index)))
    })
}

/// `expr` with each column's index looked up by name in `schema`; for two schemas of the same
/// relation in which names are unique (a table's, and a file's of that table).
///
/// # Errors
/// When `schema` lacks a column, or has it more than once.
pub fn reassign_expr_columns(expr: &PhysicalExprRef, schema: &Schema) -> Result<PhysicalExprRef> {
    let mapped = map_columns(expr, &|column| {
        let mut found = schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| field.name() == column.name())
            .map(|(i, _)| i);
        match (found.next(), found.next()) {
            (Some(i), None) => Some(Arc::new(Column::new(column.name(), i)) as PhysicalExprRef),
            _ => None,
        }
    })?;
    mapped.map_or_else(|| internal_err!("a column of {expr} is not, or not once, in {schema}"), Ok)
}
