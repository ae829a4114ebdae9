//! `Values` becomes a `ValuesExec`.

use crate::planner::Lowering;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::Values;
use planish_plan::PlanRef;
use planish_plan::operators::values::ValuesExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_values(&self, node: &Values) -> Result<PlanRef> {
        let no_input = DFSchema::empty();
        let rows =
            node.values.iter().map(|row| self.exprs(row, &no_input)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ValuesExec::try_new(Arc::clone(node.schema.inner()), rows)?))
    }
}
