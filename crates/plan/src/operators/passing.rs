//! What operators share that hand rows on unchanged: which filters and projections pass them,
//! and what a limit does to statistics.

use crate::execution_plan::PlanRef;
use crate::operators::projection::ProjectionExec;
use crate::pushdown::{ChildFilterDescription, FilterDescription, OfferedFilter};
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use planish_expr::projection::project_expr;
use planish_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr, is_volatile};
use std::sync::Arc;

/// All parent filters for every child, but volatile ones for none.
pub(crate) fn offer_filters(parent: &[PhysicalExprRef], children: usize) -> FilterDescription {
    let parent_filters = parent
        .iter()
        .map(|filter| match is_volatile(filter) {
            true => OfferedFilter::Unsupported,
            false => OfferedFilter::Supported(Arc::clone(filter)),
        })
        .collect();
    let child = ChildFilterDescription { parent_filters, self_filters: vec![] };
    FilterDescription { children: vec![child; children] }
}

/// Whether `projection` only picks columns, fewer than the `width` there are: then it is worth
/// having below.
pub(crate) fn narrows(projection: &ProjectionExec, width: usize) -> bool {
    !projection.overrides_metadata()
        && projection.exprs().column_only_indices().is_some()
        && projection.exprs().as_ref().len() < width
}

/// `projection` over `input`, when it [`narrows`] it.
pub(crate) fn narrowed(projection: &ProjectionExec, input: &PlanRef) -> Result<Option<PlanRef>> {
    if !narrows(projection, input.schema().fields().len()) {
        return Ok(None);
    }
    projection.with_input(Arc::clone(input)).map(Some)
}

/// `keys` over the output of `projection`; `None` when it hides one.
pub(crate) fn project_ordering(
    keys: &[PhysicalSortExpr],
    projection: &ProjectionExec,
) -> Result<Option<LexOrdering>> {
    keys.iter()
        .map(|key| {
            let expr = project_expr(&key.expr, projection.exprs())?;
            Ok(expr.map(|expr| PhysicalSortExpr::new(expr, key.options)))
        })
        .collect()
}

/// Statistics of what remains of a stream after `skip` rows were left out and at most `fetch`
/// taken. Row counts stay exact when they were; the rest holds exactly only if no row is lost.
pub(crate) fn limit_statistics(input: Statistics, skip: usize, fetch: Option<usize>) -> Statistics {
    let cap = fetch.unwrap_or(usize::MAX);
    let left = |rows: usize| rows.saturating_sub(skip).min(cap);
    let before = input.num_rows;
    let num_rows = match before {
        Precision::Exact(rows) => Precision::Exact(left(rows)),
        Precision::Inexact(rows) => Precision::Inexact(left(rows)),
        Precision::Absent => fetch.map_or(Precision::Absent, Precision::Inexact),
    };
    if fetch == Some(0) {
        return Statistics { num_rows: Precision::Exact(0), ..input.to_inexact() };
    }
    if matches!(before, Precision::Exact(rows) if left(rows) == rows) {
        return input;
    }
    let mut statistics = input.to_inexact();
    statistics.total_byte_size = match (before, num_rows, statistics.total_byte_size) {
        (
            Precision::Exact(before) | Precision::Inexact(before),
            Precision::Exact(after) | Precision::Inexact(after),
            Precision::Inexact(bytes),
        ) if before > 0 => {
            Precision::Inexact((bytes as f64 * after as f64 / before as f64).ceil() as usize)
        }
        _ => Precision::Absent,
    };
    statistics.num_rows = num_rows;
    statistics
}

/// Statistics of `partition` (or all) of a stream of which each partition gives at most `limit`
/// rows.
pub(crate) fn local_limit_statistics(
    input: &PlanRef,
    partition: Option<usize>,
    limit: usize,
) -> Result<Statistics> {
    let partitions = input.partition_count();
    let whole = input.statistics(partition)?;
    if partition.is_some() || partitions == 1 {
        return Ok(limit_statistics(whole, 0, Some(limit)));
    }
    let mut rows = Precision::Exact(0);
    for partition in 0..partitions {
        let of_one = input.statistics(Some(partition))?;
        rows = rows.add(&limit_statistics(of_one, 0, Some(limit)).num_rows);
    }
    let uncut = matches!(whole.num_rows, Precision::Exact(_)) && rows == whole.num_rows;
    if uncut {
        return Ok(whole);
    }
    let cut = limit_statistics(whole, 0, Some(limit.saturating_mul(partitions))).to_inexact();
    Ok(match rows {
        Precision::Absent => cut,
        known => Statistics { num_rows: known, ..cut },
    })
}
