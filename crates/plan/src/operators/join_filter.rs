//! The residual condition of a join, and which columns of which side it reads.

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::JoinSide;
use planish_expr::PhysicalExprRef;
use std::fmt;

/// A column of one side of a join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnIndex {
    /// Its index on that side.
    pub index: usize,
    /// The side.
    pub side: JoinSide,
}

/// A boolean expression over some columns of both sides: column `i` of the expression is
/// `column_indices[i]` of the join.
#[derive(Clone, Debug)]
pub struct JoinFilter {
    expression: PhysicalExprRef,
    column_indices: Vec<ColumnIndex>,
    schema: SchemaRef,
}

impl JoinFilter {
    /// `expression` over the columns `column_indices`, whose fields are those of `schema`.
    pub fn new(
        expression: PhysicalExprRef,
        column_indices: Vec<ColumnIndex>,
        schema: SchemaRef,
    ) -> Self {
        debug_assert_eq!(column_indices.len(), schema.fields().len());
        JoinFilter { expression, column_indices, schema }
    }

    /// The condition, over [`Self::schema`].
    pub fn expression(&self) -> &PhysicalExprRef {
        &self.expression
    }

    /// Where each column of [`Self::schema`] comes from.
    pub fn column_indices(&self) -> &[ColumnIndex] {
        &self.column_indices
    }

    /// The columns that the condition may read.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same condition when left and right change places.
    #[must_use]
    pub fn swap(&self) -> JoinFilter {
        let column_indices = self
            .column_indices
            .iter()
            .map(|c| ColumnIndex { index: c.index, side: c.side.negate() })
            .collect();
        JoinFilter { column_indices, ..self.clone() }
    }

    /// The fields of `columns`, from the two sides' schemas.
    pub fn build_schema(columns: &[ColumnIndex], left: &Schema, right: &Schema) -> Schema {
        let fields: Vec<_> = columns
            .iter()
            .map(|c| match c.side {
                JoinSide::Right => right.field(c.index).clone(),
                JoinSide::Left | JoinSide::None => left.field(c.index).clone(),
            })
            .collect();
        Schema::new(fields)
    }
}

impl fmt::Display for JoinFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expression)
    }
}
