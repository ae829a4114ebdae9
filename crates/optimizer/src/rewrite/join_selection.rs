//! Builds the hash table of a join from its smaller side, and shares it where it fits.
//!
//! Moves the build, done once per row and held in memory, from the larger input to the smaller.
//!
//! # Before
//! ```text
//! HashJoinExec: mode=Auto, join_type=Inner, on=[(large@0, small@0)]
//!   MemoryScanExec: partitions=2, batches=2
//!   MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! ProjectionExec: expr=[large@1, small@0]
//!   HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(small@0, large@0)]
//!     MemoryScanExec: partitions=2, batches=2
//!     MemoryScanExec: partitions=2, batches=2
//! ```
//! Sizes are compared in bytes; in rows when bytes are not known of both sides; when neither is
//! known of both, nothing is swapped. A build side without end is swapped with one that ends. A
//! nested-loop or cross join gets the side of fewer rows on the left, which is the one it holds.
//!
//! The mode is `CollectLeft`, one table built by all partitions. It is `Partitioned` when the
//! build side is estimated to exceed `planish.execution.collect_left_memory_share` of a known
//! memory limit; or when partitions may not share state and the build side exceeds
//! `hash_join_single_partition_threshold` (bytes) or `_rows`, is of unknown size, or emits rows
//! by itself.
//!
//! With `prefer_hash_join = false`, a join is a sort-merge join instead, by an order of its keys
//! that an input has already, if one has.
//!
//! **Declines** to swap null-aware anti joins; to touch a hash join whose mode was chosen; to
//! merge by keys that cannot be sorted, or for a null-aware join.
//! **Knob**: `datafusion.optimizer.join_reordering = false` swaps only to make a plan run;
//! `datafusion.optimizer.prefer_hash_join`.

use crate::enforce::ensure_requirements::emits_build_rows;
use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, map_children};
use arrow::compute::SortOptions;
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{JoinType, Result, Statistics};
use planish_expr::{LexOrdering, PhysicalExprRef};
use planish_plan::config::PlanishOptions;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::sort_merge_join::SortMergeJoinExec;
use planish_plan::{Boundedness, PlanRef, Pushdown};
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
        let swap = should_swap(join.left(), join.right(), PAIRED, options)?;
        return if swap { join.swap_inputs() } else { Ok(plan) };
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let swap = should_swap(join.left(), join.right(), PAIRED, options)?;
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
    if !options.optimizer.prefer_hash_join
        && let Some(merged) = sort_merge_join(join)?
    {
        return Ok(merged);
    }
    let swap = join.supports_swap() && should_swap(join.left(), join.right(), HASHED, options)?;
    if swap {
        let mode = choose_mode(join.right(), join.join_type().swap(), false, options)?;
        return join.swap_inputs(mode);
    }
    let mode = choose_mode(join.left(), join.join_type(), join.null_aware(), options)?;
    Ok(Arc::new(join.with_mode(mode)?))
}

/// `join` by sorting, where that is possible.
fn sort_merge_join(join: &HashJoinExec) -> Result<Option<PlanRef>> {
    if join.null_aware() {
        return Ok(None);
    }
    let (left, right) = (join.left(), join.right());
    let keys = |side: fn(&(PhysicalExprRef, PhysicalExprRef)) -> &PhysicalExprRef| {
        join.on().iter().map(side).cloned().collect::<Vec<_>>()
    };
    let order = existing_order(left, &keys(|(l, _)| l))
        .or_else(|| existing_order(right, &keys(|(_, r)| r)))
        .unwrap_or_else(|| (0..join.on().len()).map(|i| (i, ASCENDING)).collect());
    let (on, sort_options) = order.into_iter().map(|(i, o)| (join.on()[i].clone(), o)).unzip();
    let merged = SortMergeJoinExec::try_new(
        Arc::clone(left),
        Arc::clone(right),
        on,
        join.filter().cloned(),
        join.join_type(),
        sort_options,
        join.null_equality(),
    );
    // All but the types of keys is as the hash join has it: those cannot be sorted.
    let Ok(merged) = merged else { return Ok(None) };
    match join.projection() {
        Some(indices) => merged.with_output_columns(indices),
        None => Ok(Some(Arc::new(merged))),
    }
}

const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

/// In which order, and how, the rows of `plan` are sorted by all of `keys` and nothing before
/// them, if they are.
fn existing_order(plan: &PlanRef, keys: &[PhysicalExprRef]) -> Option<Vec<(usize, SortOptions)>> {
    let facts = &plan.properties().equivalences;
    let normalized: Vec<_> = keys.iter().map(|key| facts.normalize_expr(key)).collect();
    let matching = |ordering: &LexOrdering| {
        let mut order: Vec<(usize, SortOptions)> = vec![];
        for sort in facts.normalize_ordering(ordering).iter().take(keys.len()) {
            let position = normalized.iter().position(|key| key.eq(&sort.expr))?;
            order.push((position, sort.options));
        }
        (order.len() == keys.len()).then_some(order)
    };
    facts.orderings().iter().find_map(matching)
}

