//! STUB of `CrossJoinExec`: signatures only.
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
pub struct CrossJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    properties: PlanProperties,
}
impl CrossJoinExec {
    pub fn new(left: PlanRef, right: PlanRef) -> Self {
        unimplemented!()
    }
    pub fn swap_inputs(&self) -> Result<PlanRef> {
        not_impl_err!("swap")
    }
    pub fn left(&self) -> &PlanRef {
        &self.left
    }
    pub fn right(&self) -> &PlanRef {
        &self.right
    }
}

impl ExecutionPlan for CrossJoinExec {
    fn name(&self) -> &'static str {
        "CrossJoinExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("CrossJoinExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("CrossJoinExec")
    }
}
impl Pushdown for CrossJoinExec {}
