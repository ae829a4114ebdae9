//! `Union` becomes a `UnionExec` over inputs of equal names and types.

use crate::planner::{Lowering, named_projection};
use arrow::datatypes::SchemaRef;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, Union};
use planish_expr::projection::ProjectionExpr;
use planish_plan::PlanRef;
use planish_plan::operators::union::UnionExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_union(&self, node: &Union) -> Result<PlanRef> {
        let schema = node.schema.inner();
        let inputs = node
            .inputs
            .iter()
            .map(|input| self.union_input(input, schema))
            .collect::<Result<Vec<_>>>()?;
        match <[PlanRef; 1]>::try_from(inputs) {
            Ok([only]) => Ok(only),
            Err(inputs) => Ok(Arc::new(UnionExec::try_new(inputs)?)),
        }
    }

    /// `input`, cast and renamed to the union's columns where they differ.
    fn union_input(&self, input: &LogicalPlan, schema: &SchemaRef) -> Result<PlanRef> {
        let plan = self.lower(input)?;
        let own: &DFSchema = input.schema();
        let same = plan.schema().fields().iter().zip(schema.fields()).all(|(a, b)| {
            a.name() == b.name() && a.data_type() == b.data_type() && a.metadata() == b.metadata()
        });
        if same && plan.schema().metadata() == schema.metadata() {
            return Ok(plan);
        }
        let exprs = own
            .iter()
            .zip(schema.fields())
            .map(|(from, to)| {
                let column = Expr::from(from);
                let expr = column.cast_to(to.data_type(), own)?;
                Ok(ProjectionExpr::new(self.expr(&expr, own)?, to.name()))
            })
            .collect::<Result<Vec<_>>>()?;
        named_projection(exprs, plan, schema)
    }
}
