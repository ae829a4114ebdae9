//! What leaves the filter of a nested-loop join, and what stays.

use super::*;
use datafusion_common::JoinSide;
use planish_expr::expressions::CaseExpr;
use planish_plan::operators::join_filter::{ColumnIndex, JoinFilter};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;

const JOIN_TYPES: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

fn l() -> PlanRef {
    scan(&["a", "b"], 1)
}

fn r() -> PlanRef {
    scan(&["x", "y"], 2)
}

/// An inner join of `l(a, b)` and `r(x, y)`.
fn joined(condition: PhysicalExprRef) -> PlanRef {
    nested_join(JoinType::Inner, condition, l(), r())
}

fn a() -> PhysicalExprRef {
    col("a", 0)
}

fn b() -> PhysicalExprRef {
    col("b", 1)
}

fn x() -> PhysicalExprRef {
    col("x", 2)
}

fn y() -> PhysicalExprRef {
    col("y", 3)
}

fn plus(l: PhysicalExprRef, r: PhysicalExprRef) -> PhysicalExprRef {
    binary(l, Operator::Plus, r)
}

fn equal(l: PhysicalExprRef, r: PhysicalExprRef) -> PhysicalExprRef {
    binary(l, Operator::Eq, r)
}

fn and(l: PhysicalExprRef, r: PhysicalExprRef) -> PhysicalExprRef {
    binary(l, Operator::And, r)
}

/// `100 / by`: it fails where `by` is zero.
fn hundred_by(by: PhysicalExprRef) -> PhysicalExprRef {
    binary(lit(100i64), Operator::Divide, by)
}

fn when(condition: PhysicalExprRef, then: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(CaseExpr::try_new(None, vec![(condition, then)], None).unwrap())
}

