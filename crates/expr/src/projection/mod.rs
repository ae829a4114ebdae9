//! The projection algebra: lists of named expressions, how they compose, and how other
//! expressions are rewritten across them.
//!
//! Several coordinate systems meet around a scan, and each mapping is a function of its own:
//!
//! | from | to | function |
//! | --- | --- | --- |
//! | a projection's output | its input | [`unproject_expr`] |
//! | a projection's input | its output | [`project_expr`] |
//! | all columns of a schema | some of them, ascending | [`narrow_expr`] |
//! | columns of one schema | the same columns, by name, of another | [`reassign_expr_columns`] |
//!
//! A scan's output and its table are the two sides of the scan's projection. The table and a
//! file of it have the same columns by name.

mod exprs;
mod mapping;
mod merge;
mod rewrite;
mod statistics;

pub use exprs::{ProjectionExpr, ProjectionExprs};
pub use mapping::ProjectionMapping;
pub use merge::merge_repeats_work;
pub use rewrite::{narrow_expr, project_expr, reassign_expr_columns, unproject_expr, update_expr};
