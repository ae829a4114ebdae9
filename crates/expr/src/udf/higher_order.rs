//! Calls of functions that take lambdas: `array_transform(a@0, x -> x * 2)`.

use super::wrapped::Wrapped;
use crate::expressions::{LambdaExpr, Literal, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, is_volatile, structural_eq};
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::utils::remove_list_null_values;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderUDF,
    LambdaArgument, ValueOrLambda, Volatility,
};
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// `fun(args...)`, where some arguments are [`LambdaExpr`]s.
///
/// The function calls a lambda for the elements of its lists, with the columns that the body
/// captures repeated to match. Elements under a NULL list are removed first, so that a body that
/// can fail meets no value that nobody sees.
#[derive(Clone, Debug)]
pub struct HigherOrderFunctionExpr {
    fun: Arc<HigherOrderUDF>,
    args: Vec<PhysicalExprRef>,
    return_field: FieldRef,
    options: Arc<ConfigOptions>,
}

structural_eq!(HigherOrderFunctionExpr { fun, args, return_field });

impl HigherOrderFunctionExpr {
    /// A call over rows of `input_schema`; the function says what it returns.
    ///
    /// # Errors
    /// When the function does not take such arguments.
    pub fn try_new(
        fun: Arc<HigherOrderUDF>,
        args: Vec<PhysicalExprRef>,
        input_schema: &Schema,
        options: Arc<ConfigOptions>,
    ) -> Result<Self> {
        let arg_fields = fields_of(&args, input_schema)?;
        let scalar_arguments: Vec<Option<&ScalarValue>> =
            args.iter().map(|arg| arg.downcast_ref::<Literal>().map(Literal::value)).collect();
        let return_field = fun.return_field_from_args(HigherOrderReturnFieldArgs {
            arg_fields: &arg_fields,
            scalar_arguments: &scalar_arguments,
        })?;
        Ok(HigherOrderFunctionExpr { fun, args, return_field, options })
    }

    /// The function.
    pub fn fun(&self) -> &Arc<HigherOrderUDF> {
        &self.fun
    }

    /// The arguments, lambdas among them.
    pub fn args(&self) -> &[PhysicalExprRef] {
        &self.args
    }

    fn call(&self, batch: &Batch) -> Result<ColumnarValue> {
        let args = self.args.iter().map(|arg| self.argument(arg, batch));
        let args = args.collect::<Result<Vec<_>>>()?;
        let constant = !self.is_volatile_node()
            && self.args.iter().zip(&args).all(|(expr, arg)| match arg {
                ValueOrLambda::Value(value) => matches!(value, ColumnarValue::Scalar(_)),
                ValueOrLambda::Lambda(_) => is_constant_lambda(expr),
            });
        let rows = if constant { 1 } else { batch.num_rows() };
        let result = self.fun.invoke_with_args(HigherOrderFunctionArgs {
            args,
            arg_fields: fields_of(&self.args, batch.schema())?,
            number_rows: rows,
            return_field: Arc::clone(&self.return_field),
            config_options: Arc::clone(&self.options),
        })?;
        match result {
            ColumnarValue::Array(array) if array.len() != rows => {
                internal_err!("{} gave {} values for {rows} rows", self.fun.name(), array.len())
            }
            ColumnarValue::Array(array) if constant => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            value => Ok(value),
        }
    }

    fn argument(
        &self,
        arg: &PhysicalExprRef,
        batch: &Batch,
    ) -> Result<ValueOrLambda<ColumnarValue, LambdaArgument>> {
        if let Some(lambda) = arg.downcast_ref::<LambdaExpr>() {
            return Ok(ValueOrLambda::Lambda(lambda_argument(lambda, batch)?));
        }
        Ok(ValueOrLambda::Value(match arg.evaluate(batch)? {
            ColumnarValue::Array(array) if self.fun.clear_null_values() => {
                ColumnarValue::Array(without_hidden_values(array)?)
            }
            value => value,
        }))
    }
}

/// `array` without list elements that lie under a NULL.
fn without_hidden_values(array: ArrayRef) -> Result<ArrayRef> {
    let list = matches!(array.data_type(), DataType::List(_) | DataType::LargeList(_));
    if list && array.null_count() > 0 { remove_list_null_values(&array) } else { Ok(array) }
}

/// Whether a lambda gives the same for every row of the function's input.
fn is_constant_lambda(expr: &PhysicalExprRef) -> bool {
    let captures = expr.downcast_ref::<LambdaExpr>().map_or(0, |l| l.captures().len());
    captures == 0 && !is_volatile(expr)
}

fn lambda_argument(lambda: &LambdaExpr, batch: &Batch) -> Result<LambdaArgument> {
    let captures = match lambda.captures() {
        [] => None,
        captured => {
            let schema = Arc::new(batch.schema().project(captured)?);
            let columns = captured.iter().map(|i| batch.column(*i)).collect::<Result<Vec<_>>>()?;
            Some(RecordBatch::try_new(schema, columns)?)
        }
    };
    let body = Wrapped::new(Arc::clone(lambda.flat_body()));
    let params = lambda.params().to_vec();
    Ok(LambdaArgument::new(params, Arc::new(body), captures, lambda.used_params()))
}

fn fields_of(
    args: &[PhysicalExprRef],
    schema: &Schema,
) -> Result<Vec<ValueOrLambda<FieldRef, FieldRef>>> {
    args.iter()
        .map(|arg| {
            let field = arg.return_field(schema)?;
            let lambda = arg.is_lambda();
            Ok(if lambda { ValueOrLambda::Lambda(field) } else { ValueOrLambda::Value(field) })
        })
        .collect()
}

impl fmt::Display for HigherOrderFunctionExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.fun.name(), crate::expressions::display_list(&self.args))
    }
}

impl PhysicalExpr for HigherOrderFunctionExpr {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.return_field))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        or_empty(self.call(batch), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        self.args.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        if children.len() != self.args.len() {
            return internal_err!("{} children for {self}", children.len());
        }
        Ok(Arc::new(HigherOrderFunctionExpr { args: children, ..self.as_ref().clone() }))
    }

    fn is_volatile_node(&self) -> bool {
        self.fun.signature().volatility == Volatility::Volatile
    }

    fn conditional_children(&self) -> Vec<usize> {
        if self.fun.short_circuits() { (0..self.args.len()).collect() } else { vec![] }
    }
}
