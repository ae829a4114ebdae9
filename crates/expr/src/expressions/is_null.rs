//! `IS NULL` and `IS NOT NULL`.

use super::display::{Precedence, operand};
use super::exactly;
use super::kernels::apply_unary;
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::compute;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `expr IS [NOT] NULL`.
#[derive(Clone, Debug)]
pub struct IsNullExpr {
    expr: PhysicalExprRef,
    negated: bool,
}

structural_eq!(IsNullExpr { expr, negated });

impl IsNullExpr {
    /// `expr IS NULL`.
    pub fn is_null(expr: PhysicalExprRef) -> Self {
        IsNullExpr { expr, negated: false }
    }

    /// `expr IS NOT NULL`.
    pub fn is_not_null(expr: PhysicalExprRef) -> Self {
        IsNullExpr { expr, negated: true }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// Whether this is `IS NOT NULL`.
    pub fn negated(&self) -> bool {
        self.negated
    }
}

impl fmt::Display for IsNullExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = if self.negated { "IS NOT NULL" } else { "IS NULL" };
        write!(f, "{} {test}", operand(&self.expr, Precedence::TEST.next()))
    }
}

impl PhysicalExpr for IsNullExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("is_null", DataType::Boolean, false)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        apply_unary(&self.expr.evaluate(batch)?, |array| {
            Ok(Arc::new(match self.negated {
                false => compute::is_null(array)?,
                true => compute::is_not_null(array)?,
            }))
        })
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr] = exactly(children)?;
        Ok(Arc::new(IsNullExpr { expr, negated: self.negated }))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}
