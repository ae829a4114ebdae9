//! `EmptyRelation` becomes an `EmptyExec`, or the one row of a `SELECT` without `FROM`.

use crate::planner::Lowering;
use datafusion_common::Result;
use datafusion_expr::EmptyRelation;
use planish_plan::PlanRef;
use planish_plan::operators::empty::EmptyExec;
use planish_plan::operators::placeholder_row::PlaceholderRowExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_empty_relation(&self, node: &EmptyRelation) -> Result<PlanRef> {
        let schema = Arc::clone(node.schema.inner());
        Ok(if node.produce_one_row {
            Arc::new(PlaceholderRowExec::new(schema))
        } else {
            Arc::new(EmptyExec::new(schema))
        })
    }
}
