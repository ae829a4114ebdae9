//! Statistics of a projection's output.

use super::ProjectionExprs;
use crate::analysis::{ValueBounds, distinct_count, value_bounds};
use crate::expressions::{Column, Literal};
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::Schema;
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, Result, ScalarValue, Statistics, internal_err};

/// The statistics of `exprs` over an input of `stats` and `schema`.
pub(super) fn project(
    exprs: &ProjectionExprs,
    stats: &Statistics,
    schema: &Schema,
) -> Result<Statistics> {
    let mut total = Precision::Exact(0);
    let mut columns = Vec::with_capacity(exprs.as_ref().len());
    for e in exprs {
        let field = e.expr.return_field(schema)?;
        let column = of_expr(&e.expr, stats, schema)?;
        let bytes = match (column.byte_size, field.data_type().primitive_width()) {
            (Precision::Absent, Some(width)) => {
                stats.num_rows.multiply(&Precision::Exact(width)).to_inexact()
            }
            (known, _) => known,
        };
        total = total.add(&bytes);
        columns.push(column);
    }
    Ok(Statistics {
        num_rows: stats.num_rows,
        total_byte_size: total.to_inexact(),
        column_statistics: columns,
    })
}

fn of_expr(
    expr: &PhysicalExprRef,
    stats: &Statistics,
    schema: &Schema,
) -> Result<ColumnStatistics> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return match stats.column_statistics.get(column.index()) {
            Some(known) => Ok(known.clone()),
            None => internal_err!("no statistics for {expr}"),
        };
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Ok(of_literal(literal.value(), stats.num_rows));
    }
    if is_volatile(expr) {
        return Ok(ColumnStatistics::new_unknown());
    }
    let columns = |i: usize| ValueBounds::estimate(stats, schema, i);
    let bounds = value_bounds(expr, schema, &columns);
    let estimate = |bound: Option<ScalarValue>| bound.map_or(Precision::Absent, Precision::Inexact);
    let mut column = ColumnStatistics::new_unknown();
    column.min_value = estimate(bounds.lower);
    // NaN is greater than every number.
    column.max_value = estimate(bounds.upper.filter(|_| !bounds.may_be_nan));
    column.distinct_count = distinct_count(expr, stats, schema);
    if !expr.nullable(schema)? {
        column.null_count = Precision::Exact(0);
    }
    Ok(column)
}

/// A value that is there in every row, if there is a row.
fn of_literal(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    let mut column = ColumnStatistics::new_unknown();
    if value.is_null() {
        column.null_count = rows;
        return column;
    }
    let some_row = matches!(rows, Precision::Exact(n) if n > 0);
    let known = |p: Precision<ScalarValue>| if some_row { p } else { p.to_inexact() };
    column.null_count = Precision::Exact(0);
    column.min_value = known(Precision::Exact(value.clone()));
    column.max_value = known(Precision::Exact(value.clone()));
    column.distinct_count = if some_row { Precision::Exact(1) } else { Precision::Inexact(1) };
    column
}
