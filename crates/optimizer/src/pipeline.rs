//! The default order of the rules, and why.
//!
//! `OutputRequirements` first notes what the query promised. `JoinSelection` swaps inputs and
//! picks modes, on which requirements depend; filters go down before shuffles and sorts are put
//! in, so that nothing stands in their way; `EnsureRequirements` puts those in; projections and
//! limits come after, since they may pass what was put in (a fetch becomes the fetch of a sort
//! and of a merge). `ProjectionPushdown` runs again on the shapes that only exist then.
//!
//! Places of rules still to come: `AggregateStatistics`, `EliminateConstantJoin`,
//! `SharedSubplans` and `JoinOrder` before `JoinSelection`; `RangeJoin` and
//! `LimitedDistinctAggregation` after it; `WindowTopN` before `EnsureRequirements`;
//! `CombinePartialFinalAggregate` and `OptimizeAggregateOrder` after it; `TopKAggregation`,
//! `LimitPushPastWindows` and `HashJoinBuffering` before `LimitPushdown`; `TopKRepartition` and
//! `LateMaterialization` after it; `PushdownSort`, `EnsureCooperative` and the post phase of
//! `FilterPushdown` before `SanityCheckPlan`.

use crate::enforce::{EnsureRequirements, OutputRequirements, SanityCheckPlan};
use crate::rewrite::{FilterPushdown, JoinSelection, LimitPushdown, ProjectionPushdown};
use crate::rule::{PhysicalOptimizerRule, RuleKind};
use std::sync::Arc;

/// The default pipeline.
pub fn default_rules() -> Vec<Arc<dyn PhysicalOptimizerRule>> {
    vec![
        Arc::new(OutputRequirements::new_add_mode()),
        Arc::new(JoinSelection),
        Arc::new(FilterPushdown::new()),
        Arc::new(EnsureRequirements),
        Arc::new(ProjectionPushdown),
        Arc::new(OutputRequirements::new_remove_mode()),
        Arc::new(LimitPushdown),
        Arc::new(ProjectionPushdown),
        Arc::new(SanityCheckPlan),
    ]
}

/// The rules of the default pipeline that always run: what completes a plan that no rule, or
/// another set of rules, has rewritten.
pub fn enforce_rules() -> Vec<Arc<dyn PhysicalOptimizerRule>> {
    default_rules().into_iter().filter(|rule| rule.kind() == RuleKind::Enforce).collect()
}
