//! Where expressions over a projection's input show in its output.

use super::ProjectionExpr;
use crate::expressions::{Column, Literal};
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use indexmap::IndexMap;
use std::sync::Arc;

/// Where expressions over a projection's input show in its output: each source expression with
/// the output columns that equal it, at least one.
#[derive(Clone, Debug)]
pub struct ProjectionMapping {
    map: IndexMap<PhysicalExprRef, Vec<Column>>,
}

impl ProjectionMapping {
    /// The mapping of `exprs` over `input_schema`. Volatile expressions are left out: two
    /// evaluations need not agree.
    ///
    /// # Errors
    /// When a column reference is out of bounds.
    pub fn try_new(exprs: &[ProjectionExpr], input_schema: &SchemaRef) -> Result<Self> {
        let mut map: IndexMap<PhysicalExprRef, Vec<Column>> = IndexMap::new();
        for (i, e) in exprs.iter().enumerate() {
            e.expr.return_field(input_schema)?;
            if !is_volatile(&e.expr) {
                map.entry(Arc::clone(&e.expr)).or_default().push(Column::new(&e.alias, i));
            }
        }
        Ok(ProjectionMapping { map })
    }

    /// Source expressions and their output columns.
    pub fn iter(&self) -> impl Iterator<Item = (&PhysicalExprRef, &Vec<Column>)> {
        self.map.iter()
    }

    /// `expr` over the output, or `None` when it cannot be expressed there.
    pub fn project(&self, expr: &PhysicalExprRef) -> Option<PhysicalExprRef> {
        if let Some(targets) = self.map.get(expr) {
            return Some(Arc::new(targets[0].clone()));
        }
        let children = expr.children();
        if children.is_empty() {
            return expr.is::<Literal>().then(|| Arc::clone(expr));
        }
        if expr.is_volatile_node() {
            return None;
        }
        let projected =
            children.into_iter().map(|c| self.project(c)).collect::<Option<Vec<_>>>()?;
        Arc::clone(expr).with_new_children(projected).ok()
    }
}
