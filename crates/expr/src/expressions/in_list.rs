//! `IN` over a list of expressions.

use super::display::{self, Precedence, operand};
use super::in_list_set::LiteralSet;
use super::kernels::{Bools, compare, or_kleene};
use super::{encoded_operand, exactly, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// From this many operands on, the front end does not look at their nullability any more, and
/// takes the result for nullable; so do we, that schemas agree.
const INSPECTED: usize = 6;

/// `expr [NOT] IN (list)`. A list of literals is looked up in a set.
#[derive(Clone, Debug)]
pub struct InListExpr {
    expr: PhysicalExprRef,
    list: Vec<PhysicalExprRef>,
    negated: bool,
    /// The list as a set, when it is one of literals.
    set: Option<Arc<LiteralSet>>,
}

structural_eq!(InListExpr { expr, list, negated });

impl InListExpr {
    /// `expr [NOT] IN (list)`.
    pub fn new(expr: PhysicalExprRef, list: Vec<PhysicalExprRef>, negated: bool) -> Self {
        let set = LiteralSet::try_new(&list).map(Arc::new);
        InListExpr { expr, list, negated, set }
    }

    /// The value looked for.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// The list.
    pub fn list(&self) -> &[PhysicalExprRef] {
        &self.list
    }

    /// Whether this is `NOT IN`.
    pub fn negated(&self) -> bool {
        self.negated
    }

    fn apply(&self, batch: &Batch) -> Result<ColumnarValue> {
        let value = encoded_operand(&self.expr, batch)?;
        if let Some(set) = &self.set
            && let Some(found) = set.lookup(&value)?
        {
            return negate_if(self.negated, found);
        }
        let mut found = Bools::Scalar(Some(false));
        for item in &self.list {
            let equal = compare(Operator::Eq, &value, &item.evaluate(batch)?)?;
            found = or_kleene(found, Bools::new(&equal)?)?;
        }
        negate_if(self.negated, found)
    }
}

fn negate_if(negated: bool, found: Bools) -> Result<ColumnarValue> {
    Ok(match found {
        Bools::Array(array) if negated => Bools::Array(arrow::compute::not(&array)?),
        Bools::Scalar(value) if negated => Bools::Scalar(value.map(|value| !value)),
        other => other,
    }
    .into_value())
}

impl fmt::Display for InListExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "NOT " } else { "" };
        let value = operand(&self.expr, Precedence::TEST.next());
        write!(f, "{value} {not}IN ({})", display::list(&self.list))
    }
}

impl PhysicalExpr for InListExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let mut nullable = self.list.len() >= INSPECTED;
        for expr in std::iter::once(&self.expr).chain(&self.list).take(INSPECTED) {
            nullable |= expr.nullable(input_schema)?;
        }
        Ok(Arc::new(Field::new("in_list", DataType::Boolean, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        or_empty(self.apply(batch), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        std::iter::once(&self.expr).chain(&self.list).collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        if children.len() != self.list.len() + 1 {
            return internal_err!("{} children for {self}", children.len());
        }
        let list = children.split_off(1);
        let [expr] = exactly(children)?;
        // The set is built once, however often columns are renumbered.
        let set = if list == self.list { self.set.clone() } else { None };
        Ok(match set {
            Some(set) => Arc::new(InListExpr { expr, list, negated: self.negated, set: Some(set) }),
            None => Arc::new(InListExpr::new(expr, list, self.negated)),
        })
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}
