//! Calls of scalar functions.

use crate::expressions::{Literal, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::array::Array;
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility,
};
use planish_batch::Batch;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Functions of the library that give a value for every argument of their types.
const SAFE: &[&str] = &[
    "acos",
    "acosh",
    "ascii",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bit_length",
    "btrim",
    "cbrt",
    "ceil",
    "character_length",
    "concat",
    "concat_ws",
    "contains",
    "cos",
    "cosh",
    "cot",
    "degrees",
    "ends_with",
    "exp",
    "floor",
    "get_field",
    "greatest",
    "initcap",
    "isnan",
    "iszero",
    "least",
    "left",
    "levenshtein",
    "ln",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "md5",
    "nanvl",
    "nullif",
    "octet_length",
    "pi",
    "radians",
    "random",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "starts_with",
    "strpos",
    "tan",
    "tanh",
    "to_hex",
    "translate",
    "upper",
    "uuid",
];

/// [`SAFE`] as functions: a user's function of the same name is another one.
static SAFE_FUNCTIONS: LazyLock<HashSet<Arc<ScalarUDF>>> = LazyLock::new(|| {
    datafusion_functions::all_default_functions()
        .into_iter()
        .filter(|function| SAFE.contains(&function.name()))
        .collect()
});

/// `fun(args...)`.
///
/// Constant arguments reach the function as scalars. A function of constants alone, unless it is
/// volatile, is called for one row; a volatile one gives a value per row.
#[derive(Clone, Debug)]
pub struct ScalarFunctionExpr {
    fun: Arc<ScalarUDF>,
    args: Vec<PhysicalExprRef>,
    return_field: FieldRef,
    options: Arc<ConfigOptions>,
}

structural_eq!(ScalarFunctionExpr { fun, args, return_field });

impl ScalarFunctionExpr {
    /// A call whose result is `return_field`.
    pub fn new(
        fun: Arc<ScalarUDF>,
        args: Vec<PhysicalExprRef>,
        return_field: FieldRef,
        options: Arc<ConfigOptions>,
    ) -> Self {
        ScalarFunctionExpr { fun, args, return_field, options }
    }

    /// A call over rows of `input_schema`; the function says what it returns.
    ///
    /// # Errors
    /// When the function does not take such arguments.
    pub fn try_new(
        fun: Arc<ScalarUDF>,
        args: Vec<PhysicalExprRef>,
        input_schema: &Schema,
        options: Arc<ConfigOptions>,
    ) -> Result<Self> {
        let arg_fields = fields_of(&args, input_schema)?;
        let scalar_arguments: Vec<Option<&ScalarValue>> =
            args.iter().map(|arg| arg.downcast_ref::<Literal>().map(Literal::value)).collect();
        let return_field = fun.return_field_from_args(ReturnFieldArgs {
            arg_fields: &arg_fields,
            scalar_arguments: &scalar_arguments,
        })?;
        Ok(ScalarFunctionExpr { fun, args, return_field, options })
    }

    /// The function.
    pub fn fun(&self) -> &Arc<ScalarUDF> {
        &self.fun
    }

    /// The arguments.
    pub fn args(&self) -> &[PhysicalExprRef] {
        &self.args
    }

    /// The options that the function is called with.
    pub fn options(&self) -> &Arc<ConfigOptions> {
        &self.options
    }

    fn call(&self, batch: &Batch) -> Result<ColumnarValue> {
        let args = self.args.iter().map(|arg| arg.evaluate(batch)).collect::<Result<Vec<_>>>()?;
        let constant = !self.is_volatile_node()
            && args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { batch.num_rows() };
        let result = self.fun.invoke_with_args(ScalarFunctionArgs {
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
}

fn fields_of(args: &[PhysicalExprRef], schema: &Schema) -> Result<Vec<FieldRef>> {
    args.iter().map(|arg| arg.return_field(schema)).collect()
}

impl fmt::Display for ScalarFunctionExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.fun.name(), crate::expressions::display_list(&self.args))
    }
}

impl PhysicalExpr for ScalarFunctionExpr {
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
        Ok(Arc::new(ScalarFunctionExpr { args: children, ..self.as_ref().clone() }))
    }

    fn is_volatile_node(&self) -> bool {
        self.fun.signature().volatility == Volatility::Volatile
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        !SAFE_FUNCTIONS.contains(&self.fun)
    }

    fn conditional_children(&self) -> Vec<usize> {
        if self.fun.short_circuits() { (0..self.args.len()).collect() } else { vec![] }
    }

    fn placement(&self) -> ExpressionPlacement {
        let args: Vec<_> = self.args.iter().map(|arg| arg.placement()).collect();
        self.fun.placement(&args)
    }
}
