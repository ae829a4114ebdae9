//! Lets a limit past windows that only look back, as the fetch of the sort below.
//!
//! Rows behind the limit are sorted, and windows computed over them, for nothing. A sort with a
//! fetch keeps the first rows alone.
//!
//! # Before
//! ```text
//! GlobalLimitExec: skip=1, fetch=2
//!   BoundedWindowAggExec: wdw=[n: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW], order_by=[a@0 ASC]
//!     SortExec: expr=[a@0 ASC]
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! GlobalLimitExec: skip=1, fetch=2
//!   BoundedWindowAggExec: wdw=[n: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW], order_by=[a@0 ASC]
//!     SortExec: expr=[a@0 ASC], fetch=3
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! A function says how far ahead it looks (`limit_effect`), and so does a frame in rows; the
//! fetch is widened by that. Projections and merges of ordered partitions may be in between.
//!
//! **Declines** for frames that end at a peer or a group, for functions that do not say how far
//! they look, LEAD over NULLs, LAG backwards, and where there is no sort right below.
//! **Knob**: `planish.optimizer.disable = 'LimitPushPastWindows'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, map_children, with_children};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{LimitEffect, WindowFrame, WindowFrameBound, WindowFrameUnits};
use planish_expr::expressions::Literal;
use planish_expr::udf::WindowUdfExpr;
use planish_plan::PlanRef;
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::window::{BoundedWindowAggExec, WindowExpr, WindowFunction};

/// Limits past windows.
#[derive(Debug)]
pub struct LimitPushPastWindows;

impl PhysicalOptimizerRule for LimitPushPastWindows {
    fn name(&self) -> &'static str {
        "LimitPushPastWindows"
    }

    fn optimize(&self, plan: PlanRef, _options: &ConfigOptions) -> Result<Option<PlanRef>> {
        Ok(if_changed(&plan, visit(&plan)?))
    }
}

fn visit(plan: &PlanRef) -> Result<PlanRef> {
    let plan = map_children(plan, |_, child| visit(child))?;
    let rows = if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        limit.limit().map(|fetch| fetch.saturating_add(limit.skip()))
    } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        Some(limit.limit())
    } else if plan.is::<SortPreservingMergeExec>() {
        plan.fetch()
    } else {
        None
    };
    let Some(rows) = rows.filter(|rows| *rows > 0) else { return Ok(plan) };
    match past(plan.children()[0], rows, false)? {
        Some(input) => with_children(&plan, vec![input]),
        None => Ok(plan),
    }
}

/// `plan` for a reader of the first `rows` rows of each partition; `windows`: one was passed.
fn past(plan: &PlanRef, rows: usize, windows: bool) -> Result<Option<PlanRef>> {
    if plan.is::<SortExec>() {
        // A fetch of its own is smaller, or was set for another reader.
        let free = windows && plan.fetch().is_none();
        return Ok(if free { plan.with_fetch(Some(rows)) } else { None });
    }
    let (rows, windows) = match plan.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) => match widened(window.exprs(), rows) {
            Some(rows) => (rows, true),
            None => return Ok(None),
        },
        None => (rows, windows),
    };
    let passes = plan.is::<BoundedWindowAggExec>()
        || plan.is::<ProjectionExec>()
        || (plan.is::<SortPreservingMergeExec>() && plan.fetch().is_none());
    if !passes {
        return Ok(None);
    }
    match past(plan.children()[0], rows, windows)? {
        Some(input) => with_children(plan, vec![input]).map(Some),
        None => Ok(None),
    }
}

/// The input rows that the first `rows` results depend on; `None`: unknown.
fn widened(exprs: &[WindowExpr], rows: usize) -> Option<usize> {
    exprs.iter().try_fold(rows, |most, expr| {
        let needed = match &expr.function {
            WindowFunction::Aggregate(_) => rows.saturating_add(ahead(&expr.frame)?),
            WindowFunction::Udf(call) => of_udf(call, &expr.frame, rows)?,
        };
        Some(most.max(needed))
    })
}

fn of_udf(call: &WindowUdfExpr, frame: &WindowFrame, rows: usize) -> Option<usize> {
    let framed = call.create_evaluator().ok()?.uses_window_frame();
    let of_frame = if framed { ahead(frame)? } else { 0 };
    if !framed && (call.ignore_nulls() || has_negative(call)) {
        return None;
    }
    let rows = rows.saturating_add(of_frame);
    match call.limit_effect() {
        LimitEffect::None => Some(rows),
        LimitEffect::Relative(n) => Some(rows.saturating_add(n)),
        LimitEffect::Absolute(n) => Some(rows.max(n)),
        LimitEffect::Unknown => None,
    }
}

/// `lag(x, -1)` looks ahead, and does not say so.
fn has_negative(call: &WindowUdfExpr) -> bool {
    call.args().iter().skip(1).take(1).any(|arg| {
        let known = arg.downcast_ref::<Literal>().map(Literal::value);
        known.is_none_or(|v| ScalarValue::new_zero(&v.data_type()).map_or(true, |zero| *v < zero))
    })
}

