//! `NOT`.

use super::display::{Precedence, operand};
use super::exactly;
use super::kernels::Bools;
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::compute;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `NOT expr`.
#[derive(Clone, Debug)]
pub struct NotExpr {
    expr: PhysicalExprRef,
}

structural_eq!(NotExpr { expr });

impl NotExpr {
    /// `NOT expr`.
    pub fn new(expr: PhysicalExprRef) -> Self {
        NotExpr { expr }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }
}

impl fmt::Display for NotExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `NOT a = b` is right SQL, and misread by most.
        write!(f, "NOT {}", operand(&self.expr, Precedence::SIGN))
    }
}

impl PhysicalExpr for NotExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let nullable = self.expr.nullable(input_schema)?;
        Ok(Arc::new(Field::new("not", DataType::Boolean, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let negated = match Bools::new(&self.expr.evaluate(batch)?)? {
            Bools::Scalar(value) => Bools::Scalar(value.map(|value| !value)),
            Bools::Array(array) => Bools::Array(compute::not(&array)?),
        };
        Ok(negated.into_value())
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr] = exactly(children)?;
        Ok(Arc::new(NotExpr::new(expr)))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}
