//! `BETWEEN` over an operand that must be evaluated once.

use super::display::{Precedence, operand};
use super::kernels::{Bools, and_kleene, compare, or_kleene};
use super::{exactly, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `expr [NOT] BETWEEN low AND high`. With an operand that may be evaluated twice, two
/// comparisons say the same and more rules understand them.
#[derive(Clone, Debug)]
pub struct BetweenExpr {
    expr: PhysicalExprRef,
    negated: bool,
    low: PhysicalExprRef,
    high: PhysicalExprRef,
}

structural_eq!(BetweenExpr { expr, negated, low, high });

impl BetweenExpr {
    /// `expr [NOT] BETWEEN low AND high`.
    pub fn new(
        expr: PhysicalExprRef,
        negated: bool,
        low: PhysicalExprRef,
        high: PhysicalExprRef,
    ) -> Self {
        BetweenExpr { expr, negated, low, high }
    }

    /// The value that is placed.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// Whether this is `NOT BETWEEN`.
    pub fn negated(&self) -> bool {
        self.negated
    }

    /// The lower end.
    pub fn low(&self) -> &PhysicalExprRef {
        &self.low
    }

    /// The upper end.
    pub fn high(&self) -> &PhysicalExprRef {
        &self.high
    }

    fn apply(&self, batch: &Batch) -> Result<ColumnarValue> {
        let value = self.expr.evaluate(batch)?;
        let (above, below) = match self.negated {
            false => (Operator::GtEq, Operator::LtEq),
            true => (Operator::Lt, Operator::Gt),
        };
        let low = Bools::new(&compare(above, &value, &self.low.evaluate(batch)?)?)?;
        let high = Bools::new(&compare(below, &value, &self.high.evaluate(batch)?)?)?;
        let both = if self.negated { or_kleene(low, high)? } else { and_kleene(low, high)? };
        Ok(both.into_value())
    }
}

impl fmt::Display for BetweenExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "NOT " } else { "" };
        let side = |e| operand(e, Precedence::TEST.next());
        write!(f, "{} {not}BETWEEN {} AND {}", side(&self.expr), side(&self.low), side(&self.high))
    }
}

impl PhysicalExpr for BetweenExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let nullable = self.expr.nullable(input_schema)?
            || self.low.nullable(input_schema)?
            || self.high.nullable(input_schema)?;
        Ok(Arc::new(Field::new("between", DataType::Boolean, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        or_empty(self.apply(batch), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr, &self.low, &self.high]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr, low, high] = exactly(children)?;
        Ok(Arc::new(BetweenExpr::new(expr, self.negated, low, high)))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}
