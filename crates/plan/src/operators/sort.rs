//! STUB of `SortExec`: signatures only.
#![allow(clippy::all, missing_docs, dead_code, unused)]
use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::join_filter::JoinFilter;
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::datatypes::SchemaRef;
use datafusion_common::{JoinType, NullEquality, Result, not_impl_err};
use planish_expr::{LexOrdering, Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;

#[derive(Debug)]
pub struct SortExec {
    pub(crate) input: PlanRef,
    pub(crate) expr: LexOrdering,
    pub(crate) limit: Option<usize>,
    pub(crate) preserve_partitioning: bool,
    properties: PlanProperties,
}
impl SortExec {
    pub fn new(expr: LexOrdering, input: PlanRef) -> Self {
        unimplemented!()
    }
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
    pub fn expr(&self) -> &LexOrdering {
        &self.expr
    }
    pub fn preserve_partitioning(&self) -> bool {
        self.preserve_partitioning
    }
    #[must_use]
    pub fn with_preserve_partitioning(self, preserve: bool) -> Self {
        unimplemented!()
    }
    /// As `with_fetch`, on an owned node.
    #[must_use]
    pub fn with_limit(self, fetch: Option<usize>) -> Self {
        unimplemented!()
    }
}

impl ExecutionPlan for SortExec {
    fn name(&self) -> &'static str {
        "SortExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("SortExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("SortExec")
    }
}
impl Pushdown for SortExec {}
