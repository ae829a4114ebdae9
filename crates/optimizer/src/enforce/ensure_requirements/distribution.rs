//! How inputs are spread: what is required, whether it holds, and the shuffles that make it so.

use super::enforcers::coalesce;
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{JoinType, Result};
use planish_expr::{Distribution, Partitioning, PhysicalExprRef};
use planish_plan::PlanRef;
use planish_plan::config::PlanishOptions;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use std::sync::Arc;

/// How `plan` wants its inputs spread. Where partitions may not share state, a build side that
/// would be shared must be one partition, and so must a probe side that it waits for.
pub(crate) fn required_distribution(plan: &PlanRef, options: &ConfigOptions) -> Vec<Distribution> {
    let mut required = plan.required_input_distribution();
    let of_join = type_of_shared_build(plan);
    if let Some(join_type) = of_join
        && !PlanishOptions::of(options).shared_state
    {
        required[0] = Distribution::SinglePartition;
        if emits_build_rows(join_type) {
            required[1] = Distribution::SinglePartition;
        }
    }
    required
}

/// The join type of a join whose left side is built by all partitions together.
fn type_of_shared_build(plan: &PlanRef) -> Option<JoinType> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return (join.mode() == PartitionMode::CollectLeft).then(|| join.join_type());
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return Some(join.join_type());
    }
    plan.is::<CrossJoinExec>().then_some(JoinType::Inner)
}

/// Whether `plan` is a join whose left side is built by all partitions together.
pub(super) fn shares_build(plan: &PlanRef) -> bool {
    type_of_shared_build(plan).is_some()
}

/// Whether rows of the left side come out by themselves, after all of the right side was seen.
pub(crate) fn emits_build_rows(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::Left
            | JoinType::Full
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
    )
}

/// Whether `plan`, as the only input of an operator, is spread as required. Rows hashed by some
/// of the keys are together by all of them: enough, with enough partitions.
pub(crate) fn satisfies(plan: &PlanRef, required: &Distribution, options: &ConfigOptions) -> bool {
    let properties = plan.properties();
    if properties.partitioning.satisfies(required, &properties.equivalences) {
        return true;
    }
    let threshold = options.optimizer.subset_repartition_threshold;
    match (&properties.partitioning, required) {
        (Partitioning::Hash(keys, n), Distribution::HashPartitioned(wanted)) => {
            let normalized = |e: &PhysicalExprRef| properties.equivalences.normalize_expr(e);
            let wanted: Vec<_> = wanted.iter().map(normalized).collect();
            threshold > 0
                && *n >= threshold
                && !keys.is_empty()
                && keys.iter().all(|key| wanted.contains(&normalized(key)))
        }
        _ => false,
    }
}

/// The keys by which inputs must be hashed alike, for an operator with two such inputs.
pub(super) fn hash_requirements(required: &[Distribution]) -> Vec<&[PhysicalExprRef]> {
    let keys = required.iter().filter_map(|d| match d {
        Distribution::HashPartitioned(keys) => Some(keys.as_slice()),
        _ => None,
    });
    if required.len() == 2 { keys.collect() } else { vec![] }
}

/// `plan` with rows of equal `keys` in one partition.
pub(super) fn shuffle(
    plan: PlanRef,
    keys: &[PhysicalExprRef],
    options: &ConfigOptions,
) -> Result<PlanRef> {
    hash_into(plan, keys.to_vec(), options.execution.target_partitions)
}

fn hash_into(plan: PlanRef, keys: Vec<PhysicalExprRef>, partitions: usize) -> Result<PlanRef> {
    if partitions <= 1 || keys.is_empty() {
        return Ok(if plan.partition_count() > 1 { coalesce(plan) } else { plan });
    }
    Ok(Arc::new(RepartitionExec::try_new(plan, Partitioning::Hash(keys, partitions))?))
}

