//! Physical plans: what every operator says about itself, how operators talk to their
//! neighbours (pushdown), and the operators.
//!
//! A plan is an immutable tree of `Arc<dyn ExecutionPlan>`. Whatever a running query needs to
//! remember (build tables, queues, counters, metrics) lives in its [`TaskContext`], so a plan may
//! be executed many times, also at once.
//!
//! Architecture invariant: no file format, no SQL and no rule is known here.

pub mod config;
mod context;
pub mod display;
mod dynamic_filters;
mod execute;
mod execution_plan;
mod floats;
pub mod hashing;
mod metrics;
pub mod operators;
mod properties;
pub mod pushdown;
mod shared;
pub mod spill;

pub use context::{Task, TaskContext, node_id};
pub use dynamic_filters::{DynamicFilter, DynamicFilters};
pub use execute::{BatchStream, collect, collect_partitioned, execute_stream, unshare_nodes};
pub use execution_plan::{ExecutionPlan, PlanRef};
pub use metrics::{MetricsRegistry, NodeMetrics};
pub use properties::{Boundedness, EmissionType, PlanProperties};
pub use pushdown::Pushdown;
pub use shared::{SharedGuard, SharedTask};
