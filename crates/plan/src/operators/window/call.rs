//! [`WindowExpr`]: one window function over its frame.

use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use planish_expr::PhysicalExprRef;
use planish_expr::udf::{AggregateFunctionExpr, WindowUdfExpr};
use std::fmt;
use std::sync::Arc;

/// What is computed over the frame of each row.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// An aggregate of the frame's rows.
    Aggregate(Arc<AggregateFunctionExpr>),
    /// A function made for windows.
    Udf(Arc<WindowUdfExpr>),
}

/// One window function with its frame; partition and order are the operator's.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowExpr {
    /// What is computed.
    pub function: WindowFunction,
    /// Over which rows.
    pub frame: Arc<WindowFrame>,
}

impl WindowExpr {
    /// The output field.
    pub fn field(&self) -> &FieldRef {
        match &self.function {
            WindowFunction::Aggregate(call) => call.field(),
            WindowFunction::Udf(call) => call.field(),
        }
    }

    /// The expressions it evaluates on its input.
    pub fn expressions(&self) -> Vec<PhysicalExprRef> {
        match &self.function {
            WindowFunction::Aggregate(call) => call.expressions(),
            WindowFunction::Udf(call) => call.args().to_vec(),
        }
    }

    /// The same over other expressions, as [`Self::expressions`] lists them.
    ///
    /// # Errors
    /// When the function does not take them.
    pub fn with_expressions(
        &self,
        exprs: Vec<PhysicalExprRef>,
        input_schema: SchemaRef,
    ) -> Result<Self> {
        let function = match &self.function {
            WindowFunction::Aggregate(call) => {
                WindowFunction::Aggregate(Arc::new(call.with_expressions(exprs, input_schema)?))
            }
            WindowFunction::Udf(call) => {
                WindowFunction::Udf(Arc::new(call.with_args(exprs, input_schema)?))
            }
        };
        Ok(WindowExpr { function, frame: Arc::clone(&self.frame) })
    }

    /// Whether results come before the partition ends, from a bounded number of rows where frames
    /// are bounded.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn can_stream(&self) -> Result<bool> {
        let ends = !self.frame.end_bound.is_unbounded();
        Ok(match &self.function {
            WindowFunction::Aggregate(_) => ends,
            WindowFunction::Udf(call) => {
                let evaluator = call.create_evaluator()?;
                // LEAD over NULLs miscounts row by row; over a whole partition it does not.
                let row_by_row = evaluator.supports_bounded_execution();
                match evaluator.uses_window_frame() {
                    true => row_by_row && ends,
                    false => row_by_row && !call.ignore_nulls(),
                }
            }
        })
    }

    /// Refuses frames that mean nothing over `order_by` keys of these types.
    ///
    /// # Errors
    /// A plan error that names the frame.
    pub(super) fn check_frame(&self, order_by: &[DataType]) -> Result<()> {
        let frame = &self.frame;
        if frame.start_bound == WindowFrameBound::Following(ScalarValue::UInt64(None)) {
            return plan_err!("a frame cannot start at UNBOUNDED FOLLOWING: {frame}");
        }
        let offsets = [&frame.start_bound, &frame.end_bound].into_iter().filter_map(offset_of);
        for offset in offsets {
            match frame.units {
                WindowFrameUnits::Range if order_by.len() != 1 => {
                    return plan_err!("RANGE with an offset needs one ORDER BY key: {frame}");
                }
                WindowFrameUnits::Range => {
                    if is_negative(offset) {
                        return plan_err!("a frame's offset must not be negative: {frame}");
                    }
                }
                WindowFrameUnits::Groups if order_by.is_empty() => {
                    return plan_err!("GROUPS needs an ORDER BY: {frame}");
                }
                WindowFrameUnits::Rows | WindowFrameUnits::Groups => {
                    rows_of(offset)?;
                }
            }
        }
        Ok(())
    }
}

fn is_negative(offset: &ScalarValue) -> bool {
    match offset {
        ScalarValue::IntervalMonthDayNano(Some(i)) => {
            i.months < 0 || i.days < 0 || i.nanoseconds < 0
        }
        _ => ScalarValue::new_zero(&offset.data_type()).is_ok_and(|zero| *offset < zero),
    }
}

/// The offset of a bound that has one.
pub(super) fn offset_of(bound: &WindowFrameBound) -> Option<&ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(v) | WindowFrameBound::Following(v) if !v.is_null() => Some(v),
        _ => None,
    }
}

/// An offset in rows or groups.
///
/// # Errors
/// An internal error when it is none.
pub(super) fn rows_of(offset: &ScalarValue) -> Result<usize> {
    match offset {
        ScalarValue::UInt64(Some(n)) => Ok(usize::try_from(*n).unwrap_or(usize::MAX)),
        other => internal_err!("{other} rows or groups"),
    }
}

impl fmt::Display for WindowExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field().name(), self.frame)
    }
}
