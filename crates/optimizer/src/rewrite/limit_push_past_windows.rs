//! Lets a limit past windows that only look back, as the fetch of the sort below.
//!
//! Rows behind the limit are sorted, and windows computed over them, for nothing. A sort with a
//! fetch keeps the first rows alone.
//!
//! # Before
//! ```text
//! GlobalLimitExec: skip=1, fetch=2
//!   BoundedWindowAggExec: wdw=[n: RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], order_by=[a@0 ASC]
//!     SortExec: expr=[a@0 ASC]
//!       MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! GlobalLimitExec: skip=1, fetch=2
//!   BoundedWindowAggExec: wdw=[n: RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], order_by=[a@0 ASC]
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
    use arrow::datatypes::{DataType, Field, FieldRef};
    use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
    use datafusion_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
    use insta::assert_snapshot;
    use planish_plan::operators::window::window_exec;
    use std::ops::Range;
    use std::sync::Arc;

    /// Numbers the rows, and says that it looks `ahead` so many; `None`: it does not say.
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Numbers {
        ahead: Option<usize>,
        framed: bool,
        signature: Signature,
    }

    #[derive(Debug)]
    struct Numbering(u64, bool);

    impl PartitionEvaluator for Numbering {
        fn evaluate(
            &mut self,
            _values: &[arrow::array::ArrayRef],
            _range: &Range<usize>,
        ) -> Result<ScalarValue> {
            self.0 += 1;
            Ok(ScalarValue::UInt64(Some(self.0)))
        }

        fn supports_bounded_execution(&self) -> bool {
            true
        }

        fn uses_window_frame(&self) -> bool {
            self.1
        }

        fn is_causal(&self) -> bool {
            true
        }
    }

    impl WindowUDFImpl for Numbers {
        fn name(&self) -> &'static str {
            "numbers"
        }

        fn signature(&self) -> &Signature {
            &self.signature
        }

        fn partition_evaluator(
            &self,
            _args: PartitionEvaluatorArgs<'_>,
        ) -> Result<Box<dyn PartitionEvaluator>> {
            Ok(Box::new(Numbering(0, self.framed)))
        }

        fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
            Ok(Arc::new(Field::new(args.name(), DataType::UInt64, true)))
        }

        fn limit_effect(
            &self,
            _args: &[Arc<dyn datafusion_expr::physical_expr::PhysicalExpr>],
        ) -> LimitEffect {
            self.ahead.map_or(LimitEffect::Unknown, LimitEffect::Relative)
        }
    }
}
