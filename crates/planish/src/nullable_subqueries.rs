//! Scalar subqueries without a row are NULL, which the front end does not see: it takes the
//! column's own nullability for the expression's, and folds `(SELECT ...) IS NULL` to false. So
//! the column is made nullable, by a function that does nothing else.

use crate::plan_expressions;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use std::sync::{Arc, LazyLock};

/// `plan` with the column of every scalar subquery nullable that may have no row.
pub(crate) fn make_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, needs_it)? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|expr| expr.transform_up(wrap_subquery))?;
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })
    .data()
}

fn needs_it(expr: &Expr) -> bool {
    let Expr::ScalarSubquery(subquery) = expr else { return false };
    let fields = subquery.subquery.schema().fields();
    fields.iter().any(|field| !field.is_nullable()) && !has_one_row(&subquery.subquery)
}

/// Whether `plan` yields exactly one row for sure.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Sort(sort) => has_one_row(&sort.input),
        _ => false,
    }
}

fn wrap_subquery(expr: Expr) -> Result<Transformed<Expr>> {
    if !needs_it(&expr) {
        return Ok(Transformed::no(expr));
    }
    let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
    let columns: Vec<Expr> = subquery
        .subquery
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::from((qualifier, field));
            MAY_BE_NULL.call(vec![column]).alias(field.name())
        })
        .collect();
    let plan =
        LogicalPlanBuilder::from(Arc::clone(&subquery.subquery)).project(columns)?.build()?;
    let nullable = Subquery { subquery: Arc::new(plan), ..subquery };
    Ok(Transformed::yes(Expr::ScalarSubquery(nullable)))
}

static MAY_BE_NULL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(MayBeNull { signature: SIGNATURE.clone() }))
});

/// Volatile, so that the front end does not replace a call on a constant by the constant.
static SIGNATURE: LazyLock<Signature> = LazyLock::new(|| Signature::any(1, Volatility::Volatile));

/// Its argument, declared nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MayBeNull {
    signature: Signature,
}

impl ScalarUDFImpl for MayBeNull {
    fn name(&self) -> &str {
        "planish_may_be_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("return_field_from_args is called instead")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(Arc::new(Field::clone(field).with_nullable(true))),
            others => internal_err!("planish_may_be_null of {} arguments", others.len()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match <[ColumnarValue; 1]>::try_from(args.args) {
            Ok([value]) => Ok(value),
            Err(others) => internal_err!("planish_may_be_null of {} arguments", others.len()),
        }
    }
}
