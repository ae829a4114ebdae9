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
        || plan.is::<CrossJoinExec>();
    if holds && children.iter().any(|child| child.is::<ProjectionExec>()) {
        return true;
    }
    !plan.is::<ProjectionExec>() && children.into_iter().any(shrinks_what_is_held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use datafusion_common::JoinType;
    use datafusion_expr::Operator;
    use insta::assert_snapshot;
    use planish_expr::expressions::lit;
    use planish_expr::{Distribution, PhysicalExprRef};
    use planish_plan::operators::hash_join::PartitionMode;

    fn rule() -> Check {
        Check::new(ProjectionPushdown)
    }

    fn plus_one(name: &str, index: usize) -> PhysicalExprRef {
        binary(col(name, index), Operator::Plus, lit(1i64))
    }

    /// A plan that lets nothing pass.
    fn opaque(names: &[&str]) -> PlanRef {
        needs(Distribution::UnspecifiedDistribution, None, true, scan(names, 1))
    }

    #[test]
    fn permuted_columns_dissolve_into_the_scan() {
        let plan = columns(&[1, 0], scan(&["a", "b"], 1));
        assert_documented(
            include_str!("projection_pushdown.rs"),
            &text(&plan),
            &rule().in_order().fires(Arc::clone(&plan)),
        );
    }

    #[test]
    fn repeated_and_dropped_columns_dissolve_too() {
        let plan = columns(&[2, 0, 2], scan(&["a", "b", "c"], 2));
        assert_snapshot!(rule().fires(plan), @"MemoryScanExec: partitions=2, batches=2, projection=[c@2, a@0, c@2]");
        let plan = columns(&[1], columns(&[2, 0], scan(&["a", "b", "c"], 2)));
        assert_snapshot!(rule().fires(plan), @"MemoryScanExec: partitions=2, batches=2, projection=[a@0]");
        assert_snapshot!(rule().fires(columns(&[], scan(&["a", "b"], 2))), @"MemoryScanExec: partitions=2, batches=2, projection=[]");
    }

    #[test]
    fn the_identity_is_deleted() {
        let opaque = || opaque(&["a", "b"]);
        assert_snapshot!(rule().fires(columns(&[0, 1], opaque())), @r"
        Needs
          MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn what_only_looks_like_the_identity_stays() {
        let opaque = || opaque(&["a", "b"]);
        // Another order, another name, another width.
        rule().declines(columns(&[1, 0], opaque()));
        rule().declines(project(vec![(col("a", 0), "c"), (col("b", 1), "b")], opaque()));
        rule().declines(columns(&[0], opaque()));
        rule().declines(columns(&[0, 1, 1], opaque()));
        // Another schema.
        let plan = columns(&[0, 1], opaque());
        let schema =
            plan.schema().as_ref().clone().with_metadata([("k".into(), "v".into())].into());
        let exprs = plan.downcast_ref::<ProjectionExec>().unwrap().exprs().clone();
        let overriding =
            ProjectionExec::try_new_with_schema(exprs, opaque(), Arc::new(schema)).unwrap();
        rule().declines(Arc::new(overriding));
    }

    #[test]
    fn a_projection_that_overrides_metadata_is_not_swapped() {
        let input = scan(&["a", "b"], 1);
        let exprs = ProjectionExprs::from_indices(&[1, 0], &input.schema());
        let fields: Vec<_> = exprs
            .project_schema(&input.schema())
            .unwrap()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_metadata([("k".into(), "v".into())].into()))
            .collect();
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let plan = ProjectionExec::try_new_with_schema(exprs, input, schema).unwrap();
        rule().declines(Arc::new(plan));
    }

    #[test]
    fn projections_merge() {
        let inner =
            project(vec![(plus_one("a", 0), "x"), (col("b", 1), "y")], scan(&["a", "b"], 1));
        let plan = project(vec![(col("y", 1), "y"), (plus_one("x", 0), "z")], inner);
        assert_snapshot!(rule().fires(plan), @r"
        ProjectionExec: expr=[b@1 AS y, a@0 + 1 + 1 AS z]
          MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn a_merge_that_would_repeat_work_is_refused() {
        let twice = |expr, names: &[&str]| {
            let input = scan(names, 1);
            let last = names.len() - 1;
            let inner = project(vec![(expr, "x"), (col(names[last], last), "b")], input);
            let sum = binary(col("x", 0), Operator::Plus, col("x", 0));
            project(vec![(sum, "s"), (col("b", 1), "b")], inner)
        };
        rule().declines(twice(plus_one("a", 0), &["a", "b"]));
        rule().declines(twice(random(), &["b"]));
        let once = project(vec![(random(), "x"), (col("a", 0), "a")], scan(&["a"], 1));
        rule().declines(project(vec![(plus_one("x", 0), "y"), (col("a", 1), "a")], once));
    }

    #[test]
    fn a_renaming_stays_above_a_scan_that_knows_its_own_names() {
        rule()
            .declines(project(vec![(col("a", 0), "c"), (col("b", 1), "b")], scan(&["a", "b"], 1)));
    }

    #[test]
    fn the_filter_moves_above_a_projection_that_narrows() {
        let plan = columns(&[2, 0], filter(gt(col("c", 2), 3), scan(&["a", "b", "c"], 1)));
        assert_snapshot!(rule().fires(plan), @r"
        FilterExec: c@0 > 3
          MemoryScanExec: partitions=1, batches=1, projection=[c@2, a@0]
        ");
    }

    #[test]
    fn below_a_filter_columns_that_nobody_reads_are_dropped() {
        let plan = columns(&[0], filter(gt(col("c", 2), 3), scan(&["a", "b", "c"], 1)));
        assert_snapshot!(rule().fires(plan), @r"
        ProjectionExec: expr=[a@0]
          FilterExec: c@1 > 3
            MemoryScanExec: partitions=1, batches=1, projection=[a@0, c@2]
        ");
    }

    #[test]
    fn the_input_of_a_computation_narrows() {
        let plan =
            project(vec![(plus_one("c", 2), "x"), (col("a", 0), "a")], scan(&["a", "b", "c"], 1));
        assert_snapshot!(rule().fires(plan), @r"
        ProjectionExec: expr=[c@1 + 1 AS x, a@0]
          MemoryScanExec: partitions=1, batches=1, projection=[a@0, c@2]
        ");
        let plan = filter(gt(col("b", 1), 3), scan(&["a", "b", "c", "d"], 1));
        let plan = project(vec![(plus_one("d", 3), "x")], plan);
        assert_snapshot!(rule().fires(plan), @r"
        ProjectionExec: expr=[d@1 + 1 AS x]
          FilterExec: b@0 > 3
            MemoryScanExec: partitions=1, batches=1, projection=[b@1, d@3]
        ");
    }

    #[test]
    fn nothing_narrows_where_all_columns_are_read() {
        rule().declines(project(vec![(plus_one("a", 0), "x")], scan(&["a"], 1)));
        let plan = filter(gt(col("b", 1), 3), scan(&["a", "b"], 1));
        rule().declines(project(vec![(plus_one("a", 0), "x")], plan));
    }

    #[test]
    fn no_useless_node_is_left() {
        rule().declines(project(vec![(plus_one("a", 0), "x")], opaque(&["a", "b"])));
    }

    #[test]
    fn a_sort_holds_only_what_is_read() {
        let keys = vec![asc(col("b", 1))];
        let plan = sort(keys.clone(), None, scan(&["a", "b", "c"], 1));
        assert_snapshot!(rule().fires(project(vec![(plus_one("a", 0), "x")], plan)), @r"
        ProjectionExec: expr=[a@0 + 1 AS x]
          SortExec: expr=[b@1 ASC]
            MemoryScanExec: partitions=1, batches=1, projection=[a@0, b@1]
        ");
        let plan = sort(keys, None, opaque(&["a", "b", "c"]));
        assert_snapshot!(rule().fires(project(vec![(plus_one("a", 0), "x")], plan)), @r"
        ProjectionExec: expr=[a@0 + 1 AS x]
          SortExec: expr=[b@1 ASC]
            ProjectionExec: expr=[a@0, b@1]
              Needs
                MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn both_inputs_of_a_join_narrow() {
        let mode = PartitionMode::CollectLeft;
        let joined = || {
            let (left, right) = (scan(&["a", "b", "c"], 1), scan(&["x", "y", "z"], 2));
            join(&[(1, 0)], JoinType::Inner, mode, left, right)
        };
        assert_snapshot!(rule().fires(project(vec![(plus_one("z", 5), "s")], joined())), @r"
        ProjectionExec: expr=[z@2 + 1 AS s]
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@0, x@0)]
            MemoryScanExec: partitions=1, batches=1, projection=[b@1]
            MemoryScanExec: partitions=2, batches=2, projection=[x@0, z@2]
        ");
        assert_snapshot!(rule().fires(columns(&[5, 1], joined())), @r"
        ProjectionExec: expr=[z@2, b@0]
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@0, x@0)]
            MemoryScanExec: partitions=1, batches=1, projection=[b@1]
            MemoryScanExec: partitions=2, batches=2, projection=[x@0, z@2]
        ");
    }

    #[test]
    fn columns_pass_exchanges_merges_and_unions() {
        let keys = vec![asc(col("b", 1))];
        let plan = merge(keys.clone(), None, sort_each(keys, None, scan(&["a", "b", "c"], 3)));
        assert_snapshot!(rule().fires(columns(&[1], plan)), @r"
        SortPreservingMergeExec: [b@0 ASC]
          SortExec: expr=[b@0 ASC], preserve_partitioning=true
            MemoryScanExec: partitions=3, batches=3, projection=[b@1]
        ");
        let plan = union(vec![scan(&["a", "b"], 1), scan(&["a", "b"], 2)]);
        assert_snapshot!(rule().fires(columns(&[1], coalesce(plan))), @r"
        CoalescePartitionsExec
          UnionExec
            MemoryScanExec: partitions=1, batches=1, projection=[b@1]
            MemoryScanExec: partitions=2, batches=2, projection=[b@1]
        ");
    }
}
