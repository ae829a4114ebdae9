//! Operators that hand on only the columns asked for.

use super::*;
use crate::rewrite::{FilterPushdown, JoinSelection};
use planish_plan::operators::cross_join::CrossJoinExec;

const COLLECT: PartitionMode = PartitionMode::CollectLeft;

/// A join of `(a, b)` and `(x, y)` on `b = x`, of which `indices` are asked.
fn of_join(join_type: JoinType, indices: &[usize]) -> PlanRef {
    let (left, right) = (opaque(&["a", "b"]), opaque(&["x", "y"]));
    columns(indices, join(&[(1, 0)], join_type, COLLECT, left, right))
}

#[test]
fn a_filter_hands_on_what_is_asked() {
    let plan = columns(&[1, 0], filter(gt(col("a", 0), 3), opaque(&["a", "b"])));
    assert_snapshot!(rule().fires(plan), @r"
    FilterExec: a@0 > 3, projection=[b@1, a@0]
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
}

#[test]
fn joins_hand_on_what_is_asked() {
    assert_snapshot!(rule().fires(of_join(JoinType::Inner, &[3, 1, 0, 2])), @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@1, x@0)], projection=[y@3, b@1, a@0, x@2]
      Needs
        MemoryScanExec: partitions=1, batches=1
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
    let (left, right) = (opaque(&["a"]), opaque(&["x"]));
    let cross: PlanRef = Arc::new(CrossJoinExec::new(left, right));
    assert_snapshot!(rule().fires(columns(&[1, 0], cross)), @r"
    CrossJoinExec: projection=[x@1, a@0]
      Needs
        MemoryScanExec: partitions=1, batches=1
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
}

#[test]
fn every_join_type_hands_on_the_same_rows() {
    use JoinType::*;
    for join_type in
        [Inner, Left, Right, Full, LeftSemi, RightSemi, LeftAnti, RightAnti, LeftMark, RightMark]
    {
        let (left, right) = (opaque(&["a", "b"]), opaque(&["x", "y"]));
        let whole = join(&[(1, 0)], join_type, COLLECT, left, right);
        let width = whole.schema().fields().len();
        let reversed: Vec<usize> = (0..width).rev().collect();
        let after = rule().rewrite(columns(&reversed, whole));
        assert!(text(&after).contains(", projection=["), "{}", text(&after));
        assert_eq!(after.statistics(None).unwrap().column_statistics.len(), width);
    }
}

#[test]
fn what_is_absorbed_already_is_composed() {
    let once = rule().rewrite(columns(&[1, 0], filter(gt(col("a", 0), 3), opaque(&["a", "b"]))));
    assert_snapshot!(rule().fires(columns(&[1, 0, 0], once)), @r"
    FilterExec: a@0 > 3, projection=[a@0, b@1, b@1]
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
    let once = rule().rewrite(of_join(JoinType::Inner, &[3, 1, 0, 2]));
    assert_snapshot!(rule().fires(columns(&[2, 1, 0, 3], once)), @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@1, x@0)], projection=[a@0, b@1, y@3, x@2]
      Needs
        MemoryScanExec: partitions=1, batches=1
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
}

#[test]
fn new_names_and_metadata_stay_above() {
    let filtered = || filter(gt(col("a", 0), 3), opaque(&["a", "b"]));
    rule().declines(project(vec![(col("b", 1), "b"), (col("a", 0), "c")], filtered()));
    let exprs = ProjectionExprs::from_indices(&[1, 0], &filtered().schema());
    let plain = exprs.project_schema(&filtered().schema()).unwrap();
    let named: Vec<_> = plain
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_metadata([("k".into(), "v".into())].into()))
        .collect();
    let schema = Arc::new(arrow::datatypes::Schema::new(named));
    let plan = ProjectionExec::try_new_with_schema(exprs, filtered(), schema).unwrap();
    rule().declines(Arc::new(plan));
}

#[test]
fn computations_stay_above() {
    let filtered = filter(gt(col("a", 0), 3), opaque(&["a", "b"]));
    rule().declines(project(vec![(col("b", 1), "b"), (plus_one("a", 0), "n")], filtered));
    let (left, right) = (opaque(&["a", "b"]), opaque(&["x", "y"]));
    let whole = join(&[(1, 0)], JoinType::LeftSemi, COLLECT, left, right);
    rule().declines(project(vec![(col("b", 1), "b"), (plus_one("a", 0), "n")], whole));
}

