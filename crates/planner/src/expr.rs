//! From DataFusion's logical [`Expr`] to a [`PhysicalExprRef`].
//!
//! Columns are resolved by qualified name to an index here, and only here; later nothing looks
//! at names.

use arrow::compute::SortOptions;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result, not_impl_err};
use datafusion_expr::expr::{Alias, BinaryExpr as LogicalBinary, Sort};
use datafusion_expr::{Expr, Subquery};
use planish_expr::expressions::{BinaryExpr, Column, Literal};
use planish_expr::{PhysicalExprRef, PhysicalSortExpr};
use std::sync::Arc;

/// Who plans the subqueries that occur inside expressions.
pub trait SubqueryPlanner: Send + Sync {
    /// An expression that stands for the one value of an uncorrelated scalar `subquery`.
    ///
    /// # Errors
    /// When the subquery cannot be planned.
    fn scalar_subquery(&self, subquery: &Subquery) -> Result<PhysicalExprRef>;
}

/// What lowering an expression needs besides the expression.
#[derive(Clone)]
pub struct ExprContext<'a> {
    /// The session's options, handed to scalar functions.
    pub options: Arc<ConfigOptions>,
    /// Who plans subqueries.
    pub subqueries: &'a dyn SubqueryPlanner,
}

/// `expr`, over rows of `input`, as a physical expression.
///
/// # Errors
/// When a column is unknown, types do not fit, or the expression is of a kind that has no
/// physical form (the error names it).
pub fn create_physical_expr(
    expr: &Expr,
    input: &DFSchema,
    ctx: &ExprContext<'_>,
) -> Result<PhysicalExprRef> {
    match expr {
        Expr::Alias(Alias { expr, .. }) => create_physical_expr(expr, input, ctx),
        Expr::Column(column) => {
            Ok(Arc::new(Column::new(&column.name, input.index_of_column(column)?)))
        }
        Expr::Literal(value, metadata) => {
            Ok(Arc::new(Literal::new_with_metadata(value.clone(), metadata.clone())))
        }
        Expr::BinaryExpr(LogicalBinary { left, op, right }) => {
            let left = create_physical_expr(left, input, ctx)?;
            let right = create_physical_expr(right, input, ctx)?;
            Ok(Arc::new(BinaryExpr::new(left, *op, right)))
        }
        Expr::ScalarSubquery(subquery) => ctx.subqueries.scalar_subquery(subquery),
        other => not_impl_err!("the expression {other}"),
    }
}

/// A sort key over rows of `input`.
///
/// # Errors
/// As [`create_physical_expr`].
pub fn create_sort_expr(
    key: &Sort,
    input: &DFSchema,
    ctx: &ExprContext<'_>,
) -> Result<PhysicalSortExpr> {
    let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
    Ok(PhysicalSortExpr::new(create_physical_expr(&key.expr, input, ctx)?, options))
}
