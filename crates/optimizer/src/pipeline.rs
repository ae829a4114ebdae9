//! The default order of the rules, and why.
//!
//! `OutputRequirements` first notes what the query promised. `AggregateStatistics` answers what
//! needs no reading. `JoinSelection` swaps inputs and
//! picks modes, on which requirements depend; filters go down before shuffles and sorts are put
//! in, so that nothing stands in their way; `EnsureRequirements` puts those in; projections and
//! limits come after, since they may pass what was put in (a fetch becomes the fetch of a sort
//! and of a merge). `ProjectionPushdown` runs again on the shapes that only exist then.
//!
//! Places of rules still to come: `EliminateConstantJoin`, `SharedSubplans` and `JoinOrder` before `JoinSelection`; `RangeJoin` and
//! `LimitedDistinctAggregation` after it; `WindowTopN` before `EnsureRequirements`;
//! `OptimizeAggregateOrder` after it; `TopKAggregation` and
//! `HashJoinBuffering` around `LimitPushPastWindows`; `TopKRepartition` and `LateMaterialization`
//! after `LimitPushdown`; `PushdownSort` and `EnsureCooperative` before the post phase of
//! `FilterPushdown`, which gives scans their dynamic filters: nothing may change the plan after it.

use crate::enforce::{EnsureRequirements, OutputRequirements, SanityCheckPlan};
use crate::rewrite::{
    AggregateStatistics, CombinePartialFinalAggregate, FilterPushdown, JoinSelection,
    LimitPushPastWindows, LimitPushdown, ProjectionPushdown,
};
use crate::rule::{PhysicalOptimizerRule, RuleKind};
use std::sync::Arc;

/// The default pipeline.
pub fn default_rules() -> Vec<Arc<dyn PhysicalOptimizerRule>> {
    vec![
        Arc::new(OutputRequirements::new_add_mode()),
        Arc::new(AggregateStatistics),
        Arc::new(JoinSelection),
        Arc::new(FilterPushdown::new()),
        Arc::new(EnsureRequirements),
        Arc::new(CombinePartialFinalAggregate),
        Arc::new(ProjectionPushdown),
        Arc::new(OutputRequirements::new_remove_mode()),
        Arc::new(LimitPushPastWindows),
        Arc::new(LimitPushdown),
        Arc::new(ProjectionPushdown),
        Arc::new(FilterPushdown::new_post_optimization()),
        Arc::new(SanityCheckPlan),
    ]
}

/// The rules of the default pipeline that always run: what completes a plan that no rule, or
/// another set of rules, has rewritten.
pub fn enforce_rules() -> Vec<Arc<dyn PhysicalOptimizerRule>> {
    default_rules().into_iter().filter(|rule| rule.kind() == RuleKind::Enforce).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use itertools::Itertools;
    use std::fmt::Write;
    use std::path::Path;

    /// The source files whose module comments are the sections of `docs/rules.md`.
    const SOURCES: [(&str, &str); 10] = [
        ("OutputRequirements", include_str!("enforce/output_requirements.rs")),
        ("AggregateStatistics", include_str!("rewrite/aggregate_statistics.rs")),
        ("JoinSelection", include_str!("rewrite/join_selection.rs")),
        ("FilterPushdown", include_str!("rewrite/filter_pushdown.rs")),
        ("EnsureRequirements", include_str!("enforce/ensure_requirements/mod.rs")),
        (
            "CombinePartialFinalAggregate",
            include_str!("rewrite/combine_partial_final_aggregate.rs"),
        ),
        ("ProjectionPushdown", include_str!("rewrite/projection_pushdown/mod.rs")),
        ("LimitPushPastWindows", include_str!("rewrite/limit_push_past_windows.rs")),
        ("LimitPushdown", include_str!("rewrite/limit_pushdown.rs")),
        ("SanityCheckPlan", include_str!("enforce/sanity_check_plan.rs")),
    ];

    const INTRODUCTION: &str = "\
# Rules of the physical optimizer

The rules run once, in this order. `enforce` rules make a plan executable and always run; any
`rewrite` rule can be switched off: `SET planish.optimizer.disable = 'FilterPushdown,LimitPushdown'`
(or `'all'`). `EXPLAIN VERBOSE` shows the plan after every rule that changed it.

Any order and any subset of the rewrites gives the same rows, but a rule may then miss a shape that
it would meet in this order. Turn a knob off; do not reorder the pipeline.

This page is made of the rules' module comments, whose plans are asserted by tests
(`PLANISH_UPDATE_DOCS=1 cargo test -p planish-optimizer docs` writes it anew).
";

    fn page() -> String {
        let mut page = INTRODUCTION.to_owned();
        page.push_str("\n| # | rule | kind | what it does |\n| --- | --- | --- | --- |\n");
        let rules = default_rules();
        let comment = |rule: &str| {
            let source = SOURCES.iter().find(|(name, _)| *name == rule).unwrap().1;
            source
                .lines()
                .map_while(|line| line.strip_prefix("//!"))
                .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
                .collect::<Vec<_>>()
        };
        for (i, rule) in rules.iter().enumerate() {
            let (name, kind) = (rule.name(), rule.kind());
            let first = comment(name).iter().take_while(|line| !line.is_empty()).join(" ");
            writeln!(page, "| {} | [{name}](#{}) | {kind} | {first} |", i + 1, name.to_lowercase())
                .unwrap();
        }
        for rule in rules.iter().map(|rule| rule.name()).unique() {
            writeln!(page, "\n## {rule}").unwrap();
            for line in comment(rule) {
                let demoted = line.starts_with("# ");
                writeln!(page, "{}{line}", if demoted { "##" } else { "" }).unwrap();
            }
        }
        page
    }

    #[test]
    fn the_docs_list_the_pipeline() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
        if std::env::var_os("PLANISH_UPDATE_DOCS").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, page(), "docs/rules.md; PLANISH_UPDATE_DOCS=1 writes it anew");
    }

    #[test]
    fn every_section_of_a_comment_is_there() {
        for (rule, source) in SOURCES {
            for part in ["# Before", "# After", "**Declines**", "**Knob**"] {
                assert!(source.contains(&format!("//! {part}")), "{rule} lacks {part}");
            }
        }
    }
}
