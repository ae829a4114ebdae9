//! The third fate: a projection that stays, over an input that narrows.

use super::dissolve_all;
use crate::tree::{map_children, same};
use datafusion_common::{Result, internal_err};
use planish_expr::projection::narrow_expr;
use planish_expr::utils::collect_column_indices;
use planish_expr::{Partitioning, ProjectionExpr, ProjectionExprs};
use planish_plan::PlanRef;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::HashJoinExec;
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::window::WindowAggExec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A projection that stays, over an input without the columns that nobody reads.
pub(super) fn narrow(plan: &PlanRef) -> Result<PlanRef> {
    let unchanged = || Ok(Arc::clone(plan));
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return unchanged() };
    let input = projection.input();
    let kept = columns_read(projection);
    if kept.len() >= input.schema().fields().len() {
        return unchanged();
    }
    let columns = ProjectionExprs::from_indices(&kept, &input.schema());
    let below: PlanRef = Arc::new(ProjectionExec::try_new(columns, Arc::clone(input))?);
    let below = sink(&below)?;
    if !is_worth_it(input, &below) {
        return unchanged();
    }
    let mut exprs = vec![];
    for e in projection.exprs() {
        let Some(expr) = narrow_expr(&e.expr, &kept)? else {
            return internal_err!("{} is not over the columns it reads", e.expr);
        };
        exprs.push(ProjectionExpr::new(expr, e.alias.clone()));
    }
    let narrowed: PlanRef =
        Arc::new(ProjectionExec::try_new_with_schema(exprs, below, plan.schema())?);
    // Where it only dropped and moved columns, the same may be the input's own list now.
    dissolve_all(&narrowed)
}

/// The input columns read by `projection`, and by the operators below it that hand their input's
/// columns on.
fn columns_read(projection: &ProjectionExec) -> Vec<usize> {
    let mut read: BTreeSet<usize> = projection.exprs().column_indices().into_iter().collect();
    let mut plan = projection.input();
    while let [child] = plan.children()[..]
        && !plan.is::<ProjectionExec>()
        && child.schema() == plan.schema()
    {
        let mut exprs = plan.expressions();
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            exprs.extend(sort.expr().iter().map(|key| Arc::clone(&key.expr)));
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            exprs.extend(merge.expr().iter().map(|key| Arc::clone(&key.expr)));
        }
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>()
            && let Partitioning::Hash(keys, _) = repartition.partitioning()
        {
            exprs.extend(keys.iter().cloned());
        }
        exprs.iter().for_each(|e| collect_column_indices(e, &mut read));
        plan = child;
    }
    read.into_iter().collect()
}

/// A new projection of columns, moved down as far as it goes; the rest of the plan is left alone.
fn sink(plan: &PlanRef) -> Result<PlanRef> {
    let sunk = dissolve_all(plan)?;
    if same(&sunk, plan) {
        return Ok(sunk);
    }
    let sunk = sink_below(&sunk)?;
    narrow(&dissolve_all(&sunk)?)
}

/// An operator that took a projection has others on its inputs now, perhaps under what is left
/// of the one it took.
fn sink_below(plan: &PlanRef) -> Result<PlanRef> {
    map_children(plan, |_, child| {
        if child.is::<ProjectionExec>() {
            sink(child)
        } else if plan.is::<ProjectionExec>() {
            sink_below(child)
        } else {
            Ok(Arc::clone(child))
        }
    })
}

/// Whether narrowing lets a source read less or an operator hold less, or at least cost no node.
/// What is left of the narrowing projection on top merges with the one that asked for it.
fn is_worth_it(before: &PlanRef, after: &PlanRef) -> bool {
    let below = after.downcast_ref::<ProjectionExec>().map_or(after, ProjectionExec::input);
    !same(below, before)
        && (width_of_sources(below) < width_of_sources(before)
            || shrinks_what_is_held(below)
            || projections(below) <= projections(before))
}

/// How many columns all leaves yield.
fn width_of_sources(plan: &PlanRef) -> usize {
    let children = plan.children();
    if children.is_empty() {
        return plan.schema().fields().len();
    }
    children.into_iter().map(width_of_sources).sum()
}

fn projections(plan: &PlanRef) -> usize {
    usize::from(plan.is::<ProjectionExec>())
        + plan.children().into_iter().map(projections).sum::<usize>()
}

fn shrinks_what_is_held(plan: &PlanRef) -> bool {
    let children = plan.children();
    let holds = plan.is::<SortExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<WindowAggExec>();
    if holds && children.iter().any(|child| child.is::<ProjectionExec>()) {
        return true;
    }
    !plan.is::<ProjectionExec>() && children.into_iter().any(shrinks_what_is_held)
}
