//! STUB of `SortPreservingMergeExec`: signatures only.
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
pub struct SortPreservingMergeExec {
    pub(crate) input: PlanRef,
    pub(crate) expr: LexOrdering,
    pub(crate) limit: Option<usize>,
    properties: PlanProperties,
}
impl SortPreservingMergeExec {
    pub fn new(expr: LexOrdering, input: PlanRef) -> Self {
        unimplemented!()
    }
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
    pub fn expr(&self) -> &LexOrdering {
        &self.expr
    }
}

impl ExecutionPlan for SortPreservingMergeExec {
    fn name(&self) -> &'static str {
        "SortPreservingMergeExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("SortPreservingMergeExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("SortPreservingMergeExec")
    }
}
impl Pushdown for SortPreservingMergeExec {}
