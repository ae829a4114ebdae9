//! Moves filters to where they keep most rows from being touched: into scans, if they can.
//!
//! Work per row, the predicate itself and all that is done with rows that fail it, moves below
//! the operators in between, and at a scan becomes a question to statistics.
//!
//! # Before
//! ```text
//! FilterExec: a@1 > 1 AND random() < 9
//!   ProjectionExec: expr=[b@1, a@0]
//!     FilteringScan
//! ```
//! # After
//! ```text
//! FilterExec: random() < 9
//!   ProjectionExec: expr=[b@1, a@0]
//!     FilteringScan: predicate=a@0 > 1
//! ```
//! It is a negotiation, of which this rule only keeps the minutes: a node says which of its
//! parents' filters, and which of its own, may be offered to each child, and in which
//! coordinates; the children answer; the node deals with what is left over. A scan may use a
//! filter for pruning and answer that it is of use, not done: then the filter also stays. A `FilterExec` further
//! down adds what reaches it to its own predicate; one left without a predicate disappears.
//!
//! The run at the end of the pipeline is for *dynamic* filters, whose predicate is found while the
//! query runs. A sort with a fetch offers one on its first key: rows behind the worst of the first
//! `k` are of no use. A hash join whose unmatched probe rows are dropped offers one on its keys:
//! bounds of the build side's, and a list of them for few rows. They pass operators as static
//! filters do, a scan that skips rows keeps them (`predicate=DynamicFilter[a@0]`), and where one
//! does, the operator shows `dynamic_filter=` and feeds it. `EXPLAIN ANALYZE` counts the row groups
//! and rows that they skipped. Knobs: `datafusion.optimizer.enable_topk_dynamic_filter_pushdown`,
//! `enable_join_dynamic_filter_pushdown`.
//!
//! **Declines** for volatile filters, and past an operator with a fetch: they stay where they are.
//! **Knob**: `planish.optimizer.disable = 'FilterPushdown'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, with_children};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, internal_err};
use planish_expr::{PhysicalExprRef, is_volatile};
use planish_plan::PlanRef;
use planish_plan::operators::filter::FilterExec;
use planish_plan::pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
    FilteredVec, OfferedFilter, PushedDown,
};
use std::sync::Arc;

/// Negotiates filters down the plan.
#[derive(Debug)]
pub struct FilterPushdown {
    phase: FilterPushdownPhase,
}

impl Default for FilterPushdown {
    fn default() -> Self {
        Self::new()
    }
}

impl FilterPushdown {
    /// The run for static filters.
    pub fn new() -> Self {
        FilterPushdown { phase: FilterPushdownPhase::Pre }
    }

    /// The run for dynamic filters, after which the plan may not change.
    pub fn new_post_optimization() -> Self {
        FilterPushdown { phase: FilterPushdownPhase::Post }
    }
}

impl PhysicalOptimizerRule for FilterPushdown {
    fn name(&self) -> &'static str {
        "FilterPushdown"
    }

    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>> {
        let negotiation = Negotiation { phase: self.phase, options };
        let root = negotiation.push(&plan, vec![])?;
        Ok(if_changed(&plan, root.node))
    }
}

struct Negotiation<'a> {
    phase: FilterPushdownPhase,
    options: &'a ConfigOptions,
}

