//! Moves limits to where rows come from, so that rows nobody asks for are never made.
//!
//! A limit becomes the `fetch` of the operators below it: a sort turns into a top-k, a scan
//! stops reading.
//!
//! # Before
//! ```text
//! GlobalLimitExec: skip=2, fetch=5
//!   ProjectionExec: expr=[b@1]
//!     SortExec: expr=[a@0 ASC]
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! GlobalLimitExec: skip=2, fetch=5
//!   ProjectionExec: expr=[b@1]
//!     SortExec: TopK(fetch=7), expr=[a@0 ASC]
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
