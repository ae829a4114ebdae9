//! A reference to a column of the input, by index.

use crate::{PhysicalExpr, PhysicalExprRef};
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, ExpressionPlacement};
use planish_batch::{Batch, Form};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Column `index` of the input; shown as `name@index`.
///
/// The name is for people. Equality goes by index alone: over one input, two columns with the
/// same index are the same column, whatever they are called.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    index: usize,
}

impl Column {
    /// A reference to column `index`.
    pub fn new(name: &str, index: usize) -> Self {
        Column { name: name.to_owned(), index }
    }

    /// A reference to the column of `schema` called `name`; the first one if there are more.
    ///
    /// # Errors
    /// When there is none.
    pub fn new_with_schema(name: &str, schema: &Schema) -> Result<Self> {
        Ok(Column::new(name, schema.index_of(name)?))
    }

    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column's position in the input.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Eq for Column {}

impl Hash for Column {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.index)
    }
}

impl PhysicalExpr for Column {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        match input_schema.fields().get(self.index) {
            Some(field) => Ok(Arc::clone(field)),
            None => internal_err!(
                "column {self} over an input of {} columns",
                input_schema.fields().len()
            ),
        }
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        match batch.columns().get(self.index).map(planish_batch::Column::form) {
            Some(Form::Constant(value)) => Ok(ColumnarValue::Scalar(value.clone())),
            _ => Ok(ColumnarValue::Array(batch.column(self.index)?)),
        }
    }

    fn evaluate_column(&self, batch: &Batch) -> Result<planish_batch::Column> {
        match batch.columns().get(self.index) {
            Some(column) => Ok(column.clone()),
            None => internal_err!("column {self} of a batch of {}", batch.num_columns()),
        }
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

    fn placement(&self) -> ExpressionPlacement {
        ExpressionPlacement::Column
    }
}
