//! [`Wrapped`]: one of our expressions where the function library expects one of its own.

use crate::{PhysicalExprRef, structural_eq};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr as TheirExpr;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// A leaf to the library: it can evaluate the expression, not look into it.
#[derive(Debug)]
pub(super) struct Wrapped {
    expr: PhysicalExprRef,
}

structural_eq!(Wrapped { expr });

impl Wrapped {
    pub(super) fn new(expr: PhysicalExprRef) -> Self {
        Wrapped { expr }
    }
}

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)
    }
}

impl TheirExpr for Wrapped {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.expr.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.expr.nullable(input_schema)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.expr.return_field(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.expr.evaluate(&Batch::from_record_batch(batch))
    }

    fn children(&self) -> Vec<&Arc<dyn TheirExpr>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn TheirExpr>>,
    ) -> Result<Arc<dyn TheirExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)
    }
}
