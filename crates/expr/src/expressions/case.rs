//! `CASE`.

use super::branches::Branches;
use super::kernels::{Bools, compare};
use super::{BinaryExpr, CastExpr, Column, IsBoolExpr, IsNullExpr, Literal, NegativeExpr, NotExpr};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `CASE WHEN condition THEN value ... ELSE value END`, or with an operand that is compared with
/// each `WHEN`. Each part is evaluated only on the rows that reach it.
#[derive(Clone, Debug)]
pub struct CaseExpr {
    operand: Option<PhysicalExprRef>,
    when_then: Vec<(PhysicalExprRef, PhysicalExprRef)>,
    otherwise: Option<PhysicalExprRef>,
}

structural_eq!(CaseExpr { operand, when_then, otherwise });

impl CaseExpr {
    /// A `CASE` with these branches; without `otherwise`, rows of no branch are NULL.
    ///
    /// # Errors
    /// A plan error when there is no branch.
    pub fn try_new(
        operand: Option<PhysicalExprRef>,
        when_then: Vec<(PhysicalExprRef, PhysicalExprRef)>,
        otherwise: Option<PhysicalExprRef>,
    ) -> Result<Self> {
        if when_then.is_empty() {
            return plan_err!("CASE needs at least one WHEN");
        }
        Ok(CaseExpr { operand, when_then, otherwise })
    }

    /// The value that each `WHEN` is compared with, if there is one.
    pub fn operand(&self) -> Option<&PhysicalExprRef> {
        self.operand.as_ref()
    }

    /// Conditions and values.
    pub fn when_then(&self) -> &[(PhysicalExprRef, PhysicalExprRef)] {
        &self.when_then
    }

    /// The `ELSE` value.
    pub fn otherwise(&self) -> Option<&PhysicalExprRef> {
        self.otherwise.as_ref()
    }

    fn nullable_over(&self, schema: &Schema) -> Result<bool> {
        for (when, then) in &self.when_then {
            let reachable = || self.operand.is_some() || truth_if_null(when, then).may_be_true;
            if then.nullable(schema)? && reachable() {
                return Ok(true);
            }
        }
        self.otherwise.as_ref().map_or(Ok(true), |otherwise| otherwise.nullable(schema))
    }

    fn result_type(&self, schema: &Schema) -> Result<DataType> {
        for value in self.when_then.iter().map(|(_, then)| then).chain(&self.otherwise) {
            let data_type = value.data_type(schema)?;
            if data_type != DataType::Null {
                return Ok(data_type);
            }
        }
        Ok(DataType::Null)
    }
}

impl fmt::Display for CaseExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CASE")?;
        if let Some(operand) = &self.operand {
            write!(f, " {operand}")?;
        }
        for (when, then) in &self.when_then {
            write!(f, " WHEN {when} THEN {then}")?;
        }
        if let Some(otherwise) = &self.otherwise {
            write!(f, " ELSE {otherwise}")?;
        }
        f.write_str(" END")
    }
}

impl PhysicalExpr for CaseExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let data_type = self.result_type(input_schema)?;
        Ok(Arc::new(Field::new("case", data_type, self.nullable_over(input_schema)?)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let data_type = self.result_type(batch.schema())?;
        if batch.num_rows() == 0 {
            return Branches::new(batch).finish(&data_type);
        }
        // The operand's value joins the batch as a further column, so that it follows the
        // selections of open rows.
        let (batch, operand) = match &self.operand {
            Some(operand) => with_column(batch, operand)?,
            None => (batch.clone(), None),
        };
        let mut branches = Branches::new(&batch);
        for (when, then) in &self.when_then {
            let mut condition = when.evaluate(branches.open())?;
            if let Some(operand) = &operand {
                let value = operand.evaluate(branches.open())?;
                condition = compare(Operator::Eq, &value, &condition)?;
            }
            match Bools::new(&condition)? {
                Bools::Scalar(Some(true)) => branches.answer_rest(then)?,
                Bools::Scalar(_) => {}
                Bools::Array(mask) => branches.answer_where(&mask, then)?,
            }
            if branches.is_complete() {
                return branches.finish(&data_type);
            }
        }
        match &self.otherwise {
            Some(otherwise) => branches.answer_rest(otherwise)?,
            None => {
                branches.close_rest(ColumnarValue::Scalar(ScalarValue::try_from(&data_type)?));
            }
        }
        branches.finish(&data_type)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        let mut children: Vec<_> = self.operand.iter().collect();
        for (when, then) in &self.when_then {
            children.extend([when, then]);
        }
        children.extend(&self.otherwise);
        children
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        if children.len() != self.children().len() {
            return internal_err!("{} children for {self}", children.len());
        }
        let mut children = children.into_iter();
        let operand = self.operand.as_ref().and_then(|_| children.next());
        let mut when_then = Vec::with_capacity(self.when_then.len());
        for _ in &self.when_then {
            if let (Some(when), Some(then)) = (children.next(), children.next()) {
                when_then.push((when, then));
            }
        }
        Ok(Arc::new(CaseExpr::try_new(operand, when_then, children.next())?))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }

    fn conditional_children(&self) -> Vec<usize> {
        let always = 1 + usize::from(self.operand.is_some());
        (always..self.children().len()).collect()
    }
}

