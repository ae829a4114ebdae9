//! What passes a window: filters of whole partitions, and projections that drop input columns.

use super::exec::Windows;
use crate::execution_plan::PlanRef;
use crate::floats::has_floats;
use crate::operators::projection::ProjectionExec;
use crate::properties::EmissionType;
use crate::pushdown::{ChildFilterDescription, FilterDescription, OfferedFilter};
use datafusion_common::Result;
use planish_expr::expressions::Column;
use planish_expr::projection::{ProjectionExpr, ProjectionExprs, narrow_expr};
use planish_expr::utils::{collect_column_indices, column_indices};
use planish_expr::{PhysicalExprRef, PhysicalSortExpr, can_fail, is_volatile};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Filters that read PARTITION BY columns alone drop whole partitions, so they may drop their
/// rows below. Rows of one partition may differ in a float (-0.0 and 0.0).
pub(super) fn offered(windows: &Windows, filters: &[PhysicalExprRef]) -> FilterDescription {
    let schema = windows.input.schema();
    let is_key = |i: usize| {
        !has_floats(schema.field(i).data_type())
            && windows
                .partition_by
                .iter()
                .any(|key| key.downcast_ref::<Column>().is_some_and(|c| c.index() == i))
    };
    let volatile = windows.exprs.iter().flat_map(|e| e.expressions()).any(|e| is_volatile(&e));
    let parent_filters = filters
        .iter()
        .map(|filter| {
            let columns = column_indices(filter);
            let in_input = columns.iter().all(|&i| i < schema.fields().len());
            let passes = !volatile
                && !is_volatile(filter)
                && in_input
                && columns.into_iter().all(is_key)
                && !can_fail(filter, &schema);
            match passes {
                true => OfferedFilter::Supported(Arc::clone(filter)),
                false => OfferedFilter::Unsupported,
            }
        })
        .collect();
    let child = ChildFilterDescription { parent_filters, self_filters: vec![] };
    FilterDescription { children: vec![child] }
}

/// What is left of a projection above a window.
pub(super) struct Above(Option<ProjectionExprs>);

impl Above {
    /// It over `node`.
    pub(super) fn over(self, node: PlanRef) -> Result<PlanRef> {
        Ok(match self.0 {
            Some(exprs) => Arc::new(ProjectionExec::try_new(exprs, node)?),
            None => node,
        })
    }
}

/// The same windows over an input without the columns that neither they nor `projection`, which
/// picks columns, read; and the projection over that.
pub(super) fn narrowed(
    windows: &Windows,
    projection: &ProjectionExec,
) -> Result<Option<(Windows, Above)>> {
    let width = windows.input.schema().fields().len();
    let Some(indices) = projection.exprs().column_only_indices() else { return Ok(None) };
    let mut read: BTreeSet<usize> = indices.iter().copied().filter(|&i| i < width).collect();
    let keys = windows.order_by.iter().map(|key| &key.expr);
    let of_calls: Vec<_> = windows.exprs.iter().flat_map(|e| e.expressions()).collect();
    for expr in windows.partition_by.iter().chain(keys).chain(&of_calls) {
        collect_column_indices(expr, &mut read);
    }
    if projection.overrides_metadata() || read.len() >= width {
        return Ok(None);
    }
    let kept: Vec<usize> = read.into_iter().collect();
    let Some(narrow) = rebuilt(windows, &kept)? else { return Ok(None) };
    let place = |i: usize| match i < width {
        true => kept.binary_search(&i).unwrap_or_default(),
        false => kept.len() + i - width,
    };
    let all = kept.len() + windows.exprs.len();
    let schema = Arc::clone(narrow.properties.schema());
    let in_place = indices.len() == all
        && indices
            .iter()
            .zip(projection.exprs())
            .enumerate()
            .all(|(at, (&i, e))| place(i) == at && *schema.field(at).name() == e.alias);
    let exprs: ProjectionExprs = indices
        .iter()
        .zip(projection.exprs())
        .map(|(&i, e)| {
            let column = Column::new(schema.field(place(i)).name(), place(i));
            ProjectionExpr::new(Arc::new(column), e.alias.clone())
        })
        .collect();
    Ok(Some((narrow, Above((!in_place).then_some(exprs)))))
}

/// `windows` over the columns `kept` of their input alone.
fn rebuilt(windows: &Windows, kept: &[usize]) -> Result<Option<Windows>> {
    let columns = ProjectionExprs::from_indices(kept, &windows.input.schema());
    let input: PlanRef = Arc::new(ProjectionExec::try_new(columns, Arc::clone(&windows.input))?);
    let all = |exprs: &[PhysicalExprRef]| -> Result<Option<Vec<PhysicalExprRef>>> {
        exprs.iter().map(|e| narrow_expr(e, kept)).collect()
    };
    let mut exprs = vec![];
    for expr in &windows.exprs {
        let Some(narrow) = all(&expr.expressions())? else { return Ok(None) };
        exprs.push(expr.with_expressions(narrow, input.schema())?);
    }
    let keys: Vec<_> = windows.order_by.iter().map(|key| Arc::clone(&key.expr)).collect();
    let (Some(partition_by), Some(keys)) = (all(&windows.partition_by)?, all(&keys)?) else {
        return Ok(None);
    };
    let order_by = keys
        .into_iter()
        .zip(&windows.order_by)
        .map(|(expr, key)| PhysicalSortExpr::new(expr, key.options))
        .collect();
    let emission = EmissionType::Incremental;
    Windows::try_new(exprs, partition_by, order_by, input, emission).map(Some)
}
