//! Moves limits to where rows come from, so that rows nobody asks for are never made.
//!
//! A limit becomes the `fetch` of the operators below it: a sort turns into a top-k, a scan
//! stops reading.
//!
//! # Before
//! ```text
//! GlobalLimitExec: skip=2, fetch=5
//!   ProjectionExec: expr=[b@1]
//!     SortExec: expr=[a@0 ASC, b@1 ASC]
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! GlobalLimitExec: skip=2, fetch=5
//!   ProjectionExec: expr=[b@1]
//!     SortExec: expr=[a@0 ASC, b@1 ASC], fetch=7
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! The rows that are skipped have to come first, so what is asked of the input is skip + fetch.
//! Nested limits take the smaller one. A limit node goes when its input, one partition, stops at
//! the limit by itself and nothing is skipped; over several partitions each stops, and the limit
//! over all of them stays. A limit reaches below projections, unions, exchanges into one
//! partition, and whatever says so (`supports_limit_pushdown`).
//!
//! **Declines** below filters, aggregates and joins, and for a limit of no rows.
//! **Knob**: `planish.optimizer.disable = 'LimitPushdown'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, same, with_children};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_plan::PlanRef;
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use std::sync::Arc;

/// Turns limits into the fetch of operators below.
#[derive(Debug)]
pub struct LimitPushdown;

impl PhysicalOptimizerRule for LimitPushdown {
    fn name(&self) -> &'static str {
        "LimitPushdown"
    }

    fn optimize(&self, plan: PlanRef, _options: &ConfigOptions) -> Result<Option<PlanRef>> {
        Ok(if_changed(&plan, push(&plan, None)?.plan))
    }
}

/// A plan of which only some rows of each partition are read.
struct Bounded {
    plan: PlanRef,
    /// Whether each partition stops at that number by itself.
    stops: bool,
}

/// `plan` for a reader that takes at most the first `rows` rows of each partition.
fn push(plan: &PlanRef, rows: Option<usize>) -> Result<Bounded> {
    // A limit of no rows is answered without touching what is below.
    let rows = rows.filter(|rows| *rows > 0);
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        return push_global_limit(plan, limit, rows);
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        let fetch = smaller(Some(limit.limit()), rows).unwrap_or(limit.limit());
        let input = push(limit.input(), Some(fetch))?;
        if input.stops {
            return Ok(input);
        }
        let unchanged = fetch == limit.limit() && same(&input.plan, limit.input());
        let plan = if unchanged {
            Arc::clone(plan)
        } else {
            Arc::new(LocalLimitExec::new(input.plan, fetch))
        };
        return Ok(Bounded { plan, stops: true });
    }
    push_operator(plan, rows)
}

fn push_global_limit(
    plan: &PlanRef,
    limit: &GlobalLimitExec,
    rows: Option<usize>,
) -> Result<Bounded> {
    let fetch = smaller(limit.limit(), rows);
    let asked = fetch.map(|fetch| fetch.saturating_add(limit.skip()));
    let input = push(limit.input(), asked)?;
    if input.stops && limit.skip() == 0 && input.plan.partition_count() == 1 {
        return Ok(input);
    }
    let unchanged = fetch == limit.limit() && same(&input.plan, limit.input());
    let plan = if unchanged {
        Arc::clone(plan)
    } else {
        Arc::new(GlobalLimitExec::new(input.plan, limit.skip(), fetch))
    };
    Ok(Bounded { plan, stops: fetch.is_some() })
}

fn push_operator(plan: &PlanRef, rows: Option<usize>) -> Result<Bounded> {
    let fetch = smaller(plan.fetch(), rows);
    let passes = plan.supports_limit_pushdown();
    let mut stops = true;
    let mut children = vec![];
    for child in plan.children() {
        let below = push(child, if passes { fetch } else { None })?;
        // The output has the partitions of its inputs, so it stops where they do.
        stops &= passes && below.stops;
        children.push(below.plan);
    }
    stops &= !children.is_empty() && fetch.is_some();
    stops &= children.iter().map(|c| c.partition_count()).sum::<usize>() == plan.partition_count();
    let plan = with_children(plan, children)?;
    if fetch.is_none() || fetch == plan.fetch() {
        return Ok(Bounded { stops: fetch.is_some(), plan });
    }
    Ok(match plan.with_fetch(fetch) {
        // A fetch that the inputs already keep is no news.
        Some(_) if stops => Bounded { plan, stops },
        Some(limited) => Bounded { plan: limited, stops: true },
        None => Bounded { plan, stops },
    })
}

