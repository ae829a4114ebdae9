//! Named expressions, and lists of them.

use super::rewrite::update_expr;
use super::{ProjectionMapping, statistics};
use crate::expressions::Column;
use crate::utils::collect_column_indices;
use crate::{PhysicalExprRef, structural_eq};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Result, Statistics, internal_err};
use planish_batch::Batch;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// An expression and the name of its output column.
#[derive(Clone, Debug)]
pub struct ProjectionExpr {
    /// What to compute.
    pub expr: PhysicalExprRef,
    /// What to call it.
    pub alias: String,
}

structural_eq!(ProjectionExpr { expr, alias });

impl ProjectionExpr {
    /// `expr AS alias`.
    pub fn new(expr: PhysicalExprRef, alias: impl Into<String>) -> Self {
        ProjectionExpr { expr, alias: alias.into() }
    }

    /// The index of the input column that this is, name aside; `None` for computations.
    pub fn column_index(&self) -> Option<usize> {
        self.expr.downcast_ref::<Column>().map(Column::index)
    }
}

impl fmt::Display for ProjectionExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expr.downcast_ref::<Column>() {
            Some(column) if column.name() == self.alias => write!(f, "{column}"),
            _ => write!(f, "{} AS {}", self.expr, self.alias),
        }
    }
}

/// A complete projection: what a `SELECT` list, and a scan's idea of "the columns I want", are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectionExprs {
    exprs: Arc<[ProjectionExpr]>,
}

impl ProjectionExprs {
    /// A projection of these expressions, in this order.
    pub fn new<I>(exprs: I) -> Self
    where
        I: IntoIterator<Item = ProjectionExpr>,
    {
        ProjectionExprs { exprs: exprs.into_iter().collect() }
    }

    /// The columns of `schema` at `indices`: any order, repeats allowed.
    ///
    /// # Panics
    /// When an index is out of bounds.
    ///
    /// # Example
    /// ```
    /// use arrow::datatypes::{DataType, Field, Schema};
    /// use planish_expr::projection::ProjectionExprs;
    /// use std::sync::Arc;
    ///
    /// // Create a schema with three columns
    /// let schema = Arc::new(Schema::new(vec![
    ///     Field::new("a", DataType::Int32, false),
    ///     Field::new("b", DataType::Utf8, false),
    ///     Field::new("c", DataType::Float64, false),
    /// ]));
    ///
    /// // Project columns at indices 2 and 0 (c and a) - ordering is preserved
    /// let projection = ProjectionExprs::from_indices(&[2, 0], &schema);
    ///
    /// // This creates: SELECT c@2 AS c, a@0 AS a
    /// assert_eq!(projection.as_ref().len(), 2);
    /// assert_eq!(projection.as_ref()[0].alias, "c");
    /// assert_eq!(projection.as_ref()[1].alias, "a");
    ///
    /// // Duplicate indices are allowed
    /// let projection_with_dups = ProjectionExprs::from_indices(&[0, 0, 1], &schema);
    /// assert_eq!(projection_with_dups.as_ref().len(), 3);
    /// assert_eq!(projection_with_dups.as_ref()[0].alias, "a");
    /// assert_eq!(projection_with_dups.as_ref()[1].alias, "a"); // duplicate
    /// assert_eq!(projection_with_dups.as_ref()[2].alias, "b");
    /// ```
    pub fn from_indices(indices: &[usize], schema: &SchemaRef) -> Self {
        ProjectionExprs::new(indices.iter().map(|&i| {
            let name = schema.field(i).name();
            ProjectionExpr::new(Arc::new(Column::new(name, i)), name)
        }))
    }

