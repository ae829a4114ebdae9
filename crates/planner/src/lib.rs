//! From DataFusion's `LogicalPlan` to an [`planish_plan::ExecutionPlan`], one file per logical
//! node.
//!
//! Architecture invariant: no file format and no rule is known here; tables are reached through
//! [`Table`].

mod table;

pub use table::{Table, TableSourceAdapter};
