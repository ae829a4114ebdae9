//! Binary operators.

use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, not_impl_err};
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `left op right`.
#[derive(Clone, Debug)]
pub struct BinaryExpr {
    left: PhysicalExprRef,
    op: Operator,
    right: PhysicalExprRef,
}

structural_eq!(BinaryExpr { left, op, right });

impl BinaryExpr {
    /// `left op right`.
    pub fn new(left: PhysicalExprRef, op: Operator, right: PhysicalExprRef) -> Self {
        BinaryExpr { left, op, right }
    }

    /// The left operand.
    pub fn left(&self) -> &PhysicalExprRef {
        &self.left
    }

    /// The operator.
    pub fn op(&self) -> &Operator {
        &self.op
    }

    /// The right operand.
    pub fn right(&self) -> &PhysicalExprRef {
        &self.right
    }
}

impl fmt::Display for BinaryExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.op, self.right)
    }
}

impl PhysicalExpr for BinaryExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        not_impl_err!("BinaryExpr")
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        not_impl_err!("BinaryExpr")
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        Ok(Arc::new(BinaryExpr::new(Arc::clone(&children[0]), self.op, Arc::clone(&children[1]))))
    }
}
