//! `IS TRUE`, `IS FALSE` and their negations.

use super::branches::true_bits;
use super::display::{Precedence, operand};
use super::exactly;
use super::kernels::Bools;
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::array::{Array, BooleanArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `expr IS [NOT] TRUE`, `expr IS [NOT] FALSE`: never NULL.
#[derive(Clone, Debug)]
pub struct IsBoolExpr {
    expr: PhysicalExprRef,
    value: bool,
    negated: bool,
}

structural_eq!(IsBoolExpr { expr, value, negated });

impl IsBoolExpr {
    /// `expr IS [NOT] value`.
    pub fn new(expr: PhysicalExprRef, value: bool, negated: bool) -> Self {
        IsBoolExpr { expr, value, negated }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// Whether this asks for true, or for false.
    pub fn value(&self) -> bool {
        self.value
    }

    /// Whether this is `IS NOT`.
    pub fn negated(&self) -> bool {
        self.negated
    }
}

impl fmt::Display for IsBoolExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "NOT " } else { "" };
        let value = if self.value { "TRUE" } else { "FALSE" };
        write!(f, "{} IS {not}{value}", operand(&self.expr, Precedence::TEST.next()))
    }
}

impl PhysicalExpr for IsBoolExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("is_bool", DataType::Boolean, false)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        Ok(match Bools::new(&self.expr.evaluate(batch)?)? {
            Bools::Scalar(value) => {
                let answer = (value == Some(self.value)) != self.negated;
                ColumnarValue::Scalar(ScalarValue::Boolean(Some(answer)))
            }
            Bools::Array(array) => {
                let hits = if self.value {
                    true_bits(&array)
                } else {
                    true_bits(&BooleanArray::new(!array.values(), array.nulls().cloned()))
                };
                let bits = if self.negated { !&hits } else { hits };
                ColumnarValue::Array(Arc::new(BooleanArray::new(bits, None)))
            }
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
        Ok(Arc::new(IsBoolExpr::new(expr, self.value, self.negated)))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}
