//! The border to DataFusion's function library.
#![allow(missing_docs, dead_code)]
use crate::{PhysicalExprRef, PhysicalSortExpr};
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_common::{Result, not_impl_err};
use datafusion_expr::{Accumulator, AggregateUDF, GroupsAccumulator};
use std::sync::Arc;

/// STUB. One call of an aggregate function: `sum(DISTINCT a@0) FILTER (WHERE b@1)`.
#[derive(Clone, Debug)]
pub struct AggregateFunctionExpr {
    pub fun: Arc<AggregateUDF>,
    /// Arguments, over `input_schema`.
    pub args: Vec<PhysicalExprRef>,
    pub input_schema: SchemaRef,
    /// Name of the output column.
    pub name: String,
    pub distinct: bool,
    pub ignore_nulls: bool,
    pub order_by: Vec<PhysicalSortExpr>,
    /// The FILTER clause, over `input_schema`.
    pub filter: Option<PhysicalExprRef>,
}

impl AggregateFunctionExpr {
    #[allow(clippy::too_many_arguments)]
    pub fn try_new(
        fun: Arc<AggregateUDF>,
        args: Vec<PhysicalExprRef>,
        input_schema: SchemaRef,
        name: String,
        distinct: bool,
        ignore_nulls: bool,
        order_by: Vec<PhysicalSortExpr>,
        filter: Option<PhysicalExprRef>,
    ) -> Result<Self> {
        Ok(Self { fun, args, input_schema, name, distinct, ignore_nulls, order_by, filter })
    }
    /// The output field (named `self.name`).
    pub fn field(&self) -> Result<FieldRef> {
        not_impl_err!("stub")
    }
    /// The fields of the partial state.
    pub fn state_fields(&self) -> Result<Vec<FieldRef>> {
        not_impl_err!("stub")
    }
    pub fn groups_accumulator_supported(&self) -> bool {
        false
    }
    pub fn create_groups_accumulator(&self) -> Result<Box<dyn GroupsAccumulator>> {
        not_impl_err!("stub")
    }
    pub fn create_accumulator(&self) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("stub")
    }
}