    /// The expressions, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ProjectionExpr> {
        self.exprs.iter()
    }

    /// Clones of the bare expressions, in order.
    pub fn expr_iter(&self) -> impl Iterator<Item = PhysicalExprRef> + '_ {
        self.exprs.iter().map(|e| Arc::clone(&e.expr))
    }

    /// Where each input expression shows in the output.
    ///
    /// # Errors
    /// When a column reference is out of bounds of `input_schema`.
    pub fn projection_mapping(&self, input_schema: &SchemaRef) -> Result<ProjectionMapping> {
        ProjectionMapping::try_new(&self.exprs, input_schema)
    }

    /// `other` applied on top of this projection, as one projection of this one's input.
    ///
    /// This composes whatever it is given. Whether composing is *wise* (an expensive or volatile
    /// expression may be evaluated more often) is asked with
    /// [`merge_repeats_work`](super::merge_repeats_work).
    ///
    /// # Errors
    /// When an expression of `other` refers to a column that this projection does not have.
    ///
    /// # Example
    /// ```
    /// use datafusion_common::{Result, ScalarValue};
    /// use datafusion_expr::Operator;
    /// use planish_expr::expressions::{BinaryExpr, Column, Literal};
    /// use planish_expr::projection::{ProjectionExpr, ProjectionExprs};
    /// use std::sync::Arc;
    ///
    /// fn main() -> Result<()> {
    ///     // Example from the docstring:
    ///     // Base projection: SELECT c@2 AS x, b@1 AS y, a@0 AS z
    ///     let base = ProjectionExprs::new(vec![
    ///         ProjectionExpr {
    ///             expr: Arc::new(Column::new("c", 2)),
    ///             alias: "x".to_string(),
    ///         },
    ///         ProjectionExpr {
    ///             expr: Arc::new(Column::new("b", 1)),
    ///             alias: "y".to_string(),
    ///         },
    ///         ProjectionExpr {
    ///             expr: Arc::new(Column::new("a", 0)),
    ///             alias: "z".to_string(),
    ///         },
    ///     ]);
    ///
    ///     // Top projection: SELECT x@0 + 1 AS c1, y@1 + z@2 AS c2
    ///     let top = ProjectionExprs::new(vec![
    ///         ProjectionExpr {
    ///             expr: Arc::new(BinaryExpr::new(
    ///                 Arc::new(Column::new("x", 0)),
    ///                 Operator::Plus,
    ///                 Arc::new(Literal::new(ScalarValue::Int32(Some(1)))),
    ///             )),
    ///             alias: "c1".to_string(),
    ///         },
    ///         ProjectionExpr {
    ///             expr: Arc::new(BinaryExpr::new(
    ///                 Arc::new(Column::new("y", 1)),
    ///                 Operator::Plus,
    ///                 Arc::new(Column::new("z", 2)),
    ///             )),
    ///             alias: "c2".to_string(),
    ///         },
    ///     ]);
    ///
    ///     // Expected result: SELECT c@2 + 1 AS c1, b@1 + a@0 AS c2
    ///     let result = base.try_merge(&top)?;
    ///
    ///     assert_eq!(result.as_ref().len(), 2);
    ///     assert_eq!(result.as_ref()[0].alias, "c1");
    ///     assert_eq!(result.as_ref()[1].alias, "c2");
    ///
    ///     Ok(())
    /// }
    /// ```
    pub fn try_merge(&self, other: &ProjectionExprs) -> Result<ProjectionExprs> {
        other
            .iter()
            .map(|top| match update_expr(&top.expr, &self.exprs, true)? {
                Some(expr) => Ok(ProjectionExpr::new(expr, top.alias.clone())),
                None => internal_err!("{} cannot be applied on top of [{self}]", top.expr),
            })
            .collect()
    }

    /// The input columns used, ascending, once each: `[0, 1]` for `a@0 AS x, b@1 + 1 AS y`.
    pub fn column_indices(&self) -> Vec<usize> {
        let mut indices = BTreeSet::new();
        self.exprs.iter().for_each(|e| collect_column_indices(&e.expr, &mut indices));
        indices.into_iter().collect()
    }

    /// The column indices of a column-only projection, order and duplicates kept: `[2, 0, 2]`
    /// for `c@2, a@0, c@2`.
    ///
    /// # Panics
    /// When an expression is not a bare column; see [`Self::column_only_indices`].
    #[expect(clippy::panic, reason = "documented behaviour of the specification")]
    pub fn ordered_column_indices(&self) -> Vec<usize> {
        self.exprs
            .iter()
            .map(|e| match e.column_index() {
                Some(index) => index,
                None => panic!("{} is not a column reference", e.expr),
            })
            .collect()
    }

    /// As [`Self::ordered_column_indices`], or `None` when there is a computation.
    pub fn column_only_indices(&self) -> Option<Vec<usize>> {
        self.exprs.iter().map(ProjectionExpr::column_index).collect()
    }

    /// The output's schema: fields as the expressions yield them (metadata kept), renamed.
    ///
    /// # Errors
    /// When an expression does not fit `input_schema`.
    pub fn project_schema(&self, input_schema: &Schema) -> Result<Schema> {
        let fields = self
            .exprs
            .iter()
            .map(|e| Ok(e.expr.return_field(input_schema)?.as_ref().clone().with_name(&e.alias)))
            .collect::<Result<Vec<Field>>>()?;
        Ok(Schema::new_with_metadata(fields, input_schema.metadata().clone()))
    }

    /// The output's statistics: those of the column for columns, exact ones for literals, and
    /// estimates, never exact ones, for the values of computations.
    ///
    /// # Errors
    /// When an expression does not fit `input_schema`, or `stats` lack a column it reads.
    #[expect(clippy::needless_pass_by_value, reason = "the specification's signature")]
    pub fn project_statistics(
        &self,
        stats: Statistics,
        input_schema: &Schema,
    ) -> Result<Statistics> {
        statistics::project(self, &stats, input_schema)
    }

    /// Evaluates the projection over `batch`. Columns are handed on in the form they are in,
    /// literals as constants; nothing is copied for them.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn project_batch(&self, batch: &Batch, schema: &SchemaRef) -> Result<Batch> {
        let columns =
            self.exprs.iter().map(|e| e.expr.evaluate_column(batch)).collect::<Result<Vec<_>>>()?;
        Batch::try_new(Arc::clone(schema), columns, batch.num_rows())
    }
}

impl AsRef<[ProjectionExpr]> for ProjectionExprs {
    fn as_ref(&self) -> &[ProjectionExpr] {
        &self.exprs
    }
}

impl fmt::Display for ProjectionExprs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.exprs.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{e}")?;
        }
        Ok(())
    }
}

impl From<&[ProjectionExpr]> for ProjectionExprs {
    fn from(exprs: &[ProjectionExpr]) -> Self {
        ProjectionExprs { exprs: exprs.into() }
    }
}

impl From<Vec<ProjectionExpr>> for ProjectionExprs {
    fn from(exprs: Vec<ProjectionExpr>) -> Self {
        ProjectionExprs { exprs: exprs.into() }
    }
}

impl FromIterator<ProjectionExpr> for ProjectionExprs {
    fn from_iter<T: IntoIterator<Item = ProjectionExpr>>(exprs: T) -> Self {
        ProjectionExprs::new(exprs)
    }
}

impl<'a> IntoIterator for &'a ProjectionExprs {
    type Item = &'a ProjectionExpr;
    type IntoIter = std::slice::Iter<'a, ProjectionExpr>;

    fn into_iter(self) -> Self::IntoIter {
        self.exprs.iter()
    }
}

impl IntoIterator for ProjectionExprs {
    type Item = ProjectionExpr;
    type IntoIter = std::vec::IntoIter<ProjectionExpr>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self.exprs.as_ref()).into_iter()
    }
}