#[test]
fn a_computation_of_the_left_side_is_a_column_of_it() {
    let after = rule().fires(joined(equal(plus(a(), lit(1i64)), x())));
    let in_comment: String = after.lines().map(|line| format!("//! {line}\n")).collect();
    assert!(include_str!("../mod.rs").contains(&in_comment), "the module comment");
    assert_snapshot!(after, @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 = x@0, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + 1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn a_computation_of_the_right_side_is_a_column_of_it() {
    assert_snapshot!(rule().fires(joined(equal(a(), plus(x(), y())))), @r"
    NestedLoopJoinExec: join_type=Inner, filter=a@0 = join_proj_push_down_1@1, projection=[a@0, b@1, x@2, y@3]
      MemoryScanExec: partitions=1, batches=1
      ProjectionExec: expr=[x@0, y@1, x@0 + y@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn each_side_computes_its_own() {
    let condition = binary(plus(a(), b()), Operator::Lt, plus(x(), y()));
    assert_snapshot!(rule().fires(joined(condition)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@0 < join_proj_push_down_2@1, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + b@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      ProjectionExec: expr=[x@0, y@1, x@0 + y@1 AS join_proj_push_down_2]
        MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn what_is_computed_twice_is_one_column() {
    let sum = || plus(a(), b());
    let condition = and(binary(sum(), Operator::Gt, x()), binary(y(), Operator::Gt, sum()));
    assert_snapshot!(rule().fires(joined(condition)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@2 > x@0 AND y@1 > join_proj_push_down_1@2, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + b@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn a_condition_on_one_side_is_a_column_of_truth_values() {
    let condition = and(gt(a(), 3), equal(b(), y()));
    assert_snapshot!(rule().fires(joined(condition)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@2 AND b@0 = y@1, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 > 3 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn the_children_of_what_reads_both_sides_leave() {
    let product = binary(plus(a(), lit(1i64)), Operator::Multiply, x());
    assert_snapshot!(rule().fires(joined(gt(product, 3))), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 * x@0 > 3, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + 1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn the_children_of_what_is_volatile_leave() {
    let noisy = plus(random(), plus(a(), lit(1i64)));
    assert_snapshot!(rule().fires(joined(binary(noisy, Operator::Gt, x()))), @r"
    NestedLoopJoinExec: join_type=Inner, filter=random() + join_proj_push_down_1@1 > x@0, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + 1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn the_children_of_what_can_fail_leave() {
    let quotient = hundred_by(plus(binary(a(), Operator::Multiply, a()), lit(1i64)));
    assert_snapshot!(rule().fires(joined(binary(quotient, Operator::Gt, x()))), @r"
    NestedLoopJoinExec: join_type=Inner, filter=100 / join_proj_push_down_1@1 > x@0, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 * a@0 + 1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn what_cannot_fail_leaves_a_branch() {
    let condition = gt(when(gt(x(), 2), plus(a(), b())), 3);
    assert_snapshot!(rule().fires(joined(condition)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=CASE WHEN join_proj_push_down_2@1 THEN join_proj_push_down_1@0 END > 3, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 + b@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      ProjectionExec: expr=[x@0, y@1, x@0 > 2 AS join_proj_push_down_2]
        MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn a_guard_leaves_and_what_it_guards_stays() {
    let not_zero = binary(a(), Operator::NotEq, lit(0i64));
    let guarded = and(not_zero, binary(hundred_by(a()), Operator::Gt, x()));
    assert_snapshot!(rule().fires(joined(guarded)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@2 AND 100 / a@0 > x@1, projection=[a@0, b@1, x@3, y@4]
      ProjectionExec: expr=[a@0, b@1, a@0 != 0 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn bare_columns_stay() {
    rule().declines(joined(binary(a(), Operator::Lt, x())));
    rule().declines(joined(and(binary(a(), Operator::Lt, x()), equal(b(), y()))));
}

#[test]
fn what_reads_both_sides_stays() {
    rule().declines(joined(gt(plus(a(), x()), 3)));
}

#[test]
fn what_is_volatile_stays() {
    rule().declines(joined(binary(plus(random(), a()), Operator::Gt, x())));
    rule().declines(joined(and(gt(random(), 3), equal(b(), y()))));
}

#[test]
fn what_can_fail_stays() {
    rule().declines(joined(binary(hundred_by(plus(a(), x())), Operator::Gt, y())));
    let not_zero = gt(plus(binary(a(), Operator::Multiply, x()), y()), 0);
    // In a branch, behind a guard, and where every pair would reach it: with no rows on the
    // other side there is no pair.
    let quotient = || plus(hundred_by(x()), a());
    rule().not_run().declines(joined(gt(when(not_zero, quotient()), 3)));
    rule().not_run().declines(joined(gt(quotient(), 3)));
}

#[test]
fn what_is_in_a_lambda_stays() {
    rule().declines(joined(equal(lambda(plus(a(), b())), x())));
    rule().declines(joined(equal(lambda(plus(a(), plus(x(), y()))), x())));
}

#[test]
fn constants_and_joins_without_a_condition_stay() {
    rule().declines(joined(and(gt(plus(lit(1i64), lit(2i64)), 2), equal(a(), x()))));
    let cross = NestedLoopJoinExec::try_new(l(), r(), None, JoinType::Inner).unwrap();
    rule().declines(Arc::new(cross));
}

#[test]
fn beside_one_row_nothing_is_gained() {
    let one = |names: &[&str]| -> PlanRef { Arc::new(table(names, 1, 1)) };
    let both = || binary(plus(a(), b()), Operator::Lt, plus(x(), y()));
    let of = |left, right| nested_join(JoinType::Inner, both(), left, right);
    // The one row computes its side once, not once per row of the other.
    assert_snapshot!(rule().fires(of(l(), one(&["x", "y"]))), @r"
    NestedLoopJoinExec: join_type=Inner, filter=a@0 + b@1 < join_proj_push_down_1@2, projection=[a@0, b@1, x@2, y@3]
      MemoryScanExec: partitions=1, batches=1
      ProjectionExec: expr=[x@0, y@1, x@0 + y@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
    ");
    rule().declines(of(one(&["a", "b"]), one(&["x", "y"])));
    let left_only = || equal(plus(a(), b()), x());
    rule().declines(nested_join(JoinType::Inner, left_only(), l(), one(&["x", "y"])));
}

#[test]
fn an_empty_other_side_keeps_what_can_fail_from_running() {
    let zeros: PlanRef = filter(equal(col("a", 0), lit(0i64)), l());
    let nothing = filter(equal(col("x", 0), lit(99i64)), r());
    let condition = and(gt(plus(a(), b()), 0), gt(plus(hundred_by(a()), x()), 3));
    let plan = nested_join(JoinType::Inner, condition, zeros, nothing);
    assert!(execute(&plan, &options()).is_empty());
    assert!(execute(&rule().rewrite(plan), &options()).is_empty());
}

#[test]
fn every_join_type_keeps_its_columns_and_rows() {
    for join_type in JOIN_TYPES {
        let condition = binary(plus(a(), b()), Operator::Lt, plus(x(), y()));
        let plan = nested_join(join_type, condition, l(), r());
        let after = rule().rewrite(Arc::clone(&plan));
        assert_eq!(after.schema(), plan.schema(), "{join_type}");
        let known = after.statistics(None).unwrap().column_statistics.len();
        assert_eq!(known, plan.schema().fields().len(), "{join_type}");
        let shown = text(&after);
        assert!(
            shown.contains("filter=join_proj_push_down_1@0 < join_proj_push_down_2@1"),
            "{shown}"
        );
        // Under a projection that asks for less, too.
        let last = plan.schema().fields().len() - 1;
        rule().fires(columns(&[last], plan));
    }
}

#[test]
fn the_filter_names_only_what_it_reads() {
    let columns = [(0, JoinSide::Left), (1, JoinSide::Left), (1, JoinSide::Right)];
    let columns: Vec<_> =
        columns.iter().map(|&(index, side)| ColumnIndex { index, side }).collect();
    let schema = JoinFilter::build_schema(&columns, &l().schema(), &r().schema());
    let wide =
        JoinFilter::new(binary(col("b", 1), Operator::Lt, col("y", 2)), columns, Arc::new(schema));
    let join = NestedLoopJoinExec::try_new(l(), r(), Some(wide), JoinType::Inner).unwrap();
    let after = rule().rewrite(Arc::new(join));
    let filter = after.downcast_ref::<NestedLoopJoinExec>().unwrap().filter().unwrap().clone();
    assert_eq!(filter.to_string(), "b@0 < y@1");
    assert_eq!(filter.schema().fields().len(), 2);
    let expected = [
        ColumnIndex { index: 1, side: JoinSide::Left },
        ColumnIndex { index: 1, side: JoinSide::Right },
    ];
    assert_eq!(filter.column_indices(), expected);
}

#[test]
fn columns_read_only_by_what_left_are_not_handed_to_the_join() {
    let plan = nested_join(
        JoinType::Inner,
        equal(plus(a(), b()), x()),
        scan(&["a", "b"], 1),
        scan(&["x", "y"], 2),
    );
    assert_snapshot!(rule().fires(columns(&[3], plan)), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 = x@0, projection=[y@2]
      ProjectionExec: expr=[a@0 + b@1 AS join_proj_push_down_1]
        MemoryScanExec: partitions=1, batches=1
      MemoryScanExec: partitions=2, batches=2
    ");
}

#[test]
fn names_are_unique_over_the_plan_and_over_runs() {
    let inner = joined(equal(plus(a(), b()), x()));
    let condition = equal(plus(col("a", 0), lit(1i64)), plus(col("z", 4), lit(2i64)));
    let outer = nested_join(JoinType::Inner, condition, inner, scan(&["z"], 1));
    let once = rule().rewrite(outer);
    assert_snapshot!(text(&once), @r"
    NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_2@0 = join_proj_push_down_3@1, projection=[a@0, b@1, x@2, y@3, z@5]
      ProjectionExec: expr=[a@0, b@1, x@3, y@4, a@0 + 1 AS join_proj_push_down_2]
        NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_1@1 = x@0
          ProjectionExec: expr=[a@0, b@1, a@0 + b@1 AS join_proj_push_down_1]
            MemoryScanExec: partitions=1, batches=1
          MemoryScanExec: partitions=2, batches=2
      ProjectionExec: expr=[z@0, z@0 + 2 AS join_proj_push_down_3]
        MemoryScanExec: partitions=1, batches=1
    ");
    // A further join, in a later run.
    let again = nested_join(
        JoinType::Inner,
        equal(plus(col("a", 0), lit(3i64)), col("w", 5)),
        once,
        scan(&["w"], 1),
    );
    let shown = text(&rule().rewrite(again));
    assert!(shown.contains("join_proj_push_down_4"), "{shown}");
    assert!(!shown.contains("join_proj_push_down_5"), "{shown}");
}

#[test]
fn a_name_that_the_user_has_is_not_taken() {
    let own = project(vec![(col("a", 0), "join_proj_push_down_7"), (col("b", 1), "b")], l());
    let condition = equal(plus(a(), b()), x());
    let shown = text(&rule().rewrite(nested_join(JoinType::Inner, condition, own, r())));
    assert!(shown.contains("AS join_proj_push_down_8"), "{shown}");
}

#[test]
fn the_column_is_computed_once_per_row_of_its_side() {
    let (counted, rows) = counting(plus(a(), b()));
    let plan = nested_join(JoinType::Inner, equal(counted, x()), l(), r());
    let count = |plan: &PlanRef| {
        rows.store(0, std::sync::atomic::Ordering::Relaxed);
        execute(plan, &options());
        rows.load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!(count(&plan), 20 * 40, "once per pair");
    let after = rule().rewrite(plan);
    assert_eq!(count(&after), 20, "once per row");
}
