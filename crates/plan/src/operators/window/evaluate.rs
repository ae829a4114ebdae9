//! Evaluators: one function over the rows of one partition, as they become known.

use super::call::{WindowExpr, WindowFunction};
use super::frame::{FrameCursor, View};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array};
use arrow::compute::{SortOptions, cast, filter, take};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::window_state::WindowAggState;
use datafusion_expr::{Accumulator, PartitionEvaluator};
use planish_expr::expressions::CastExpr;
use planish_expr::udf::AggregateFunctionExpr;
use std::ops::Range;
use std::sync::Arc;

use crate::floats::has_floats;

/// Which of the buffered columns a function reads.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    pub(super) values: Range<usize>,
    /// The column that says which rows count.
    pub(super) filter: Option<usize>,
}

/// One function over one partition.
pub(super) struct Evaluator {
    reads: Reads,
    data_type: DataType,
    kind: Kind,
    /// The first row without a result.
    pub(super) next: usize,
    needs_from: usize,
}

enum Kind {
    Aggregate {
        call: Arc<AggregateFunctionExpr>,
        cursor: FrameCursor,
        state: Sliding,
    },
    /// A window function that looks at its frame.
    Framed {
        evaluator: Box<dyn PartitionEvaluator>,
        cursor: FrameCursor,
    },
    /// A window function that has ranges of its own, row by row.
    Rows {
        evaluator: Box<dyn PartitionEvaluator>,
    },
    /// A window function that wants to see the whole partition.
    Whole {
        evaluator: Box<dyn PartitionEvaluator>,
    },
}

/// An accumulator that has seen the rows of `range`.
struct Sliding {
    accumulator: Box<dyn Accumulator>,
    range: Range<usize>,
    /// Whether the first row of frames moves.
    moves: bool,
    retracts: bool,
}

impl Evaluator {
    /// An evaluator for the next partition; `streams`: results may be asked for before its end.
    ///
    /// # Errors
    /// What the function refuses.
    pub(super) fn new(
        expr: &WindowExpr,
        options: &[SortOptions],
        reads: Reads,
        streams: bool,
    ) -> Result<Self> {
        let cursor = || FrameCursor::new(Arc::clone(&expr.frame), options.to_vec());
        let kind = match &expr.function {
            WindowFunction::Aggregate(call) => {
                let moves = !expr.frame.start_bound.is_unbounded();
                let state = Sliding::new(call, moves)?;
                Kind::Aggregate { call: Arc::clone(call), cursor: cursor(), state }
            }
            WindowFunction::Udf(call) => {
                let evaluator = call.create_evaluator()?;
                if evaluator.uses_window_frame() {
                    Kind::Framed { evaluator, cursor: cursor() }
                } else if streams {
                    Kind::Rows { evaluator }
                } else {
                    Kind::Whole { evaluator }
                }
            }
        };
        let data_type = expr.field().data_type().clone();
        Ok(Evaluator { reads, data_type, kind, next: 0, needs_from: 0 })
    }

    /// The results of the next rows whose frames are known, perhaps of none.
    ///
    /// # Errors
    /// The function's.
    pub(super) fn advance(&mut self, view: &View<'_>) -> Result<ArrayRef> {
        let values = &view.columns[self.reads.values.clone()];
        let mask = self.reads.filter.map(|i| &view.columns[i]);
        let mut results = Results::default();
        match &mut self.kind {
            Kind::Aggregate { call, cursor, state } => {
                let searches = cursor.over(view, self.next)?;
                let mut last = None;
                while self.next < view.len
                    && let Some(frame) = cursor.frame(self.next, view, &searches)?
                {
                    if last.as_ref() == Some(&frame) {
                        results.repeat();
                    } else {
                        state.slide(call, &frame, values, mask, view.base)?;
                        results.push(state.accumulator.evaluate()?);
                        last = Some(frame);
                    }
                    self.next += 1;
                }
                let of_rows = if state.moves { state.range.start } else { state.range.end };
                self.needs_from = of_rows.min(cursor.needs_from());
            }
            Kind::Framed { evaluator, cursor } => {
                let searches = cursor.over(view, self.next)?;
                let mut last = None;
                while self.next < view.len
                    && let Some(frame) = cursor.frame(self.next, view, &searches)?
                {
                    // Rows that the function let go of are no part of its frames any more.
                    let buffered = |row: usize| row.saturating_sub(view.base);
                    let frame = buffered(frame.start)..buffered(frame.end);
                    results.push(evaluator.evaluate(values, &frame)?);
                    last = Some(frame);
                    self.next += 1;
                }
                let results = results.finish(&self.data_type)?;
                if let Some(frame) = last {
                    let start = match cursor.expands() && !view.ended {
                        true => let_go(evaluator.as_mut(), &results, frame)?,
                        false => frame.start,
                    };
                    self.needs_from = (view.base + start).min(cursor.needs_from());
                }
                return Ok(results);
            }
            Kind::Rows { evaluator } => {
                let of_ranks: Vec<ArrayRef>;
                let values = if evaluator.include_rank() {
                    of_ranks = values.iter().chain(view.keys).cloned().collect();
                    &of_ranks
                } else {
                    values
                };
                let known = view.len - view.base;
                while self.next < view.len {
                    let range = evaluator.get_range(self.next - view.base, known)?;
                    if !view.ended && !evaluator.is_causal() && range.end >= known {
                        break;
                    }
                    self.needs_from = view.base + range.start;
                    results.push(evaluator.evaluate(values, &range)?);
                    self.next += 1;
                }
            }
            Kind::Whole { evaluator } => {
                if !view.ended || view.base > 0 {
                    return internal_err!("a window function that needs its partition streams");
                }
                let of_all = if evaluator.include_rank() {
                    evaluator.evaluate_all_with_rank(view.len, &view.peers.ranges(view.len))?
                } else {
                    evaluator.evaluate_all(values, view.len)?
                };
                self.next = view.len;
                return in_type(of_all, &self.data_type);
            }
        }
        results.finish(&self.data_type)
    }

