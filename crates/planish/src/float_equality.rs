//! Comparisons of floats that hide an equality are written as equalities.
//!
//! Where the front end evaluates constants itself, and in the function library, `IN`, `CASE x
//! WHEN` and `nullif` tell `-0.0` from `0.0`; `=` does not. So `x IN (a, b)` becomes
//! `x = a OR x = b`, `CASE x WHEN a` becomes `CASE WHEN x = a`, and `nullif(x, a)` becomes
//! `CASE WHEN x = a THEN NULL ELSE x END`. What is volatile or holds a subquery stays as it is.

use crate::plan_expressions;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Case, InList, ScalarFunction};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};

/// Elements of an `IN` list above which it stays one.
const LONGEST_LIST: usize = 64;

/// `plan` with the hidden equalities of floats written out.
pub(crate) fn write_out_equalities(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, |part| compared(part).is_some())? {
        return Ok(plan);
    }
    plan_expressions::rewrite(plan, written_out)
}

/// The value that `expr` compares with others, if it does.
fn compared(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InList(list) if list.list.len() <= LONGEST_LIST => Some(&list.expr),
        Expr::Case(case) => case.expr.as_deref(),
        Expr::ScalarFunction(call) if is_nullif(call) => call.args.first(),
        _ => None,
    }
}

fn is_nullif(call: &ScalarFunction) -> bool {
    call.func == datafusion_functions::core::nullif() && call.args.len() == 2
}

/// Whether `value` is a float that may be written down more than once.
fn is_repeatable_float(value: &Expr, schema: &DFSchema) -> Result<bool> {
    let is_float = matches!(
        value.get_type(schema),
        Ok(DataType::Float16 | DataType::Float32 | DataType::Float64)
    );
    let is_subquery = |part: &Expr| {
        matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))
    };
    Ok(is_float && !value.is_volatile() && !value.exists(|part| Ok(is_subquery(part)))?)
}

fn written_out(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(value) = compared(&expr).cloned() else { return Ok(Transformed::no(expr)) };
    if !is_repeatable_float(&value, schema)? {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(match expr {
        Expr::InList(InList { list, negated, .. }) => {
            let equalities = list.into_iter().map(|element| value.clone().eq(element));
            let any = equalities.reduce(Expr::or).unwrap_or_else(|| datafusion_expr::lit(false));
            if negated { !any } else { any }
        }
        Expr::Case(Case { when_then_expr, else_expr, .. }) => {
            let branch =
                |(when, then): (Box<Expr>, Box<Expr>)| (Box::new(value.clone().eq(*when)), then);
            Expr::Case(Case {
                expr: None,
                when_then_expr: when_then_expr.into_iter().map(branch).collect(),
                else_expr,
            })
        }
        Expr::ScalarFunction(mut call) => {
            let null = ScalarValue::try_from(&value.get_type(schema)?)?;
            let Some(other) = call.args.pop() else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let equal = Box::new(value.clone().eq(other));
            Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(equal, Box::new(Expr::Literal(null, None)))],
                else_expr: Some(Box::new(value)),
            })
        }
        other => return Ok(Transformed::no(other)),
    }))
}