/// What sizes of inputs are compared by: the first that is known of both.
type Sizes = [fn(&Statistics) -> &Precision<usize>; 2];

/// The table of a hash join is held.
const HASHED: Sizes = [|s| &s.total_byte_size, |s| &s.num_rows];

/// Joins of pairs have no mode that says that their sides were chosen; rows, unlike bytes, do not
/// change with the columns that later rules drop or add, so neither does the choice.
const PAIRED: Sizes = [|s| &s.num_rows, |s| &s.total_byte_size];

/// Whether the right side is the better one to build from.
fn should_swap(
    left: &PlanRef,
    right: &PlanRef,
    sizes: Sizes,
    options: &ConfigOptions,
) -> Result<bool> {
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
    Ok(sizes.into_iter().find_map(larger).unwrap_or(false))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use datafusion_common::NullEquality;
    use insta::assert_snapshot;

    fn rule() -> Check {
        Check::new(JoinSelection)
    }

    fn large() -> PlanRef {
        Arc::new(table(&["a", "c"], 2, 1000))
    }

    fn small() -> PlanRef {
        Arc::new(table(&["b"], 2, 10))
    }

    fn auto(join_type: JoinType, left: PlanRef, right: PlanRef) -> PlanRef {
        join(&[(0, 0)], join_type, PartitionMode::Auto, left, right)
    }

    /// A plan of whose size nothing is known.
    fn unknown(input: PlanRef) -> PlanRef {
        needs(planish_expr::Distribution::UnspecifiedDistribution, None, true, input)
    }

    #[test]
    fn the_smaller_side_is_built_from() {
        let table = |name, rows| -> PlanRef { Arc::new(table(&[name], 2, rows)) };
        let plan = auto(JoinType::Inner, table("large", 1000), table("small", 10));
        let source = include_str!("join_selection.rs");
        assert_documented(source, &text(&plan), &rule().not_run().fires(Arc::clone(&plan)));
    }

    #[test]
    fn the_smaller_left_side_stays() {
        assert_snapshot!(rule().not_run().fires(auto(JoinType::Left, small(), large())), @r"
        HashJoinExec: mode=CollectLeft, join_type=Left, on=[(b@0, a@0)]
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn every_join_type_keeps_its_columns() {
        use JoinType::*;
        for join_type in [
            Inner, Left, Right, Full, LeftSemi, RightSemi, LeftAnti, RightAnti, LeftMark, RightMark,
        ] {
            let plan = auto(join_type, large(), small());
            let after = rule().not_run().rewrite(Arc::clone(&plan));
            assert_eq!(plan.schema(), after.schema(), "{join_type}");
            // The chosen plan gives the rows that a fixed mode without a swap gives.
            let mode = PartitionMode::CollectLeft;
            let fixed = join(&[(0, 0)], join_type, mode, large(), small());
            let (mut a, mut b) = (execute(&fixed, &options()), execute(&after, &options()));
            a.sort();
            b.sort();
            assert_eq!(a, b, "{join_type}");
        }
    }

    #[test]
    fn without_data_nothing_is_swapped() {
        let plan = auto(JoinType::Inner, unknown(large()), small());
        assert_snapshot!(rule().not_run().fires(plan), @r"
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
          Needs
            MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
        let plan = auto(JoinType::Inner, large(), unknown(small()));
        assert_snapshot!(rule().not_run().fires(plan), @r"
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
          MemoryScanExec: partitions=2, batches=2
          Needs
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn the_knob_and_null_awareness_forbid_a_swap() {
        let rule = || rule().not_run();
        let off = rule().set(|o| o.optimizer.join_reordering = false);
        assert_snapshot!(off.fires(auto(JoinType::Inner, large(), small())), @r"
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
        let null_aware = HashJoinExec::try_new(
            large(),
            small(),
            vec![(col("a", 0), col("b", 0))],
            None,
            JoinType::LeftAnti,
            PartitionMode::Auto,
            NullEquality::NullEqualsNothing,
            true,
        );
        assert_snapshot!(rule().fires(Arc::new(null_aware.unwrap())), @r"
        HashJoinExec: mode=CollectLeft, join_type=LeftAnti, on=[(a@0, b@0)], null_aware=true
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn a_build_side_over_its_share_of_memory_is_partitioned() {
        let plan = || auto(JoinType::Inner, large(), large());
        let rule = |limit| rule().not_run().set_planish(|o| o.memory_limit = limit);
        assert_snapshot!(rule(1000).fires(plan()), @r"
        HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, a@0)]
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
        assert!(rule(1_000_000_000).fires(plan()).contains("CollectLeft"));
        assert!(rule(0).fires(plan()).contains("CollectLeft"), "no limit is known");
        let single = rule(1000).set(|o| o.execution.target_partitions = 1);
        assert!(single.fires(plan()).contains("CollectLeft"));
    }

    #[test]
    fn where_state_may_not_be_shared_thresholds_decide() {
        let rule = || rule().not_run().set_planish(|o| o.shared_state = false);
        assert!(rule().fires(auto(JoinType::Inner, small(), large())).contains("CollectLeft"));
        let strict = rule().set(|o| o.optimizer.hash_join_single_partition_threshold = 1);
        assert!(strict.fires(auto(JoinType::Inner, small(), large())).contains("Partitioned"));
        assert!(rule().fires(auto(JoinType::Left, small(), large())).contains("Partitioned"));
        let plan = auto(JoinType::Inner, unknown(small()), large());
        assert!(rule().fires(plan).contains("Partitioned"));
    }

    #[test]
    fn a_build_side_without_end_is_swapped() {
        let plan = auto(JoinType::Inner, unbounded(small()), large());
        assert_snapshot!(rule().not_run().fires(plan), @r"
        ProjectionExec: expr=[b@2, a@0, c@1]
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
            MemoryScanExec: partitions=2, batches=2
            Needs
              MemoryScanExec: partitions=2, batches=2
        ");
        let plan = auto(JoinType::Inner, large(), unbounded(small()));
        assert!(!rule().not_run().fires(plan).contains("ProjectionExec"));
    }

    fn merging() -> Check {
        rule().set(|o| o.optimizer.prefer_hash_join = false)
    }

    #[test]
    fn inputs_are_sorted_and_merged_when_asked_for() {
        use JoinType::*;
        assert_snapshot!(merging().not_run().fires(auto(Inner, large(), small())), @r"
        SortMergeJoinExec: join_type=Inner, on=[(a@0, b@0)]
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
        for join_type in [
            Inner, Left, Right, Full, LeftSemi, RightSemi, LeftAnti, RightAnti, LeftMark, RightMark,
        ] {
            let plan = auto(join_type, large(), small());
            let after = merging().fires(plan);
            assert!(after.contains("SortMergeJoinExec"), "{after}");
        }
    }

    #[test]
    fn an_order_that_an_input_has_is_merged_by() {
        let by = |keys, plan| sort_each(keys, None, plan);
        let left = by(vec![desc(col("c", 1)), asc(col("a", 0))], large());
        let plan = join(
            &[(0, 0), (1, 1)],
            JoinType::Inner,
            PartitionMode::Auto,
            left,
            scan(&["x", "y"], 2),
        );
        let merged = merging().rewrite(plan);
        assert!(text(&merged).contains("on=[(c@1, y@1), (a@0, x@0)]"), "{}", text(&merged));
        let required = merged.required_input_ordering().pop().flatten().unwrap();
        assert_eq!(required, vec![desc(col("y", 1)), asc(col("x", 0))]);
        // An order by something else first is none of the keys.
        let left = by(vec![asc(col("c", 1)), asc(col("a", 0))], large());
        let merged = merging().rewrite(auto(JoinType::Inner, left, small()));
        assert!(merged.required_input_ordering()[0] == Some(vec![asc(col("a", 0))]));
    }

    #[test]
    fn null_aware_and_chosen_joins_are_not_merged() {
        let null_aware = HashJoinExec::try_new(
            large(),
            small(),
            vec![(col("a", 0), col("b", 0))],
            None,
            JoinType::LeftAnti,
            PartitionMode::Auto,
            NullEquality::NullEqualsNothing,
            true,
        );
        assert!(merging().fires(Arc::new(null_aware.unwrap())).contains("HashJoinExec"));
        let mode = PartitionMode::CollectLeft;
        merging().declines(join(&[(0, 0)], JoinType::Inner, mode, large(), small()));
    }

    #[test]
    fn a_mode_that_was_chosen_stays() {
        for mode in [PartitionMode::CollectLeft, PartitionMode::Partitioned] {
            rule().declines(join(&[(0, 0)], JoinType::Inner, mode, large(), small()));
        }
    }

    #[test]
    fn a_cross_join_holds_its_smaller_side() {
        let cross = |l, r| Arc::new(CrossJoinExec::new(l, r));
        assert_snapshot!(rule().fires(cross(large(), small())), @r"
        ProjectionExec: expr=[a@1, c@2, b@0]
          CrossJoinExec
            MemoryScanExec: partitions=2, batches=2
            MemoryScanExec: partitions=2, batches=2
        ");
        rule().declines(cross(small(), large()));
        rule().declines(cross(unknown(large()), small()));
    }

    #[test]
    fn a_nested_loop_join_holds_its_smaller_side() {
        let nested =
            |l, r| Arc::new(NestedLoopJoinExec::try_new(l, r, None, JoinType::Left).unwrap());
        assert_snapshot!(rule().fires(nested(large(), small())), @r"
        ProjectionExec: expr=[a@1, c@2, b@0]
          NestedLoopJoinExec: join_type=Right
            MemoryScanExec: partitions=2, batches=2
            MemoryScanExec: partitions=2, batches=2
        ");
        rule().declines(nested(small(), large()));
    }
}