/// Both inputs of a partitioned join, hashed on matching keys in matching order into equally
/// many partitions; a side that is spread so already is the pattern for the other.
pub(super) fn co_partition(
    left: PlanRef,
    right: PlanRef,
    left_keys: &[PhysicalExprRef],
    right_keys: &[PhysicalExprRef],
    options: &ConfigOptions,
) -> Result<(PlanRef, PlanRef)> {
    if left.partition_count() == 1 && right.partition_count() == 1 {
        return Ok((left, right));
    }
    let permuted =
        |keys: &[PhysicalExprRef], by: &[usize]| by.iter().map(|&i| Arc::clone(&keys[i])).collect();
    let (of_left, of_right) = (key_order(&left, left_keys), key_order(&right, right_keys));
    match (of_left, of_right) {
        (Some(l), Some(r)) if l == r && left.partition_count() == right.partition_count() => {
            Ok((left, right))
        }
        (Some(order), _) => {
            let partitions = left.partition_count();
            Ok((left, hash_into(right, permuted(right_keys, &order), partitions)?))
        }
        (None, Some(order)) => {
            let partitions = right.partition_count();
            Ok((hash_into(left, permuted(left_keys, &order), partitions)?, right))
        }
        (None, None) => {
            Ok((shuffle(left, left_keys, options)?, shuffle(right, right_keys, options)?))
        }
    }
}

/// Whether two inputs are spread alike: for the check at the end of the pipeline.
pub(crate) fn co_partitioned(
    left: &PlanRef,
    right: &PlanRef,
    left_keys: &[PhysicalExprRef],
    right_keys: &[PhysicalExprRef],
) -> bool {
    if left.partition_count() != right.partition_count() {
        return false;
    }
    let of_left = key_order(left, left_keys);
    left.partition_count() == 1 || (of_left.is_some() && of_left == key_order(right, right_keys))
}

/// In which order `plan` is hashed by `keys`, if it is, by our own hash function.
fn key_order(plan: &PlanRef, keys: &[PhysicalExprRef]) -> Option<Vec<usize>> {
    let properties = plan.properties();
    let Partitioning::Hash(hashed, partitions) = &properties.partitioning else { return None };
    if *partitions < 2 || hashed.len() != keys.len() || !hashed_by_us(plan) {
        return None;
    }
    let normalized = |e: &PhysicalExprRef| properties.equivalences.normalize_expr(e);
    let keys: Vec<_> = keys.iter().map(normalized).collect();
    let mut order: Vec<usize> = vec![];
    for key in hashed {
        let key = normalized(key);
        let position = (0..keys.len()).find(|i| !order.contains(i) && keys[*i].eq(&key))?;
        order.push(position);
    }
    Some(order)
}

/// Whether the partitions of `plan` come from our own exchange. A source may claim a hash
/// partitioning too, but by a hash function that nobody knows.
fn hashed_by_us(plan: &PlanRef) -> bool {
    if plan.is::<RepartitionExec>() {
        return true;
    }
    let children = plan.children();
    if shares_build(plan) {
        return hashed_by_us(children[1]);
    }
    !children.is_empty() && children.into_iter().all(hashed_by_us)
}

/// `plan` with its rows dealt out in turn, where that has a reason; see the rule.
pub(super) fn deals_out(plan: PlanRef, options: &ConfigOptions) -> Result<PlanRef> {
    let target = options.execution.target_partitions;
    if target < 2
        || plan.partition_count() != 1
        || !options.optimizer.enable_round_robin_repartition
        || plan.properties().output_ordering().is_some()
        || !comes_from_scan(&plan)
        || !has_enough_rows(&plan, options)?
    {
        return Ok(plan);
    }
    Ok(Arc::new(RepartitionExec::try_new(plan, Partitioning::RoundRobinBatch(target))?))
}

/// A source, perhaps under projections: anything else had its chance further down.
fn comes_from_scan(plan: &PlanRef) -> bool {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => comes_from_scan(projection.input()),
        None => plan.children().is_empty() && plan.fetch().is_none(),
    }
}

fn has_enough_rows(plan: &PlanRef, options: &ConfigOptions) -> Result<bool> {
    Ok(match plan.statistics(None)?.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => {
            rows > options.execution.batch_size.get()
        }
        Precision::Absent => true,
    })
}
