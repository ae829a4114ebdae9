//! [`Trace`]: what every rule did to a plan.

use crate::rule::RuleKind;
use planish_plan::PlanRef;
use planish_plan::display::displayable;
use std::fmt;
use std::time::Duration;

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did not run: its knob is off, or it is disabled by name.
    Skipped,
    /// It ran and left the plan as it was.
    Unchanged,
    /// It changed the plan.
    Changed,
}

/// One rule's step. The plans are kept as they are and rendered on demand.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// The rule's name.
    pub rule: &'static str,
    /// Which run of this rule in the pipeline: 1 for the first.
    pub run: usize,
    /// Whether the rule could have been skipped.
    pub kind: RuleKind,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
    /// The plan it was given.
    pub before: PlanRef,
    /// The plan it returned; the same node as `before` when it changed nothing.
    pub after: PlanRef,
}

impl TraceStep {
    /// The rule's name, with the number of its run from the second on: `ProjectionPushdown (2)`.
    pub fn label(&self) -> String {
        if self.run == 1 { self.rule.to_owned() } else { format!("{} ({})", self.rule, self.run) }
    }

    /// Whether the rule changed the plan.
    pub fn changed(&self) -> bool {
        self.outcome == Outcome::Changed
    }
}

/// What every rule of a pipeline did, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    steps: Vec<TraceStep>,
}

impl Trace {
    pub(crate) fn push(&mut self, step: TraceStep) {
        self.steps.push(step);
    }

    /// All steps, skipped rules among them.
    pub fn steps(&self) -> &[TraceStep] {
        &self.steps
    }

    /// The steps that changed the plan.
    pub fn changes(&self) -> impl Iterator<Item = &TraceStep> {
        self.steps.iter().filter(|step| step.changed())
    }

    /// Whether `rule` changed the plan, in any of its runs.
    pub fn fired(&self, rule: &str) -> bool {
        self.changes().any(|step| step.rule == rule)
    }

    /// How long all rules took.
    pub fn elapsed(&self) -> Duration {
        self.steps.iter().map(|step| step.elapsed).sum()
    }
}

/// The steps that changed the plan, each with the plan after it.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.changes() {
            writeln!(f, "after {} ({}, {:.1?}):", step.label(), step.kind, step.elapsed)?;
            for line in displayable(&step.after).to_string().lines() {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
