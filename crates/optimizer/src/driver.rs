//! [`PhysicalOptimizer`]: runs the rules.
//!
//! For each rule: enabled? time it, run it, check the schema, write it into the trace.

use crate::pipeline::{default_rules, enforce_rules};
use crate::rule::{PhysicalOptimizerRule, RuleKind};
use crate::trace::{Outcome, Trace, TraceStep};
use arrow::datatypes::Schema;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, Result, internal_err, plan_err};
use planish_plan::config::PlanishOptions;
use planish_plan::{PlanRef, unshare_nodes};
use std::sync::Arc;
use std::time::Instant;

/// The name that disables every rule that may be skipped.
const ALL: &str = "all";

/// A pipeline of rules.
///
/// Rules are reorderable: any order and any subset of the rewrites gives a plan with the same
/// rows, as long as the enforce rules come after the rewrites they serve. But a rule may silently
/// stop matching: the default order is the one in which each rule finds the shapes it knows. To
/// leave a rule out, turn its knob off rather than reorder the pipeline.
#[derive(Clone, Debug)]
pub struct PhysicalOptimizer {
    rules: Vec<Arc<dyn PhysicalOptimizerRule>>,
}

/// A plan ready to run, and how it came about.
#[derive(Clone, Debug)]
pub struct OptimizedPlan {
    /// The plan after the last rule.
    pub plan: PlanRef,
    /// What every rule did.
    pub trace: Trace,
}

impl Default for PhysicalOptimizer {
    fn default() -> Self {
        Self::new()
    }
}

impl PhysicalOptimizer {
    /// The default pipeline.
    pub fn new() -> Self {
        Self::with_rules(default_rules())
    }

    /// Only the rules that make a plan executable.
    pub fn enforce_only() -> Self {
        Self::with_rules(enforce_rules())
    }

    /// A pipeline of these rules, in this order.
    pub fn with_rules(rules: Vec<Arc<dyn PhysicalOptimizerRule>>) -> Self {
        PhysicalOptimizer { rules }
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Arc<dyn PhysicalOptimizerRule>] {
        &self.rules
    }

    /// Runs the rules on `plan`, once each, in order.
    ///
    /// # Errors
    /// Those of the rules; an internal error naming the rule that changed the schema; a plan
    /// error when a rule to disable does not exist.
    pub fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<OptimizedPlan> {
        let disabled = self.disabled_rules(options)?;
        let mut trace = Trace::default();
        let mut plan = plan;
        for (i, rule) in self.rules.iter().enumerate() {
            let run = 1 + self.rules[..i].iter().filter(|r| r.name() == rule.name()).count();
            let started = Instant::now();
            let before = Arc::clone(&plan);
            let skippable = rule.kind() == RuleKind::Rewrite;
            let skip = skippable
                && (!rule.is_enabled(options) || disabled.names(rule.name()) || disabled.all);
            let outcome = if skip {
                Outcome::Skipped
            } else {
                let changed = rule.optimize(Arc::clone(&plan), options);
                match changed.map_err(|e| in_context(e, rule.name()))? {
                    None => Outcome::Unchanged,
                    Some(new) => {
                        debug_assert!(
                            !Arc::ptr_eq(&new, &plan),
                            "{}: nothing changed",
                            rule.name()
                        );
                        check_schema(rule.name(), &plan.schema(), &new.schema())?;
                        plan = new;
                        Outcome::Changed
                    }
                }
            };
            trace.push(TraceStep {
                rule: rule.name(),
                run,
                kind: rule.kind(),
                outcome,
                elapsed: started.elapsed(),
                before,
                after: Arc::clone(&plan),
            });
        }
        // Per-execution state hangs on node identity: no node may stand in two places.
        Ok(OptimizedPlan { plan: unshare_nodes(plan)?, trace })
    }

    fn disabled_rules(&self, options: &ConfigOptions) -> Result<Disabled> {
        let names: Vec<String> = PlanishOptions::of(options)
            .disable_rules
            .split(',')
            .map(normalized)
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            return Ok(Disabled::default());
        }
        let known = default_rules();
        let known = || known.iter().chain(&self.rules).map(|rule| rule.name());
        for name in &names {
            if name != ALL && !known().any(|rule| normalized(rule) == *name) {
                return plan_err!("there is no optimizer rule called {name} to disable");
            }
        }
        Ok(Disabled { all: names.iter().any(|name| name == ALL), names })
    }
}

/// The rules that the session's options disable by name.
#[derive(Default)]
struct Disabled {
    all: bool,
    names: Vec<String>,
}

impl Disabled {
    fn names(&self, rule: &str) -> bool {
        !self.names.is_empty() && self.names.contains(&normalized(rule))
    }
}

