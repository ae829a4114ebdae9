//! A projection meets each operator: it passes, or it does not.

use super::*;
use planish_expr::Partitioning;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::output_requirement::OutputRequirementExec;

fn abc() -> PlanRef {
    scan(&["a", "b", "c"], 2)
}

fn hash(names: &[(&str, usize)], input: PlanRef) -> PlanRef {
    let keys = names.iter().map(|&(name, i)| col(name, i)).collect();
    repartition(Partitioning::Hash(keys, 4), input)
}

fn pinned(input: PlanRef) -> PlanRef {
    let order = Some(vec![asc(col("b", 1))]);
    Arc::new(OutputRequirementExec::new(input, order, Distribution::SinglePartition))
}

#[test]
fn columns_pass_limits() {
    let plan = limit(1, Some(3), coalesce(abc()));
    assert_snapshot!(rule().counting().fires(columns(&[2], plan)), @r"
    GlobalLimitExec: skip=1, fetch=3
      CoalescePartitionsExec
        MemoryScanExec: partitions=2, batches=2, projection=[c@2]
    ");
    assert_snapshot!(rule().counting().fires(columns(&[2], local_limit(3, abc()))), @r"
    LocalLimitExec: fetch=3
      MemoryScanExec: partitions=2, batches=2, projection=[c@2]
    ");
}

#[test]
fn columns_pass_shuffles_whose_keys_they_keep() {
    let dealt = repartition(Partitioning::RoundRobinBatch(4), abc());
    assert_snapshot!(rule().fires(columns(&[2, 1], dealt)), @r"
    RepartitionExec: partitioning=RoundRobinBatch(4), input_partitions=2
      MemoryScanExec: partitions=2, batches=2, projection=[c@2, b@1]
    ");
    assert_snapshot!(rule().fires(columns(&[2, 1], hash(&[("b", 1)], abc()))), @r"
    RepartitionExec: partitioning=Hash([b@1], 4), input_partitions=2
      MemoryScanExec: partitions=2, batches=2, projection=[c@2, b@1]
    ");
}

#[test]
fn columns_pass_a_pin_whose_keys_they_keep() {
    let sorted = sort(vec![asc(col("b", 1))], None, scan(&["a", "b", "c"], 1));
    assert_snapshot!(rule().in_order().fires(columns(&[1, 0], pinned(sorted))), @r"
    OutputRequirementExec: order_by=[b@0 ASC], dist=SinglePartition
      SortExec: expr=[b@0 ASC]
        MemoryScanExec: partitions=1, batches=1, projection=[b@1, a@0]
    ");
}

#[test]
fn columns_pass_a_top_k_and_its_keys_stay() {
    let top = sort(vec![asc(col("b", 1)), desc(col("a", 0))], Some(4), scan(&["a", "b", "c"], 1));
    assert_snapshot!(rule().in_order().fires(columns(&[1, 0], top)), @r"
    SortExec: expr=[b@0 ASC, a@1 DESC], fetch=4
      MemoryScanExec: partitions=1, batches=1, projection=[b@1, a@0]
    ");
}

#[test]
fn columns_narrow_both_sides_of_a_cross_join() {
    let cross =
        || -> PlanRef { Arc::new(CrossJoinExec::new(scan(&["a", "b"], 1), scan(&["x", "y"], 2))) };
    assert_snapshot!(rule().fires(columns(&[3, 0], cross())), @r"
    CrossJoinExec: projection=[y@1, a@0]
      MemoryScanExec: partitions=1, batches=1, projection=[a@0]
      MemoryScanExec: partitions=2, batches=2, projection=[y@1]
    ");
    assert_snapshot!(rule().fires(columns(&[], cross())), @r"
    CrossJoinExec
      MemoryScanExec: partitions=1, batches=1, projection=[]
      MemoryScanExec: partitions=2, batches=2, projection=[]
    ");
}

#[test]
fn cheap_expressions_stay_above_what_only_takes_columns() {
    let dealt = || repartition(Partitioning::RoundRobinBatch(4), abc());
    let plans = [
        limit(1, Some(3), coalesce(abc())),
        local_limit(3, abc()),
        dealt(),
        coalesce(abc()),
        sort_each(vec![asc(col("a", 0))], None, abc()),
        union(vec![abc(), abc()]),
        filter(gt(col("a", 0), 3), abc()),
        pinned(scan(&["a", "b", "c"], 1)),
        abc(),
    ];
    for plan in plans {
        // All columns are read, so nothing below can narrow.
        let all = |extra: PhysicalExprRef| {
            let mut exprs = vec![(col("a", 0), "a"), (col("b", 1), "b"), (col("c", 2), "c")];
            exprs.push((extra, "x"));
            project(exprs, Arc::clone(&plan))
        };
        rule().counting().declines(all(plus_one("a", 0)));
        rule().counting().declines(all(random()));
        rule().counting().declines(all(lit(1i64)));
    }
}

#[test]
fn a_volatile_expression_passes_nothing() {
    let inputs = [
        filter(gt(col("a", 0), 3), opaque(&["a", "b"])),
        limit(0, Some(3), opaque(&["a", "b"])),
        union(vec![opaque(&["a", "b"]), opaque(&["a", "b"])]),
        opaque(&["a", "b"]),
    ];
    for input in inputs {
        let noisy = vec![(random(), "r"), (col("a", 0), "a"), (col("b", 1), "b")];
        rule().counting().declines(project(noisy, Arc::clone(&input)));
        // Nor is another projection merged into one.
        let below = project(vec![(random(), "r"), (col("a", 0), "a"), (col("b", 1), "b")], input);
        rule()
            .counting()
            .declines(project(vec![(plus_one("r", 0), "s"), (col("a", 1), "a")], below));
    }
}

#[test]
fn keys_that_are_not_asked_for_hold_a_projection_back() {
    let narrow = |plan: PlanRef| columns(&[0], plan);
    let keys = || vec![asc(col("b", 1))];
    let two = || opaque(&["a", "b"]);
    rule().in_order().declines(narrow(sort(keys(), None, two())));
    rule().in_order().declines(narrow(sort(keys(), Some(3), two())));
    rule().in_order().declines(narrow(merge(keys(), None, sort_each(keys(), None, two()))));
    rule().declines(narrow(hash(&[("b", 1)], two())));
    rule().declines(narrow(hash(&[("a", 0), ("b", 1)], two())));
    rule().in_order().declines(narrow(pinned(sort(keys(), None, two()))));
}

#[test]
fn permutations_and_repeats_stay_above_what_holds_no_rows_less() {
    for indices in [&[1, 0][..], &[0, 1, 1]] {
        for plan in [
            limit(0, Some(3), opaque(&["a", "b"])),
            coalesce(opaque(&["a", "b"])),
            sort(vec![asc(col("a", 0))], None, opaque(&["a", "b"])),
            union(vec![opaque(&["a", "b"]), opaque(&["a", "b"])]),
            hash(&[("a", 0)], opaque(&["a", "b"])),
        ] {
            rule().counting().declines(columns(indices, plan));
        }
    }
}

#[test]
fn a_projection_that_overrides_metadata_passes_nothing() {
    for plan in [
        filter(gt(col("a", 0), 3), scan(&["a", "b"], 1)),
        limit(0, Some(3), scan(&["a", "b"], 1)),
        coalesce(scan(&["a", "b"], 2)),
        union(vec![scan(&["a", "b"], 1), scan(&["a", "b"], 1)]),
        repartition(Partitioning::RoundRobinBatch(2), scan(&["a", "b"], 1)),
        join(
            &[(0, 0)],
            JoinType::LeftSemi,
            PartitionMode::CollectLeft,
            scan(&["a", "b"], 1),
            scan(&["x"], 1),
        ),
        Arc::new(CrossJoinExec::new(scan(&["a"], 1), scan(&["b"], 1))),
        scan(&["a", "b"], 1),
    ] {
        let exprs = ProjectionExprs::from_indices(&[1, 0], &plan.schema());
        let plain = exprs.project_schema(&plan.schema()).unwrap();
        let schema = plain.with_metadata([("k".into(), "v".into())].into());
        let over = ProjectionExec::try_new_with_schema(exprs, plan, Arc::new(schema)).unwrap();
        rule().counting().declines(Arc::new(over));
    }
}
