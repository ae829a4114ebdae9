//! Planish: SQL over Parquet and CSV files and over memory, through a physical query engine.
//!
//! A [`Session`] knows tables, views, options and functions. It turns SQL, or a DataFusion
//! `LogicalPlan`, into a [`Query`], which can be collected, streamed, explained, or asked for
//! its plans.
//!
//! ```
//! # fn main() -> planish::Result<()> {
//! let session = planish::Session::new()?;
//! session.sql("CREATE VIEW v AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y)")?;
//! let batches = session.sql("SELECT y FROM v WHERE x = 2")?.collect()?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Queries run on the session's own Tokio runtime: blocking calls work inside a foreign runtime,
//! and asynchronous ones can be polled from any executor.

mod catalog;
pub mod config;
mod dialect;
mod explain;
mod files;
mod filtered_aggregates;
mod float_comparison;
mod float_equality;
mod frontend;
mod functions;
mod information_schema;
mod map_access;
mod memory;
mod named_windows;
mod not_in;
mod nullable_subqueries;
mod open_slices;
mod optimizer_config;
mod plan_expressions;
mod planning;
mod query;
mod refuse;
mod rewrite;
mod runtime;
mod scan_functions;
mod session;
mod similar_to;
mod statements;
mod stream;
mod tables;
mod try_casts;
mod volatile_between;
mod volatile_preimages;

pub use datafusion_common::config::ConfigOptions;
pub use datafusion_common::{DataFusionError, Result};
pub use datafusion_expr::LogicalPlan;
pub use planish_plan::{ExecutionPlan, PlanRef};
pub use planish_planner::Table;
pub use planish_source::FileFormat;
pub use planning::PlanningTimes;
pub use query::Query;
pub use session::{Session, SessionBuilder};
pub use statements::Statement;
pub use stream::{Batches, QueryStream};
pub use tables::MemTable;

/// The code of the front page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
