//! The three fates of projections, and computations that leave join filters.

mod absorbing;
mod hoisting;
mod swapping;

use super::*;
use crate::testing::*;
use datafusion_common::JoinType;
use datafusion_expr::Operator;
use insta::assert_snapshot;
use planish_expr::expressions::lit;
use planish_expr::{Distribution, PhysicalExprRef, ProjectionExprs};
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
        include_str!("mod.rs"),
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
    let schema = plan.schema().as_ref().clone().with_metadata([("k".into(), "v".into())].into());
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
    let inner = project(vec![(plus_one("a", 0), "x"), (col("b", 1), "y")], scan(&["a", "b"], 1));
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
fn nothing_expensive_is_merged_into_a_lambda() {
    let inner = || {
        let input = scan(&["a", "b"], 1);
        project(vec![(plus_one("a", 0), "x"), (col("b", 1), "b")], input)
    };
    let of = |i: usize, name: &str| {
        project(vec![(lambda(col(name, i)), "l"), (col("b", 1), "b")], inner())
    };
    rule().declines(of(0, "x"));
}

#[test]
fn a_renaming_stays_above_a_scan_that_knows_its_own_names() {
    rule().declines(project(vec![(col("a", 0), "c"), (col("b", 1), "b")], scan(&["a", "b"], 1)));
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
    FilterExec: c@1 > 3, projection=[a@0]
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
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@0, x@0)], projection=[z@2, b@0]
      MemoryScanExec: partitions=1, batches=1, projection=[b@1]
      MemoryScanExec: partitions=2, batches=2, projection=[x@0, z@2]
    ");
    let nested = filter(gt(col("y", 4), 3), joined());
    assert_snapshot!(rule().fires(project(vec![(plus_one("a", 0), "s")], nested)), @r"
    ProjectionExec: expr=[a@0 + 1 AS s]
      FilterExec: y@1 > 3
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@1, x@0)], projection=[a@0, y@3]
          MemoryScanExec: partitions=1, batches=1, projection=[a@0, b@1]
          MemoryScanExec: partitions=2, batches=2, projection=[x@0, y@1]
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
