//! [`FileFormat`]: the formats by name and extension, and the options of a file table.

use crate::blocks::uncompressed_name;
use crate::csv::CsvOptions;
use crate::json::JsonOptions;
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
    /// JSON: objects one after the other, or an array of them.
    Json,
    /// Arrow IPC, files and streams.
    Arrow,
}

/// Formats that are known by their extension but cannot be read.
const UNREADABLE: &[&str] = &["avro", "orc", "xlsx", "bz2", "xz", "zip"];

impl FileFormat {
    /// The format that `name` stands for in `STORED AS name`.
    ///
    /// # Errors
    /// A not-implemented error naming the format.
    pub fn by_name(name: &str) -> Result<FileFormat> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(FileFormat::Parquet),
            "csv" | "tsv" => Ok(FileFormat::Csv),
            "json" | "ndjson" | "jsonl" => Ok(FileFormat::Json),
            "arrow" | "ipc" | "feather" => Ok(FileFormat::Arrow),
            other => not_impl_err!("file format {other}"),
        }
    }

    /// The format that the extension of the file `name` tells, the extension of a compressed
    /// text file left out (`a.csv.gz`); `None` when it says nothing.
    ///
    /// # Errors
    /// A not-implemented error naming a format that is known but cannot be read.
    pub fn of_name(name: &str) -> Result<Option<FileFormat>> {
        let text = uncompressed_name(name);
        let Some((_, extension)) = text.rsplit_once('.') else { return Ok(None) };
        let format = Self::by_extension(extension)?;
        let is_text = matches!(format, Some(FileFormat::Csv | FileFormat::Json));
        if text != name && !is_text && format.is_some() {
            return not_impl_err!("reading compressed files like {name}");
        }
        Ok(format)
    }

    /// `name` without the extensions of its format and its compression.
    pub fn stem_of(name: &str) -> &str {
        let text = uncompressed_name(name);
        match text.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => text,
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
            "json" | "ndjson" | "jsonl" => Ok(Some(FileFormat::Json)),
            "arrow" | "arrows" | "ipc" | "feather" => Ok(Some(FileFormat::Arrow)),
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
            FileFormat::Json => "json",
            FileFormat::Arrow => "arrow",
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
    /// For JSON files.
    pub json: JsonOptions,
    /// The table's columns, where the user gave them; by default the files tell.
    pub schema: Option<SchemaRef>,
    /// Orders the user vouches for, of the rows of each file.
    pub orderings: Vec<LexOrdering>,
    /// Where to remember Parquet footers; by default one cache for the process.
    pub metadata_cache: Option<Arc<MetadataCache>>,
}