/// `FilterPushdown`, `filter_pushdown` and `filterpushdown` are one name.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| *c != '_' && !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Internal errors name the rule; errors of the user stay as they are.
fn in_context(error: DataFusionError, rule: &str) -> DataFusionError {
    match error {
        DataFusionError::Internal(text) => {
            DataFusionError::Internal(format!("optimizer rule {rule}: {text}"))
        }
        other => other,
    }
}

/// A rule keeps names, types, nullability and metadata of every output column.
fn check_schema(rule: &str, before: &Schema, after: &Schema) -> Result<()> {
    if before == after {
        return Ok(());
    }
    let changed = before.fields().iter().zip(after.fields()).find(|(a, b)| a != b);
    if before.fields().len() != after.fields().len() {
        return internal_err!(
            "optimizer rule {rule} changed the number of columns from {} to {}",
            before.fields().len(),
            after.fields().len()
        );
    }
    match changed {
        Some((a, b)) => internal_err!("optimizer rule {rule} changed a column from {a} to {b}"),
        None => internal_err!(
            "optimizer rule {rule} changed the metadata of the schema from {:?} to {:?}",
            before.metadata(),
            after.metadata()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    /// Claims to do nothing and changes the schema.
    #[derive(Debug)]
    struct Renames;

    impl PhysicalOptimizerRule for Renames {
        fn name(&self) -> &'static str {
            "Renames"
        }

        fn optimize(&self, plan: PlanRef, _: &ConfigOptions) -> Result<Option<PlanRef>> {
            Ok(Some(project(vec![(col("a", 0), "b")], plan)))
        }
    }

    #[test]
    fn a_rule_that_changes_the_schema_is_named() {
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::new(Renames)]);
        let error = optimizer.optimize(scan(&["a"], 1), &options()).unwrap_err().strip_backtrace();
        assert!(error.contains("optimizer rule Renames changed a column from"), "{error}");
    }

    #[test]
    fn the_trace_tells_what_every_rule_did() {
        let optimizer = PhysicalOptimizer::new();
        let plan = columns(&[1, 0], scan(&["a", "b"], 1));
        let done = optimizer.optimize(Arc::clone(&plan), &options()).unwrap();
        let names: Vec<_> = done.trace.steps().iter().map(|s| s.rule).collect();
        assert_eq!(names, rule_names());
        assert!(done.trace.fired("ProjectionPushdown"));
        assert!(!done.trace.fired("LimitPushdown"));
        let labels: Vec<_> = done.trace.steps().iter().map(TraceStep::label).collect();
        assert!(labels.contains(&"ProjectionPushdown (2)".to_owned()), "{labels:?}");
        for pair in done.trace.steps().windows(2) {
            assert!(Arc::ptr_eq(&pair[0].after, &pair[1].before));
        }
        for step in done.trace.steps() {
            assert_eq!(step.changed(), !Arc::ptr_eq(&step.before, &step.after), "{}", step.rule);
        }
        assert!(done.trace.to_string().contains("after ProjectionPushdown (rewrite, "));
    }

    #[test]
    fn a_rewrite_is_disabled_by_name_and_an_enforce_rule_is_not() {
        let plan = || columns(&[1, 0], scan(&["a", "b"], 2));
        let outcome_of = |disabled: &str, rule: &str| {
            let mut planish = PlanishOptions::default();
            planish.disable_rules = disabled.to_owned();
            let mut options = options();
            options.extensions.insert(planish);
            let done = PhysicalOptimizer::new().optimize(plan(), &options).unwrap();
            done.trace.steps().iter().find(|s| s.rule == rule).unwrap().outcome
        };
        for name in [
            "ProjectionPushdown",
            "projection_pushdown",
            "LimitPushdown, ProjectionPushdown",
            "all",
        ] {
            assert_eq!(outcome_of(name, "ProjectionPushdown"), Outcome::Skipped, "{name}");
        }
        assert_eq!(outcome_of("", "ProjectionPushdown"), Outcome::Changed);
        assert_eq!(outcome_of("EnsureRequirements", "EnsureRequirements"), Outcome::Changed);
        assert_eq!(outcome_of("all", "OutputRequirements"), Outcome::Changed);
    }

    #[test]
    fn an_unknown_rule_to_disable_is_an_error() {
        let mut planish = PlanishOptions::default();
        planish.disable_rules = "FilterPushup".to_owned();
        let mut options = options();
        options.extensions.insert(planish);
        let error = PhysicalOptimizer::new().optimize(scan(&["a"], 1), &options).unwrap_err();
        assert!(error.to_string().contains("filterpushup"), "{error}");
    }

    #[test]
    fn a_node_in_two_places_is_copied() {
        let shared = scan(&["a"], 1);
        let plan = union(vec![Arc::clone(&shared), shared]);
        let done = PhysicalOptimizer::with_rules(vec![]).optimize(plan, &options()).unwrap();
        let children = done.plan.children();
        assert!(!Arc::ptr_eq(children[0], children[1]));
    }
}
