//! Functions over windows: each row gets a column more per function, computed over the rows of
//! its frame.
//!
//! Rows come with equal PARTITION BY keys together, in the order of the ORDER BY keys within each
//! partition. Both operators run the same code: rows are buffered as the columns that functions
//! read, frames are found with pointers that only move forward, and input batches are handed on
//! as they are, with the results behind them. They differ in when they look: [`WindowAggExec`] at
//! the end of a partition, [`BoundedWindowAggExec`] as rows come.
//!
//! A frame that moves is followed by taking rows out of the accumulator (`retract_batch`) where
//! that gives exactly the same; otherwise it is aggregated anew.
//!
//! Memory: batches without all results, and the rows that frames still need, are reserved, and
//! not spilled.

mod call;
mod columns;
mod evaluate;
mod exec;
mod frame;
mod partition;
mod peers;
mod pushdown;
mod stream;

pub use call::{WindowExpr, WindowFunction};
pub use exec::{BoundedWindowAggExec, WindowAggExec};

use crate::execution_plan::PlanRef;
use datafusion_common::Result;
use planish_expr::{LexOrdering, PhysicalExprRef};
use std::sync::Arc;

/// The operator for `exprs`: the streaming one if all of them can.
///
/// # Errors
/// A plan error when a frame means nothing over these keys.
pub fn window_exec(
    exprs: Vec<WindowExpr>,
    partition_by: Vec<PhysicalExprRef>,
    order_by: LexOrdering,
    input: PlanRef,
) -> Result<PlanRef> {
    let mut streams = true;
    for expr in &exprs {
        streams &= expr.can_stream()?;
    }
    Ok(match streams {
        true => Arc::new(BoundedWindowAggExec::try_new(exprs, partition_by, order_by, input)?),
        false => Arc::new(WindowAggExec::try_new(exprs, partition_by, order_by, input)?),
    })
}
