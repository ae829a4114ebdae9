//! Adds the exchanges, merges and sorts that operators require, and removes the ones that
//! nothing needs.
//!
//! Distribution and order are one rule, since each choice for one binds the other. On the way
//! down, exchanges, merges and sorts that carry no fetch are taken off; on the way up, those that
//! are required are put on. So a second run finds what it would build, and changes nothing.
//!
//! # Before
//! ```text
//! OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
//!   SortExec: expr=[a@0 ASC]
//!     CoalescePartitionsExec
//!       MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
//!   SortPreservingMergeExec: [a@0 ASC]
//!     SortExec: expr=[a@0 ASC], preserve_partitioning=true
//!       MemoryScanExec: partitions=2, batches=2
//! ```
//! A sort is kept where its order can be seen: by the result, by a limit above it, by an operator
//! that requires it. A sort over rows that are in order already goes; its fetch, and that of a
//! merge of one partition, becomes a limit. A hash-join mode that no rule chose becomes
//! `CollectLeft`.
//!
//! **Declines** to shuffle an input that is spread as required (equal expressions counted, or by
//! a subset of the keys over at least `subset_repartition_threshold` partitions), or has one
//! partition; to deal rows out in turn unless an operator gains (a shared build does not), there
//! are more than a batch of them, they come straight from a one-partition scan, and nobody sees
//! their order.
//! **Knob**: none, it always runs; `datafusion.optimizer.enable_round_robin_repartition` and
//! `subset_repartition_threshold` guide it.

mod distribution;
mod enforcers;

pub(crate) use distribution::{co_partitioned, emits_build_rows, required_distribution, satisfies};

use crate::enforce::output_requirements::is_pinned;
use crate::rule::{PhysicalOptimizerRule, RuleKind};
use crate::tree::{if_changed, with_children};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use distribution::{co_partition, deals_out, hash_requirements, shares_build, shuffle};
use enforcers::{coalesce, limit, merge, peel, peel_ordered, reuse, sort};
use planish_expr::{Distribution, LexOrdering, Partitioning};
use planish_plan::PlanRef;
use planish_plan::operators::aggregate::AggregateExec;
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::output_requirement::OutputRequirementExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::window::{BoundedWindowAggExec, WindowAggExec};
use std::sync::Arc;

/// Adds required exchanges, merges and sorts, removes the others.
#[derive(Debug)]
pub struct EnsureRequirements;

impl PhysicalOptimizerRule for EnsureRequirements {
    fn name(&self) -> &'static str {
        "EnsureRequirements"
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Enforce
    }

    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>> {
        let walk = Walk { options };
        // Without a pin, what the root does now is what it promises.
        let pinned = is_pinned(&plan)?;
        let mut new = walk.visit(&plan, Demand { keep: !pinned, visible: true, built: false })?;
        if !pinned {
            let promised = match plan.downcast_ref::<RepartitionExec>().map(|r| r.partitioning()) {
                Some(Partitioning::Hash(keys, _)) => Distribution::HashPartitioned(keys.clone()),
                _ if plan.partition_count() == 1 => Distribution::SinglePartition,
                _ => Distribution::UnspecifiedDistribution,
            };
            new = reuse(&plan, walk.satisfy(new, &promised, None)?)?;
        }
        Ok(if_changed(&plan, new))
    }
}

/// What is seen, from above, of a node's order.
#[derive(Clone, Copy)]
struct Demand {
    /// Sorts below decide what comes out: they stay.
    keep: bool,
    /// The order in which rows come from the sources shows in the result.
    visible: bool,
    /// Rows go into the build side of a nested-loop join, at most computed upon on the way: next
    /// to the pairs, their number is small.
    built: bool,
}

impl Demand {
    const NONE: Demand = Demand { keep: false, visible: false, built: false };
}

struct Walk<'a> {
    options: &'a ConfigOptions,
}

