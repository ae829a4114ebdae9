//! The physical optimizer: a pipeline of small rules, run once, in order.
//!
//! A rule in [`rewrite`] makes a plan cheaper and may be skipped; one in [`enforce`] makes it
//! executable and always runs. The driver, [`PhysicalOptimizer`], decides which rules run, times
//! them, checks that the schema stayed, and keeps a [`Trace`]; rules contain none of that.
//!
//! Architecture invariant: no file format, no table and no SQL is known here; scans are reached
//! through the methods of [`planish_plan::ExecutionPlan`].

mod driver;
pub mod enforce;
#[cfg(test)]
mod laws;
mod pipeline;
pub mod rewrite;
mod rule;
#[cfg(test)]
mod testing;
mod trace;
mod tree;

pub use driver::{OptimizedPlan, PhysicalOptimizer};
pub use pipeline::{default_rules, enforce_rules};
pub use rule::{PhysicalOptimizerRule, RuleKind};
pub use trace::{Outcome, Trace, TraceStep};
