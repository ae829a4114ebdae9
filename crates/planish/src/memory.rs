//! Memory and disk of a session: the `datafusion.runtime.*` options.

use crate::config::parse_size;
use datafusion_common::config::ConfigEntry;
use datafusion_common::{Result, config_err};
use datafusion_execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion_execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use std::path::PathBuf;
use std::sync::Arc;

const MEMORY_LIMIT: &str = "datafusion.runtime.memory_limit";
const TEMP_DIRECTORY: &str = "datafusion.runtime.temp_directory";
const MAX_TEMP_SIZE: &str = "datafusion.runtime.max_temp_directory_size";

/// The keys of [`RuntimeOptions`].
pub(crate) const RUNTIME_KEYS: &[&str] = &[MAX_TEMP_SIZE, MEMORY_LIMIT, TEMP_DIRECTORY];

/// What queries may use of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuntimeOptions {
    /// Bytes that all queries of the session may hold together; no limit by default.
    pub(crate) memory_limit: Option<usize>,
    temp_directory: Option<PathBuf>,
    max_temp_directory_size: Option<usize>,
}

impl RuntimeOptions {
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            MEMORY_LIMIT => self.memory_limit = limit(value)?,
            TEMP_DIRECTORY => self.temp_directory = Some(PathBuf::from(value)),
            MAX_TEMP_SIZE => self.max_temp_directory_size = limit(value)?,
            _ => return config_err!("there is no option {key}"),
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self, key: &str) {
        match key {
            MEMORY_LIMIT => self.memory_limit = None,
            TEMP_DIRECTORY => self.temp_directory = None,
            _ => self.max_temp_directory_size = None,
        }
    }

    pub(crate) fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: Option<String>, description| ConfigEntry {
            key: key.to_owned(),
            value,
            description,
        };
        let size = |bytes: Option<usize>| bytes.map(show_size);
        vec![
            entry(
                MEMORY_LIMIT,
                Some(size(self.memory_limit).unwrap_or_else(|| "unlimited".to_owned())),
                "Memory that all queries of the session may hold together, for example 512MB or \
                 2GB; operators that reach it spill or fail",
            ),
            entry(
                TEMP_DIRECTORY,
                self.temp_directory.as_ref().map(|p| p.display().to_string()),
                "Folder for spill files; the system's by default",
            ),
            entry(
                MAX_TEMP_SIZE,
                size(self.max_temp_directory_size),
                "Size that spill files may reach together; 100GB by default",
            ),
        ]
    }

    /// Whether `other` spills to the same place.
    pub(crate) fn same_disk(&self, other: &RuntimeOptions) -> bool {
        self.temp_directory == other.temp_directory
            && self.max_temp_directory_size == other.max_temp_directory_size
    }

    /// A pool with this limit. Operators that can spill share what the others leave.
    pub(crate) fn memory_pool(&self) -> Arc<dyn MemoryPool> {
        match self.memory_limit {
            Some(bytes) => Arc::new(FairSpillPool::new(bytes)),
            None => Arc::new(UnboundedMemoryPool::default()),
        }
    }

    pub(crate) fn disk_manager(&self) -> Result<Arc<DiskManager>> {
        let mut builder = DiskManagerBuilder::default();
        if let Some(folder) = &self.temp_directory {
            builder.set_mode(DiskManagerMode::Directories(vec![folder.clone()]));
        }
        if let Some(bytes) = self.max_temp_directory_size {
            builder.set_max_temp_directory_size(bytes as u64);
        }
        Ok(Arc::new(builder.build()?))
    }
}

/// A size, or no limit.
fn limit(value: &str) -> Result<Option<usize>> {
    match value.trim().to_ascii_lowercase().as_str() {
        "unlimited" | "none" => Ok(None),
        _ => parse_size(value).map(Some),
    }
}

fn show_size(bytes: usize) -> String {
    for (shift, unit) in [(30, "GB"), (20, "MB"), (10, "KB")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}