impl Walk<'_> {
    fn visit(&self, plan: &PlanRef, demand: Demand) -> Result<PlanRef> {
        let new = self.rebuild(plan, demand)?;
        reuse(plan, new)
    }

    fn rebuild(&self, plan: &PlanRef, demand: Demand) -> Result<PlanRef> {
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
            return self.visit(repartition.input(), Demand { keep: false, ..demand });
        }
        if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return self.rebuild_coalesce(plan, coalesce.input(), demand);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let single = !sort.preserve_partitioning();
            return self.rebuild_ordered(plan, sort.expr(), single, demand);
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return self.rebuild_ordered(plan, merge.expr(), true, demand);
        }
        self.rebuild_operator(plan, demand)
    }

    fn rebuild_coalesce(&self, plan: &PlanRef, input: &PlanRef, demand: Demand) -> Result<PlanRef> {
        let demand = Demand { keep: demand.keep && input.partition_count() == 1, ..demand };
        let Some(fetch) = plan.fetch() else { return self.visit(input, demand) };
        let input = self.visit(input, demand)?;
        if input.partition_count() == 1 {
            return Ok(limit(input, fetch));
        }
        with_children(plan, vec![input])
    }

    /// A sort or a merge.
    fn rebuild_ordered(
        &self,
        plan: &PlanRef,
        expr: &LexOrdering,
        single: bool,
        demand: Demand,
    ) -> Result<PlanRef> {
        let input = plan.children()[0];
        let fetch = plan.fetch();
        if fetch.is_none() && !demand.keep {
            return self.visit(input, demand);
        }
        let (base, expr) = peel_ordered(input, expr);
        let keep = base.properties().equivalences.ordering_satisfied(&expr);
        let base = self.visit(base, Demand { keep, visible: false, built: false })?;
        let many = base.partition_count() > 1;
        // A merge takes the first rows of all partitions, so each need not give more.
        let of_sort = if plan.is::<SortExec>() { fetch } else { None };
        let ordered = match (base.properties().equivalences.ordering_satisfied(&expr), of_sort) {
            (true, None) => base,
            (true, Some(fetch)) => limit(base, fetch),
            (false, _) => sort(base, &expr, of_sort, many || !single),
        };
        match fetch {
            _ if single && many => Ok(merge(ordered, &expr, fetch)),
            Some(fetch) if plan.is::<SortPreservingMergeExec>() => Ok(limit(ordered, fetch)),
            _ => Ok(ordered),
        }
    }

    fn rebuild_operator(&self, plan: &PlanRef, demand: Demand) -> Result<PlanRef> {
        let plan = &choose_mode(plan)?;
        let old_children = plan.children();
        let distributions = required_distribution(plan, self.options);
        let orderings = plan.required_input_ordering();
        let maintains = plan.maintains_input_order();
        let benefits = plan.benefits_from_input_partitioning();
        let mut children = Vec::with_capacity(old_children.len());
        for (i, child) in old_children.iter().enumerate() {
            let built = (i == 0 && plan.is::<NestedLoopJoinExec>())
                || (demand.built && plan.is::<ProjectionExec>());
            let inner = Demand { built, ..self.demand_of_child(plan, maintains[i], demand) };
            let new = match &orderings[i] {
                Some(ordering) => self.visit_ordered(child, ordering, &distributions[i], inner)?,
                None => self.visit_spread(child, &distributions[i], inner)?,
            };
            let may_deal = orderings[i].is_none()
                && distributions[i] == Distribution::UnspecifiedDistribution
                && benefits[i]
                && !(i == 0 && shares_build(plan))
                && !inner.built
                && !inner.keep
                && !inner.visible;
            let new = if may_deal { deals_out(new, self.options)? } else { new };
            children.push(new);
        }
        if let [left, right] = hash_requirements(&distributions)[..] {
            let right_child = children.remove(1);
            let left_child = children.remove(0);
            let (l, r) = co_partition(left_child, right_child, left, right, self.options)?;
            children = vec![l, r];
        }
        let mut satisfied = Vec::with_capacity(children.len());
        for (i, child) in children.into_iter().enumerate() {
            let new = self.satisfy(child, &distributions[i], orderings[i].as_ref())?;
            satisfied.push(reuse(old_children[i], new)?);
        }
        with_children(plan, satisfied)
    }

    /// What is seen of a child's order through `plan`.
    fn demand_of_child(&self, plan: &PlanRef, maintains: bool, demand: Demand) -> Demand {
        if plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>() || plan.fetch().is_some() {
            // Which rows come out depends on their order.
            return Demand { keep: true, visible: true, built: false };
        }
        if plan.downcast_ref::<AggregateExec>().is_some_and(collects_rows) {
            return Demand { keep: true, visible: true, built: false };
        }
        if numbers_rows(plan) {
            return Demand { keep: true, visible: true, built: false };
        }
        if let Some(pin) = plan.downcast_ref::<OutputRequirementExec>() {
            return Demand { keep: pin.ordering().is_some(), visible: true, built: false };
        }
        if !maintains {
            return Demand::NONE;
        }
        demand
    }

    /// A child of which an order is required: whatever sorts and exchanges stand right above its
    /// first real operator will be put on again if they are needed.
    fn visit_ordered(
        &self,
        child: &PlanRef,
        ordering: &LexOrdering,
        distribution: &Distribution,
        demand: Demand,
    ) -> Result<PlanRef> {
        let base = peel(child);
        let keep = base.properties().equivalences.ordering_satisfied(ordering);
        let inner = Demand { keep, visible: demand.visible && keep, ..demand };
        self.visit_spread(base, distribution, inner)
    }

    /// A child that must be spread in some way: an order that a shuffle would lose is not kept.
    fn visit_spread(
        &self,
        child: &PlanRef,
        distribution: &Distribution,
        demand: Demand,
    ) -> Result<PlanRef> {
        let new = self.visit(child, demand)?;
        let shuffled = matches!(distribution, Distribution::HashPartitioned(_))
            && !satisfies(&new, distribution, self.options);
        if shuffled && demand.keep { self.visit(child, Demand::NONE) } else { Ok(new) }
    }

    /// `child`, spread and ordered as required.
    fn satisfy(
        &self,
        child: PlanRef,
        distribution: &Distribution,
        ordering: Option<&LexOrdering>,
    ) -> Result<PlanRef> {
        let mut child = child;
        if let Distribution::HashPartitioned(keys) = distribution
            && !satisfies(&child, distribution, self.options)
        {
            child = shuffle(child, keys, self.options)?;
        }
        let single = *distribution == Distribution::SinglePartition && child.partition_count() > 1;
        let Some(ordering) = ordering else {
            return Ok(if single { coalesce(child) } else { child });
        };
        if !child.properties().equivalences.ordering_satisfied(ordering) {
            let many = child.partition_count() > 1;
            child = sort(child, ordering, None, many);
        }
        Ok(if single { merge(child, ordering, None) } else { child })
    }
}

/// Whether an aggregation takes rows as they come: people expect it to show the order of a
/// subquery, though SQL does not.
fn collects_rows(aggregate: &AggregateExec) -> bool {
    const COLLECTORS: [&str; 5] =
        ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];
    aggregate
        .aggregates()
        .iter()
        .any(|call| call.order_by.is_empty() && COLLECTORS.contains(&call.fun.name()))
}

/// Whether a window has neither partitions nor order, so that its frames follow rows as they come.
fn numbers_rows(plan: &PlanRef) -> bool {
    let is_window = plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>();
    is_window && plan.required_input_ordering() == [None]
}

/// A hash join whose mode no rule chose shares one build table.
fn choose_mode(plan: &PlanRef) -> Result<PlanRef> {
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) if join.mode() == PartitionMode::Auto => {
            Ok(Arc::new(join.with_mode(PartitionMode::CollectLeft)?))
        }
        _ => Ok(Arc::clone(plan)),
    }
}

#[cfg(test)]
mod tests;
