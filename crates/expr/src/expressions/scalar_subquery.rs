//! The value of an uncorrelated scalar subquery, known only while a query runs.

use crate::{PhysicalExpr, PhysicalExprRef};
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// A place for the one value of subplan `id`. Operators replace it by a literal when an
/// execution starts (`TaskContext::bind`); a plan itself never holds the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScalarSubqueryExpr {
    id: usize,
    field: FieldRef,
}

impl ScalarSubqueryExpr {
    /// The value of subplan `id`, whose only column is `field` (made nullable: no row is NULL).
    pub fn new(id: usize, field: &FieldRef) -> Self {
        ScalarSubqueryExpr { id, field: Arc::new(field.as_ref().clone().with_nullable(true)) }
    }

    /// Which subplan.
    pub fn id(&self) -> usize {
        self.id
    }
}

impl fmt::Display for ScalarSubqueryExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subquery({})", self.id)
    }
}

impl PhysicalExpr for ScalarSubqueryExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        internal_err!("subquery({}) was evaluated before it was bound", self.id)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(self)
    }
}
