//! Frames: which rows a function sees, for one row after the other.
//!
//! Rows of a partition are numbered from 0. Both bounds only move forward, so finding them costs
//! a constant number of steps per row.

use super::call::{offset_of, rows_of};
use super::peers::Peers;
use arrow::array::{Array, ArrayRef, DynComparator, make_comparator};
use arrow::compute::kernels::numeric::{add, sub};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// What is known of a partition's rows.
pub(super) struct View<'a> {
    /// The buffered columns, of rows `base..len`.
    pub(super) columns: &'a [ArrayRef],
    /// The ORDER BY keys of the same rows.
    pub(super) keys: &'a [ArrayRef],
    /// The first buffered row.
    pub(super) base: usize,
    /// Number of rows seen.
    pub(super) len: usize,
    /// Whether these are all.
    pub(super) ended: bool,
    /// The peer groups.
    pub(super) peers: &'a Peers,
}

/// The frames of one function.
#[derive(Debug)]
pub(super) struct FrameCursor {
    frame: Arc<WindowFrame>,
    options: Vec<SortOptions>,
    /// Where the searches of a RANGE frame's bounds stand.
    found: [usize; 2],
    group: usize,
}

impl FrameCursor {
    /// The frames `frame` in an order of these `options`.
    pub(super) fn new(frame: Arc<WindowFrame>, options: Vec<SortOptions>) -> Self {
        FrameCursor { frame, options, found: [0, 0], group: 0 }
    }

    /// Ready to answer for the rows of `view` from `first` on.
    ///
    /// # Errors
    /// When an offset cannot be added to a key.
    pub(super) fn over(&self, view: &View<'_>, first: usize) -> Result<Searches> {
        let bounds = [&self.frame.start_bound, &self.frame.end_bound];
        let mut searches = Searches { first, of_bounds: [None, None] };
        if self.frame.units == WindowFrameUnits::Range {
            for (search, bound) in searches.of_bounds.iter_mut().zip(bounds) {
                *search = self.search(bound, view, first)?;
            }
        }
        Ok(searches)
    }

    /// Compares the ends of `bound` for the rows from `first` on with the buffered keys.
    fn search(
        &self,
        bound: &WindowFrameBound,
        view: &View<'_>,
        first: usize,
    ) -> Result<Option<DynComparator>> {
        let Some(offset) = offset_of(bound) else { return Ok(None) };
        let ([keys], [options]) = (view.keys, self.options.as_slice()) else {
            return internal_err!("RANGE with an offset over {} keys", view.keys.len());
        };
        let preceding = matches!(bound, WindowFrameBound::Preceding(_));
        let down = preceding != options.descending;
        let rows = keys.slice(first - view.base, view.len - first);
        let (targets, keys) = moved(&rows, keys, offset, down)?;
        Ok(Some(make_comparator(&targets, &keys, *options)?))
    }

    /// The frame of `row`; `None`: it depends on rows to come.
    ///
    /// # Errors
    /// An internal error for bounds of a wrong type.
    pub(super) fn frame(
        &mut self,
        row: usize,
        view: &View<'_>,
        searches: &Searches,
    ) -> Result<Option<Range<usize>>> {
        self.group = view.peers.group_of(row, self.group);
        let Some(start) = self.bound(0, row, view, searches)? else { return Ok(None) };
        let Some(end) = self.bound(1, row, view, searches)? else { return Ok(None) };
        Ok(Some(start..end.max(start)))
    }

