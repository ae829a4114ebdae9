//! Builds the hash table of a join from its smaller side, and shares it where it fits.
//!
//! Moves the build, done once per row and held in memory, from the larger input to the smaller.
//!
//! # Before
//! ```text
//! HashJoinExec: mode=Auto, join_type=Inner, on=[(a@0, b@0)]
//!   MemoryScanExec: large
//!   MemoryScanExec: small
//! ```
//! # After
//! ```text
//! ProjectionExec: expr=[a@1, b@0]
//!   HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@0, a@0)]
//!     MemoryScanExec: small
//!     MemoryScanExec: large
//! ```
//! Sizes are compared in bytes; in rows when bytes are not known of both sides; when neither is
//! known of both, nothing is swapped. A build side without end is swapped with one that ends. A
//! nested-loop or cross join gets its smaller side on the left, which is the one it holds.
//!
//! The mode is `CollectLeft`, one table built by all partitions. It is `Partitioned` when the
//! build side is estimated to exceed `planish.execution.collect_left_memory_share` of a known
//! memory limit; or when partitions may not share state and the build side exceeds
//! `hash_join_single_partition_threshold` (bytes) or `_rows`, is of unknown size, or emits rows
//! by itself.
//!
//! **Declines** to swap null-aware anti joins; to touch a hash join whose mode was chosen.
//! **Knob**: `datafusion.optimizer.join_reordering = false` swaps only to make a plan run.

use crate::enforce::ensure_requirements::emits_build_rows;
use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, map_children};
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{JoinType, Result, Statistics};
use planish_plan::config::PlanishOptions;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::{Boundedness, PlanRef};
use std::sync::Arc;

/// Chooses build sides and modes of joins.
#[derive(Debug)]
pub struct JoinSelection;

impl PhysicalOptimizerRule for JoinSelection {
    fn name(&self) -> &'static str {
        "JoinSelection"
    }

    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>> {
        Ok(if_changed(&plan, select(&plan, options)?))
    }
}

fn select(plan: &PlanRef, options: &ConfigOptions) -> Result<PlanRef> {
    let plan = map_children(plan, |_, child| select(child, options))?;
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return select_hash_join(&plan, join, options);
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let swap = should_swap(join.left(), join.right(), options)?;
        return if swap { join.swap_inputs() } else { Ok(plan) };
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let swap = should_swap(join.left(), join.right(), options)?;
        return if swap { join.swap_inputs() } else { Ok(plan) };
    }
    Ok(plan)
}

fn select_hash_join(
    plan: &PlanRef,
    join: &HashJoinExec,
    options: &ConfigOptions,
) -> Result<PlanRef> {
    if join.mode() != PartitionMode::Auto {
        return Ok(Arc::clone(plan));
    }
    let swap = !join.null_aware() && should_swap(join.left(), join.right(), options)?;
    if swap {
        let mode = choose_mode(join.right(), join.join_type().swap(), false, options)?;
        return join.swap_inputs(mode);
    }
    let mode = choose_mode(join.left(), join.join_type(), join.null_aware(), options)?;
    Ok(Arc::new(HashJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        join.on().to_vec(),
        join.filter().cloned(),
        join.join_type(),
        mode,
        join.null_equality(),
        join.null_aware(),
    )?))
}

/// Whether the right side is the better one to build from.
fn should_swap(left: &PlanRef, right: &PlanRef, options: &ConfigOptions) -> Result<bool> {
    let unbounded = |plan: &PlanRef| plan.properties().boundedness == Boundedness::Unbounded;
    match (unbounded(left), unbounded(right)) {
        (true, false) => return Ok(true),
        (_, true) => return Ok(false),
        (false, false) => {}
    }
    if !options.optimizer.join_reordering {
        return Ok(false);
    }
    let (left, right) = (left.statistics(None)?, right.statistics(None)?);
    let larger = |of: fn(&Statistics) -> &Precision<usize>| {
        Some(of(&left).get_value()? > of(&right).get_value()?)
    };
    Ok(larger(|s| &s.total_byte_size).or_else(|| larger(|s| &s.num_rows)).unwrap_or(false))
}

fn choose_mode(
    build: &PlanRef,
    join_type: JoinType,
    null_aware: bool,
    options: &ConfigOptions,
) -> Result<PartitionMode> {
    let planish = PlanishOptions::of(options);
    // A null-aware join must know of every NULL on the build side.
    if null_aware
        || options.execution.target_partitions <= 1
        || !options.optimizer.repartition_joins
    {
        return Ok(PartitionMode::CollectLeft);
    }
    let statistics = build.statistics(None)?;
    let bytes = statistics.total_byte_size.get_value().copied();
    let partitioned = if planish.shared_state {
        let allowed = planish.memory_limit as f64 * planish.collect_left_memory_share;
        planish.memory_limit > 0 && bytes.is_some_and(|bytes| bytes as f64 > allowed)
    } else {
        let optimizer = &options.optimizer;
        let rows = statistics.num_rows.get_value().copied();
        let small = match (bytes, rows) {
            (Some(bytes), _) => bytes <= optimizer.hash_join_single_partition_threshold,
            (None, Some(rows)) => rows <= optimizer.hash_join_single_partition_threshold_rows,
            (None, None) => false,
        };
        emits_build_rows(join_type) || !small
    };
    Ok(if partitioned { PartitionMode::Partitioned } else { PartitionMode::CollectLeft })
}
