//! Options: our defaults, and how `SET`, `RESET` and `SHOW` reach them.
//!
//! A session's options are DataFusion's `ConfigOptions` with the `planish.*` extension, and the
//! `datafusion.runtime.*` keys, which are not part of `ConfigOptions`.

use crate::memory::{RUNTIME_KEYS, RuntimeOptions};
use datafusion_common::config::{ConfigEntry, ConfigField, ConfigOptions, ExtensionOptions};
use datafusion_common::{DataFusionError, Result, internal_err};
use itertools::Itertools;
use planish_plan::config::PlanishOptions;

/// Where our defaults differ from DataFusion's: key, value, why.
pub const DEFAULTS: &[(&str, &str, &str)] = &[
    (
        "datafusion.catalog.information_schema",
        "true",
        "SHOW TABLES and SHOW COLUMNS need no setting first",
    ),
    (
        "datafusion.execution.parquet.pushdown_filters",
        "true",
        "predicate columns are decoded first, the others for surviving rows only",
    ),
    (
        "datafusion.execution.parquet.reorder_filters",
        "true",
        "the cheapest and most selective predicate goes first",
    ),
    (
        "datafusion.optimizer.enable_leaf_expression_pushdown",
        "false",
        "the rules behind it mistake a renamed struct for the column that had its name before",
    ),
    (
        "datafusion.optimizer.enable_window_topn",
        "true",
        "row_number() <= k keeps k rows per partition",
    ),
    (
        "datafusion.sql_parser.parse_float_as_decimal",
        "true",
        "0.06 + 0.01 is exactly 0.07, and decimal columns are not cast to be compared with it",
    ),
    ("datafusion.sql_parser.collect_spans", "true", "errors can point at the place in the query"),
];

/// The options that a session starts with.
///
/// # Errors
/// An internal error when an entry of [`DEFAULTS`] is not an option.
pub fn default_options() -> Result<ConfigOptions> {
    let mut options = ConfigOptions::new();
    options.extensions.insert(PlanishOptions::default());
    for (key, value, _) in DEFAULTS {
        options.set(key, value)?;
    }
    Ok(options)
}

/// All options of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) options: ConfigOptions,
    pub(crate) runtime: RuntimeOptions,
}

impl SessionOptions {
    pub(crate) fn new() -> Result<Self> {
        Ok(SessionOptions { options: default_options()?, runtime: RuntimeOptions::default() })
    }

    /// Sets `key`.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let key = key.to_ascii_lowercase();
        if RUNTIME_KEYS.contains(&key.as_str()) {
            self.runtime.set(&key, value)?;
            self.fill_in_memory_limit();
            return Ok(());
        }
        self.check_key(&key)?;
        self.options.set(&key, value)
    }

    /// Sets `key` back to what sessions start with.
    pub(crate) fn reset(&mut self, key: &str) -> Result<()> {
        let key = key.to_ascii_lowercase();
        if RUNTIME_KEYS.contains(&key.as_str()) {
            self.runtime.reset(&key);
            self.fill_in_memory_limit();
            return Ok(());
        }
        self.check_key(&key)?;
        if let Some((_, value, _)) = DEFAULTS.iter().find(|(k, _, _)| *k == key) {
            return self.options.set(&key, value);
        }
        if let Some(own) = key.strip_prefix("planish.") {
            let default = PlanishOptions::default().entries().into_iter().find(|e| e.key == key);
            let Some(value) = default.and_then(|e| e.value) else {
                return internal_err!("{key} has no default");
            };
            let Some(extension) = self.options.extensions.get_mut::<PlanishOptions>() else {
                return internal_err!("no planish options");
            };
            return extension.set(own, &value);
        }
        ConfigField::reset(&mut self.options, &key)
    }

    /// All options, sorted by key.
    pub(crate) fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = self.options.entries();
        entries.extend(self.runtime.entries());
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries
    }

    /// The entries of `SHOW key`.
    pub(crate) fn show(&self, key: &str) -> Result<Vec<ConfigEntry>> {
        let key = match key.to_ascii_lowercase().as_str() {
            "all" => return Ok(self.entries()),
            "timezone" | "time.zone" => "datafusion.execution.time_zone".to_owned(),
            other => other.to_owned(),
        };
        self.check_key(&key)?;
        Ok(self.entries().into_iter().filter(|e| e.key == key).collect())
    }

    fn check_key(&self, key: &str) -> Result<()> {
        // An alias of several options, which only `SET` knows.
        if key == "datafusion.optimizer.enable_dynamic_filter_pushdown" {
            return Ok(());
        }
        let entries = self.entries();
        if entries.iter().any(|e| e.key == key) {
            return Ok(());
        }
        let near = nearest(key, entries.iter().map(|e| e.key.as_str()));
        Err(DataFusionError::Configuration(match near {
            Some(near) => format!("there is no option {key}; did you mean {near}?"),
            None => format!("there is no option {key}; SHOW ALL lists them"),
        }))
    }

    fn fill_in_memory_limit(&mut self) {
        if let Some(own) = self.options.extensions.get_mut::<PlanishOptions>() {
            own.memory_limit = self.runtime.memory_limit.unwrap_or(0);
        }
    }
}

