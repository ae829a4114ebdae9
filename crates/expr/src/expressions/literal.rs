//! A constant.

use crate::{PhysicalExpr, PhysicalExprRef};
use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ExpressionPlacement};
use planish_batch::Batch;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A constant with its field (the field carries metadata, for instance an extension type).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    value: ScalarValue,
    field: FieldRef,
}

/// A literal expression.
pub fn lit(value: impl Into<ScalarValue>) -> PhysicalExprRef {
    Arc::new(Literal::new(value.into()))
}

impl Literal {
    /// A constant without metadata.
    pub fn new(value: ScalarValue) -> Self {
        Literal::new_with_metadata(value, None)
    }

    /// A constant whose field carries `metadata`.
    pub fn new_with_metadata(value: ScalarValue, metadata: Option<FieldMetadata>) -> Self {
        let mut field = Field::new("lit", value.data_type(), value.is_null());
        if let Some(metadata) = metadata {
            field = metadata.add_to_field(field);
        }
        Literal { value, field: Arc::new(field) }
    }

    /// The value.
    pub fn value(&self) -> &ScalarValue {
        &self.value
    }

    /// The field, with its metadata.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }
}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }
}

impl PhysicalExpr for Literal {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
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
        ExpressionPlacement::Literal
    }
}
