//! What holds for every rule and for the pipeline, over a corpus of plans.

use crate::rule::{PhysicalOptimizerRule, RuleKind};
use crate::testing::*;
use crate::{PhysicalOptimizer, default_rules};
use datafusion_common::JoinType;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::Operator;
use planish_expr::expressions::lit;
use planish_expr::{Partitioning, PhysicalSortExpr};
use planish_plan::PlanRef;
use planish_plan::operators::aggregate::AggregateMode;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::PartitionMode;
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use std::sync::Arc;

/// Plans as the planner makes them, whose result is determined up to the order of rows that
/// nothing orders.
fn corpus() -> Vec<PlanRef> {
    let keys = |n: usize, plan: &PlanRef| -> Vec<PhysicalSortExpr> {
        (0..n).map(|i| asc(col(plan.schema().field(i).name(), i))).collect()
    };
    let sorted =
        |fetch, plan: PlanRef| sort(keys(plan.schema().fields().len(), &plan), fetch, plan);
    let two_steps = |by: &[usize], plan: PlanRef| {
        let partial = group_by(AggregateMode::Partial, by, plan);
        let keys: Vec<usize> = (0..by.len()).collect();
        group_by(AggregateMode::FinalPartitioned, &keys, partial)
    };
    let sum = || binary(col("a", 0), Operator::Plus, col("b", 1));
    let large = |names: &[&str], p| -> PlanRef { Arc::new(table(names, p, 60)) };
    let mut plans = vec![];
    for p in [1, 3] {
        let abc = || scan(&["a", "b", "c"], p);
        plans.push(columns(&[2, 0], abc()));
        plans.push(project(vec![(sum(), "s")], filter(gt(col("b", 1), 3), abc())));
        plans.push(filter(gt(col("a", 1), 3), columns(&[2, 0], abc())));
        plans.push(sorted(None, columns(&[1], filter(gt(col("a", 0), 2), abc()))));
        plans.push(limit(2, Some(5), sorted(None, abc())));
        plans.push(columns(&[0], limit(0, Some(5), sorted(Some(7), abc()))));
        plans.push(filter(gt(col("a", 0), 2), limit(1, Some(9), sorted(None, abc()))));
        plans.push(two_steps(&[0], filter(gt(col("b", 1), 2), large(&["a", "b"], p))));
        plans.push(sorted(None, two_steps(&[0, 1], large(&["a", "b", "c"], p))));
        plans.push(two_steps(&[1], two_steps(&[0, 1], large(&["a", "b", "c"], p))));
        plans.push(limit(0, Some(3), sorted(None, two_steps(&[1], sorted(None, abc())))));
        plans.push(union(vec![abc(), filter(gt(col("a", 0), 4), abc())]));
        plans.push(two_steps(&[0], union(vec![abc(), columns(&[2, 1, 0], abc())])));
        plans.push(sorted(
            Some(4),
            union(vec![sorted(Some(6), abc()), sorted_scan(&["a", "b", "c"], p)]),
        ));
        plans.push(limit(1, Some(4), sorted(None, sorted_scan(&["a", "b"], p))));
        plans.push(sort(vec![asc(col("a", 0))], None, sorted_scan(&["a", "b"], p)));
        plans.push(two_steps(&[0], repartition(Partitioning::RoundRobinBatch(5), abc())));
        plans.push(filter(lit(true), coalesce(abc())));
        plans.push(Arc::new(CrossJoinExec::new(scan(&["a"], p), scan(&["b"], 1))));
        plans.push(Arc::new(
            NestedLoopJoinExec::try_new(scan(&["a"], p), scan(&["b"], 1), None, JoinType::Full)
                .unwrap(),
        ));
        plans.extend(joins(p));
    }
    plans
}

