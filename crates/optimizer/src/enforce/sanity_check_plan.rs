//! Rejects a plan whose requirements do not hold, or that cannot run over an unbounded input.
//!
//! Moves no work and changes no plan. It names the operator and what it misses, so that a fault
//! of a rule is an error and never a wrong result.
//!
//! # Before
//! ```text
//! SortPreservingMergeExec: [a@0 ASC]
//!   MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! Internal error: SortPreservingMergeExec requires its input 0, MemoryScanExec, to be ordered by [a@0 ASC]
//! ```
//! **Declines**: never.
//! **Knob**: none; it always runs.

use crate::enforce::ensure_requirements::{co_partitioned, required_distribution, satisfies};
use crate::rule::{PhysicalOptimizerRule, RuleKind};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, internal_err, plan_err};
use planish_expr::Distribution;
use planish_expr::sort_expr::display_ordering;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::{Boundedness, EmissionType, PlanRef};

/// Checks that a plan can run.
#[derive(Debug)]
pub struct SanityCheckPlan;

impl PhysicalOptimizerRule for SanityCheckPlan {
    fn name(&self) -> &'static str {
        "SanityCheckPlan"
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Enforce
    }

    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>> {
        plan.apply(|node| {
            check_distribution(node, options)?;
            check_ordering(node)?;
            check_boundedness(node)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(None)
    }
}

fn check_distribution(plan: &PlanRef, options: &ConfigOptions) -> Result<()> {
    let required = required_distribution(plan, options);
    let children = plan.children();
    for (i, (child, required)) in children.iter().zip(&required).enumerate() {
        if !satisfies(child, required, options) {
            return internal_err!(
                "{} requires its input {i}, {}, to be spread as {required:?}, but it is {}",
                plan.name(),
                child.name(),
                child.properties().partitioning
            );
        }
    }
    if let ([left, right], [Distribution::HashPartitioned(l), Distribution::HashPartitioned(r)]) =
        (&children[..], &required[..])
        && !co_partitioned(left, right, l, r)
    {
        return internal_err!(
            "{} requires its inputs to be spread alike, but they are {} and {}",
            plan.name(),
            left.properties().partitioning,
            right.properties().partitioning
        );
    }
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) if join.mode() == PartitionMode::Auto => {
            internal_err!("HashJoinExec requires a mode to be chosen")
        }
        _ => Ok(()),
    }
}

fn check_ordering(plan: &PlanRef) -> Result<()> {
    for (i, (child, required)) in
        plan.children().into_iter().zip(plan.required_input_ordering()).enumerate()
    {
        if let Some(ordering) = required
            && !child.properties().equivalences.ordering_satisfied(&ordering)
        {
            return internal_err!(
                "{} requires its input {i}, {}, to be ordered by {}",
                plan.name(),
                child.name(),
                display_ordering(&ordering)
            );
        }
    }
    Ok(())
}

/// An operator that hands on rows only at the end of its input never does over one without end.
fn check_boundedness(plan: &PlanRef) -> Result<()> {
    let unbounded = |child: &&PlanRef| child.properties().boundedness == Boundedness::Unbounded;
    let children = plan.children();
    let breaks_on_left =
        plan.is::<HashJoinExec>() || plan.is::<NestedLoopJoinExec>() || plan.is::<CrossJoinExec>();
    let waits_for = match plan.properties().emission {
        EmissionType::Final => children.iter().position(|c| unbounded(c)),
        _ if breaks_on_left => children.first().filter(|c| unbounded(c)).map(|_| 0),
        _ => None,
    };
    match waits_for {
        Some(i) => plan_err!(
            "{} needs all rows of its input {i}, {}, which is unbounded",
            plan.name(),
            children[i].name()
        ),
        None => Ok(()),
    }
}
