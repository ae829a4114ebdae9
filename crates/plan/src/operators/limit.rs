//! STUB of `GlobalLimitExec`: signatures only.
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
pub struct GlobalLimitExec {
    pub(crate) input: PlanRef,
    pub(crate) skip: usize,
    pub(crate) limit: Option<usize>,
    properties: PlanProperties,
}
impl GlobalLimitExec {
    pub fn new(input: PlanRef, skip: usize, fetch: Option<usize>) -> Self {
        unimplemented!()
    }
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
    pub fn skip(&self) -> usize {
        self.skip
    }
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }
}

impl ExecutionPlan for GlobalLimitExec {
    fn name(&self) -> &'static str {
        "GlobalLimitExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("GlobalLimitExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("GlobalLimitExec")
    }
}
impl Pushdown for GlobalLimitExec {}

#[derive(Debug)]
pub struct LocalLimitExec {
    pub(crate) input: PlanRef,
    pub(crate) limit: usize,
    properties: PlanProperties,
}
impl LocalLimitExec {
    pub fn new(input: PlanRef, fetch: usize) -> Self {
        unimplemented!()
    }
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl ExecutionPlan for LocalLimitExec {
    fn name(&self) -> &'static str {
        "LocalLimitExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("LocalLimitExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("LocalLimitExec")
    }
}
impl Pushdown for LocalLimitExec {}
