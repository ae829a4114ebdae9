//! Pins the order and the single partition that a query promised, so that no rule loses them.
//!
//! Moves no work: the node it adds is a note for the rules between its two runs, and its second
//! run takes the node away.
//!
//! # Before
//! ```text
//! GlobalLimitExec: skip=0, fetch=5
//!   SortExec: expr=[a@0 ASC]
//!     MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! GlobalLimitExec: skip=0, fetch=5
//!   OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
//!     SortExec: expr=[a@0 ASC]
//!       MemoryScanExec: partitions=2, batches=2
//! ```
//! The pin stands on the topmost sort or merge that is reached through operators with one input
//! that keep its order; when there is none, on the root, where it asks for one partition only.
//!
//! **Declines** when there is a pin already.
//! **Knob**: none; it always runs.

use crate::rule::{PhysicalOptimizerRule, RuleKind};
use crate::tree::{if_changed, map_children};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use planish_expr::{Distribution, LexOrdering};
use planish_plan::PlanRef;
use planish_plan::operators::output_requirement::OutputRequirementExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::subplans::SubplansExec;
use std::sync::Arc;

/// Adds the pin, or removes it.
#[derive(Debug)]
pub struct OutputRequirements {
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Add,
    Remove,
}

impl OutputRequirements {
    /// The run that adds the pin.
    pub fn new_add_mode() -> Self {
        OutputRequirements { mode: Mode::Add }
    }

    /// The run that takes it off.
    pub fn new_remove_mode() -> Self {
        OutputRequirements { mode: Mode::Remove }
    }
}

impl PhysicalOptimizerRule for OutputRequirements {
    fn name(&self) -> &'static str {
        "OutputRequirements"
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Enforce
    }

    fn optimize(&self, plan: PlanRef, _options: &ConfigOptions) -> Result<Option<PlanRef>> {
        match self.mode {
            Mode::Remove => Ok(if_changed(&plan, remove(&plan)?)),
            Mode::Add if is_pinned(&plan)? => Ok(None),
            Mode::Add => match pin_order(&plan)? {
                Some(pinned) => Ok(Some(pinned)),
                None => pin_root(&plan).map(Some),
            },
        }
    }
}

/// Whether there is a pin somewhere in `plan`.
pub(crate) fn is_pinned(plan: &PlanRef) -> Result<bool> {
    let mut pinned = false;
    plan.apply(|node| {
        pinned |= node.is::<OutputRequirementExec>();
        Ok(if pinned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(pinned)
}

/// `plan` with a pin on the sort that decides its order, if one does.
fn pin_order(plan: &PlanRef) -> Result<Option<PlanRef>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let distribution = if sort.preserve_partitioning() && plan.partition_count() > 1 {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        };
        return Ok(Some(pin(plan, Some(sort.expr().clone()), distribution)));
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return Ok(Some(pin(plan, Some(merge.expr().clone()), Distribution::SinglePartition)));
    }
    let passes = plan.children().len() == 1 || plan.is::<SubplansExec>();
    if !passes || plan.maintains_input_order().first() != Some(&true) {
        return Ok(None);
    }
    match pin_order(plan.children()[0])? {
        Some(pinned) => replace_first_child(plan, &pinned).map(Some),
        None => Ok(None),
    }
}

/// `plan` with a pin that asks for one partition. The node that holds subqueries stays the root.
fn pin_root(plan: &PlanRef) -> Result<PlanRef> {
    if plan.is::<SubplansExec>() {
        let pinned = pin_root(plan.children()[0])?;
        return replace_first_child(plan, &pinned);
    }
    Ok(pin(plan, None, Distribution::SinglePartition))
}

fn pin(plan: &PlanRef, ordering: Option<LexOrdering>, distribution: Distribution) -> PlanRef {
    Arc::new(OutputRequirementExec::new(Arc::clone(plan), ordering, distribution))
}

fn replace_first_child(plan: &PlanRef, first: &PlanRef) -> Result<PlanRef> {
    map_children(plan, |i, child| Ok(Arc::clone(if i == 0 { first } else { child })))
}

fn remove(plan: &PlanRef) -> Result<PlanRef> {
    match plan.downcast_ref::<OutputRequirementExec>() {
        Some(pin) => remove(pin.input()),
        None => map_children(plan, |_, child| remove(child)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use insta::assert_snapshot;

    fn add() -> Check {
        Check::new(OutputRequirements::new_add_mode())
    }

    fn remove() -> Check {
        Check::new(OutputRequirements::new_remove_mode())
    }

    #[test]
    fn pins_the_topmost_sort() {
        let sorted = sort(vec![asc(col("a", 0))], None, scan(&["a", "b"], 2));
        let plan = limit(0, Some(5), sorted);
        let source = include_str!("output_requirements.rs");
        assert_documented(source, &text(&plan), &add().in_order().fires(Arc::clone(&plan)));
    }

    #[test]
    fn pins_a_sort_whose_key_is_not_shown() {
        let sorted = sort(vec![asc(col("b", 1))], None, scan(&["a", "b"], 1));
        assert_snapshot!(add().fires(columns(&[0], sorted)), @r"
        ProjectionExec: expr=[a@0]
          OutputRequirementExec: order_by=[b@1 ASC], dist=SinglePartition
            SortExec: expr=[b@1 ASC]
              MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn pins_one_partition_where_nothing_is_sorted() {
        assert_snapshot!(add().fires(filter(gt(col("a", 0), 1), scan(&["a"], 2))), @r"
        OutputRequirementExec: dist=SinglePartition
          FilterExec: a@0 > 1
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn a_sort_below_an_aggregation_is_no_promise() {
        use planish_plan::operators::aggregate::AggregateMode;
        let sorted = sort(vec![asc(col("a", 0))], None, scan(&["a"], 1));
        assert_snapshot!(add().fires(group_by(AggregateMode::Single, &[0], sorted)), @r"
        OutputRequirementExec: dist=SinglePartition
          AggregateExec: mode=Single, gby=[a@0 as a], aggr=[]
            SortExec: expr=[a@0 ASC]
              MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn the_node_that_holds_subqueries_stays_the_root() {
        let plan: PlanRef = Arc::new(SubplansExec::new(scan(&["a"], 2), [(1, scan(&["b"], 1))]));
        assert_snapshot!(add().fires(plan), @r"
        SubplansExec: subqueries=[1]
          OutputRequirementExec: dist=SinglePartition
            MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn a_pin_is_added_once_and_removed() {
        let plan = add().rewrite(filter(gt(col("a", 0), 1), scan(&["a"], 2)));
        add().declines(Arc::clone(&plan));
        assert_snapshot!(remove().fires(plan), @r"
        FilterExec: a@0 > 1
          MemoryScanExec: partitions=2, batches=2
        ");
        remove().declines(filter(gt(col("a", 0), 1), scan(&["a"], 2)));
    }
}
