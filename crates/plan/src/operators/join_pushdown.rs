//! What joins let pass: filters to the side they read, projections that narrow the inputs, and
//! the projection that restores the columns of a join whose inputs changed places.

use crate::execution_plan::PlanRef;
use crate::operators::emitted::Emitted;
use crate::operators::join_filter::JoinFilter;
use crate::operators::join_schema::{shows_left, shows_right};
use crate::operators::projection::ProjectionExec;
use crate::pushdown::{ChildFilterDescription, FilterDescription, OfferedFilter};
use arrow::datatypes::SchemaRef;
use datafusion_common::{JoinSide, JoinType, Result};
use planish_expr::expressions::Column;
use planish_expr::projection::{ProjectionExpr, ProjectionExprs};
use planish_expr::utils::{column_indices, map_columns, shift_columns};
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where column `index` of the join's output comes from; `None` for the mark.
fn origin(
    index: usize,
    left: usize,
    right: usize,
    join_type: JoinType,
) -> Option<(JoinSide, usize)> {
    let shown_left = if shows_left(join_type) { left } else { 0 };
    let shown_right = if shows_right(join_type) { right } else { 0 };
    if index < shown_left {
        Some((JoinSide::Left, index))
    } else if index < shown_left + shown_right {
        Some((JoinSide::Right, index - shown_left))
    } else {
        None
    }
}

/// Whether a filter over one side's output columns may be applied below the join: every output
/// row with that side's values is one of its rows.
fn preserved(join_type: JoinType, side: JoinSide) -> bool {
    match join_type {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            side == JoinSide::Left
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            side == JoinSide::Right
        }
        JoinType::Full => false,
    }
}

/// Offers each parent filter to the side whose columns it reads, if that side is preserved.
/// `own` are the join's own expressions: when one is volatile, rows may not go missing below.
pub(crate) fn offer_filters(
    parent_filters: &[PhysicalExprRef],
    left: &PlanRef,
    right: &PlanRef,
    join_type: JoinType,
    own: &[PhysicalExprRef],
) -> Result<FilterDescription> {
    let (left_len, right_len) = (left.schema().fields().len(), right.schema().fields().len());
    let frozen = own.iter().any(is_volatile);
    let mut to_left = ChildFilterDescription::default();
    let mut to_right = ChildFilterDescription::default();
    for filter in parent_filters {
        let mut sides = BTreeSet::new();
        for index in column_indices(filter) {
            let side = origin(index, left_len, right_len, join_type).map(|(side, _)| side);
            sides.insert(match side {
                Some(JoinSide::Left) => 0,
                Some(_) => 1,
                None => 2,
            });
        }
        let passes = !frozen && !is_volatile(filter);
        let offered_left = passes && sides.iter().eq(&[0]) && preserved(join_type, JoinSide::Left);
        let offered_right =
            passes && sides.iter().eq(&[1]) && preserved(join_type, JoinSide::Right);
        to_left.parent_filters.push(offer(offered_left, filter, 0, left)?);
        let offset = if shows_left(join_type) { left_len } else { 0 };
        to_right.parent_filters.push(offer(offered_right, filter, offset, right)?);
    }
    Ok(FilterDescription { children: vec![to_left, to_right] })
}

/// A filter that can fail would meet rows that the join drops.
fn offer(
    wanted: bool,
    filter: &PhysicalExprRef,
    offset: usize,
    side: &PlanRef,
) -> Result<OfferedFilter> {
    if !wanted {
        return Ok(OfferedFilter::Unsupported);
    }
    let filter = shift_columns(filter, -(offset as isize))?;
    Ok(if can_fail(&filter, &side.schema()) {
        OfferedFilter::Unsupported
    } else {
        OfferedFilter::Supported(filter)
    })
}

/// The inputs of a join, narrowed to what it needs.
pub(crate) struct Narrowed {
    /// The narrowed left input.
    pub(crate) left: PlanRef,
    /// The narrowed right input.
    pub(crate) right: PlanRef,
    left_kept: Vec<usize>,
    right_kept: Vec<usize>,
    /// The projection's columns over the narrowed join's output, with their names.
    above: Vec<(usize, String)>,
    out_len: usize,
}