#[test]
fn operators_that_cannot_keep_their_projections() {
    rule().declines(columns(&[1, 0], opaque(&["a", "b"])));
    let plan = sort(vec![asc(col("a", 0))], None, opaque(&["a", "b"]));
    rule().declines(columns(&[1, 0], plan));
    let plan = limit(1, Some(3), opaque(&["a", "b"]));
    rule().in_order().declines(columns(&[1, 0], plan));
}

/// Filters from above are over the output, not over the columns made.
#[test]
fn filters_from_above_find_their_columns() {
    let of = |join_type| {
        let input = |names: &[&str]| filtering_scan(scan(names, 1), true);
        let whole = join(&[(1, 0)], join_type, COLLECT, input(&["a", "b"]), input(&["x", "y"]));
        rule().rewrite(columns(&[3, 1, 0, 2], whole))
    };
    let pushdown = || Check::new(FilterPushdown::new());
    assert_snapshot!(pushdown().fires(filter(gt(col("a", 2), 3), of(JoinType::Left))), @r"
    HashJoinExec: mode=CollectLeft, join_type=Left, on=[(b@1, x@0)], projection=[y@3, b@1, a@0, x@2]
      FilteringScan: predicate=a@0 > 3
      FilteringScan
    ");
    assert_snapshot!(pushdown().fires(filter(gt(col("y", 0), 3), of(JoinType::Inner))), @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(b@1, x@0)], projection=[y@3, b@1, a@0, x@2]
      FilteringScan
      FilteringScan: predicate=y@1 > 3
    ");
    // The nullable side's filter stays.
    pushdown().declines(filter(gt(col("y", 0), 3), of(JoinType::Left)));
    let below = filter(gt(col("a", 0), 3), opaque(&["a", "b"]));
    let absorbed = rule().rewrite(columns(&[1, 0], below));
    assert_snapshot!(pushdown().fires(filter(gt(col("b", 0), 5), absorbed)), @r"
    FilterExec: a@0 > 3 AND b@1 > 5, projection=[b@1, a@0]
      Needs
        MemoryScanExec: partitions=1, batches=1
    ");
}

#[test]
fn filters_from_above_find_their_columns_in_joins_of_pairs() {
    let input = |names: &[&str]| filtering_scan(scan(names, 1), true);
    let less = binary(col("a", 0), Operator::Lt, col("x", 2));
    let nested = nested_join(JoinType::Inner, less, input(&["a", "b"]), input(&["x", "y"]));
    let cross: PlanRef = Arc::new(CrossJoinExec::new(input(&["a", "b"]), input(&["x", "y"])));
    for join in [nested, cross] {
        let absorbed = rule().rewrite(columns(&[3, 1, 0, 2], join));
        let plan = filter(gt(col("y", 0), 3), filter(gt(col("b", 1), 2), absorbed));
        let shown = Check::new(FilterPushdown::new()).fires(plan);
        assert!(shown.contains("FilteringScan: predicate=y@1 > 3"), "{shown}");
        assert!(shown.contains("FilteringScan: predicate=b@1 > 2"), "{shown}");
        assert!(!shown.contains("FilterExec"), "{shown}");
    }
}

/// A filter that disappears leaves its choice of columns behind.
#[test]
fn a_filter_without_a_predicate_still_chooses_columns() {
    let exact = filtering_scan(scan(&["a", "b"], 1), true);
    let absorbed = rule().rewrite(columns(&[1, 0], filter(gt(col("a", 0), 3), exact)));
    assert_snapshot!(Check::new(FilterPushdown::new()).fires(absorbed), @r"
    ProjectionExec: expr=[b@1, a@0]
      FilteringScan: predicate=a@0 > 3
    ");
}

#[test]
fn swapped_inputs_keep_the_output() {
    let table = |names: &[&str], rows| -> PlanRef { Arc::new(table(names, 2, rows)) };
    let whole = join(
        &[(1, 0)],
        JoinType::Inner,
        PartitionMode::Auto,
        table(&["a", "b"], 1000),
        table(&["x", "y"], 10),
    );
    let absorbed = rule().not_run().rewrite(columns(&[3, 0, 1, 2], whole));
    assert_snapshot!(Check::new(JoinSelection).not_run().fires(absorbed), @r"
    HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(x@0, b@1)], projection=[y@1, a@2, b@3, x@0]
      MemoryScanExec: partitions=2, batches=2
      MemoryScanExec: partitions=2, batches=2
    ");
}
