//! What flows through the house: [`Batch`], a set of columns whose values may not exist yet.
//!
//! An operator's output is an index over its input until someone reads the values. A filter, a
//! join, a limit or a sort hands on *selections* (row indices into base arrays); selections
//! compose, and the values of a column are gathered when [`Batch::column`] is called, once.
//!
//! Architecture invariant: nothing here does I/O or knows an operator.

mod batch;
mod coalesce;
mod column;
pub mod counters;
mod gather;
mod selection;

pub use batch::{Batch, RetainedBytes};
pub use coalesce::{BatchCoalescer, gather_rows};
pub use column::{Column, Form};
pub use selection::{NO_ROW, RowRef, Selection};
