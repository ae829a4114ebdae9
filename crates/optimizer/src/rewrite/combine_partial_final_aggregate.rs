//! Makes one aggregation of two with nothing between them.
//!
//! States are made once per group and merged once per group for nothing, where each group's rows
//! are in one partition already.
//!
//! # Before
//! ```text
//! AggregateExec: mode=FinalPartitioned, gby=[a@0 as a], aggr=[count(*)]
//!   AggregateExec: mode=Partial, gby=[a@0 as a], aggr=[count(*)]
//!     RepartitionExec: partitioning=Hash([a@0], 3), input_partitions=2
//!       MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! AggregateExec: mode=SinglePartitioned, gby=[a@0 as a], aggr=[count(*)]
//!   RepartitionExec: partitioning=Hash([a@0], 3), input_partitions=2
//!     MemoryScanExec: partitions=2, batches=2
//! ```
//! **Declines** where an exchange is between the two, and for grouping sets over several
//! partitions, whose sets share no partitioning.
//! **Knob**: `planish.optimizer.disable = 'CombinePartialFinalAggregate'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, with_children};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_plan::PlanRef;
use planish_plan::operators::aggregate::{AggregateExec, AggregateMode};
use std::sync::Arc;

/// Combines a partial and a final aggregation.
#[derive(Debug)]
pub struct CombinePartialFinalAggregate;

impl PhysicalOptimizerRule for CombinePartialFinalAggregate {
    fn name(&self) -> &'static str {
        "CombinePartialFinalAggregate"
    }

    fn optimize(&self, plan: PlanRef, _: &ConfigOptions) -> Result<Option<PlanRef>> {
        let new = rewrite(&plan)?;
        Ok(if_changed(&plan, new))
    }
}

fn rewrite(plan: &PlanRef) -> Result<PlanRef> {
    let children = plan.children().into_iter().map(rewrite).collect::<Result<Vec<_>>>()?;
    let plan = with_children(plan, children)?;
    Ok(combined(&plan)?.unwrap_or(plan))
}

fn combined(plan: &PlanRef) -> Result<Option<PlanRef>> {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let mode = match last.mode() {
        AggregateMode::Final => AggregateMode::Single,
        AggregateMode::FinalPartitioned => AggregateMode::SinglePartitioned,
        _ => return Ok(None),
    };
    let first = last.input().downcast_ref::<AggregateExec>();
    let Some(first) = first.filter(|first| first.mode() == AggregateMode::Partial) else {
        return Ok(None);
    };
    let mode = match (mode, first.input().partition_count()) {
        // One partition holds every group, whatever the grouping.
        (_, 1) => AggregateMode::Single,
        (AggregateMode::SinglePartitioned, _) if first.group_by().is_single() => mode,
        _ => return Ok(None),
    };
    let single = AggregateExec::try_new(
        mode,
        first.group_by().clone(),
        first.aggregates().to_vec(),
        Arc::clone(first.input()),
        Arc::clone(first.input_schema()),
    )?;
    let single: PlanRef = Arc::new(single);
    // States may say other things of their groups than rows do.
    Ok((single.schema() == plan.schema()).then_some(single))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use planish_plan::operators::aggregate::AggregateMode::{Final, FinalPartitioned, Partial};

    const CALLS: &[(&str, Option<usize>)] = &[("count", None)];

    fn rule() -> Check {
        Check::new(CombinePartialFinalAggregate)
    }

    #[test]
    fn two_steps_over_partitioned_rows_become_one() {
        let input = hash_repartition(&[0], 3, scan(&["a", "b"], 2));
        let plan = finish(FinalPartitioned, &aggregate(Partial, &[0], CALLS, input), |p| p);
        assert_documented(
            include_str!("combine_partial_final_aggregate.rs"),
            &text(&plan),
            &rule().fires(Arc::clone(&plan)),
        );
    }

    #[test]
    fn two_steps_over_one_partition_become_one() {
        for (mode, keys) in [(Final, &[0][..]), (Final, &[]), (FinalPartitioned, &[0, 1])] {
            let all = [("count", None), ("sum", Some(1)), ("min", Some(0))];
            let partial = aggregate(Partial, keys, &all, scan(&["a", "b"], 1));
            let text = rule().fires(finish(mode, &partial, |p| p));
            assert!(text.starts_with("AggregateExec: mode=Single,"), "{text}");
        }
    }

    #[test]
    fn declines_where_an_exchange_is_between() {
        let partial = || aggregate(Partial, &[0], CALLS, scan(&["a", "b"], 2));
        rule().declines(finish(Final, &partial(), coalesce));
        rule().declines(finish(FinalPartitioned, &partial(), |p| hash_repartition(&[0], 3, p)));
        rule().declines(partial());
        rule().declines(aggregate(AggregateMode::Single, &[0], CALLS, scan(&["a", "b"], 1)));
    }
}
