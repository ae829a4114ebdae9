//! STUB of `NestedLoopJoinExec`: signatures only.
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
pub struct NestedLoopJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) join_type: JoinType,
    properties: PlanProperties,
}
impl NestedLoopJoinExec {
    pub fn try_new(
        left: PlanRef,
        right: PlanRef,
        filter: Option<JoinFilter>,
        join_type: JoinType,
    ) -> Result<Self> {
        not_impl_err!("NestedLoopJoinExec")
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
    pub fn filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }
}

impl ExecutionPlan for NestedLoopJoinExec {
    fn name(&self) -> &'static str {
        "NestedLoopJoinExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("NestedLoopJoinExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("NestedLoopJoinExec")
    }
}
impl Pushdown for NestedLoopJoinExec {}