/// `batch` with the value of `expr` as its last column, and a reference to that.
fn with_column(batch: &Batch, expr: &PhysicalExprRef) -> Result<(Batch, Option<PhysicalExprRef>)> {
    if expr.is::<Column>() || expr.is::<Literal>() {
        return Ok((batch.clone(), Some(Arc::clone(expr))));
    }
    let field = expr.return_field(batch.schema())?;
    let fields: Vec<FieldRef> =
        batch.schema().fields().iter().cloned().chain([Arc::clone(&field)]).collect();
    let mut columns = batch.columns().to_vec();
    columns.push(expr.evaluate_column(batch)?);
    let added = Column::new(field.name(), columns.len() - 1);
    let batch = Batch::try_new(Arc::new(Schema::new(fields)), columns, batch.num_rows())?;
    Ok((batch, Some(Arc::new(added))))
}

/// Which truth values an expression may have.
#[derive(Clone, Copy)]
struct Truth {
    may_be_true: bool,
    may_be_false: bool,
    may_be_null: bool,
}

const ANY: Truth = Truth { may_be_true: true, may_be_false: true, may_be_null: true };
const TRUE: Truth = Truth { may_be_true: true, may_be_false: false, may_be_null: false };
const FALSE: Truth = Truth { may_be_true: false, may_be_false: true, may_be_null: false };
const NULL: Truth = Truth { may_be_true: false, may_be_false: false, may_be_null: true };

/// What `condition` may be in a row where `value` is NULL. `CASE WHEN x IS NOT NULL THEN x ...`
/// does not become nullable by its first branch.
fn truth_if_null(condition: &PhysicalExprRef, value: &PhysicalExprRef) -> Truth {
    if is_null_if(condition, value) {
        return NULL;
    }
    if let Some(test) = condition.downcast_ref::<IsNullExpr>() {
        return match (is_null_if(test.expr(), value), test.negated()) {
            (true, false) => TRUE,
            (true, true) => FALSE,
            _ => Truth { may_be_null: false, ..ANY },
        };
    }
    if let Some(test) = condition.downcast_ref::<IsBoolExpr>() {
        let of = truth_if_null(test.expr(), value);
        let (hit, miss) = if test.value() {
            (of.may_be_true, of.may_be_false || of.may_be_null)
        } else {
            (of.may_be_false, of.may_be_true || of.may_be_null)
        };
        let (hit, miss) = if test.negated() { (miss, hit) } else { (hit, miss) };
        return Truth { may_be_true: hit, may_be_false: miss, may_be_null: false };
    }
    if let Some(not) = condition.downcast_ref::<NotExpr>() {
        let of = truth_if_null(not.expr(), value);
        return Truth { may_be_true: of.may_be_false, may_be_false: of.may_be_true, ..of };
    }
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        let sides = || (truth_if_null(binary.left(), value), truth_if_null(binary.right(), value));
        match binary.op() {
            Operator::And => {
                let (l, r) = sides();
                return Truth {
                    may_be_true: l.may_be_true && r.may_be_true,
                    may_be_false: l.may_be_false || r.may_be_false,
                    may_be_null: l.may_be_null || r.may_be_null,
                };
            }
            Operator::Or => {
                let (l, r) = sides();
                return Truth {
                    may_be_true: l.may_be_true || r.may_be_true,
                    may_be_false: l.may_be_false && r.may_be_false,
                    may_be_null: l.may_be_null || r.may_be_null,
                };
            }
            _ => return ANY,
        }
    }
    match condition.downcast_ref::<Literal>().map(Literal::value) {
        Some(ScalarValue::Boolean(Some(true))) => TRUE,
        Some(ScalarValue::Boolean(Some(false))) => FALSE,
        Some(value) if value.is_null() => NULL,
        _ => ANY,
    }
}

/// Whether `expr` is certainly NULL where `value` is: it is `value`, or applied strictly to it.
fn is_null_if(expr: &PhysicalExprRef, value: &PhysicalExprRef) -> bool {
    if expr == value || strip(value).is_some_and(|inner| is_null_if(expr, inner)) {
        return true;
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let strict = !matches!(
            binary.op(),
            Operator::And | Operator::Or | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
        );
        return strict && (is_null_if(binary.left(), value) || is_null_if(binary.right(), value));
    }
    strip(expr).is_some_and(|inner| is_null_if(inner, value))
}

/// The operand of a node that is NULL exactly when its operand is.
fn strip(expr: &PhysicalExprRef) -> Option<&PhysicalExprRef> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return Some(cast.expr());
    }
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        return Some(negative.expr());
    }
    expr.downcast_ref::<NotExpr>().map(NotExpr::expr)
}
