//! `Limit` becomes a `GlobalLimitExec`.

use crate::planner::Lowering;
use datafusion_common::{DFSchema, Result, ScalarValue, not_impl_err, plan_err};
use datafusion_expr::{ColumnarValue, Expr, Limit};
use planish_batch::Batch;
use planish_expr::expressions::ScalarSubqueryExpr;
use planish_expr::{PhysicalExprRef, is_volatile};
use planish_plan::PlanRef;
use planish_plan::operators::limit::GlobalLimitExec;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_limit(&self, node: &Limit) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let skip = match &node.skip {
            Some(expr) => self.row_count(expr, "OFFSET")?.unwrap_or(0),
            None => 0,
        };
        let fetch = match &node.fetch {
            Some(expr) => self.row_count(expr, "LIMIT")?,
            None => None,
        };
        if skip == 0 && fetch.is_none() {
            return Ok(input);
        }
        Ok(Arc::new(GlobalLimitExec::new(input, skip, fetch)))
    }

    /// The value of a constant expression; NULL is no limit.
    fn row_count(&self, expr: &Expr, clause: &str) -> Result<Option<usize>> {
        if expr.any_column_refs() {
            return plan_err!("{clause} {expr} must not refer to columns");
        }
        let physical = self.expr(expr, &DFSchema::empty())?;
        if is_volatile(&physical) || has_subquery(&physical) {
            return not_impl_err!("{clause} with an expression that is not constant: {expr}");
        }
        let row = Batch::try_new(Arc::clone(DFSchema::empty().inner()), vec![], 1)?;
        let value = match physical.evaluate(&row)? {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
        };
        match value.cast_to(&arrow::datatypes::DataType::Int64)? {
            ScalarValue::Int64(None) => Ok(None),
            ScalarValue::Int64(Some(n)) => match usize::try_from(n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => plan_err!("{clause} must not be negative, it is {n}"),
            },
            other => plan_err!("{clause} must be a number, it is {other}"),
        }
    }
}

fn has_subquery(expr: &PhysicalExprRef) -> bool {
    expr.is::<ScalarSubqueryExpr>() || expr.children().into_iter().any(has_subquery)
}
