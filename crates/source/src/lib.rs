//! Scans: which files, which parts of them, which columns, in what form.
//!
//! [`FileTable`] stands for files of one format with one schema. Its scans are
//! [`DataSourceExec`] nodes over a [`FileScanConfig`]: a projection, filters, a fetch, and a
//! [`FileSource`], the part that knows a format. A file source cuts its files into *morsels*
//! (a row group, a CSV file), which the partitions of a scan take from one queue.
//!
//! Architecture invariant: this is the only crate that reads data files, and nothing below or
//! beside it names a file format.

mod adapt;
pub mod arrow_ipc;
mod blocks;
pub mod bytes;
pub mod csv;
mod exec;
mod file_source;
mod format;
pub mod json;
pub mod listing;
mod morsels;
pub mod parquet;
mod row_filter;
mod scan_config;
mod table;
mod virtual_columns;

pub use arrow_ipc::ArrowSource;
pub use blocks::Compression;
pub use bytes::{ByteSource, LocalByteSource, ObjectByteSource};
pub use csv::{CsvOptions, CsvSource};
pub use exec::DataSourceExec;
pub use file_source::{FileSource, ReadRequest, SourceFile};
pub use format::{FileFormat, FileFormatOptions};
pub use json::{JsonOptions, JsonSource};
pub use listing::{ListedFiles, list_paths};
pub use parquet::{MetadataCache, ParquetSource};
pub use row_filter::RowFilter;
pub use scan_config::FileScanConfig;
pub use table::FileTable;
pub use virtual_columns::{FILE_ROW_INDEX, INPUT_FILE_NAME};
