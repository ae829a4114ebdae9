//! [`FileFormat`]: the formats by name and extension, and the options of a file table.

use crate::csv::CsvOptions;
use crate::parquet::MetadataCache;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, not_impl_err};
use planish_expr::LexOrdering;
use std::fmt;
use std::sync::Arc;

/// A file format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma (or otherwise) separated values.
    Csv,
}

/// Formats that are known by their extension but cannot be read.
const UNREADABLE: &[&str] = &[
    "json", "ndjson", "jsonl", "arrow", "ipc", "feather", "arrows", "avro", "orc", "xlsx", "gz",
    "zst", "bz2", "xz", "zip",
];

impl FileFormat {
    /// The format that `name` stands for in `STORED AS name`.
    ///
    /// # Errors
    /// A not-implemented error naming the format.
    pub fn by_name(name: &str) -> Result<FileFormat> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(FileFormat::Parquet),
            "csv" | "tsv" => Ok(FileFormat::Csv),
            other => not_impl_err!("file format {other}"),
        }
    }

    /// The format of files with `extension`; `None` when the extension says nothing.
    ///
    /// # Errors
    /// A not-implemented error naming a format that is known but cannot be read.
    pub fn by_extension(extension: &str) -> Result<Option<FileFormat>> {
        match extension.to_ascii_lowercase().as_str() {
            "parquet" | "parq" => Ok(Some(FileFormat::Parquet)),
            "csv" | "tsv" => Ok(Some(FileFormat::Csv)),
            other if UNREADABLE.contains(&other) => not_impl_err!("reading .{other} files"),
            _ => Ok(None),
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Csv => "csv",
        })
    }
}

/// How to read the files of a table.
#[derive(Clone, Debug, Default)]
pub struct FileFormatOptions {
    /// The format; by default the extension tells.
    pub format: Option<FileFormat>,
    /// For CSV files.
    pub csv: CsvOptions,
    /// The table's columns, where the user gave them; by default the files tell.
    pub schema: Option<SchemaRef>,
    /// Orders the user vouches for, of the rows of each file.
    pub orderings: Vec<LexOrdering>,
    /// Where to remember Parquet footers; by default one cache for the process.
    pub metadata_cache: Option<Arc<MetadataCache>>,
}
