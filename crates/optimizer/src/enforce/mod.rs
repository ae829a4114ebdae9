//! Rules that make a plan executable. They always run.

pub(crate) mod ensure_requirements;
mod output_requirements;
mod sanity_check_plan;

pub use ensure_requirements::EnsureRequirements;
pub use output_requirements::OutputRequirements;
pub use sanity_check_plan::SanityCheckPlan;
