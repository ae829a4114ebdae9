//! Small questions about expressions: conjuncts, columns used, column rewrites.

use crate::expressions::{BinaryExpr, Column, Literal, lit};
use crate::{PhysicalExprRef, PhysicalSortExpr, can_fail, is_volatile};
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Schema};
use arrow::error::ArrowError;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::Operator;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The operands of nested `AND`s, left to right.
pub fn split_conjunction(expr: &PhysicalExprRef) -> Vec<PhysicalExprRef> {
    fn split(expr: &PhysicalExprRef, out: &mut Vec<PhysicalExprRef>) {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) if *binary.op() == Operator::And => {
                split(binary.left(), out);
                split(binary.right(), out);
            }
            _ => out.push(Arc::clone(expr)),
        }
    }
    let mut out = vec![];
    split(expr, &mut out);
    out
}

/// `exprs` joined by `AND` in the order given; `true` when there are none.
pub fn conjunction(exprs: impl IntoIterator<Item = PhysicalExprRef>) -> PhysicalExprRef {
    exprs
        .into_iter()
        .reduce(|left, right| Arc::new(BinaryExpr::new(left, Operator::And, right)))
        .unwrap_or_else(|| lit(true))
}

/// A predicate over `schema` with the conjuncts that can fail behind all others, else in the
/// order given: whoever reordered the conjuncts of a query, no guard that cannot fail itself is
/// overtaken by what it guards. A predicate with volatile parts stays as it is.
pub fn guards_first(predicate: &PhysicalExprRef, schema: &Schema) -> PhysicalExprRef {
    let conjuncts = split_conjunction(predicate);
    let fails: Vec<bool> = conjuncts.iter().map(|c| can_fail(c, schema)).collect();
    if fails.is_sorted() || is_volatile(predicate) {
        return Arc::clone(predicate);
    }
    let (failing, safe): (Vec<_>, Vec<_>) =
        conjuncts.into_iter().zip(fails).partition(|(_, fails)| *fails);
    conjunction(safe.into_iter().chain(failing).map(|(conjunct, _)| conjunct))
}

/// Whether `expr` is the literal `true`.
pub fn is_true(expr: &PhysicalExprRef) -> bool {
    expr.downcast_ref::<Literal>()
        .is_some_and(|l| matches!(l.value(), ScalarValue::Boolean(Some(true))))
}

/// Indices of the columns that `expr` reads, ascending, once each.
pub fn column_indices(expr: &PhysicalExprRef) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    collect_column_indices(expr, &mut out);
    out
}

/// Adds the indices of the columns that `expr` reads to `out`.
pub fn collect_column_indices(expr: &PhysicalExprRef, out: &mut BTreeSet<usize>) {
    if let Some(column) = expr.downcast_ref::<Column>() {
        out.insert(column.index());
    }
    for child in expr.children() {
        collect_column_indices(child, out);
    }
}

/// `expr` with each column replaced by what `f` says; `None` from `f` makes the whole `None`.
///
/// # Errors
/// When a node cannot be rebuilt over its new children.
pub fn map_columns(
    expr: &PhysicalExprRef,
    f: &dyn Fn(&Column) -> Option<PhysicalExprRef>,
) -> Result<Option<PhysicalExprRef>> {
    let mut complete = true;
    let mapped = Arc::clone(expr)
        .transform_up(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            match f(column) {
                Some(new) => Ok(Transformed::yes(new)),
                None => {
                    complete = false;
                    Ok(Transformed::no(node))
                }
            }
        })
        .data()?;
    Ok(complete.then_some(mapped))
}

/// `expr` with every column index moved by `offset`.
///
/// # Errors
/// As [`map_columns`].
pub fn shift_columns(expr: &PhysicalExprRef, offset: isize) -> Result<PhysicalExprRef> {
    let shifted = map_columns(expr, &|c| {
        let index = c.index().checked_add_signed(offset)?;
        Some(Arc::new(Column::new(c.name(), index)) as PhysicalExprRef)
    })?;
    shifted.map_or_else(|| datafusion_common::internal_err!("{expr} shifted by {offset}"), Ok)
}

/// As [`shift_columns`], for sort keys.
///
/// # Errors
/// As [`map_columns`].
pub fn shift_ordering(
    ordering: &[PhysicalSortExpr],
    offset: isize,
) -> Result<Vec<PhysicalSortExpr>> {
    ordering
        .iter()
        .map(|key| Ok(PhysicalSortExpr::new(shift_columns(&key.expr, offset)?, key.options)))
        .collect()
}

/// An error when a value of a decimal array has more digits than its type: arrow's arithmetic
/// minds only the bits, which hold a little more than 38 (or 76) digits.
pub fn check_precision(array: &ArrayRef) -> Result<()> {
    let checked = match array.data_type() {
        DataType::Decimal128(precision, _) => {
            let array = array.as_primitive::<Decimal128Type>();
            let limit = 10u128.pow(u32::from(*precision));
            // What lies under a NULL may be anything, so the costly check has the last word.
            if array.values().iter().all(|value| value.unsigned_abs() < limit) {
                return Ok(());
            }
            array.validate_decimal_precision(*precision)
        }
        DataType::Decimal256(precision, _) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)
        }
        _ => return Ok(()),
    };
    match checked {
        Err(ArrowError::InvalidArgumentError(text)) => exec_err!("decimal overflow: {text}"),
        checked => Ok(checked?),
    }
}