impl Negotiation<'_> {
    /// Offers `filters`, over its output, to `plan`. The answers are in the order of `filters`.
    fn push(
        &self,
        plan: &PlanRef,
        filters: Vec<PhysicalExprRef>,
    ) -> Result<FilterPushdownPropagation> {
        // Fewer rows below a fetch are other rows above it.
        let passes = plan.fetch().is_none();
        let offered = FilteredVec::new(filters).filter(|f| passes && !is_volatile(f));
        let children = plan.children();
        let description = plan.gather_filters_for_pushdown(
            self.phase,
            offered.items(),
            children.len(),
            self.options,
        )?;
        if description.children.len() != children.len() {
            return internal_err!("{} spoke of other children than it has", plan.name());
        }

        let mut new_children = Vec::with_capacity(children.len());
        let mut of_parent = vec![vec![]; offered.items().len()];
        let mut of_self = Vec::with_capacity(children.len());
        for (child, description) in children.into_iter().zip(description.children) {
            let answer = self.push_into_child(plan, child, &offered, description)?;
            for (answers, one) in of_parent.iter_mut().zip(answer.parent_filters) {
                answers.push(one);
            }
            of_self.push(answer.self_filters);
            new_children.push(answer.node);
        }

        let result = ChildPushdownResult {
            parent_filters: offered.items().iter().cloned().zip(of_parent).collect(),
            self_filters: of_self,
            node: with_children(plan, new_children)?,
        };
        let answer = plan.handle_child_pushdown_result(self.phase, result, self.options)?;
        Ok(FilterPushdownPropagation {
            filters: offered.answers(answer.filters, PushedDown::No)?,
            node: unless_rebuilt(plan, answer.node),
        })
    }

    fn push_into_child(
        &self,
        plan: &PlanRef,
        child: &PlanRef,
        offered: &FilteredVec<PhysicalExprRef>,
        description: ChildFilterDescription,
    ) -> Result<ChildAnswer> {
        if description.parent_filters.len() != offered.items().len() {
            return internal_err!("{} did not speak of every filter", plan.name());
        }
        let for_child = FilteredVec::new(description.parent_filters).filter_map(|f| match f {
            OfferedFilter::Supported(filter) => Some(filter),
            OfferedFilter::Unsupported => None,
        });
        let from_parents = for_child.items().len();
        let own = description.self_filters;
        let all = for_child.items().iter().chain(&own).cloned().collect();
        let mut answer = self.push(child, all)?;
        let self_filters = own.into_iter().zip(answer.filters.split_off(from_parents)).collect();
        Ok(ChildAnswer {
            parent_filters: for_child.answers(answer.filters, PushedDown::No)?,
            self_filters,
            node: answer.node,
        })
    }
}

/// What one child answered, in the order of the node's parent filters and own filters.
struct ChildAnswer {
    parent_filters: Vec<PushedDown>,
    self_filters: Vec<(PhysicalExprRef, PushedDown)>,
    node: PlanRef,
}

