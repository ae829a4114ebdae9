//! Rules that make a plan cheaper. Any subset of them may be skipped.

mod aggregate_statistics;
mod combine_partial_final_aggregate;
mod filter_pushdown;
mod join_selection;
mod limit_push_past_windows;
mod limit_pushdown;
mod projection_pushdown;

pub use aggregate_statistics::AggregateStatistics;
pub use combine_partial_final_aggregate::CombinePartialFinalAggregate;
pub use filter_pushdown::FilterPushdown;
pub use join_selection::JoinSelection;
pub use limit_push_past_windows::LimitPushPastWindows;
pub use limit_pushdown::LimitPushdown;
pub use projection_pushdown::ProjectionPushdown;
