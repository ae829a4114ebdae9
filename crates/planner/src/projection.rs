//! `Projection` becomes a `ProjectionExec`.

use crate::planner::{Lowering, named_projection};
use datafusion_common::Result;
use datafusion_expr::Projection;
use planish_expr::projection::ProjectionExpr;
use planish_plan::PlanRef;

impl Lowering {
    pub(crate) fn lower_projection(&self, node: &Projection) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let exprs = node
            .expr
            .iter()
            .zip(node.schema.fields())
            .map(|(expr, field)| {
                Ok(ProjectionExpr::new(self.expr(expr, node.input.schema())?, field.name()))
            })
            .collect::<Result<Vec<_>>>()?;
        named_projection(exprs, input, node.schema.inner())
    }
}
