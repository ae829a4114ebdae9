//! A filter whose predicate is found, and gets tighter, while a query runs.

use crate::{PhysicalExpr, PhysicalExprRef};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A place for the predicate that some operator of the plan gives filter `id` in an execution: a
/// predicate over the values of `args`, which it names by position.
///
/// Whoever can skip rows asks the execution for the predicate of the moment; a plan itself holds
/// the id only. Rows that fail are rows that the operator has no use for, so the filter need not be
/// applied; evaluated as it stands, it is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicFilterExpr {
    id: usize,
    args: Vec<PhysicalExprRef>,
}

impl DynamicFilterExpr {
    /// A new filter over the values of `args`; no other filter of the process has its id.
    pub fn new(args: Vec<PhysicalExprRef>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        DynamicFilterExpr { id: NEXT.fetch_add(1, Ordering::Relaxed), args }
    }

    /// Which filter.
    pub fn id(&self) -> usize {
        self.id
    }

    /// The expressions whose values the predicate looks at, in the coordinates of where the
    /// filter stands.
    pub fn args(&self) -> &[PhysicalExprRef] {
        &self.args
    }
}

impl fmt::Display for DynamicFilterExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicFilter[{}]", super::display_list(&self.args))
    }
}

impl PhysicalExpr for DynamicFilterExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("dynamic_filter", DataType::Boolean, false)))
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        self.args.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, args: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(Arc::new(DynamicFilterExpr { id: self.id, args }))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::Column;

    #[test]
    fn every_filter_is_one_of_its_own_wherever_it_is_moved() {
        let a = || Arc::new(Column::new("a", 0)) as PhysicalExprRef;
        let (one, two) = (DynamicFilterExpr::new(vec![a()]), DynamicFilterExpr::new(vec![a()]));
        assert_ne!(one, two);
        let moved =
            Arc::new(one.clone()).with_new_children(vec![Arc::new(Column::new("a", 3))]).unwrap();
        assert_eq!(moved.to_string(), "DynamicFilter[a@3]");
        assert_eq!(moved.downcast_ref::<DynamicFilterExpr>().unwrap().id(), one.id());
    }
}
