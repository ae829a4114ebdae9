//! From DataFusion's `LogicalPlan` to an [`planish_plan::ExecutionPlan`], one file per logical
//! node.
//!
//! Architecture invariant: no file format and no rule is known here; tables are reached through
//! [`Table`].

mod aggregate;
mod between_once;
mod distinct;
mod empty_relation;
pub mod expr;
mod filter;
mod join;
mod limit;
mod planner;
mod projection;
mod repartition;
mod scan;
mod sort;
mod subquery;
mod subquery_alias;
mod table;
mod union;
mod values;
mod window;

pub use between_once::between_once;
pub use planner::PhysicalPlanner;
pub use table::{Table, TableSourceAdapter};