    /// The first row whose values may be read again.
    pub(super) fn needs_from(&self) -> usize {
        self.needs_from.min(self.next)
    }

    /// The first peer group that may be asked for again.
    pub(super) fn needs_group(&self) -> usize {
        match &self.kind {
            Kind::Aggregate { cursor, .. } | Kind::Framed { cursor, .. } => cursor.needs_group(),
            Kind::Rows { .. } => usize::MAX,
            Kind::Whole { .. } => 0,
        }
    }

    /// Bytes held by the function.
    pub(super) fn size(&self) -> usize {
        match &self.kind {
            Kind::Aggregate { state, .. } => state.accumulator.size(),
            _ => size_of::<Self>(),
        }
    }
}

impl Sliding {
    fn new(call: &AggregateFunctionExpr, moves: bool) -> Result<Self> {
        let plain = |retracts| -> Result<Self> {
            let accumulator = call.create_accumulator()?;
            Ok(Sliding { accumulator, range: 0..0, moves, retracts })
        };
        if !moves || !retracts_exactly(call) {
            return plain(false);
        }
        let accumulator = call.create_sliding_accumulator()?;
        if !accumulator.supports_retract_batch() {
            return plain(false);
        }
        Ok(Sliding { accumulator, range: 0..0, moves, retracts: true })
    }

    /// Makes the rows of `frame`, which starts and ends no earlier than the one before, those the
    /// accumulator has seen.
    fn slide(
        &mut self,
        call: &AggregateFunctionExpr,
        frame: &Range<usize>,
        values: &[ArrayRef],
        mask: Option<&ArrayRef>,
        base: usize,
    ) -> Result<()> {
        let seen = self.range.clone();
        let keeps = frame.start < seen.end && self.retracts;
        if frame.start > seen.start && !keeps {
            if !seen.is_empty() {
                *self = Sliding::new(call, self.moves)?;
            }
            self.range = frame.start..frame.start;
        } else if frame.start > seen.start {
            let gone = rows(values, mask, seen.start..frame.start, base)?;
            self.accumulator.retract_batch(&gone)?;
            self.range.start = frame.start;
        }
        if frame.end > self.range.end {
            let new = rows(values, mask, self.range.end..frame.end, base)?;
            self.accumulator.update_batch(&new)?;
            self.range.end = frame.end;
        }
        Ok(())
    }
}

/// The first row that a function over frames from the partition's start needs, after `results`,
/// the last of them over `frame`.
fn let_go(
    evaluator: &mut dyn PartitionEvaluator,
    results: &ArrayRef,
    frame: Range<usize>,
) -> Result<usize> {
    let mut state = WindowAggState::new(results.data_type())?;
    state.out_col = Arc::clone(results);
    state.window_frame_range = frame;
    evaluator.memoize(&mut state)?;
    Ok(state.window_frame_range.start)
}

/// Whether taking rows out leaves what adding the others alone gives: sums of floats do not (an
/// infinity never leaves, a large number takes digits with it).
fn retracts_exactly(call: &AggregateFunctionExpr) -> bool {
    let name = call.fun.name();
    if ["count", "min", "max"].contains(&name) {
        return true;
    }
    let sums = ["sum", "avg"].contains(&name);
    call.args.iter().all(|arg| {
        let float = arg.data_type(&call.input_schema).map_or(true, |t| has_floats(&t));
        let of_integer = || {
            let cast = arg.downcast_ref::<CastExpr>();
            cast.and_then(|cast| cast.expr().data_type(&call.input_schema).ok())
                .is_some_and(|t| t.is_integer())
        };
        !float || (sums && of_integer())
    })
}

fn rows(
    values: &[ArrayRef],
    mask: Option<&ArrayRef>,
    range: Range<usize>,
    base: usize,
) -> Result<Vec<ArrayRef>> {
    let (offset, len) = (range.start - base, range.len());
    let slices = values.iter().map(|v| v.slice(offset, len));
    match mask {
        None => Ok(slices.collect()),
        Some(mask) => {
            let mask = mask.slice(offset, len);
            slices.map(|v| Ok(filter(&v, mask.as_boolean())?)).collect()
        }
    }
}

/// Results row by row, repeats kept once.
#[derive(Default)]
struct Results {
    values: Vec<ScalarValue>,
    rows: Vec<u32>,
}

impl Results {
    fn push(&mut self, value: ScalarValue) {
        self.rows.push(self.values.len() as u32);
        self.values.push(value);
    }

    fn repeat(&mut self) {
        self.rows.push(self.values.len().saturating_sub(1) as u32);
    }

    fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        if self.values.is_empty() {
            return Ok(new_empty_array(data_type));
        }
        let repeats = self.rows.len() > self.values.len();
        let values = in_type(ScalarValue::iter_to_array(self.values)?, data_type)?;
        if !repeats {
            return Ok(values);
        }
        Ok(take(&values, &UInt32Array::from(self.rows), None)?)
    }
}

fn in_type(column: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type { Ok(column) } else { Ok(cast(&column, data_type)?) }
}
