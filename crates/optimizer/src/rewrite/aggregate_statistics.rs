//! Answers `count`, `min` and `max` over whole inputs from exact statistics.
//!
//! Work per row becomes none: what a footer knows of a file needs no reading of it.
//!
//! # Before
//! ```text
//! AggregateExec: mode=Final, gby=[], aggr=[count(*)]
//!   AggregateExec: mode=Partial, gby=[], aggr=[count(*)]
//!     MemoryScanExec: partitions=2, batches=2
//! ```
//! # After
//! ```text
//! ValuesExec: rows=1
//! ```
//! A function says itself what it makes of statistics (`value_from_stats`); of floats, footers know
//! no exact bounds, since they leave NaN out.
//!
//! **Declines** where there are groups, where any function cannot be answered so, has a FILTER or
//! is DISTINCT, and where a value is not known to be exact.
//! **Knob**: `planish.optimizer.disable = 'AggregateStatistics'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, with_children};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::Literal;
use planish_plan::PlanRef;
use planish_plan::operators::aggregate::{AggregateExec, AggregateMode};
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::values::ValuesExec;
use std::sync::Arc;

/// Answers aggregates from statistics.
#[derive(Debug)]
pub struct AggregateStatistics;

impl PhysicalOptimizerRule for AggregateStatistics {
    fn name(&self) -> &'static str {
        "AggregateStatistics"
    }

    fn optimize(&self, plan: PlanRef, _: &ConfigOptions) -> Result<Option<PlanRef>> {
        let new = rewrite(&plan)?;
        Ok(if_changed(&plan, new))
    }
}

fn rewrite(plan: &PlanRef) -> Result<PlanRef> {
    if let Some(answer) = answered(plan)? {
        return Ok(answer);
    }
    let children = plan.children().into_iter().map(rewrite).collect::<Result<Vec<_>>>()?;
    with_children(plan, children)
}

/// The one row that `plan`, an aggregation, is known to give.
fn answered(plan: &PlanRef) -> Result<Option<PlanRef>> {
    let Some(top) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let Some(raw) = over_rows(top) else { return Ok(None) };
    if !raw.group_by().is_empty() || raw.group_by().groups.len() > 1 || raw.aggregates().is_empty()
    {
        return Ok(None);
    }
    let statistics = raw.input().statistics(None)?;
    let mut row = vec![];
    for (call, field) in raw.aggregates().iter().zip(plan.schema().fields()) {
        match call.value_from_statistics(&statistics) {
            Some(value) if value.data_type() == *field.data_type() => {
                row.push(Arc::new(Literal::new(value)) as PhysicalExprRef);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(Arc::new(ValuesExec::try_new(plan.schema(), vec![row])?)))
}

/// The part of an aggregation that sees the rows: `top` itself, or the partial one right below.
fn over_rows(top: &AggregateExec) -> Option<&AggregateExec> {
    if top.mode().is_raw() {
        return (top.mode() != AggregateMode::Partial).then_some(top);
    }
    let below = match top.input().downcast_ref::<CoalescePartitionsExec>() {
        Some(coalesce) => coalesce.input(),
        None => top.input(),
    };
    below.downcast_ref::<AggregateExec>().filter(|partial| partial.mode() == AggregateMode::Partial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use planish_plan::operators::aggregate::AggregateMode::{Final, Partial, Single};

    const COUNT: &[(&str, Option<usize>)] = &[("count", None)];

    fn rule() -> Check {
        Check::new(AggregateStatistics)
    }

    #[test]
    fn a_count_of_rows_is_known() {
        let plan = finish(Final, &aggregate(Partial, &[], COUNT, scan(&["a"], 2)), |p| p);
        assert_documented(
            include_str!("aggregate_statistics.rs"),
            &text(&plan),
            &rule().fires(Arc::clone(&plan)),
        );
        rule().fires(aggregate(Single, &[], COUNT, scan(&["a"], 1)));
        rule().fires(finish(Final, &aggregate(Partial, &[], COUNT, scan(&["a"], 2)), coalesce));
        // Below other operators.
        rule().fires(filter(
            gt(col("count(*)", 0), 1),
            aggregate(Single, &[], COUNT, scan(&["a"], 1)),
        ));
    }

    #[test]
    fn declines_for_groups_filters_and_what_is_not_known() {
        rule().declines(aggregate(Single, &[0], COUNT, scan(&["a"], 1)));
        rule().declines(aggregate(Single, &[], COUNT, filter(gt(col("a", 0), 1), scan(&["a"], 1))));
        let sum = [("count", None), ("sum", Some(0))];
        rule().declines(aggregate(Single, &[], &sum, scan(&["a"], 1)));
        rule().declines(aggregate(Partial, &[], COUNT, scan(&["a"], 2)));
        rule().declines(scan(&["a"], 1));
    }
}
