//! The value that `NOT IN (subquery)` compares becomes a column.
//!
//! The front end makes `v NOT IN (SELECT x ...)` a null-aware anti join on `v = x`. Where `v` has
//! no column, that is no join condition but a filter of the right side, which then loses the NULLs
//! and the other rows by which `NOT IN` is unknown. So
//!
//! ```text
//! Filter: p AND 5 NOT IN (SELECT x FROM r)
//!   TableScan: l
//! ```
//!
//! becomes
//!
//! ```text
//! Projection: l.a, l.b
//!   Filter: __not_in_1 NOT IN (SELECT x FROM r)
//!     Projection: l.a, l.b, 5 AS __not_in_1
//!       Filter: p
//!         TableScan: l
//! ```
//!
//! for every value that is not a column already, since what has columns may be simplified to what
//! has none (`coalesce(5, a)`). The conjuncts that guard the value are evaluated before it.

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion_common::{Column, Result};
use datafusion_expr::expr::InSubquery;
use datafusion_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// `plan` with every value compared by a `NOT IN (subquery)` of a filter's conjunction a column.
pub(crate) fn name_compared_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_needs_it(&plan)? {
        return Ok(plan);
    }
    let mut names = 0;
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) if filter_needs_it(&filter) => {
            Ok(Transformed::yes(with_named_values(filter, &mut names)?))
        }
        node => Ok(Transformed::no(node)),
    })
    .data()
}

fn plan_needs_it(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Filter(filter) if filter_needs_it(filter));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn filter_needs_it(filter: &Filter) -> bool {
    split_conjunction(&filter.predicate).into_iter().any(needs_it)
}

fn needs_it(conjunct: &Expr) -> bool {
    not_in(conjunct).is_some_and(|list| !matches!(*list.expr, Expr::Column(_)))
}

/// The list of `v NOT IN (subquery)`, or of `NOT v IN (subquery)`.
fn not_in(conjunct: &Expr) -> Option<&InSubquery> {
    match conjunct {
        Expr::InSubquery(list) if list.negated => Some(list),
        Expr::Not(inner) => match &**inner {
            Expr::InSubquery(list) if !list.negated => Some(list),
            _ => None,
        },
        _ => None,
    }
}

fn with_named_values(filter: Filter, names: &mut usize) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::from).collect();
    let (lists, guards): (Vec<_>, Vec<_>) =
        split_conjunction_owned(filter.predicate).into_iter().partition(needs_it);
    let mut input = filter.input;
    if let Some(guard) = conjunction(guards) {
        input = Arc::new(LogicalPlan::Filter(Filter::try_new(guard, input)?));
    }
    let mut values = columns.clone();
    let mut predicates = Vec::with_capacity(lists.len());
    for conjunct in lists {
        let Some(list) = not_in(&conjunct) else { continue };
        *names += 1;
        let name = format!("__not_in_{names}");
        values.push(list.expr.as_ref().clone().alias(&name));
        predicates.push(Expr::InSubquery(InSubquery {
            expr: Box::new(Expr::from(Column::new_unqualified(name))),
            subquery: list.subquery.clone(),
            negated: true,
        }));
    }
    let builder = LogicalPlanBuilder::from(input).project(values)?;
    match conjunction(predicates) {
        Some(predicate) => builder.filter(predicate)?.project(columns)?.build(),
        None => builder.project(columns)?.build(),
    }
}
