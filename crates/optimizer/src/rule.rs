//! [`PhysicalOptimizerRule`]: what a rule says about itself.

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_plan::PlanRef;
use std::fmt;

/// Whether a rule may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Makes a plan executable: it always runs.
    Enforce,
    /// Makes a plan cheaper: any subset of these may be skipped.
    Rewrite,
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleKind::Enforce => "enforce",
            RuleKind::Rewrite => "rewrite",
        })
    }
}

/// One step of the optimizer.
///
/// The plan a rule returns, completed by the enforce rules, can be executed and yields the same
/// rows and the same schema (names, types, nullability, metadata) as the plan it was given. A
/// rule that is run on its own result changes nothing more.
pub trait PhysicalOptimizerRule: fmt::Debug + Send + Sync {
    /// The rule's name, as `planish.optimizer.disable`, `EXPLAIN VERBOSE` and errors spell it.
    fn name(&self) -> &'static str;

    /// The plan this rule makes of `plan`; `None` when it leaves it as it is.
    ///
    /// # Errors
    /// When the plan is broken, or cannot be made executable.
    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>>;

    /// Whether the rule may be skipped.
    fn kind(&self) -> RuleKind {
        RuleKind::Rewrite
    }

    /// Whether the rule's own knob, if it has one, is on.
    fn is_enabled(&self, _options: &ConfigOptions) -> bool {
        true
    }
}
