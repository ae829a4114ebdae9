//! Binary operators.

use super::display::{Precedence, operand};
use super::kernels::{arithmetic, bitwise, compare, concat_strings, exact_decimal};
use super::kernels::{regex_compiles, regex_match};
use super::{Literal, encoded_operands, logical, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `left op right`.
///
/// The right side of `AND` and `OR` is evaluated only on rows that the left side leaves open, if
/// it can fail.
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

    fn result_type(&self, left: &DataType, right: &DataType) -> Result<DataType> {
        if returns_boolean(self.op) {
            return Ok(DataType::Boolean);
        }
        if left == right && (left.is_integer() || left.is_floating()) {
            return Ok(left.clone());
        }
        BinaryTypeCoercer::new(left, &self.op, right).get_result_type()
    }

    fn apply(&self, batch: &Batch) -> Result<ColumnarValue> {
        use Operator::{
            BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, BitwiseXor, Divide, Eq, Gt,
            GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo, Multiply, NotEq,
            Plus, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch, StringConcat,
        };
        let op = self.op;
        if matches!(op, Operator::And | Operator::Or) {
            return logical::evaluate(&self.left, op == Operator::And, &self.right, batch);
        }
        if matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom) {
            let (left, right) = encoded_operands(&self.left, &self.right, batch)?;
            return compare(op, &left, &right);
        }
        let (left, right) = (self.left.evaluate(batch)?, self.right.evaluate(batch)?);
        match op {
            Plus | Minus | Multiply | Divide | Modulo => arithmetic(op, &left, &right),
            BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseShiftRight | BitwiseShiftLeft => {
                bitwise(op, &left, &right)
            }
            StringConcat => concat_strings(&left, &right),
            RegexMatch => regex_match(&left, &right, false, false),
            RegexIMatch => regex_match(&left, &right, true, false),
            RegexNotMatch => regex_match(&left, &right, false, true),
            RegexNotIMatch => regex_match(&left, &right, true, true),
            _ => not_impl_err!("the operator {op}"),
        }
    }

    /// Whether arithmetic over these types can overflow or divide by zero.
    fn arithmetic_can_fail(&self, left: &DataType, right: &DataType) -> bool {
        use DataType::{Date32, Date64, Decimal128, Interval, Time32, Time64};
        let divides = matches!(self.op, Operator::Divide | Operator::Modulo);
        match (left, right) {
            (l, r) if l.is_floating() && l == r => false,
            (l, r) if l.is_integer() && l == r => divides && !self.divisor_is_safe(),
            (Decimal128(p1, s1), Decimal128(p2, s2)) => {
                exact_decimal(self.op, (*p1, *s1), (*p2, *s2)).is_none()
            }
            (Date32, Date32) | (Date64, Date64) => self.op != Operator::Minus,
            (Time32(_) | Time64(_), Interval(_)) | (Interval(_), Time32(_) | Time64(_)) => false,
            _ => true,
        }
    }

    /// A literal that divides every integer: NULL, or neither 0 nor -1 (`MIN / -1` overflows).
    fn divisor_is_safe(&self) -> bool {
        let Some(literal) = self.right.downcast_ref::<Literal>() else { return false };
        match literal.value().cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(divisor))) => {
                divisor != 0 && (divisor != -1 || self.op == Operator::Modulo)
            }
            Ok(value) => value.is_null(),
            // An unsigned number too great for 64 signed bits.
            Err(_) => true,
        }
    }
}

fn returns_boolean(op: Operator) -> bool {
    op.is_logic_operator()
        || matches!(
            op,
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
                | Operator::RegexMatch
                | Operator::RegexIMatch
                | Operator::RegexNotMatch
                | Operator::RegexNotIMatch
        )
}

impl fmt::Display for BinaryExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Precedence::of_operator(self.op);
        // Chains of AND and OR read the same however they are nested.
        let right = if matches!(self.op, Operator::And | Operator::Or) { own } else { own.next() };
        let (left, right) = (operand(&self.left, own), operand(&self.right, right));
        write!(f, "{left} {} {right}", self.op)
    }
}

impl PhysicalExpr for BinaryExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let left = self.left.return_field(input_schema)?;
        let right = self.right.return_field(input_schema)?;
        let data_type = self.result_type(left.data_type(), right.data_type())?;
        let nullable = left.is_nullable() || right.is_nullable();
        Ok(Arc::new(Field::new("binary", data_type, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        or_empty(self.apply(batch), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [left, right] = super::exactly(children)?;
        Ok(Arc::new(BinaryExpr::new(left, self.op, right)))
    }

    fn can_fail_node(&self, input_schema: &Schema) -> bool {
        match self.op {
            Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo => {
                match (self.left.data_type(input_schema), self.right.data_type(input_schema)) {
                    (Ok(left), Ok(right)) => self.arithmetic_can_fail(&left, &right),
                    _ => true,
                }
            }
            Operator::RegexMatch
            | Operator::RegexNotMatch
            | Operator::RegexIMatch
            | Operator::RegexNotIMatch => {
                let ignore_case =
                    matches!(self.op, Operator::RegexIMatch | Operator::RegexNotIMatch);
                !self.right.downcast_ref::<Literal>().is_some_and(|pattern| {
                    match pattern.value().try_as_str() {
                        Some(Some(pattern)) => regex_compiles(pattern, ignore_case),
                        Some(None) => true,
                        None => false,
                    }
                })
            }
            Operator::StringConcat
            | Operator::BitwiseAnd
            | Operator::BitwiseOr
            | Operator::BitwiseXor
            | Operator::BitwiseShiftLeft
            | Operator::BitwiseShiftRight => false,
            op => !returns_boolean(op),
        }
    }

    fn conditional_children(&self) -> Vec<usize> {
        if matches!(self.op, Operator::And | Operator::Or) { vec![1] } else { vec![] }
    }
}
