//! JSON: a file is a morsel, read as a stream of blocks.
//!
//! A file holds objects one after the other (NDJSON, pretty-printed or not) or one array of
//! objects. A key that a record lacks is NULL, a key that the schema lacks is skipped. Values are
//! decoded by arrow; a value that is not of its column's type is an error with the file and the
//! number of the record.

mod flatten;
mod infer;
mod read;

use crate::blocks::Compression;
use crate::file_source::{FileSource, ReadRequest, SourceFile};
use crate::virtual_columns::{self, with_virtual_columns};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use planish_plan::BatchStream;
use std::sync::Arc;

/// Files whose first records are looked at for a schema; later ones must fit.
const INFERRED_FILES: usize = 64;

/// How JSON text is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonOptions {
    /// Records per file that are looked at to find the columns and their types.
    pub infer_records: usize,
    /// How files are compressed; by default their names tell.
    pub compression: Option<Compression>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        JsonOptions { infer_records: 1000, compression: None }
    }
}

/// JSON files of one table.
#[derive(Debug)]
pub struct JsonSource {
    table_schema: SchemaRef,
    files: Vec<Arc<SourceFile>>,
    options: JsonOptions,
}

impl JsonSource {
    /// The files as one table: of `stored_schema`, or of what their first records look like.
    ///
    /// # Errors
    /// When a file cannot be read, or its records are not objects of one shape.
    pub async fn try_new(
        files: Vec<Arc<SourceFile>>,
        stored_schema: Option<SchemaRef>,
        options: JsonOptions,
    ) -> Result<Self> {
        let stored = match stored_schema {
            Some(schema) => schema,
            None => {
                let mut merged = infer::Guess::default();
                for file in files.iter().take(INFERRED_FILES) {
                    merged.merge(read::guess(file, &options).await?);
                }
                Arc::new(Schema::new(merged.fields()?))
            }
        };
        Ok(Self::new(files, &stored, options))
    }

    /// The files as a table of `stored_schema`.
    pub fn new(files: Vec<Arc<SourceFile>>, stored_schema: &Schema, options: JsonOptions) -> Self {
        JsonSource { table_schema: with_virtual_columns(stored_schema), files, options }
    }
}

impl FileSource for JsonSource {
    fn file_type(&self) -> &'static str {
        "json"
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
