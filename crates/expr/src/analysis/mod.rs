//! What can be said of an expression without evaluating it on rows.
//!
//! [`value_bounds`] and [`possible_truth`] are sound when the facts they are given are: no row
//! has a value outside. [`selectivity`] and [`distinct_count`] are estimates.

mod arithmetic;
mod bounds;
mod distinct;
mod selectivity;
mod truth;
mod usage;

pub use bounds::{ValueBounds, value_bounds};
pub use distinct::{distinct_count, distinct_values};
pub use selectivity::selectivity;
pub use truth::{Truth, possible_truth};
pub use usage::column_uses;
