//! STUB of `HashJoinExec`: signatures only.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMode {
    CollectLeft,
    Partitioned,
    /** not decided yet (JoinSelection decides) */
    Auto,
}

#[derive(Debug)]
pub struct HashJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) join_type: JoinType,
    pub(crate) on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
    pub(crate) mode: PartitionMode,
    pub(crate) null_equality: NullEquality,
    pub(crate) null_aware: bool,
    properties: PlanProperties,
}
impl HashJoinExec {
    pub fn try_new(
        left: PlanRef,
        right: PlanRef,
        on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
        filter: Option<JoinFilter>,
        join_type: JoinType,
        mode: PartitionMode,
        null_equality: NullEquality,
        null_aware: bool,
    ) -> Result<Self> {
        not_impl_err!("HashJoinExec")
    }
    pub fn swap_inputs(&self, mode: PartitionMode) -> Result<PlanRef> {
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
    pub fn on(&self) -> &[(PhysicalExprRef, PhysicalExprRef)] {
        &self.on
    }
    pub fn mode(&self) -> PartitionMode {
        self.mode
    }
    pub fn null_equality(&self) -> NullEquality {
        self.null_equality
    }
    pub fn null_aware(&self) -> bool {
        self.null_aware
    }
}

impl ExecutionPlan for HashJoinExec {
    fn name(&self) -> &'static str {
        "HashJoinExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("HashJoinExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("HashJoinExec")
    }
}
impl Pushdown for HashJoinExec {}
