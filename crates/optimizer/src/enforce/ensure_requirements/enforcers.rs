//! Taking exchanges, merges and sorts off a plan, putting them on, and knowing one again.

use crate::tree::{same, with_children};
use datafusion_common::Result;
use planish_expr::LexOrdering;
use planish_plan::PlanRef;
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

/// The first node below `plan` (or `plan` itself) that is more than an exchange, merge or sort.
pub(super) fn peel(plan: &PlanRef) -> &PlanRef {
    let mut plan = plan;
    while plan.fetch().is_none() && is_enforcer(plan) {
        plan = plan.children()[0];
    }
    plan
}

/// As [`peel`], below a sort or merge by `expr`. A sort that is taken off and continues `expr`
/// is what the rows were really ordered by.
pub(super) fn peel_ordered<'a>(
    plan: &'a PlanRef,
    expr: &LexOrdering,
) -> (&'a PlanRef, LexOrdering) {
    let mut plan = plan;
    let mut expr = expr.clone();
    while plan.fetch().is_none() && is_enforcer(plan) {
        if let Some(finer) = plan.downcast_ref::<SortExec>().map(SortExec::expr)
            && finer.starts_with(&expr)
        {
            expr.clone_from(finer);
        }
        plan = plan.children()[0];
    }
    (plan, expr)
}

fn is_enforcer(plan: &PlanRef) -> bool {
    plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<SortExec>()
}

pub(super) fn coalesce(input: PlanRef) -> PlanRef {
    Arc::new(CoalescePartitionsExec::new(input))
}

pub(super) fn sort(
    input: PlanRef,
    expr: &LexOrdering,
    fetch: Option<usize>,
    preserve_partitioning: bool,
) -> PlanRef {
    Arc::new(
        SortExec::new(expr.clone(), input)
            .with_preserve_partitioning(preserve_partitioning)
            .with_limit(fetch),
    )
}

pub(super) fn merge(input: PlanRef, expr: &LexOrdering, fetch: Option<usize>) -> PlanRef {
    let merge: PlanRef = Arc::new(SortPreservingMergeExec::new(expr.clone(), input));
    match fetch {
        Some(fetch) => limit(merge, fetch),
        None => merge,
    }
}

/// The first `fetch` rows of each partition of `input`.
pub(super) fn limit(input: PlanRef, fetch: usize) -> PlanRef {
    let own = input.fetch();
    if own.is_some_and(|own| own <= fetch) {
        return input;
    }
    if let Some(limited) = input.with_fetch(Some(fetch)) {
        return limited;
    }
    if input.partition_count() == 1 {
        Arc::new(GlobalLimitExec::new(input, 0, Some(fetch)))
    } else {
        Arc::new(LocalLimitExec::new(input, fetch))
    }
}

/// `old` where `new` rebuilt the same exchanges, merges and sorts over the same input.
pub(super) fn reuse(old: &PlanRef, new: PlanRef) -> Result<PlanRef> {
    if same(old, &new) || !equal_enforcers(old, &new) {
        return Ok(new);
    }
    let input = reuse(old.children()[0], Arc::clone(new.children()[0]))?;
    if same(&input, old.children()[0]) {
        Ok(Arc::clone(old))
    } else {
        with_children(&new, vec![input])
    }
}

fn equal_enforcers(a: &PlanRef, b: &PlanRef) -> bool {
    if let (Some(a), Some(b)) =
        (a.downcast_ref::<RepartitionExec>(), b.downcast_ref::<RepartitionExec>())
    {
        return a.partitioning() == b.partitioning();
    }
    if let (Some(x), Some(y)) = (a.downcast_ref::<SortExec>(), b.downcast_ref::<SortExec>()) {
        return x.expr() == y.expr()
            && x.preserve_partitioning() == y.preserve_partitioning()
            && a.fetch() == b.fetch();
    }
    if let (Some(x), Some(y)) =
        (a.downcast_ref::<SortPreservingMergeExec>(), b.downcast_ref::<SortPreservingMergeExec>())
    {
        return x.expr() == y.expr() && a.fetch() == b.fetch();
    }
    if let (Some(x), Some(y)) =
        (a.downcast_ref::<GlobalLimitExec>(), b.downcast_ref::<GlobalLimitExec>())
    {
        return x.skip() == y.skip() && x.limit() == y.limit();
    }
    if let (Some(x), Some(y)) =
        (a.downcast_ref::<LocalLimitExec>(), b.downcast_ref::<LocalLimitExec>())
    {
        return x.limit() == y.limit();
    }
    a.is::<CoalescePartitionsExec>() && b.is::<CoalescePartitionsExec>() && a.fetch() == b.fetch()
}
