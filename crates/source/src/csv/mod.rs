//! CSV: a file is a morsel, read as a stream of blocks.
//!
//! An empty field is NULL, a quoted empty one (`""`) is an empty string in string columns. A
//! record with too few or too many fields, and a value that is not of its column's type, are
//! errors with file and line.

mod decode;
mod infer;
mod read;
mod records;

use crate::blocks::{Compression, uncompressed_name};
use crate::file_source::{FileSource, ReadRequest, SourceFile};
use crate::virtual_columns::{self, with_virtual_columns};
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use planish_plan::BatchStream;
use std::sync::Arc;

/// Files whose first records are looked at for a schema; later ones must fit.
const INFERRED_FILES: usize = 64;

/// How CSV text is cut and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Between fields. By default a comma, a tab for `.tsv` files.
    pub delimiter: u8,
    /// Around fields that contain delimiters, quotes or line ends; `None`: nothing quotes.
    pub quote: Option<u8>,
    /// Before a quote inside of quotes; `None`: quotes are doubled.
    pub escape: Option<u8>,
    /// At the start of lines that are no records.
    pub comment: Option<u8>,
    /// Whether the first record names the columns.
    pub has_header: bool,
    /// What stands for NULL when not quoted; `None`: nothing does (an empty field).
    pub null_value: Option<String>,
    /// Records per file that are looked at to find the columns' types.
    pub infer_records: usize,
    /// How files are compressed; by default their names tell.
    pub compression: Option<Compression>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            comment: None,
            has_header: true,
            null_value: None,
            infer_records: 1000,
            compression: None,
        }
    }
}

impl CsvOptions {
    /// The same for `file`: a `.tsv` file has tabs where the default has commas.
    fn for_file(&self, file: &SourceFile) -> CsvOptions {
        let mut options = self.clone();
        let name = uncompressed_name(file.name());
        if options.delimiter == b',' && name.to_ascii_lowercase().ends_with(".tsv") {
            options.delimiter = b'\t';
        }
        options
    }
}

/// CSV files of one table.
#[derive(Debug)]
pub struct CsvSource {
    table_schema: SchemaRef,
    stored_schema: SchemaRef,
    files: Vec<Arc<SourceFile>>,
    options: CsvOptions,
}

impl CsvSource {
    /// The files as one table: of `table_schema`, or of what their headers and first records
    /// look like.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub async fn try_new(
        files: Vec<Arc<SourceFile>>,
        table_schema: Option<SchemaRef>,
        options: CsvOptions,
    ) -> Result<Self> {
        let table_schema = match table_schema {
            Some(schema) => schema,
            None => {
                let mut merged: Option<infer::Guess> = None;
                for file in files.iter().take(INFERRED_FILES) {
                    let guess = read::guess(file, &options.for_file(file)).await?;
                    match &mut merged {
                        Some(merged) => merged.merge(guess),
                        None => merged = Some(guess),
                    }
                }
                Arc::new(
                    merged
                        .map(|guess| guess.schema())
                        .unwrap_or_else(arrow::datatypes::Schema::empty),
                )
            }
        };
        Ok(Self::new(files, table_schema, options))
    }

    /// The files as a table of `table_schema`.
    pub fn new(files: Vec<Arc<SourceFile>>, table_schema: SchemaRef, options: CsvOptions) -> Self {
        let all = with_virtual_columns(&table_schema);
        CsvSource { table_schema: all, stored_schema: table_schema, files, options }
    }
}

impl FileSource for CsvSource {
    fn file_type(&self) -> &'static str {
        "csv"
    }

    fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }

    fn table_schema(&self) -> &SchemaRef {
        &self.table_schema
    }

    fn morsel_count(&self, _file: usize) -> usize {
        1
    }

    fn morsel_rows(&self, _file: usize, _morsel: usize) -> Option<usize> {
        None
    }

    fn statistics(&self) -> Result<Statistics> {
        let bytes: u64 = self.files.iter().map(|file| file.version().size).sum();
        let mut statistics = Statistics::new_unknown(&self.table_schema);
        statistics.total_byte_size = Precision::Inexact(bytes as usize);
        // A column's share is not known; all together they are the file.
        let stored = self.stored_schema.fields().len();
        let share = bytes as usize / stored.max(1);
        for column in &mut statistics.column_statistics {
            column.byte_size = Precision::Inexact(share);
        }
        virtual_columns::add_statistics(
            &mut statistics,
            &self.files,
            &vec![None; self.files.len()],
        );
        Ok(statistics)
    }

    fn read(self: Arc<Self>, file: usize, _morsel: usize, request: ReadRequest) -> BatchStream {
        read::file(self, file, request)
    }
}
