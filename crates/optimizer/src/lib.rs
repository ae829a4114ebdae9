//! STUB of `planish-optimizer`.
#![allow(missing_docs)]
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_plan::PlanRef;
#[derive(Clone, Debug, Default)]
pub struct PhysicalOptimizer {}
#[derive(Clone, Debug)]
pub struct OptimizedPlan {
    pub plan: PlanRef,
    pub trace: Trace,
}
impl PhysicalOptimizer {
    pub fn optimize(&self, plan: PlanRef, _: &ConfigOptions) -> Result<OptimizedPlan> {
        Ok(OptimizedPlan { plan, trace: Trace::default() })
    }
}
#[derive(Clone, Debug, Default)]
pub struct Trace {
    steps: Vec<TraceStep>,
}
#[derive(Clone, Debug)]
pub struct TraceStep {
    pub before: PlanRef,
    pub after: PlanRef,
}
impl TraceStep {
    pub fn label(&self) -> String {
        String::new()
    }
}
impl Trace {
    pub fn steps(&self) -> &[TraceStep] {
        &self.steps
    }
    pub fn changes(&self) -> impl Iterator<Item = &TraceStep> {
        self.steps.iter()
    }
}
