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
//! 2. it picks columns, and its input lets it pass, as most operators do: it moves down, merges
//!    with the projections it meets, and dissolves into the scan; one that a filter or a join
//!    stops becomes that operator's own (`FilterExec: c@1 > 3, projection=[a@0]`);
//! 3. it computes: it stays, and what lies below narrows to the columns that it, and the operators
//!    between it and the scan, read.
//!
//! A nested-loop join evaluates its filter for every pair of rows. What the filter computes of one
//! side alone becomes a column of that side, computed once per row of it, and the filter names
//! only what it still reads. So a join on `a + 1 = x` becomes
//! ```text
//! NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 = x@0, projection=[a@0, b@1, x@3, y@4]
//!   ProjectionExec: expr=[a@0, b@1, a@0 + 1 AS join_proj_push_down_1]
//!     MemoryScanExec: partitions=1, batches=1
//!   MemoryScanExec: partitions=2, batches=2
//! ```
//! **Declines** for a projection that overrides metadata (it still narrows); where merging would
//! repeat an expensive or volatile computation; where a narrowing projection would neither
//! dissolve nor come to stand under an operator that holds rows. In a join filter, bare columns,
//! what reads both sides, what is volatile and what can fail stay (with no row on the other side,
//! nothing would have been computed); their children may leave all the same.
//! **Knob**: `planish.optimizer.disable = 'ProjectionPushdown'`.

mod hoist;
mod narrow;

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, map_children, same};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use hoist::hoist;
use narrow::narrow;
use planish_plan::PlanRef;
use planish_plan::operators::projection::ProjectionExec;
use std::sync::Arc;

/// Deletes projections, dissolves them, or narrows what is below them.
#[derive(Debug)]
pub struct ProjectionPushdown;

impl PhysicalOptimizerRule for ProjectionPushdown {
    fn name(&self) -> &'static str {
        "ProjectionPushdown"
    }

    fn optimize(&self, plan: PlanRef, _options: &ConfigOptions) -> Result<Option<PlanRef>> {
        Ok(if_changed(&plan, absorb(&push(&hoist(&plan)?)?)?))
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

/// Every projection of columns over an operator that can hand on just those becomes that
/// operator's own.
fn absorb(plan: &PlanRef) -> Result<PlanRef> {
    let plan = map_children(plan, |_, child| absorb(child))?;
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(plan) };
    let Some(indices) = projection.exprs().column_only_indices() else { return Ok(plan) };
    let absorbed = projection.input().with_output_columns(&indices)?;
    // Neither new names nor other metadata can be told to the operator.
    Ok(absorbed.filter(|new| new.schema() == plan.schema()).unwrap_or(plan))
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

#[cfg(test)]
mod tests;
