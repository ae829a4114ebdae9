//! Rules that make a plan cheaper. Any subset of them may be skipped.

mod filter_pushdown;
mod join_selection;
mod limit_push_past_windows;
mod limit_pushdown;
mod projection_pushdown;

pub use filter_pushdown::FilterPushdown;
pub use join_selection::JoinSelection;
pub use limit_push_past_windows::LimitPushPastWindows;
pub use limit_pushdown::LimitPushdown;
pub use projection_pushdown::ProjectionPushdown;
