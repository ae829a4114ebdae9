//! Functions of volatile values are called once per row, also where they are compared.
//!
//! The front end solves comparisons with such a function for its argument, which it then writes
//! down twice: `floor(random() * 2) = 0` becomes `random() * 2 >= 0 AND random() * 2 < 1`, of
//! two draws. So over volatile arguments the functions that offer this are replaced by ones that
//! do the same and do not offer it.

use crate::plan_expressions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// `plan`, in which no comparison over a volatile value is solved for it.
pub(crate) fn keep_calls_together(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, |part| solvable(part).is_some())? {
        return Ok(plan);
    }
    plan_expressions::rewrite(plan, |part, _| {
        Ok(match solvable(&part).cloned() {
            Some(call) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::new(ScalarUDF::new_from_impl(Unsolvable(call.func))),
                call.args,
            ))),
            None => Transformed::no(part),
        })
    })
}

/// A call over a volatile value that comparisons are solved for: the functions with a preimage.
fn solvable(expr: &Expr) -> Option<&ScalarFunction> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let offers = matches!(call.name(), "floor" | "date_part");
    let is_replaced = call.func.inner().is::<Unsolvable>();
    (offers && !is_replaced && call.args.iter().any(Expr::is_volatile)).then_some(call)
}

/// A function, without what it says about its argument given its value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Unsolvable(Arc<ScalarUDF>);

impl ScalarUDFImpl for Unsolvable {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }
}