fn smaller(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use insta::assert_snapshot;
    use planish_expr::Distribution;
    use planish_plan::Pushdown;
    use planish_plan::operators::aggregate::AggregateMode;

    fn rule() -> Check {
        Check::new(LimitPushdown)
    }

    #[test]
    fn a_sort_becomes_a_top_k_and_what_is_skipped_is_asked_for() {
        let sorted = sort(vec![asc(col("a", 0)), asc(col("b", 1))], None, scan(&["a", "b"], 1));
        let plan = limit(2, Some(5), columns(&[1], sorted));
        assert_documented(
            include_str!("limit_pushdown.rs"),
            &text(&plan),
            &rule().in_order().fires(Arc::clone(&plan)),
        );
    }

    #[test]
    fn the_limit_goes_when_its_input_stops() {
        let sum = binary(col("a", 0), datafusion_expr::Operator::Plus, col("b", 1));
        let plan = limit(0, Some(5), project(vec![(sum, "s")], scan(&["a", "b"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        ProjectionExec: expr=[a@0 + b@1 AS s]
          MemoryScanExec: partitions=1, batches=1, fetch=5
        ");
    }

    #[test]
    fn an_offset_stays() {
        assert_snapshot!(rule().in_order().fires(limit(3, Some(5), scan(&["a"], 1))), @r"
        GlobalLimitExec: skip=3, fetch=5
          MemoryScanExec: partitions=1, batches=1, fetch=8
        ");
        rule().declines(limit(3, None, scan(&["a"], 1)));
    }

    #[test]
    fn nested_limits_take_the_smaller() {
        let plan = limit(2, Some(10), limit(3, Some(5), scan(&["a"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        GlobalLimitExec: skip=2, fetch=10
          GlobalLimitExec: skip=3, fetch=5
            MemoryScanExec: partitions=1, batches=1, fetch=8
        ");
        let plan = limit(1, Some(2), limit(3, None, scan(&["a"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        GlobalLimitExec: skip=1, fetch=2
          GlobalLimitExec: skip=3, fetch=3
            MemoryScanExec: partitions=1, batches=1, fetch=6
        ");
        let plan = limit(0, Some(9), limit(0, Some(4), scan(&["a"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @"MemoryScanExec: partitions=1, batches=1, fetch=4");
        let plan = limit(0, None, limit(4, Some(4), scan(&["a"], 1)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        GlobalLimitExec: skip=4, fetch=4
          MemoryScanExec: partitions=1, batches=1, fetch=8
        ");
    }

    #[test]
    fn over_several_partitions_each_stops_and_one_limit_stays() {
        let plan = limit(0, Some(5), coalesce(scan(&["a"], 3)));
        assert_snapshot!(rule().counting().fires(plan), @r"
        CoalescePartitionsExec: fetch=5
          MemoryScanExec: partitions=3, batches=3, fetch=5
        ");
        let plan = limit(2, Some(5), coalesce(scan(&["a"], 3)));
        assert_snapshot!(rule().counting().fires(plan), @r"
        GlobalLimitExec: skip=2, fetch=5
          CoalescePartitionsExec: fetch=7
            MemoryScanExec: partitions=3, batches=3, fetch=7
        ");
        let plan = limit(0, Some(5), scan(&["a"], 3));
        assert_snapshot!(rule().counting().fires(plan), @r"
        GlobalLimitExec: skip=0, fetch=5
          MemoryScanExec: partitions=3, batches=3, fetch=5
        ");
    }

    #[test]
    fn reaches_every_input_of_a_union() {
        let plan = union(vec![scan(&["a"], 1), filter(gt(col("a", 0), 3), scan(&["a"], 1))]);
        assert_snapshot!(rule().counting().fires(limit(0, Some(5), coalesce(plan))), @r"
        CoalescePartitionsExec: fetch=5
          UnionExec
            MemoryScanExec: partitions=1, batches=1, fetch=5
            FilterExec: a@0 > 3
              MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn a_merge_and_the_sorts_below_stop() {
        let keys = vec![asc(col("a", 0)), asc(col("b", 1))];
        let plan = merge(keys.clone(), None, sort_each(keys, None, scan(&["a", "b"], 3)));
        assert_snapshot!(rule().in_order().fires(limit(2, Some(5), plan)), @r"
        GlobalLimitExec: skip=2, fetch=5
          SortPreservingMergeExec: [a@0 ASC, b@1 ASC], fetch=7
            SortExec: expr=[a@0 ASC, b@1 ASC], fetch=7, preserve_partitioning=true
              MemoryScanExec: partitions=3, batches=3
        ");
    }

    #[test]
    fn a_local_limit_is_one_of_each_partition() {
        assert_snapshot!(rule().fires(local_limit(5, scan(&["a"], 3))), @"MemoryScanExec: partitions=3, batches=3, fetch=5");
    }

    #[test]
    fn declines_below_what_changes_the_number_of_rows() {
        rule().declines(limit(1, Some(5), filter(gt(col("a", 0), 3), scan(&["a"], 1))));
        rule().declines(limit(1, Some(5), group_by(AggregateMode::Single, &[0], scan(&["a"], 1))));
        let opaque = needs(Distribution::UnspecifiedDistribution, None, true, scan(&["a"], 1));
        rule().declines(limit(1, Some(5), opaque));
    }

    #[test]
    fn declines_for_no_rows_and_a_fetch_that_is_there() {
        rule().declines(limit(0, Some(0), scan(&["a"], 1)));
        rule().declines(limit(2, Some(5), table(&["a"], 1, 20).with_fetch(Some(7)).unwrap()));
        rule().declines(limit(2, Some(5), table(&["a"], 1, 20).with_fetch(Some(3)).unwrap()));
        rule().declines(sort(vec![asc(col("a", 0))], None, scan(&["a"], 1)));
    }
}
