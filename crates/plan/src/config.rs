//! The `planish.*` options, beside DataFusion's in one `ConfigOptions`.

use datafusion_common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion_common::{DataFusionError, Result};
use std::any::Any;
use std::fmt::Display;
use std::str::FromStr;

/// Options of Planish that DataFusion's `ConfigOptions` does not have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanishOptions {
    /// `planish.optimizer.disable`: names of rewrite rules to skip, comma separated, or `all`;
    /// enforce rules always run.
    pub disable_rules: String,
    /// `planish.execution.shared_state`: whether partitions of one process may share state (join
    /// builds, scan queues).
    pub shared_state: bool,
    /// `planish.execution.skip_partial_aggregation_rows`: rows a partial aggregate looks at
    /// before it may stop aggregating.
    pub skip_partial_aggregation_rows: usize,
    /// `planish.execution.skip_partial_aggregation_ratio`: groups per input row above which a
    /// partial aggregate stops aggregating.
    pub skip_partial_aggregation_ratio: f64,
    /// `planish.execution.collect_left_memory_share`: share of the memory limit that the build
    /// side of a collect-left join may take.
    pub collect_left_memory_share: f64,
    /// The memory limit of the session in bytes, 0 for none. No option of its own: the session
    /// fills it in from `datafusion.runtime.memory_limit`.
    pub memory_limit: usize,
}

impl Default for PlanishOptions {
    fn default() -> Self {
        PlanishOptions {
            disable_rules: String::new(),
            shared_state: true,
            skip_partial_aggregation_rows: 65_536,
            skip_partial_aggregation_ratio: 0.9,
            collect_left_memory_share: 0.25,
            memory_limit: 0,
        }
    }
}

/// One option: its key behind `planish.`, what it does, and how it is read and written.
struct OptionDefinition {
    key: &'static str,
    description: &'static str,
    get: fn(&PlanishOptions) -> String,
    set: fn(&mut PlanishOptions, &str) -> Result<()>,
}

const DEFINITIONS: &[OptionDefinition] = &[
    OptionDefinition {
        key: "execution.collect_left_memory_share",
        description: "Share of the memory limit that the build side of a collect-left join may \
                      take, from 0 to 1",
        get: |o| o.collect_left_memory_share.to_string(),
        set: |o, v| share(v).map(|v| o.collect_left_memory_share = v),
    },
    OptionDefinition {
        key: "execution.shared_state",
        description: "Whether partitions may share state (join builds, scan queues); false gives \
                      plans whose partitions are independent of each other",
        get: |o| o.shared_state.to_string(),
        set: |o, v| parse(v).map(|v| o.shared_state = v),
    },
    OptionDefinition {
        key: "execution.skip_partial_aggregation_ratio",
        description: "Groups per input row above which a partial aggregate stops aggregating and \
                      passes rows on; above 1 it never stops",
        get: |o| o.skip_partial_aggregation_ratio.to_string(),
        set: |o, v| parse(v).map(|v| o.skip_partial_aggregation_ratio = v),
    },
    OptionDefinition {
        key: "execution.skip_partial_aggregation_rows",
        description: "Rows a partial aggregate looks at before it may stop aggregating",
        get: |o| o.skip_partial_aggregation_rows.to_string(),
        set: |o, v| parse(v).map(|v| o.skip_partial_aggregation_rows = v),
    },
    OptionDefinition {
        key: "optimizer.disable",
        description: "Names of optimizer rules to skip, comma separated, or `all`; rules that make \
                      a plan executable always run",
        get: |o| o.disable_rules.clone(),
        set: |o, v| {
            o.disable_rules = v.to_owned();
            Ok(())
        },
    },
];

fn parse<T: FromStr>(value: &str) -> Result<T>
where
    T::Err: Display,
{
    value
        .trim()
        .to_ascii_lowercase()
        .parse()
        .map_err(|e| DataFusionError::Configuration(format!("cannot read '{value}': {e}")))
}

fn share(value: &str) -> Result<f64> {
    let share: f64 = parse(value)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(DataFusionError::Configuration(format!("{value} is not between 0 and 1")))
}

impl ConfigExtension for PlanishOptions {
    const PREFIX: &'static str = "planish";
}

impl ExtensionOptions for PlanishOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    /// `key` comes without the `planish.` in front.
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match DEFINITIONS.iter().find(|d| d.key == key) {
            Some(definition) => (definition.set)(self, value)
                .map_err(|e| e.context(format!("cannot set planish.{key}"))),
            None => {
                Err(DataFusionError::Configuration(format!("there is no option planish.{key}")))
            }
        }
    }

    /// Keys are whole, so that they read as those of DataFusion do.
    fn entries(&self) -> Vec<ConfigEntry> {
        DEFINITIONS
            .iter()
            .map(|d| ConfigEntry {
                key: format!("{}.{}", Self::PREFIX, d.key),
                value: Some((d.get)(self)),
                description: d.description,
            })
            .collect()
    }
}

impl PlanishOptions {
    /// The options in `options`, or the defaults.
    pub fn of(options: &ConfigOptions) -> PlanishOptions {
        options.extensions.get::<PlanishOptions>().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_reads_what_was_set() -> Result<()> {
        let mut options = ConfigOptions::new();
        options.extensions.insert(PlanishOptions::default());
        for (key, value) in [
            ("planish.execution.shared_state", "false"),
            ("planish.execution.skip_partial_aggregation_rows", "17"),
            ("planish.execution.skip_partial_aggregation_ratio", "0.75"),
            ("planish.execution.collect_left_memory_share", "0.5"),
            ("planish.optimizer.disable", "all"),
        ] {
            options.set(key, value)?;
            let entry = options.entries().into_iter().find(|e| e.key == key);
            assert_eq!(entry.and_then(|e| e.value).as_deref(), Some(value), "{key}");
        }
        assert!(!PlanishOptions::of(&options).shared_state);
        Ok(())
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        let mut options = PlanishOptions::default();
        let error = |r: Result<()>| r.map_or_else(|e| e.to_string(), |()| String::new());
        assert!(error(options.set("execution.sharedstate", "true")).contains("sharedstate"));
        assert!(error(options.set("execution.shared_state", "perhaps")).contains("perhaps"));
        let shares = error(options.set("execution.collect_left_memory_share", "3"));
        assert!(shares.contains("between 0 and 1"));
    }
}
