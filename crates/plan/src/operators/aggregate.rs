//! STUB of `AggregateExec`: signatures only.
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

use planish_expr::udf::AggregateFunctionExpr;
/// Which part of an aggregation a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateMode {
    Partial,
    Final,
    FinalPartitioned,
    Single,
    SinglePartitioned,
}
/// Group expressions; several `groups` are grouping sets (true = the expression is NULL in that set).
#[derive(Clone, Debug, Default)]
pub struct PhysicalGroupBy {
    pub exprs: Vec<(PhysicalExprRef, String)>,
    pub groups: Vec<Vec<bool>>,
}
impl PhysicalGroupBy {
    pub fn new_single(exprs: Vec<(PhysicalExprRef, String)>) -> Self {
        let n = exprs.len();
        PhysicalGroupBy { exprs, groups: vec![vec![false; n]] }
    }
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }
    /// One set in which no expression is NULL.
    pub fn is_single(&self) -> bool {
        self.groups.len() == 1 && self.groups[0].iter().all(|n| !n)
    }
}

#[derive(Debug)]
pub struct AggregateExec {
    pub(crate) mode: AggregateMode,
    pub(crate) group_by: PhysicalGroupBy,
    pub(crate) aggregates: Vec<Arc<AggregateFunctionExpr>>,
    pub(crate) input: PlanRef,
    properties: PlanProperties,
}
impl AggregateExec {
    pub fn try_new(
        mode: AggregateMode,
        group_by: PhysicalGroupBy,
        aggregates: Vec<Arc<AggregateFunctionExpr>>,
        input: PlanRef,
        input_schema: SchemaRef,
    ) -> Result<Self> {
        not_impl_err!("AggregateExec")
    }
    pub fn mode(&self) -> AggregateMode {
        self.mode
    }
    pub fn group_by(&self) -> &PhysicalGroupBy {
        &self.group_by
    }
    pub fn aggregates(&self) -> &[Arc<AggregateFunctionExpr>] {
        &self.aggregates
    }
    pub fn input(&self) -> &PlanRef {
        &self.input
    }
}

impl ExecutionPlan for AggregateExec {
    fn name(&self) -> &'static str {
        "AggregateExec"
    }
    fn properties(&self) -> &PlanProperties {
        &self.properties
    }
    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }
    fn with_new_children(self: Arc<Self>, _children: Vec<PlanRef>) -> Result<PlanRef> {
        not_impl_err!("AggregateExec")
    }
    fn fmt_details(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
    fn execute(&self, _partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        not_impl_err!("AggregateExec")
    }
}
impl Pushdown for AggregateExec {}