/// Of `names`, the one that was probably meant by `name`.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |n: &'a str| n.rsplit('.').next().unwrap_or(n);
    names
        .map(|candidate| {
            let whole = distance(name, candidate);
            // `batch_size` for `datafusion.execution.batch_size`.
            let tail = if name.contains('.') { whole } else { distance(name, last(candidate)) };
            (whole.min(tail), candidate)
        })
        .filter(|(d, _)| *d <= 1 + name.len() / 4)
        .min_by_key(|(d, _)| *d)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b = b.chars().collect_vec();
    let mut row = (0..=b.len()).collect_vec();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// A size in bytes: `512MB`, `1.5G`, `100 KiB`, `4096`. Units are powers of 1024.
///
/// # Errors
/// When it is none.
pub fn parse_size(text: &str) -> Result<usize> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1_u64),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    match (number.parse::<f64>(), factor) {
        (Ok(number), Some(factor)) if number.is_finite() => Ok((number * factor as f64) as usize),
        _ => Err(DataFusionError::Configuration(format!(
            "'{text}' is not a size; write 512MB, 1.5GB or a number of bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_options() -> Result<()> {
        let options = SessionOptions::new()?;
        for (key, value, _) in DEFAULTS {
            assert_eq!(options.show(key)?[0].value.as_deref(), Some(*value), "{key}");
        }
        Ok(())
    }

    #[test]
    fn set_and_reset_reach_all_namespaces() -> Result<()> {
        let mut options = SessionOptions::new()?;
        let start = options.entries();
        for (key, value) in [
            ("datafusion.execution.batch_size", "7"),
            ("datafusion.execution.parquet.pushdown_filters", "false"),
            ("planish.execution.shared_state", "false"),
            ("datafusion.runtime.memory_limit", "1GB"),
        ] {
            options.set(key, value)?;
            assert_ne!(options.entries(), start, "{key}");
            options.reset(key)?;
            assert_eq!(options.entries(), start, "{key}");
        }
        Ok(())
    }

    #[test]
    fn unknown_keys_get_a_hint() -> Result<()> {
        let mut options = SessionOptions::new()?;
        for (key, hint) in [
            ("batch_size", "did you mean datafusion.execution.batch_size?"),
            ("datafusion.execution.batchsize", "did you mean datafusion.execution.batch_size?"),
            ("planish.execution.shared_stat", "did you mean planish.execution.shared_state?"),
            ("no.such.thing.anywhere", "SHOW ALL"),
        ] {
            let error = options.set(key, "1").map_or_else(|e| e.to_string(), |()| String::new());
            assert!(error.contains(hint), "{error}");
        }
        Ok(())
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("4096", 4096), ("1.5K", 1536), ("2 MiB", 2 << 20), ("1gb", 1 << 30)]
        {
            assert_eq!(parse_size(text).ok(), Some(bytes), "{text}");
        }
        for text in ["", "MB", "12 parsecs", "-1"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
