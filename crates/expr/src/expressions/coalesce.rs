//! `COALESCE`.

use super::branches::Branches;
use super::display;
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::array::{Array, BooleanArray};
use arrow::compute::filter;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// The first of its arguments that is not NULL. Each is evaluated once, and only on rows where
/// all before it are NULL.
#[derive(Clone, Debug)]
pub struct CoalesceExpr {
    args: Vec<PhysicalExprRef>,
}

structural_eq!(CoalesceExpr { args });

impl CoalesceExpr {
    /// `coalesce(args...)`; all arguments have one type.
    ///
    /// # Errors
    /// A plan error when there is no argument.
    pub fn try_new(args: Vec<PhysicalExprRef>) -> Result<Self> {
        if args.is_empty() {
            return plan_err!("coalesce needs at least one argument");
        }
        Ok(CoalesceExpr { args })
    }

    /// The arguments.
    pub fn args(&self) -> &[PhysicalExprRef] {
        &self.args
    }

    fn result_type(&self, schema: &Schema) -> Result<DataType> {
        for arg in &self.args {
            let data_type = arg.data_type(schema)?;
            if data_type != DataType::Null {
                return Ok(data_type);
            }
        }
        Ok(DataType::Null)
    }
}

impl fmt::Display for CoalesceExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "coalesce({})", display::list(&self.args))
    }
}

impl PhysicalExpr for CoalesceExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let mut nullable = true;
        for arg in &self.args {
            nullable &= arg.nullable(input_schema)?;
        }
        Ok(Arc::new(Field::new("coalesce", self.result_type(input_schema)?, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let data_type = self.result_type(batch.schema())?;
        let mut branches = Branches::new(batch);
        for arg in &self.args {
            if branches.is_complete() {
                return branches.finish(&data_type);
            }
            match arg.evaluate(branches.open())? {
                ColumnarValue::Scalar(value) if value.is_null() => {}
                scalar @ ColumnarValue::Scalar(_) => branches.close_rest(scalar),
                ColumnarValue::Array(array) => {
                    match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
                        None => branches.close_rest(ColumnarValue::Array(array)),
                        Some(nulls) if nulls.null_count() == array.len() => {}
                        Some(nulls) => {
                            let valid = BooleanArray::new(nulls.into_inner(), None);
                            let values = filter(&array, &valid)?;
                            branches.close(valid.values(), ColumnarValue::Array(values));
                        }
                    }
                }
            }
        }
        if !branches.is_complete() {
            branches.close_rest(ColumnarValue::Scalar(ScalarValue::try_from(&data_type)?));
        }
        branches.finish(&data_type)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        self.args.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        Ok(Arc::new(CoalesceExpr::try_new(children)?))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }

    fn conditional_children(&self) -> Vec<usize> {
        (1..self.args.len()).collect()
    }
}
