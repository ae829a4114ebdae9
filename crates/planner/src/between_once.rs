//! `BETWEEN` over a volatile value, as a call: the front end would write the value down twice.

use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};
use datafusion_expr::expr::{Between, ScalarFunction};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// `between`, whose three operands have one type, as a call that the front end leaves alone.
/// [`crate::PhysicalPlanner`] turns it into an expression that evaluates its operand once.
pub fn between_once(between: Between) -> Expr {
    let function = BetweenOnce { negated: between.negated, signature: signature() };
    Expr::ScalarFunction(ScalarFunction::new_udf(
        Arc::new(ScalarUDF::new_from_impl(function)),
        vec![*between.expr, *between.low, *between.high],
    ))
}

fn signature() -> Signature {
    Signature::any(3, Volatility::Volatile)
}

/// The function `expr [NOT] BETWEEN low AND high`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BetweenOnce {
    pub(crate) negated: bool,
    signature: Signature,
}

impl ScalarUDFImpl for BetweenOnce {
    fn name(&self) -> &str {
        if self.negated { "not_between" } else { "between" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} is never called: the planner replaces it", self.name())
    }
}
