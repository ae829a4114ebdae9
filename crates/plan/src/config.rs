//! The `planish.*` options, beside DataFusion's in one `ConfigOptions`.

use datafusion_common::config::{ConfigExtension, ConfigOptions};
use datafusion_common::extensions_options;

extensions_options! {
    /// Options of Planish that DataFusion's `ConfigOptions` does not have.
    pub struct PlanishOptions {
        /// Names of rewrite rules to skip, comma separated; enforce rules always run.
        pub disable_rules: String, default = String::new()

        /// Whether partitions of one process may share state (join builds, scan queues).
        pub shared_state: bool, default = true

        /// Rows a partial aggregate looks at before it may stop aggregating.
        pub skip_partial_aggregation_rows: usize, default = 65_536

        /// Groups per input row above which a partial aggregate stops aggregating.
        pub skip_partial_aggregation_ratio: f64, default = 0.5

        /// Share of the memory limit that the build side of a collect-left join may take.
        pub collect_left_memory_share: f64, default = 0.25
    }
}

impl ConfigExtension for PlanishOptions {
    const PREFIX: &'static str = "planish";
}

impl PlanishOptions {
    /// The options in `options`, or the defaults.
    pub fn of(options: &ConfigOptions) -> PlanishOptions {
        options.extensions.get::<PlanishOptions>().cloned().unwrap_or_default()
    }
}