fn joins(p: usize) -> Vec<PlanRef> {
    use JoinType::*;
    let mut plans = vec![];
    for join_type in
        [Inner, Left, Right, Full, LeftSemi, RightSemi, LeftAnti, RightAnti, LeftMark, RightMark]
    {
        let sum = |l: (&str, usize), r: (&str, usize)| {
            binary(col(l.0, l.1), Operator::Plus, col(r.0, r.1))
        };
        let condition = binary(sum(("a", 0), ("c", 2)), Operator::Gt, sum(("x", 3), ("y", 4)));
        let nested =
            nested_join(join_type, condition, scan(&["a", "b", "c"], p), scan(&["x", "y"], 2));
        let last = nested.schema().fields().len() - 1;
        plans.push(columns(&[last, 0], Arc::clone(&nested)));
        plans.push(filter(gt(col(nested.schema().field(0).name(), 0), 3), nested));
        for mode in [PartitionMode::Auto, PartitionMode::Partitioned] {
            let left = Arc::new(table(&["a", "b", "c"], p, 40));
            let plan = join(&[(1, 0)], join_type, mode, left, scan(&["x", "y"], 2));
            let last = plan.schema().fields().len() - 1;
            plans.push(columns(&[last, 0], Arc::clone(&plan)));
            let first = plan.schema().field(0).name().clone();
            plans.push(columns(&[0], filter(gt(col(&first, 0), 3), plan)));
        }
    }
    let inner = join(&[(0, 0)], Inner, PartitionMode::Auto, scan(&["a", "b"], p), scan(&["x"], 2));
    let outer = join(&[(2, 1)], Left, PartitionMode::Auto, inner, scan(&["u", "v"], p));
    plans.push(filter(gt(col("b", 1), 3), columns(&[3, 1], outer)));
    plans
}

fn run(
    rules: Vec<Arc<dyn PhysicalOptimizerRule>>,
    plan: &PlanRef,
    options: &ConfigOptions,
) -> PlanRef {
    PhysicalOptimizer::with_rules(rules).optimize(Arc::clone(plan), options).unwrap().plan
}

fn rows(plan: &PlanRef, options: &ConfigOptions) -> Vec<String> {
    let mut rows = execute(plan, options);
    rows.sort();
    rows
}

/// `options` under which joins are sort-merge joins.
fn by_sorting(options: &ConfigOptions) -> ConfigOptions {
    let mut options = options.clone();
    options.optimizer.prefer_hash_join = false;
    options
}

fn with_partitions(n: usize) -> ConfigOptions {
    let mut options = options();
    options.execution.target_partitions = n;
    options
}

#[test]
fn every_pipeline_gives_the_same_rows() {
    for plan in corpus() {
        let expected = rows(&plan, &with_partitions(1));
        for partitions in [1, 4] {
            let options = with_partitions(partitions);
            let check = |rules, what: &str| {
                let optimized = run(rules, &plan, &options);
                let found = rows(&optimized, &options);
                let shown = || format!("{what}\n{}\n{}", text(&plan), text(&optimized));
                assert_eq!(found, expected, "{}", shown());
            };
            check(default_rules(), "the default pipeline");
            for off in ["JoinSelection", "FilterPushdown", "ProjectionPushdown", "LimitPushdown"] {
                let rules = default_rules().into_iter().filter(|r| r.name() != off).collect();
                check(rules, &format!("{off} is off"));
            }
            // Rewrites in the opposite order, then what makes the plan executable.
            let (mut rewrites, enforce): (Vec<_>, Vec<_>) =
                default_rules().into_iter().partition(|r| r.kind() == RuleKind::Rewrite);
            rewrites.reverse();
            rewrites.extend(enforce);
            check(rewrites, "rewrites reversed");
            let merging = by_sorting(&options);
            let optimized = run(default_rules(), &plan, &merging);
            assert_eq!(rows(&optimized, &merging), expected, "merged\n{}", text(&optimized));
        }
    }
}

#[test]
fn a_pipeline_has_nothing_to_add_to_its_own_result() {
    for plan in corpus() {
        for partitions in [1, 4] {
            let options = with_partitions(partitions);
            for options in [by_sorting(&options), options] {
                let once = run(default_rules(), &plan, &options);
                let twice = run(default_rules(), &once, &options);
                assert_eq!(text(&once), text(&twice), "from\n{}", text(&plan));
            }
        }
    }
}

#[test]
fn every_rule_has_nothing_to_add_to_its_own_result() {
    for plan in corpus() {
        let options = options();
        let mut plan = plan;
        for rule in default_rules() {
            let once = run(vec![Arc::clone(&rule)], &plan, &options);
            let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&rule)]);
            let twice = optimizer.optimize(Arc::clone(&once), &options).unwrap();
            assert!(
                !twice.trace.fired(rule.name()),
                "{} made of\n{}this\n{}",
                rule.name(),
                text(&once),
                text(&twice.plan)
            );
            plan = once;
        }
    }
}
