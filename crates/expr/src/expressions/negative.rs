//! Unary minus.

use super::display::{Precedence, operand};
use super::kernels::apply_unary;
use super::{exactly, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::compute::kernels::numeric::neg_wrapping;
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, plan_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `- expr`. Integers wrap around.
#[derive(Clone, Debug)]
pub struct NegativeExpr {
    expr: PhysicalExprRef,
}

structural_eq!(NegativeExpr { expr });

impl NegativeExpr {
    /// `- expr`.
    pub fn new(expr: PhysicalExprRef) -> Self {
        NegativeExpr { expr }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }
}

impl fmt::Display for NegativeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A negative operand would make `--`, a comment.
        write!(f, "- {}", operand(&self.expr, Precedence::SIGN.next()))
    }
}

impl PhysicalExpr for NegativeExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let field = self.expr.return_field(input_schema)?;
        if field.data_type().is_unsigned_integer() {
            return plan_err!("{self}: {} has no negative values", field.data_type());
        }
        Ok(field)
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let value = self.expr.evaluate(batch)?;
        or_empty(apply_unary(&value, |array| Ok(neg_wrapping(array)?)), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr] = exactly(children)?;
        Ok(Arc::new(NegativeExpr::new(expr)))
    }

    fn can_fail_node(&self, input_schema: &Schema) -> bool {
        // The checked ones: intervals and durations.
        self.expr.data_type(input_schema).map_or(true, |t| !t.is_numeric())
    }
}