/// `old` where `new` is a `FilterExec` like it.
fn unless_rebuilt(old: &PlanRef, new: PlanRef) -> PlanRef {
    let equal = match (old.downcast_ref::<FilterExec>(), new.downcast_ref::<FilterExec>()) {
        (Some(a), Some(b)) => {
            Arc::ptr_eq(a.input(), b.input())
                && a.predicate() == b.predicate()
                && a.projection() == b.projection()
        }
        _ => false,
    };
    if equal { Arc::clone(old) } else { new }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use datafusion_common::JoinType;
    use datafusion_expr::Operator;
    use insta::assert_snapshot;
    use planish_expr::expressions::lit;
    use planish_expr::utils::conjunction;
    use planish_plan::Pushdown;
    use planish_plan::operators::aggregate::AggregateMode;
    use planish_plan::operators::hash_join::PartitionMode;

    fn rule() -> Check {
        Check::new(FilterPushdown::new())
    }

    #[test]
    fn passes_a_projection_in_its_coordinates() {
        let scan = filtering_scan(scan(&["a", "b"], 1), true);
        let volatile = binary(random(), Operator::Lt, lit(9i64));
        let predicate = binary(gt(col("a", 1), 1), Operator::And, volatile);
        let plan = filter(predicate, columns(&[1, 0], scan));
        assert_documented(
            include_str!("filter_pushdown.rs"),
            &text(&plan),
            &rule().fires(Arc::clone(&plan)),
        );
    }

    fn post() -> Check {
        Check::new(FilterPushdown::new_post_optimization())
    }

    #[test]
    fn a_top_k_gives_a_scan_its_threshold() {
        let scan = filtering_scan(scan(&["a", "b"], 1), false);
        let plan = sort(vec![asc(col("a", 1))], Some(5), columns(&[1, 0], scan));
        assert_snapshot!(post().fires(plan), @r"
        SortExec: expr=[a@1 ASC], fetch=5, dynamic_filter=DynamicFilter[a@1]
          ProjectionExec: expr=[b@1, a@0]
            FilteringScan: predicate=DynamicFilter[a@0]
        ");
    }

    #[test]
    fn a_hash_join_gives_its_probe_side_the_keys() {
        let probe = filtering_scan(scan(&["x", "y"], 2), false);
        for join_type in [JoinType::Inner, JoinType::Left, JoinType::LeftAnti, JoinType::RightSemi]
        {
            let plan = join(
                &[(0, 0)],
                join_type,
                PartitionMode::CollectLeft,
                scan(&["a", "b"], 2),
                Arc::clone(&probe),
            );
            assert!(post().fires(plan).contains("predicate=DynamicFilter[x@0]"), "{join_type}");
        }
    }

    #[test]
    fn declines_for_probe_rows_that_come_out_unmatched() {
        let probe = filtering_scan(scan(&["x", "y"], 2), false);
        for join_type in [JoinType::Right, JoinType::Full, JoinType::RightAnti, JoinType::RightMark]
        {
            post().declines(join(
                &[(0, 0)],
                join_type,
                PartitionMode::CollectLeft,
                scan(&["a", "b"], 2),
                Arc::clone(&probe),
            ));
        }
    }

    #[test]
    fn declines_where_nobody_makes_use_of_a_dynamic_filter() {
        post().declines(sort(vec![asc(col("a", 0))], Some(5), scan(&["a", "b"], 1)));
        post().declines(join(
            &[(0, 0)],
            JoinType::Inner,
            PartitionMode::CollectLeft,
            scan(&["a"], 2),
            scan(&["x"], 2),
        ));
        // All rows are of use.
        post().declines(sort(vec![asc(col("a", 0))], None, filtering_scan(scan(&["a"], 1), false)));
    }

    #[test]
    fn filters_become_one_the_inner_first() {
        let inner = filter(gt(col("b", 1), 2), scan(&["a", "b"], 2));
        assert_snapshot!(rule().fires(filter(gt(col("a", 0), 1), inner)), @r"
        FilterExec: b@1 > 2 AND a@0 > 1
          MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn a_filter_that_is_true_disappears() {
        assert_snapshot!(rule().fires(filter(lit(true), scan(&["a"], 1))), @"MemoryScanExec: partitions=1, batches=1");
    }

    #[test]
    fn a_scan_that_filters_exactly_takes_the_filter_over() {
        let scan = filtering_scan(scan(&["a", "b"], 1), true);
        let plan = filter(gt(col("a", 1), 1), columns(&[1, 0], scan));
        assert_snapshot!(rule().fires(plan), @r"
        ProjectionExec: expr=[b@1, a@0]
          FilteringScan: predicate=a@0 > 1
        ");
    }

    #[test]
    fn a_scan_may_remember_a_filter_that_stays() {
        let scan = filtering_scan(scan(&["a", "b"], 1), false);
        let predicate = binary(gt(col("a", 0), 1), Operator::And, gt(col("b", 1), 2));
        assert_snapshot!(rule().fires(filter(predicate, scan)), @r"
        FilterExec: a@0 > 1 AND b@1 > 2
          FilteringScan: predicate=a@0 > 1 AND b@1 > 2
        ");
    }

    #[test]
    fn of_several_filters_the_refused_ones_stay_in_order() {
        let scan = filtering_scan(scan(&["a", "b"], 1), true);
        let volatile = binary(random(), Operator::Lt, lit(9i64));
        let predicate = [gt(col("a", 0), 1), Arc::clone(&volatile), gt(col("b", 1), 2), volatile];
        let plan = filter(conjunction(predicate), scan);
        assert_snapshot!(rule().fires(plan), @r"
        FilterExec: random() < 9 AND random() < 9
          FilteringScan: predicate=a@0 > 1 AND b@1 > 2
        ");
    }

    #[test]
    fn reaches_both_inputs_of_a_union() {
        let exact = |names: &[&str], p| filtering_scan(scan(names, p), true);
        let plan = union(vec![exact(&["a"], 1), columns(&[1], exact(&["b", "a"], 2))]);
        assert_snapshot!(rule().fires(filter(gt(col("a", 0), 4), plan)), @r"
        UnionExec
          FilteringScan: predicate=a@0 > 4
          ProjectionExec: expr=[a@1]
            FilteringScan: predicate=a@1 > 4
        ");
    }

    #[test]
    fn a_guard_is_not_overtaken() {
        let guard = binary(col("a", 0), Operator::NotEq, lit(0i64));
        let quotient = binary(lit(100i64), Operator::Divide, col("a", 0));
        let plan = filter(gt(quotient, 20), filter(guard, scan(&["a"], 1)));
        assert_snapshot!(rule().fires(plan), @r"
        FilterExec: a@0 != 0 AND 100 / a@0 > 20
          MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn a_conjunct_that_can_fail_waits_for_those_before_it() {
        let exact = filtering_scan(scan(&["a", "b"], 1), true);
        let volatile = binary(random(), Operator::Lt, lit(9i64));
        let quotient = || binary(lit(100i64), Operator::Divide, col("a", 0));
        let plan = filter(conjunction([volatile, gt(quotient(), 3), gt(col("b", 1), 2)]), exact);
        assert_snapshot!(rule().not_run().fires(plan), @r"
        FilterExec: random() < 9 AND 100 / a@0 > 3
          FilteringScan: predicate=b@1 > 2
        ");
        let exact = filtering_scan(scan(&["b"], 1), true);
        let quotient = binary(lit(100i64), Operator::Divide, lit(7i64));
        let plan = filter(conjunction([gt(quotient, 3), gt(col("b", 0), 2)]), exact);
        assert_snapshot!(rule().fires(plan), @"FilteringScan: predicate=100 / 7 > 3 AND b@0 > 2");
    }

    #[test]
    fn passes_a_sort_but_not_a_top_k() {
        let keys = vec![asc(col("a", 0))];
        let predicate = || gt(col("b", 1), 2);
        let exact = || filtering_scan(scan(&["a", "b"], 1), true);
        let sorted = sort(keys.clone(), None, exact());
        assert_snapshot!(rule().in_order().fires(filter(predicate(), sorted)), @r"
        SortExec: expr=[a@0 ASC]
          FilteringScan: predicate=b@1 > 2
        ");
        rule().declines(filter(predicate(), sort(keys, Some(5), exact())));
    }

    #[test]
    fn one_answer_of_no_is_enough_for_a_union() {
        let exact = filtering_scan(scan(&["a"], 1), true);
        let plan = union(vec![exact, scan(&["a"], 2)]);
        assert_snapshot!(rule().fires(filter(gt(col("a", 0), 4), plan)), @r"
        FilterExec: a@0 > 4
          UnionExec
            FilteringScan: predicate=a@0 > 4
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn goes_to_the_side_of_a_join_that_it_reads() {
        let exact = |names: &[&str]| filtering_scan(scan(names, 1), true);
        let both = |join_type| {
            let mode = PartitionMode::CollectLeft;
            let plan = join(&[(0, 0)], join_type, mode, exact(&["a", "b"]), exact(&["x", "y"]));
            let across = binary(col("b", 1), Operator::Lt, col("y", 3));
            let predicate = [gt(col("b", 1), 1), across, gt(col("y", 3), 2)];
            filter(conjunction(predicate), plan)
        };
        assert_snapshot!(rule().fires(both(JoinType::Inner)), @r"
        FilterExec: b@1 < y@3
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, x@0)]
            FilteringScan: predicate=b@1 > 1
            FilteringScan: predicate=y@1 > 2
        ");
        assert_snapshot!(rule().fires(both(JoinType::Left)), @r"
        FilterExec: b@1 < y@3 AND y@3 > 2
          HashJoinExec: mode=CollectLeft, join_type=Left, on=[(a@0, x@0)]
            FilteringScan: predicate=b@1 > 1
            FilteringScan
        ");
        rule().declines(both(JoinType::Full));
    }

    #[test]
    fn only_group_keys_pass_an_aggregation() {
        let exact = filtering_scan(scan(&["a", "b"], 1), true);
        let plan = group_by(AggregateMode::Single, &[1], exact);
        assert_snapshot!(rule().fires(filter(gt(col("b", 0), 1), plan)), @r"
        AggregateExec: mode=Single, gby=[b@1 as b], aggr=[]
          FilteringScan: predicate=b@1 > 1
        ");
        let exact = filtering_scan(scan(&["a", "b"], 1), true);
        rule().declines(filter(lit(false), group_by(AggregateMode::Single, &[], exact)));
    }

    #[test]
    fn declines_for_volatile_filters() {
        let volatile = || binary(random(), Operator::Lt, lit(9i64));
        rule().declines(filter(volatile(), columns(&[1], scan(&["a", "b"], 1))));
        rule().declines(filter(volatile(), filtering_scan(scan(&["a"], 1), true)));
    }

    #[test]
    fn declines_on_a_computed_column() {
        let sum = binary(col("a", 0), Operator::Plus, col("b", 1));
        let exact = filtering_scan(scan(&["a", "b"], 1), true);
        let plan = project(vec![(sum, "s")], exact);
        rule().declines(filter(gt(col("s", 0), 1), plan));
    }

    #[test]
    fn declines_where_dropped_rows_would_hide_a_failure() {
        let quotient = binary(lit(100i64), Operator::Divide, col("b", 1));
        let exact = filtering_scan(scan(&["a", "b"], 1), true);
        let plan = project(vec![(col("a", 0), "a"), (quotient, "q")], exact);
        rule().declines(filter(gt(col("a", 0), 1), plan));
    }

    #[test]
    fn declines_past_a_limit_and_a_scan_that_stops() {
        let stops = table(&["a"], 1, 20).with_fetch(Some(5)).unwrap();
        let exact = || filtering_scan(scan(&["a"], 1), true);
        rule().declines(filter(gt(col("a", 0), 1), filtering_scan(stops, true)));
        rule().declines(filter(gt(col("a", 0), 1), limit(0, Some(5), exact())));
        rule().declines(filter(gt(col("a", 0), 1), limit(3, None, exact())));
    }
}