impl Narrowed {
    /// The inputs of a join that hands on `emitted` under `projection`, without the columns that
    /// neither the projection nor the join itself (`needed`, of the left and the right) reads;
    /// `None` when nothing would be dropped or the projection computes something.
    pub(crate) fn try_new(
        projection: &ProjectionExec,
        emitted: &Emitted,
        [left, right]: [&PlanRef; 2],
        join_type: JoinType,
        [mut left_needed, mut right_needed]: [BTreeSet<usize>; 2],
    ) -> Result<Option<Self>> {
        if projection.overrides_metadata() {
            return Ok(None);
        }
        let Some(indices) = projection.exprs().column_only_indices() else { return Ok(None) };
        let indices = emitted.made_indices(&indices);
        let (left_len, right_len) = (left.schema().fields().len(), right.schema().fields().len());
        let origins: Vec<_> =
            indices.iter().map(|&i| origin(i, left_len, right_len, join_type)).collect();
        for origin in &origins {
            match origin {
                Some((JoinSide::Left, i)) => left_needed.insert(*i),
                Some((_, i)) => right_needed.insert(*i),
                None => false,
            };
        }
        if left_needed.len() == left_len && right_needed.len() == right_len {
            return Ok(None);
        }
        let left_kept: Vec<usize> = left_needed.into_iter().collect();
        let right_kept: Vec<usize> = right_needed.into_iter().collect();
        let shown_left = if shows_left(join_type) { left_kept.len() } else { 0 };
        let shown_right = if shows_right(join_type) { right_kept.len() } else { 0 };
        let position = |kept: &[usize], i: usize| kept.binary_search(&i).unwrap_or(0);
        let above = origins.iter().zip(projection.exprs().iter()).map(|(origin, e)| {
            let index = match origin {
                Some((JoinSide::Left, i)) => position(&left_kept, *i),
                Some((_, i)) => shown_left + position(&right_kept, *i),
                None => shown_left + shown_right,
            };
            (index, e.alias.clone())
        });
        let mark = matches!(join_type, JoinType::LeftMark | JoinType::RightMark);
        Ok(Some(Narrowed {
            above: above.collect(),
            left: narrow(left, &left_kept)?,
            right: narrow(right, &right_kept)?,
            left_kept,
            right_kept,
            out_len: shown_left + shown_right + usize::from(mark),
        }))
    }

    /// Where column `i` of the left input is now.
    fn left_index(&self, i: usize) -> Option<usize> {
        self.left_kept.binary_search(&i).ok()
    }

    /// Where column `i` of the right input is now.
    fn right_index(&self, i: usize) -> Option<usize> {
        self.right_kept.binary_search(&i).ok()
    }

    /// An expression over the left input, over the narrowed one.
    pub(crate) fn left_expr(&self, expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        map_columns(expr, &|c| Some(Arc::new(Column::new(c.name(), self.left_index(c.index())?))))
    }

    /// An expression over the right input, over the narrowed one.
    pub(crate) fn right_expr(&self, expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        map_columns(expr, &|c| Some(Arc::new(Column::new(c.name(), self.right_index(c.index())?))))
    }

    /// A join condition over the narrowed inputs; `None` when it reads a column that is gone.
    pub(crate) fn filter(&self, filter: Option<&JoinFilter>) -> Option<Option<JoinFilter>> {
        let Some(filter) = filter else { return Some(None) };
        filter.with_moved_columns(|i| self.left_index(i), |i| self.right_index(i)).map(Some)
    }

    /// `join`, over the narrowed inputs, under what is left of the projection.
    pub(crate) fn finish(self, join: PlanRef) -> Result<PlanRef> {
        let schema = join.schema();
        let same = self.above.len() == self.out_len
            && self
                .above
                .iter()
                .enumerate()
                .all(|(i, (index, name))| *index == i && name == schema.field(i).name());
        if same {
            return Ok(join);
        }
        let exprs: ProjectionExprs = self
            .above
            .into_iter()
            .map(|(index, name)| {
                let column = Column::new(schema.field(index).name(), index);
                ProjectionExpr::new(Arc::new(column), name)
            })
            .collect();
        Ok(Arc::new(ProjectionExec::try_new(exprs, join)?))
    }
}

fn narrow(side: &PlanRef, kept: &[usize]) -> Result<PlanRef> {
    if kept.len() == side.schema().fields().len() {
        return Ok(Arc::clone(side));
    }
    let exprs = ProjectionExprs::from_indices(kept, &side.schema());
    Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(side))?))
}

/// `swapped`, a join whose inputs changed places, with the columns of the original: `schema`,
/// whose first `left_len` columns are `swapped`'s last ones. Types that show one side only have
/// them already.
pub(crate) fn restore_columns(
    swapped: PlanRef,
    schema: &SchemaRef,
    left_len: usize,
    join_type: JoinType,
) -> Result<PlanRef> {
    if !shows_left(join_type) || !shows_right(join_type) {
        return Ok(swapped);
    }
    let right_len = schema.fields().len() - left_len;
    let exprs: ProjectionExprs = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, field)| {
            let index = if i < left_len { right_len + i } else { i - left_len };
            ProjectionExpr::new(Arc::new(Column::new(field.name(), index)), field.name())
        })
        .collect();
    Ok(Arc::new(ProjectionExec::try_new_with_schema(exprs, swapped, Arc::clone(schema))?))
}
