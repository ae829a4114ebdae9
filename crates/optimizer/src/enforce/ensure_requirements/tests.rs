use super::EnsureRequirements;
use crate::testing::*;
use arrow::datatypes::DataType;
use datafusion_common::JoinType;
use datafusion_expr::Operator;
use insta::assert_snapshot;
use planish_expr::PhysicalSortExpr;
use planish_expr::{Distribution, LexOrdering, Partitioning};
use planish_plan::PlanRef;
use planish_plan::Pushdown;
use planish_plan::operators::aggregate::AggregateMode;
use planish_plan::operators::hash_join::PartitionMode;
use planish_plan::operators::output_requirement::OutputRequirementExec;
use std::sync::Arc;

fn rule() -> Check {
    Check::new(EnsureRequirements)
}

fn by_a() -> Vec<PhysicalSortExpr> {
    vec![asc(col("a", 0))]
}

/// What `OutputRequirements` adds for a query with ORDER BY, and for one without.
fn pinned(ordering: Option<LexOrdering>, plan: PlanRef) -> PlanRef {
    Arc::new(OutputRequirementExec::new(plan, ordering, Distribution::SinglePartition))
}

fn hashed_by(keys: &[usize], input: PlanRef) -> PlanRef {
    let keys = keys.iter().map(|&i| col(input.schema().field(i).name(), i)).collect();
    needs(Distribution::HashPartitioned(keys), None, false, input)
}

/// An operator that gains from more partitions of its input.
fn greedy(input: PlanRef) -> PlanRef {
    needs(Distribution::UnspecifiedDistribution, None, false, input)
}

mod orders {
    use super::*;

    #[test]
    fn partitions_are_sorted_each_and_merged() {
        let plan = pinned(Some(by_a()), sort(by_a(), None, coalesce(scan(&["a"], 2))));
        let after = rule().fires(Arc::clone(&plan));
        assert_documented(include_str!("mod.rs"), &text(&plan), &after);
    }

