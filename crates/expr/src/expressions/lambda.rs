//! Lambdas of array functions: `x -> x * 2 + a@0`.
//!
//! A variable is known by its *level*: the variables of the outermost lambda come first, those of
//! a lambda within it follow. A column of the body that is replaced by an expression with a
//! lambda of its own (projections merge) brings that lambda in with its own levels, so an inner
//! lambda hides the variables from its first level on; it cannot have meant the outer ones.

use super::{Column, exactly};
use crate::analysis::column_uses;
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use itertools::Itertools;
use planish_batch::Batch;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A parameter of an enclosing lambda.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LambdaVariable {
    level: usize,
    field: FieldRef,
}

impl LambdaVariable {
    /// The parameter of `level`, described by `field`.
    pub fn new(level: usize, field: FieldRef) -> Self {
        LambdaVariable { level, field }
    }
}

impl fmt::Display for LambdaVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.name())
    }
}

impl PhysicalExpr for LambdaVariable {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        internal_err!("the lambda variable {self} was evaluated outside of its lambda")
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(self)
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}

/// `(x, y) -> body`, an argument of a higher-order function, which alone can evaluate it.
#[derive(Clone, Debug)]
pub struct LambdaExpr {
    first_level: usize,
    params: Vec<FieldRef>,
    body: PhysicalExprRef,
    /// What follows from the above: the body over a batch of `captures ++ used`.
    captures: Vec<usize>,
    used: Vec<usize>,
    flat_body: PhysicalExprRef,
}

structural_eq!(LambdaExpr { first_level, params, body });

impl LambdaExpr {
    /// A lambda whose `params` are the variables from `first_level` on.
    ///
    /// # Errors
    /// An internal error when `body` cannot be rebuilt.
    pub fn try_new(
        first_level: usize,
        params: Vec<FieldRef>,
        body: PhysicalExprRef,
    ) -> Result<Self> {
        let own = first_level..first_level + params.len();
        let captures: Vec<usize> = column_uses([&body]).into_keys().collect();
        let mut levels = BTreeSet::new();
        free_levels(&body, &own, &mut levels);
        let used: Vec<usize> = levels.into_iter().map(|level| level - first_level).collect();
        let flat_body = Flattening { captures: &captures, used: &used }.apply(&body, &own)?;
        Ok(LambdaExpr { first_level, params, body, captures, used, flat_body })
    }

    /// The parameters, in the order in which the function hands them over.
    pub fn params(&self) -> &[FieldRef] {
        &self.params
    }

    /// The body, over the columns of the function's input and the variables.
    pub fn body(&self) -> &PhysicalExprRef {
        &self.body
    }

    /// The columns of the function's input that the body reads, ascending.
    pub fn captures(&self) -> &[usize] {
        &self.captures
    }

    /// The parameters that the body reads, by position, ascending.
    pub fn used_params(&self) -> &[usize] {
        &self.used
    }

    /// The body over a batch of the captured columns followed by the parameters in use.
    pub fn flat_body(&self) -> &PhysicalExprRef {
        &self.flat_body
    }
}

/// The part of `own` that a lambda within the body leaves visible: all, or nothing (see above).
fn visible_in(lambda: &LambdaExpr, own: &Range<usize>) -> Range<usize> {
    if lambda.first_level < own.end { own.end..own.end } else { own.clone() }
}

/// The levels among `own` that `expr` reads.
fn free_levels(expr: &PhysicalExprRef, own: &Range<usize>, levels: &mut BTreeSet<usize>) {
    if let Some(variable) = expr.downcast_ref::<LambdaVariable>() {
        levels.extend(own.contains(&variable.level).then_some(variable.level));
    }
    let visible = match expr.downcast_ref::<LambdaExpr>() {
        Some(inner) => visible_in(inner, own),
        None => own.clone(),
    };
    expr.children().into_iter().for_each(|child| free_levels(child, &visible, levels));
}

/// Turns captured columns and own variables into columns of the batch that a body runs over.
struct Flattening<'a> {
    captures: &'a [usize],
    used: &'a [usize],
}

impl Flattening<'_> {
    fn apply(&self, expr: &PhysicalExprRef, own: &Range<usize>) -> Result<PhysicalExprRef> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            let place = self.captures.iter().position(|i| *i == column.index());
            return self.column(column.name(), place);
        }
        if let Some(variable) = expr.downcast_ref::<LambdaVariable>() {
            if !own.contains(&variable.level) {
                return Ok(Arc::clone(expr));
            }
            let place = self.used.iter().position(|i| own.start + i == variable.level);
            return self.column(variable.field.name(), place.map(|i| self.captures.len() + i));
        }
        let visible = match expr.downcast_ref::<LambdaExpr>() {
            Some(inner) => visible_in(inner, own),
            None => own.clone(),
        };
        let children = expr.children();
        if children.is_empty() {
            return Ok(Arc::clone(expr));
        }
        let children = children.into_iter().map(|child| self.apply(child, &visible));
        Arc::clone(expr).with_new_children(children.try_collect()?)
    }

    fn column(&self, name: &str, place: Option<usize>) -> Result<PhysicalExprRef> {
        match place {
            Some(index) => Ok(Arc::new(Column::new(name, index))),
            None => internal_err!("{name} is not among what its lambda reads"),
        }
    }
}

impl fmt::Display for LambdaExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.params.as_slice() {
            [param] => write!(f, "{} -> {}", param.name(), self.body),
            params => {
                let names = params.iter().map(|param| param.name()).join(", ");
                write!(f, "({names}) -> {}", self.body)
            }
        }
    }
}

impl PhysicalExpr for LambdaExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.body.return_field(input_schema)
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        internal_err!("the lambda {self} was evaluated outside of a function")
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.body]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [body] = exactly(children)?;
        Ok(Arc::new(LambdaExpr::try_new(self.first_level, self.params.clone(), body)?))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }

    fn conditional_children(&self) -> Vec<usize> {
        vec![0]
    }

    fn is_lambda(&self) -> bool {
        true
    }
}
