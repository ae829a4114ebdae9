//! Turns projections into column indices of the scan.
//!
//! A column that is asked for in an order of its own, or not at all, costs a node and a batch;
//! as an index in the scan's list it costs nothing, and one not listed is never read.
//!
//! # Before
//! ```text
//! ProjectionExec: expr=[b@1, a@0]
//!   MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! MemoryScanExec: partitions=1, batches=1, projection=[b@1, a@0]
//! ```
//! A projection has one of three fates:
//! 1. it is the identity (bare columns under their own names, each at its place; as many as the
//!    input has; equal schemas): deleted;
//! 2. its input lets it pass, as most operators do with columns: it moves down, merges with the
//!    projections it meets, and dissolves into the scan;
//! 3. it computes: it stays, and what lies below narrows to the columns that it, and the operators
//!    between it and the scan, read.
//!
//! **Declines** for a projection that overrides metadata (it still narrows); where merging would
//! repeat an expensive or volatile computation; where a narrowing projection would neither
//! dissolve nor come to stand under an operator that holds rows.
//! **Knob**: `planish.optimizer.disable = 'ProjectionPushdown'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, map_children, same};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, internal_err};
use planish_expr::projection::project_expr;
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
use std::collections::BTreeSet;
use std::sync::Arc;

/// Deletes projections, dissolves them, or narrows what is below them.
#[derive(Debug)]
pub struct ProjectionPushdown;

impl PhysicalOptimizerRule for ProjectionPushdown {
    fn name(&self) -> &'static str {
        "ProjectionPushdown"
    }

    fn optimize(&self, plan: PlanRef, _options: &ConfigOptions) -> Result<Option<PlanRef>> {
        Ok(if_changed(&plan, push(&plan)?))
    }
}

fn push(plan: &PlanRef) -> Result<PlanRef> {
    let plan = dissolve_all(plan)?;
    let plan = map_children(&plan, |_, child| push(child))?;
    // What is below may have changed into something that lets the projection pass.
    match dissolve(&plan)? {
        Some(next) => push(&next),
        None => narrow(&plan),
    }
}

fn dissolve_all(plan: &PlanRef) -> Result<PlanRef> {
    let mut plan = Arc::clone(plan);
    while let Some(next) = dissolve(&plan)? {
        plan = next;
    }
    Ok(plan)
}

/// One step: the projection is deleted, or its input takes it.
fn dissolve(plan: &PlanRef) -> Result<Option<PlanRef>> {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    if is_removable(projection, plan) {
        return Ok(Some(Arc::clone(projection.input())));
    }
    if projection.overrides_metadata() {
        return Ok(None);
    }
    let Some(next) = projection.input().try_swapping_with_projection(projection)? else {
        return Ok(None);
    };
    let stays =
        next.downcast_ref::<ProjectionExec>().is_some_and(|p| same(p.input(), projection.input()));
    // Names, nullability and metadata are those the plan promised, or nothing is done.
    Ok((!stays && next.schema() == plan.schema()).then_some(next))
}

/// The identity: bare columns under their own names at their places, all of them, and nothing
/// else differs.
fn is_removable(projection: &ProjectionExec, plan: &PlanRef) -> bool {
    let input = projection.input().schema();
    projection.exprs().as_ref().len() == input.fields().len()
        && projection
            .exprs()
            .iter()
            .enumerate()
            .all(|(i, e)| e.column_index() == Some(i) && *input.field(i).name() == e.alias)
        && plan.schema() == input
}

/// A projection that stays, over an input without the columns that nobody reads.
fn narrow(plan: &PlanRef) -> Result<PlanRef> {
    let unchanged = || Ok(Arc::clone(plan));
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return unchanged() };
    let input = projection.input();
    let kept = columns_read(projection);
    if kept.len() >= input.schema().fields().len() {
        return unchanged();
    }
    let kept = ProjectionExprs::from_indices(&kept, &input.schema());
    let below: PlanRef = Arc::new(ProjectionExec::try_new(kept.clone(), Arc::clone(input))?);
    let below = sink(&below)?;
    if !is_worth_it(input, &below) {
        return unchanged();
    }
    let mut exprs = vec![];
    for e in projection.exprs() {
        let Some(expr) = project_expr(&e.expr, &kept)? else {
            return internal_err!("{} is not over the columns it reads", e.expr);
        };
        exprs.push(ProjectionExpr::new(expr, e.alias.clone()));
    }
    let narrowed: PlanRef =
        Arc::new(ProjectionExec::try_new_with_schema(exprs, below, plan.schema())?);
    // Where it only dropped and moved columns, the same may be the input's own list now.
    Ok(dissolve(&narrowed)?.unwrap_or(narrowed))
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
    if sunk.is::<ProjectionExec>() {
        return if same(&sunk, plan) { Ok(sunk) } else { narrow(&sunk) };
    }
    map_children(&sunk, |_, child| {
        if child.is::<ProjectionExec>() { sink(child) } else { Ok(Arc::clone(child)) }
    })
}

/// Whether narrowing cost no node, or lets an operator hold less.
fn is_worth_it(before: &PlanRef, after: &PlanRef) -> bool {
    if after.downcast_ref::<ProjectionExec>().is_some_and(|p| same(p.input(), before)) {
        return false;
    }
    projections(after) <= projections(before) || shrinks_what_is_held(after)
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
        || plan.is::<CrossJoinExec>();
    if holds && children.iter().any(|child| child.is::<ProjectionExec>()) {
        return true;
    }
    !plan.is::<ProjectionExec>() && children.into_iter().any(shrinks_what_is_held)
}