    #[test]
    fn a_sort_over_sorted_rows_goes() {
        let plan = pinned(Some(by_a()), sort(by_a(), None, sorted_scan(&["a", "b"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          MemoryScanExec: partitions=1, batches=1
        ");
        let plan = pinned(Some(by_a()), sort(by_a(), None, sorted_scan(&["a", "b"], 2)));
        assert_snapshot!(rule().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          SortPreservingMergeExec: [a@0 ASC]
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn an_equal_or_constant_key_counts_as_sorted() {
        let equal = binary(col("a", 0), Operator::Eq, col("b", 1));
        let plan = filter(equal, sorted_scan(&["a", "b"], 1));
        let plan = pinned(Some(vec![asc(col("b", 1))]), sort(vec![asc(col("b", 1))], None, plan));
        assert_snapshot!(rule().fires(plan), @r"
        OutputRequirementExec: order_by=[b@1 ASC], dist=SinglePartition
          FilterExec: a@0 = b@1
            MemoryScanExec: partitions=1, batches=1
        ");
        let constant = binary(col("b", 1), Operator::Eq, planish_expr::expressions::lit(7i64));
        let plan = filter(constant, sorted_scan(&["a", "b"], 1));
        let keys = vec![asc(col("b", 1)), asc(col("a", 0))];
        assert_snapshot!(rule().fires(pinned(Some(keys.clone()), sort(keys, None, plan))), @r"
        OutputRequirementExec: order_by=[b@1 ASC, a@0 ASC], dist=SinglePartition
          FilterExec: b@1 = 7
            MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn the_fetch_of_a_sort_that_goes_becomes_a_limit() {
        let plan = pinned(Some(by_a()), sort(by_a(), Some(3), sorted_scan(&["a"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          MemoryScanExec: partitions=1, batches=1, fetch=3
        ");
        let plan = filter(gt(col("a", 0), 2), sorted_scan(&["a"], 1));
        let plan = pinned(Some(by_a()), sort(by_a(), Some(3), plan));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          GlobalLimitExec: skip=0, fetch=3
            FilterExec: a@0 > 2
              MemoryScanExec: partitions=1, batches=1
        ");
        let plan = pinned(Some(by_a()), sort(by_a(), Some(3), sorted_scan(&["a"], 2)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          SortPreservingMergeExec: [a@0 ASC], fetch=3
            MemoryScanExec: partitions=2, batches=2, fetch=3
        ");
    }

    #[test]
    fn the_fetch_of_a_merge_stays_when_its_input_is_planned_anew() {
        let plan = merge(by_a(), Some(3), scan(&["a"], 2));
        assert_snapshot!(rule().not_run().fires(plan), @r"
        SortPreservingMergeExec: [a@0 ASC], fetch=3
          SortExec: expr=[a@0 ASC], preserve_partitioning=true
            MemoryScanExec: partitions=2, batches=2
        ");
        let plan = merge(by_a(), Some(3), sorted_scan(&["a"], 1));
        assert_snapshot!(rule().in_order().fires(plan), @"MemoryScanExec: partitions=1, batches=1, fetch=3");
    }

    #[test]
    fn a_top_k_of_several_partitions_is_merged() {
        let keys = vec![asc(col("a", 0)), desc(col("b", 1))];
        let plan = pinned(Some(keys.clone()), sort(keys, Some(3), scan(&["a", "b"], 2)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        OutputRequirementExec: order_by=[a@0 ASC, b@1 DESC], dist=SinglePartition
          SortPreservingMergeExec: [a@0 ASC, b@1 DESC], fetch=3
            SortExec: expr=[a@0 ASC, b@1 DESC], fetch=3, preserve_partitioning=true
              MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn a_sort_that_nobody_sees_goes() {
        let sorted = sort(by_a(), None, scan(&["a"], 1));
        assert_snapshot!(rule().fires(group_by(AggregateMode::Single, &[0], sorted)), @r"
        AggregateExec: mode=Single, gby=[a@0 as a], aggr=[]
          MemoryScanExec: partitions=1, batches=1
        ");
        let sorted = sort(vec![desc(col("a", 0))], None, scan(&["a"], 1));
        assert_snapshot!(rule().fires(pinned(Some(by_a()), sort(by_a(), None, sorted))), @r"
        OutputRequirementExec: order_by=[a@0 ASC], dist=SinglePartition
          SortExec: expr=[a@0 ASC]
            MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn a_sort_below_a_limit_stays() {
        let below = limit(1, Some(3), sort(by_a(), None, scan(&["a"], 1)));
        rule().declines(group_by(AggregateMode::Single, &[0], below));
        let projected = columns(&[1], sort(by_a(), None, scan(&["a", "b"], 1)));
        rule().declines(group_by(AggregateMode::Single, &[0], limit(1, Some(3), projected)));
        rule().declines(group_by(
            AggregateMode::Single,
            &[0],
            sort(by_a(), Some(2), scan(&["a"], 1)),
        ));
    }

    #[test]
    fn without_a_pin_the_root_keeps_what_it_does() {
        rule().declines(sort(by_a(), None, scan(&["a"], 1)));
        rule().declines(merge(by_a(), None, sorted_scan(&["a"], 2)));
        rule().declines(coalesce(scan(&["a"], 2)));
        rule().declines(scan(&["a"], 2));
    }

    #[test]
    fn a_required_order_is_added_and_uses_the_one_that_is_there() {
        let required =
            |input| needs(Distribution::UnspecifiedDistribution, Some(by_a()), true, input);
        assert_snapshot!(rule().fires(required(scan(&["a"], 2))), @r"
        Needs
          SortExec: expr=[a@0 ASC], preserve_partitioning=true
            MemoryScanExec: partitions=2, batches=2
        ");
        rule().declines(required(sorted_scan(&["a"], 2)));
        rule().declines(required(filter(
            gt(col("a", 0), 1),
            sort_each(by_a(), None, scan(&["a"], 2)),
        )));
    }

    #[test]
    fn a_shuffle_loses_an_order_so_the_sort_comes_after_it() {
        let keys = vec![col("a", 0)];
        let required = Distribution::HashPartitioned(keys);
        let plan = needs(required, Some(by_a()), true, sorted_scan(&["a"], 2));
        assert_snapshot!(rule().fires(plan), @r"
        Needs
          SortExec: expr=[a@0 ASC], preserve_partitioning=true
            RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
        ");
    }
}

mod distributions {
    use super::*;

    #[test]
    fn one_partition_is_asked_for_and_given() {
        assert_snapshot!(rule().fires(pinned(None, scan(&["a"], 3))), @r"
        OutputRequirementExec: dist=SinglePartition
          CoalescePartitionsExec
            MemoryScanExec: partitions=3, batches=3
        ");
        assert_snapshot!(rule().counting().fires(limit(0, Some(3), scan(&["a"], 3))), @r"
        GlobalLimitExec: skip=0, fetch=3
          CoalescePartitionsExec
            MemoryScanExec: partitions=3, batches=3
        ");
        rule().declines(pinned(None, scan(&["a"], 1)));
    }

    #[test]
    fn rows_are_hashed_where_that_is_required() {
        assert_snapshot!(rule().fires(hashed_by(&[1], scan(&["a", "b"], 2))), @r"
        Needs
          RepartitionExec: partitioning=Hash([b@1], 4), input_partitions=2
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn one_target_partition_needs_no_hash() {
        let rule = rule().set(|o| o.execution.target_partitions = 1);
        assert_snapshot!(rule.fires(hashed_by(&[1], scan(&["a", "b"], 2))), @r"
        Needs
          CoalescePartitionsExec
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn rows_that_are_together_are_not_shuffled() {
        // One partition; hashed so already, up to order and equality.
        rule().declines(hashed_by(&[1], scan(&["a", "b"], 1)));
        let hashed = hashed_by(&[0, 1], scan(&["a", "b"], 2));
        let once = rule().rewrite(hashed_by(&[1, 0], hashed));
        assert_snapshot!(text(&once), @r"
        Needs
          Needs
            RepartitionExec: partitioning=Hash([a@0, b@1], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
        ");
        let equal = binary(col("a", 0), Operator::Eq, col("b", 1));
        let keys = Partitioning::Hash(vec![col("a", 0)], 4);
        let inner = hashed_by(&[0], repartition(keys, scan(&["a", "b"], 2)));
        rule().declines(hashed_by(&[1], filter(equal, inner)));
    }

    #[test]
    fn a_hash_by_some_of_the_keys_will_do_over_enough_partitions() {
        let keys = Partitioning::Hash(vec![col("a", 0)], 4);
        let plan = || {
            let inner = hashed_by(&[0], repartition(keys.clone(), scan(&["a", "b"], 2)));
            hashed_by(&[0, 1], inner)
        };
        rule().declines(plan());
        rule().set(|o| o.optimizer.subset_repartition_threshold = 4).declines(plan());
        let five = rule().set(|o| o.optimizer.subset_repartition_threshold = 5).fires(plan());
        let never = rule().set(|o| o.optimizer.subset_repartition_threshold = 0).fires(plan());
        assert_eq!(five, never);
        assert_snapshot!(five, @r"
        Needs
          RepartitionExec: partitioning=Hash([a@0, b@1], 4), input_partitions=4
            Needs
              RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=2
                MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn exchanges_that_nothing_needs_go() {
        let dealt = repartition(Partitioning::RoundRobinBatch(4), scan(&["a"], 2));
        assert_snapshot!(rule().fires(pinned(None, filter(gt(col("a", 0), 1), dealt))), @r"
        OutputRequirementExec: dist=SinglePartition
          CoalescePartitionsExec
            FilterExec: a@0 > 1
              MemoryScanExec: partitions=2, batches=2
        ");
        let keys = Partitioning::Hash(vec![col("b", 1)], 4);
        let hashed = repartition(keys, scan(&["a", "b"], 2));
        assert_snapshot!(rule().fires(hashed_by(&[0], hashed)), @r"
        Needs
          RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=2
            MemoryScanExec: partitions=2, batches=2
        ");
        assert_snapshot!(rule().fires(hashed_by(&[0], coalesce(scan(&["a"], 2)))), @r"
        CoalescePartitionsExec
          Needs
            RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn partial_and_final_aggregation_meet_at_a_hash() {
        let partial = group_by(AggregateMode::Partial, &[1], scan(&["a", "b"], 2));
        let plan = group_by(AggregateMode::FinalPartitioned, &[0], partial);
        assert_snapshot!(rule().fires(pinned(None, plan)), @r"
        OutputRequirementExec: dist=SinglePartition
          CoalescePartitionsExec
            AggregateExec: mode=FinalPartitioned, gby=[b@0 as b], aggr=[]
              RepartitionExec: partitioning=Hash([b@0], 4), input_partitions=2
                AggregateExec: mode=Partial, gby=[b@1 as b], aggr=[]
                  MemoryScanExec: partitions=2, batches=2
        ");
        let partial = group_by(AggregateMode::Partial, &[1], scan(&["a", "b"], 2));
        assert_snapshot!(rule().fires(group_by(AggregateMode::Final, &[0], partial)), @r"
        AggregateExec: mode=Final, gby=[b@0 as b], aggr=[]
          CoalescePartitionsExec
            AggregateExec: mode=Partial, gby=[b@1 as b], aggr=[]
              MemoryScanExec: partitions=2, batches=2
        ");
        let rule = rule().set(|o| o.optimizer.enable_round_robin_repartition = false);
        let partial = group_by(AggregateMode::Partial, &[1], scan(&["a", "b"], 1));
        rule.declines(group_by(AggregateMode::FinalPartitioned, &[0], partial));
    }
}

mod dealing_out {
    use super::*;

    #[test]
    fn one_partition_of_many_rows_is_dealt_out_to_an_operator_that_gains() {
        assert_snapshot!(rule().fires(pinned(None, greedy(scan(&["a"], 1)))), @r"
        OutputRequirementExec: dist=SinglePartition
          CoalescePartitionsExec
            Needs
              RepartitionExec: partitioning=RoundRobinBatch(4), input_partitions=1
                MemoryScanExec: partitions=1, batches=1
        ");
        let plan = greedy(filter(gt(col("a", 0), 1), columns(&[1], scan(&["b", "a"], 1))));
        assert_snapshot!(rule().fires(plan), @r"
        CoalescePartitionsExec
          Needs
            FilterExec: a@0 > 1
              RepartitionExec: partitioning=RoundRobinBatch(4), input_partitions=1
                ProjectionExec: expr=[a@1]
                  MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn declines_without_a_reason() {
        let plan = || greedy(scan(&["a"], 1));
        // The knob; nothing to deal to; too few rows.
        rule().set(|o| o.optimizer.enable_round_robin_repartition = false).declines(plan());
        rule().set(|o| o.execution.target_partitions = 1).declines(plan());
        rule().declines(greedy(Arc::new(table(&["a"], 1, 8))));
        // Several partitions already; rows in an order; a scan that stops.
        rule().declines(greedy(scan(&["a"], 2)));
        rule().declines(greedy(sorted_scan(&["a"], 1)));
        rule().declines(greedy(table(&["a"], 1, 20).with_fetch(Some(10)).unwrap()));
        // Not straight from a scan.
        rule().declines(greedy(group_by(AggregateMode::Single, &[0], sorted_scan(&["a"], 1))));
    }

    #[test]
    fn a_probe_gains_and_a_shared_build_does_not() {
        let mode = PartitionMode::CollectLeft;
        let plan = join(&[(0, 0)], JoinType::Inner, mode, scan(&["a"], 1), scan(&["b"], 1));
        assert_snapshot!(rule().fires(group_by(AggregateMode::Single, &[0], plan)), @r"
        AggregateExec: mode=Single, gby=[a@0 as a], aggr=[]
          CoalescePartitionsExec
            HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
              MemoryScanExec: partitions=1, batches=1
              RepartitionExec: partitioning=RoundRobinBatch(4), input_partitions=1
                MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn the_order_of_a_file_shows_in_the_result() {
        rule().declines(pinned(None, filter(gt(col("a", 0), 1), scan(&["a"], 1))));
        rule().declines(filter(gt(col("a", 0), 1), scan(&["a"], 1)));
        rule().declines(greedy(limit(1, Some(9), filter(gt(col("a", 0), 1), scan(&["a"], 1)))));
    }
}

mod joins {
    use super::*;

    fn hashed(names: &[&str], keys: &[usize], partitions: usize) -> PlanRef {
        let input = scan(names, 2);
        let keys: Vec<_> = keys.iter().map(|&i| col(names[i], i)).collect();
        let plan = repartition(Partitioning::Hash(keys.clone(), partitions), input);
        needs(Distribution::HashPartitioned(keys), None, false, plan)
    }

    fn partitioned(on: &[(usize, usize)], left: PlanRef, right: PlanRef) -> PlanRef {
        join(on, JoinType::Inner, PartitionMode::Partitioned, left, right)
    }

    #[test]
    fn both_sides_are_hashed_alike() {
        let plan = partitioned(&[(0, 1)], scan(&["a"], 2), scan(&["b", "c"], 3));
        assert_snapshot!(rule().fires(plan), @r"
        HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, c@1)]
          RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=2
            MemoryScanExec: partitions=2, batches=2
          RepartitionExec: partitioning=Hash([c@1], 4), input_partitions=3
            MemoryScanExec: partitions=3, batches=3
        ");
        rule().declines(partitioned(&[(0, 0)], scan(&["a"], 1), scan(&["b"], 1)));
    }

    #[test]
    fn the_side_that_is_hashed_is_the_pattern_for_the_other() {
        let on = [(0, 0), (1, 1)];
        let left = hashed(&["a", "b"], &[1, 0], 4);
        let plan = partitioned(&on, left, scan(&["c", "d"], 2));
        assert_snapshot!(rule().fires(plan), @r"
        HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, c@0), (b@1, d@1)]
          Needs
            RepartitionExec: partitioning=Hash([b@1, a@0], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
          RepartitionExec: partitioning=Hash([d@1, c@0], 4), input_partitions=2
            MemoryScanExec: partitions=2, batches=2
        ");
        let plan = partitioned(&on, scan(&["c", "d"], 1), hashed(&["a", "b"], &[1, 0], 4));
        assert_snapshot!(rule().fires(plan), @r"
        HashJoinExec: mode=Partitioned, join_type=Inner, on=[(c@0, a@0), (d@1, b@1)]
          RepartitionExec: partitioning=Hash([d@1, c@0], 4), input_partitions=1
            MemoryScanExec: partitions=1, batches=1
          Needs
            RepartitionExec: partitioning=Hash([b@1, a@0], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn sides_that_are_hashed_crosswise_do_not_match() {
        let on = [(0, 0), (1, 1)];
        let (left, right) = (hashed(&["a", "b"], &[0, 1], 4), hashed(&["c", "d"], &[1, 0], 4));
        assert_snapshot!(rule().fires(partitioned(&on, left, right)), @r"
        HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, c@0), (b@1, d@1)]
          Needs
            RepartitionExec: partitioning=Hash([a@0, b@1], 4), input_partitions=2
              MemoryScanExec: partitions=2, batches=2
          RepartitionExec: partitioning=Hash([c@0, d@1], 4), input_partitions=4
            Needs
              RepartitionExec: partitioning=Hash([d@1, c@0], 4), input_partitions=2
                MemoryScanExec: partitions=2, batches=2
        ");
        let (left, right) = (hashed(&["a", "b"], &[0, 1], 4), hashed(&["c", "d"], &[0, 1], 4));
        rule().declines(partitioned(&on, left, right));
    }

    #[test]
    fn a_shared_build_needs_nothing_unless_state_may_not_be_shared() {
        let plan = |join_type| {
            let mode = PartitionMode::CollectLeft;
            join(&[(0, 0)], join_type, mode, scan(&["a"], 2), scan(&["b"], 2))
        };
        rule().declines(plan(JoinType::Inner));
        rule().declines(plan(JoinType::Left));
        let apart = || rule().set_planish(|o| o.shared_state = false);
        assert_snapshot!(apart().fires(plan(JoinType::Inner)), @r"
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
          CoalescePartitionsExec
            MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
        assert_snapshot!(apart().fires(plan(JoinType::Left)), @r"
        HashJoinExec: mode=CollectLeft, join_type=Left, on=[(a@0, b@0)]
          CoalescePartitionsExec
            MemoryScanExec: partitions=2, batches=2
          CoalescePartitionsExec
            MemoryScanExec: partitions=2, batches=2
        ");
    }

    #[test]
    fn a_mode_that_no_rule_chose_becomes_collect_left() {
        let mode = PartitionMode::Auto;
        let plan = join(&[(0, 0)], JoinType::Inner, mode, scan(&["a"], 2), scan(&["b"], 2));
        assert_snapshot!(rule().not_run().fires(plan), @r"
        HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)]
          MemoryScanExec: partitions=2, batches=2
          MemoryScanExec: partitions=2, batches=2
        ");
    }
}

#[test]
fn a_source_that_claims_a_hash_of_its_own_is_no_partner() {
    // Equal keys are together, but where, only the source knows.
    let schema = schema(&["a"]);
    assert_eq!(*schema.field(0).data_type(), DataType::Int64);
    let claiming = || -> PlanRef {
        let keys = Partitioning::Hash(vec![col("a", 0)], 4);
        let source = planish_testkit::plans::Source::new(Arc::clone(&schema), vec![vec![]; 4]);
        Arc::new(source.with_partitioning(keys))
    };
    rule().declines(hashed_by(&[0], claiming()));
    let mode = PartitionMode::Partitioned;
    let plan = join(&[(0, 0)], JoinType::Inner, mode, claiming(), claiming());
    assert_snapshot!(rule().fires(plan), @r"
    HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, a@0)]
      RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=4
        Source: partitions=4
      RepartitionExec: partitioning=Hash([a@0], 4), input_partitions=4
        Source: partitions=4
    ");
}