    /// Bound 0, the first row of the frame of `row`, or bound 1, the row after the last one.
    fn bound(
        &mut self,
        which: usize,
        row: usize,
        view: &View<'_>,
        searches: &Searches,
    ) -> Result<Option<usize>> {
        let bound = if which == 0 { &self.frame.start_bound } else { &self.frame.end_bound };
        let known = |at: usize| match at <= view.len || view.ended {
            true => Some(at.min(view.len)),
            false => None,
        };
        let Some(offset) = offset_of(bound) else {
            return Ok(match bound {
                WindowFrameBound::Preceding(_) => Some(0),
                WindowFrameBound::Following(_) => view.ended.then_some(view.len),
                WindowFrameBound::CurrentRow if self.frame.units == WindowFrameUnits::Rows => {
                    Some(row + which)
                }
                WindowFrameBound::CurrentRow => group_start(self.group + which, view),
            });
        };
        let preceding = matches!(bound, WindowFrameBound::Preceding(_));
        match self.frame.units {
            WindowFrameUnits::Rows => {
                let n = rows_of(offset)?;
                let at = row + which;
                Ok(known(if preceding { at.saturating_sub(n) } else { at.saturating_add(n) }))
            }
            WindowFrameUnits::Groups => {
                let n = rows_of(offset)?;
                let at = self.group + which;
                let group = if preceding { at.saturating_sub(n) } else { at.saturating_add(n) };
                Ok(group_start(group, view))
            }
            WindowFrameUnits::Range => {
                let Some(compare) = &searches.of_bounds[which] else {
                    return internal_err!("no search for {bound:?}");
                };
                let at = &mut self.found[which];
                // The first key not before the target, or the first one behind it.
                let passed = |ordering: Ordering| match which {
                    0 => ordering == Ordering::Greater,
                    _ => ordering != Ordering::Less,
                };
                while *at < view.len && passed(compare(row - searches.first, *at - view.base)) {
                    *at += 1;
                }
                Ok((*at < view.len || view.ended).then_some(*at))
            }
        }
    }

    /// Whether all frames start where the partition does.
    pub(super) fn expands(&self) -> bool {
        self.frame.start_bound.is_unbounded()
    }

    /// The first row whose keys the cursor may look at again.
    pub(super) fn needs_from(&self) -> usize {
        let bounds = [&self.frame.start_bound, &self.frame.end_bound];
        if self.frame.units != WindowFrameUnits::Range {
            return usize::MAX;
        }
        let searched = bounds.iter().zip(self.found).filter(|(b, _)| offset_of(b).is_some());
        searched.map(|(_, at)| at).min().unwrap_or(usize::MAX)
    }

    /// The first peer group that the cursor may ask for again.
    pub(super) fn needs_group(&self) -> usize {
        let back = match &self.frame.start_bound {
            _ if self.frame.units != WindowFrameUnits::Groups => 0,
            WindowFrameBound::Preceding(ScalarValue::UInt64(Some(n))) => *n,
            _ => 0,
        };
        let back_of_end = match &self.frame.end_bound {
            WindowFrameBound::Preceding(ScalarValue::UInt64(Some(n))) => *n,
            _ => 0,
        };
        let back = usize::try_from(back.max(back_of_end)).unwrap_or(usize::MAX);
        self.group.saturating_sub(back)
    }
}

/// The comparisons of one round of [`FrameCursor::frame`].
pub(super) struct Searches {
    first: usize,
    of_bounds: [Option<DynComparator>; 2],
}

fn group_start(group: usize, view: &View<'_>) -> Option<usize> {
    view.peers.start(group).or_else(|| view.ended.then_some(view.len))
}

/// `rows` moved by `offset`, down or up, and `keys`, in one type.
fn moved(
    rows: &ArrayRef,
    keys: &ArrayRef,
    offset: &ScalarValue,
    down: bool,
) -> Result<(ArrayRef, ArrayRef)> {
    let apply = |rows: &ArrayRef, offset: &ScalarValue| {
        let offset = offset.to_scalar()?;
        let moved = if down { sub(rows, &offset) } else { add(rows, &offset) };
        Ok::<_, datafusion_common::DataFusionError>(moved?)
    };
    let targets = match apply(rows, offset) {
        // Beyond the type's range there are other numbers.
        Err(e) if rows.data_type().is_integer() && is_overflow(&e) => {
            let wide = DataType::Decimal128(20, 0);
            apply(&cast(rows, &wide)?, &offset.cast_to(&wide)?)?
        }
        moved => moved?,
    };
    let keys = match targets.data_type() == keys.data_type() {
        true => Arc::clone(keys),
        false => cast(keys, targets.data_type())?,
    };
    Ok((targets, keys))
}

fn is_overflow(error: &datafusion_common::DataFusionError) -> bool {
    matches!(error, datafusion_common::DataFusionError::ArrowError(e, _)
        if matches!(**e, ArrowError::ArithmeticOverflow(_)))
}