/// How many rows behind its own a frame in rows reaches.
fn ahead(frame: &WindowFrame) -> Option<usize> {
    if frame.units != WindowFrameUnits::Rows {
        return None;
    }
    match &frame.end_bound {
        WindowFrameBound::Preceding(_) | WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Following(ScalarValue::UInt64(Some(n))) => usize::try_from(*n).ok(),
        WindowFrameBound::Following(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    use arrow::array::{Array, ArrayRef};
    use arrow::datatypes::DataType;
    use datafusion_expr::function::AccumulatorArgs;
    use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
    use insta::assert_snapshot;
    use planish_expr::udf::AggregateFunctionExpr;
    use planish_plan::operators::window::window_exec;
    use std::sync::Arc;

    /// Counts the rows of a frame.
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Rows(Signature);

    impl AggregateUDFImpl for Rows {
        fn name(&self) -> &'static str {
            "rows"
        }

        fn signature(&self) -> &Signature {
            &self.0
        }

        fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
            Ok(DataType::Int64)
        }

        fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
            Ok(Box::new(Seen(0)))
        }
    }

    #[derive(Debug)]
    struct Seen(i64);

    impl Accumulator for Seen {
        fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
            self.0 += values[0].len() as i64;
            Ok(())
        }

        fn evaluate(&mut self) -> Result<ScalarValue> {
            Ok(ScalarValue::Int64(Some(self.0)))
        }

        fn size(&self) -> usize {
            size_of::<Self>()
        }

        fn state(&mut self) -> Result<Vec<ScalarValue>> {
            Ok(vec![self.evaluate()?])
        }

        fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
            Ok(())
        }
    }

    fn rows(n: u64) -> ScalarValue {
        ScalarValue::UInt64(Some(n))
    }

    /// A window over rows ordered by `a`, whose frames start two rows before.
    fn window(units: WindowFrameUnits, end: WindowFrameBound, input: PlanRef) -> PlanRef {
        let fun = AggregateUDF::from(Rows(Signature::any(1, Volatility::Immutable)));
        let (args, schema) = (vec![col("a", 0)], input.schema());
        let call = AggregateFunctionExpr::try_new(
            fun.into(),
            args,
            schema,
            "n",
            false,
            false,
            vec![],
            None,
        );
        let frame = Arc::new(WindowFrame::new_bounds(units, Preceding(rows(2)), end));
        let function = WindowFunction::Aggregate(Arc::new(call.unwrap()));
        let exprs = vec![WindowExpr { function, frame }];
        window_exec(exprs, vec![], vec![asc(col("a", 0))], input).unwrap()
    }

    fn sorted(fetch: Option<usize>) -> PlanRef {
        sort(vec![asc(col("a", 0))], fetch, scan(&["a", "b"], 1))
    }

    const ROWS: WindowFrameUnits = WindowFrameUnits::Rows;

    fn rule() -> Check {
        Check::new(LimitPushPastWindows)
    }

    #[test]
    fn becomes_the_fetch_of_the_sort_below() {
        let plan = limit(1, Some(2), window(ROWS, CurrentRow, sorted(None)));
        let source = include_str!("limit_push_past_windows.rs");
        assert_documented(source, &text(&plan), &rule().in_order().fires(Arc::clone(&plan)));
    }

    #[test]
    fn is_widened_by_what_each_window_looks_ahead() {
        let inner = window(ROWS, Following(rows(3)), sorted(None));
        let plan = limit(0, Some(2), columns(&[3, 0], window(ROWS, Following(rows(1)), inner)));
        assert_snapshot!(rule().in_order().fires(plan), @r"
        GlobalLimitExec: skip=0, fetch=2
          ProjectionExec: expr=[n@3, a@0]
            BoundedWindowAggExec: wdw=[n: ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING], order_by=[a@0 ASC]
              BoundedWindowAggExec: wdw=[n: ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING], order_by=[a@0 ASC]
                SortExec: expr=[a@0 ASC], fetch=6
                  MemoryScanExec: partitions=1, batches=1
        ");
    }

    #[test]
    fn declines_where_the_look_ahead_is_not_known() {
        let limited = |units, end| limit(0, Some(2), window(units, end, sorted(None)));
        rule().declines(limited(WindowFrameUnits::Groups, CurrentRow));
        rule().declines(limited(ROWS, Following(ScalarValue::UInt64(None))));
    }

    #[test]
    fn declines_without_a_limit_a_window_or_a_free_sort() {
        rule().declines(window(ROWS, CurrentRow, sorted(None)));
        rule().declines(limit(0, Some(2), sorted(None)));
        rule().declines(limit(0, Some(0), window(ROWS, CurrentRow, sorted(None))));
        rule().declines(limit(0, Some(2), window(ROWS, CurrentRow, sorted(Some(1)))));
        let kept = filter(gt(col("a", 0), 3), sorted(None));
        rule().declines(limit(0, Some(2), window(ROWS, CurrentRow, kept)));
    }
}
