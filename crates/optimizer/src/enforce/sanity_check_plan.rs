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
                "{} requires its input {i}, {}, to be spread as {required}, but it is {}",
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
        EmissionType::Final => children.iter().position(unbounded),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use insta::assert_snapshot;
    use planish_expr::{Distribution, Partitioning};
    use planish_plan::operators::aggregate::AggregateMode;
    use std::sync::Arc;

    fn rule() -> Check {
        Check::new(SanityCheckPlan)
    }

    #[test]
    fn an_order_that_does_not_hold_is_named() {
        let plan = merge(vec![asc(col("a", 0))], None, scan(&["a"], 2));
        let source = include_str!("sanity_check_plan.rs");
        let error = rule().rejects(Arc::clone(&plan));
        let first = error.lines().next().unwrap().replace("optimizer rule SanityCheckPlan: ", "");
        let first = first.trim_end_matches('.');
        assert_documented(source, &text(&plan), &format!("{first}\n"));
    }

    #[test]
    fn a_distribution_that_does_not_hold_is_named() {
        let plan = limit(0, Some(1), scan(&["a"], 2));
        assert_snapshot!(rule().rejects(plan).lines().next().unwrap(), @"Internal error: optimizer rule SanityCheckPlan: GlobalLimitExec requires its input 0, MemoryScanExec, to be spread as SinglePartition, but it is UnknownPartitioning(2).");
        let plan = group_by(AggregateMode::SinglePartitioned, &[0], scan(&["a"], 2));
        assert_snapshot!(rule().rejects(plan).lines().next().unwrap(), @"Internal error: optimizer rule SanityCheckPlan: AggregateExec requires its input 0, MemoryScanExec, to be spread as HashPartitioned([a@0]), but it is UnknownPartitioning(2).");
    }

    #[test]
    fn inputs_hashed_in_different_ways_are_named() {
        use datafusion_common::JoinType;
        let hashed = |n| {
            let keys = vec![col("a", 0), col("b", 1)];
            repartition(Partitioning::Hash(keys, n), scan(&["a", "b"], 2))
        };
        let on = [(0, 0), (1, 1)];
        let mode = PartitionMode::Partitioned;
        let plan = join(&on, JoinType::Inner, mode, hashed(4), hashed(3));
        assert_snapshot!(rule().rejects(plan).lines().next().unwrap(), @"Internal error: optimizer rule SanityCheckPlan: HashJoinExec requires its inputs to be spread alike, but they are Hash([a@0, b@1], 4) and Hash([a@0, b@1], 3).");
        let crossed = join(&[(0, 1), (1, 0)], JoinType::Inner, mode, hashed(4), hashed(4));
        assert!(rule().rejects(crossed).contains("spread alike"));
        rule().declines(join(&on, JoinType::Inner, mode, hashed(4), hashed(4)));
    }

    #[test]
    fn an_operator_that_waits_for_the_end_of_an_endless_input_is_named() {
        let endless = || unbounded(scan(&["a"], 1));
        let plan = sort(vec![asc(col("a", 0))], None, endless());
        assert_snapshot!(rule().rejects(plan).lines().next().unwrap(), @"Error during planning: SortExec needs all rows of its input 0, Needs, which is unbounded");
        rule().declines(filter(gt(col("a", 0), 1), endless()));
        rule().declines(limit(0, Some(1), endless()));
    }

    #[test]
    fn a_plan_that_can_run_is_left_alone() {
        rule().declines(merge(vec![asc(col("a", 0))], None, sorted_scan(&["a"], 2)));
        rule().declines(limit(0, Some(1), scan(&["a"], 1)));
        let single = needs(Distribution::SinglePartition, None, true, scan(&["a"], 1));
        rule().declines(single);
    }
}
