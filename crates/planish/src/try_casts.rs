//! `TRY_CAST` keeps its NULLs where it is compared.
//!
//! The front end takes `TRY_CAST(x AS TINYINT) > 10` for `x > 10`, as it does with `CAST`: true
//! for 300, where it is NULL. So while its optimizer runs, each such cast is the argument of a
//! function that it knows nothing about.

use crate::plan_expressions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, internal_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// `plan` with every `TRY_CAST` of what is no constant hidden.
pub(crate) fn hide(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, is_cast)? {
        return Ok(plan);
    }
    let hidden =
        Arc::new(ScalarUDF::new_from_impl(Hidden(Signature::any(1, Volatility::Immutable))));
    plan_expressions::rewrite(plan, |part, _| {
        Ok(if is_cast(&part) {
            let call = ScalarFunction::new_udf(Arc::clone(&hidden), vec![part]);
            Transformed::yes(Expr::ScalarFunction(call))
        } else {
            Transformed::no(part)
        })
    })
}

/// `plan` with what [`hide`] hid in its place.
pub(crate) fn show(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, is_hidden)? {
        return Ok(plan);
    }
    plan_expressions::rewrite(plan, |part, _| {
        Ok(match part {
            Expr::ScalarFunction(mut call) if call.func.inner().is::<Hidden>() => {
                match call.args.pop() {
                    Some(cast) => Transformed::yes(cast),
                    None => return internal_err!("nothing is hidden"),
                }
            }
            other => Transformed::no(other),
        })
    })
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::TryCast(cast) if !matches!(cast.expr.as_ref(), Expr::Literal(..)))
}

fn is_hidden(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Hidden>())
}

/// A function that is its argument, by name, too.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Hidden(Signature);

impl ScalarUDFImpl for Hidden {
    fn name(&self) -> &'static str {
        "hidden"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field says more")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(Arc::clone(field)),
            _ => internal_err!("one cast is hidden at a time"),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(value) => Ok(value),
            None => internal_err!("nothing is hidden"),
        }
    }
}
