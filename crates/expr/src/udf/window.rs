//! [`WindowUdfExpr`]: one call of one of DataFusion's window functions.

use super::aggregate::Described;
use crate::PhysicalExprRef;
use crate::expressions::Literal;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_common::{Result, internal_err};
use datafusion_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{LimitEffect, PartitionEvaluator, WindowUDF};
use datafusion_physical_expr::expressions as theirs;
use std::fmt;
use std::sync::Arc;

/// One call of a window function: `lag(a@0, 2)`.
#[derive(Clone, Debug)]
pub struct WindowUdfExpr {
    fun: Arc<WindowUDF>,
    args: Vec<PhysicalExprRef>,
    input_schema: SchemaRef,
    ignore_nulls: bool,
    field: FieldRef,
    described: Described,
}

impl WindowUdfExpr {
    /// The call of `fun` with `args`, over rows of `input_schema`.
    ///
    /// # Errors
    /// When the function does not take such arguments.
    pub fn try_new(
        fun: Arc<WindowUDF>,
        args: Vec<PhysicalExprRef>,
        input_schema: SchemaRef,
        name: &str,
        ignore_nulls: bool,
    ) -> Result<Self> {
        let described = Described::new(&args, &[], &input_schema)?;
        let field = fun.field(WindowUDFFieldArgs::new(&described.fields, name))?;
        let field = Arc::new(field.as_ref().clone().with_name(name));
        let call = WindowUdfExpr { fun, args, input_schema, ignore_nulls, field, described };
        // What a function cannot do it says now.
        call.create_evaluator()?;
        call.evaluator_inputs()?;
        Ok(call)
    }

    /// The same call over other arguments.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub fn with_args(&self, args: Vec<PhysicalExprRef>, input_schema: SchemaRef) -> Result<Self> {
        let fun = Arc::clone(&self.fun);
        Self::try_new(fun, args, input_schema, self.field.name(), self.ignore_nulls)
    }

    /// The function.
    pub fn fun(&self) -> &Arc<WindowUDF> {
        &self.fun
    }

    /// The arguments.
    pub fn args(&self) -> &[PhysicalExprRef] {
        &self.args
    }

    /// Whether NULLs are passed over (`IGNORE NULLS`).
    pub fn ignore_nulls(&self) -> bool {
        self.ignore_nulls
    }

    /// The schema of the rows that the arguments are over.
    pub fn input_schema(&self) -> &SchemaRef {
        &self.input_schema
    }

    /// The output field, named as the call.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// An evaluator for one partition.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn create_evaluator(&self) -> Result<Box<dyn PartitionEvaluator>> {
        self.fun.partition_evaluator_factory(PartitionEvaluatorArgs::new(
            &self.described.exprs,
            &self.described.fields,
            false,
            self.ignore_nulls,
        ))
    }

    /// The expressions whose values the evaluator is fed with: those of the arguments that the
    /// function asks for.
    ///
    /// # Errors
    /// An internal error when the function asks for something that is no argument.
    pub fn evaluator_inputs(&self) -> Result<Vec<PhysicalExprRef>> {
        let described = &self.described;
        let asked = self.fun.expressions(ExpressionArgs::new(&described.exprs, &described.fields));
        asked
            .into_iter()
            .map(|expr| {
                if let Some(i) = described.exprs.iter().position(|known| known.eq(&expr)) {
                    return Ok(Arc::clone(&self.args[i]));
                }
                match expr.downcast_ref::<theirs::Literal>() {
                    Some(literal) => {
                        Ok(Arc::new(Literal::new(literal.value().clone())) as PhysicalExprRef)
                    }
                    None => internal_err!("{} asks for {expr}, no argument of it", self.fun.name()),
                }
            })
            .collect()
    }

    /// How many rows behind the last one of a limit the function looks at.
    pub fn limit_effect(&self) -> LimitEffect {
        self.fun.inner().limit_effect(&self.described.exprs)
    }
}

impl fmt::Display for WindowUdfExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.name())
    }
}

impl PartialEq for WindowUdfExpr {
    fn eq(&self, other: &Self) -> bool {
        self.fun == other.fun
            && self.args == other.args
            && self.field == other.field
            && self.ignore_nulls == other.ignore_nulls
            && self.input_schema == other.input_schema
    }
}
