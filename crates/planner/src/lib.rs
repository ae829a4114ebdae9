//! From DataFusion's `LogicalPlan` to an [`planish_plan::ExecutionPlan`], one file per logical
//! node.
//!
//! Architecture invariant: no file format and no rule is known here; tables are reached through
//! [`Table`].

mod expr;
mod table;

pub use expr::{ExprContext, SubqueryPlanner, create_physical_expr, create_sort_expr};
pub use table::{Table, TableSourceAdapter};
