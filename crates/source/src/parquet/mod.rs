//! Parquet: row groups are morsels, footers give bounds and statistics.

mod chunks;
mod late;
mod metadata;
mod pruning;
mod read;
mod statistics;

pub use metadata::MetadataCache;

use crate::adapt::{FileColumn, map_by_name, widen};
use crate::bytes::LocalFile;
use crate::file_source::{FileSource, ReadRequest, SourceFile};
use crate::virtual_columns::{self, stored_schema, with_virtual_columns};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use metadata::ParquetFileMetadata;
use parking_lot::Mutex;
use planish_expr::PhysicalExprRef;
use planish_plan::BatchStream;
use pruning::{RowGroupBounds, TableColumnBounds};
use statistics::ColumnSummary;
use std::sync::{Arc, OnceLock};

/// Parquet files of one table.
#[derive(Debug)]
pub struct ParquetSource {
    table_schema: SchemaRef,
    files: Vec<Arc<SourceFile>>,
    parts: Vec<ParquetFile>,
    statistics: OnceLock<Statistics>,
}

/// A file's footer, and how its columns become the table's.
#[derive(Debug)]
struct ParquetFile {
    metadata: Arc<ParquetFileMetadata>,
    columns: Vec<FileColumn>,
    rows: Vec<u64>,
    /// The file opened last by any reader; files are opened when first read.
    open: Mutex<std::sync::Weak<LocalFile>>,
}

impl ParquetSource {
    /// The files as one table: of `table_schema`, or of the columns of all files.
    ///
    /// # Errors
    /// When a footer cannot be read, or columns do not fit together.
    pub async fn try_new(
        files: Vec<Arc<SourceFile>>,
        table_schema: Option<SchemaRef>,
        cache: &MetadataCache,
    ) -> Result<Self> {
        let mut metadata = Vec::with_capacity(files.len());
        for file in &files {
            metadata.push(cache.load(file).await?);
        }
        Self::from_metadata(files, metadata, table_schema)
    }

    /// As [`Self::try_new`] for local files, without waiting; `None` when a file is not local.
    pub(crate) fn try_new_local(
        files: Vec<Arc<SourceFile>>,
        table_schema: SchemaRef,
        cache: &MetadataCache,
    ) -> Result<Option<Self>> {
        let mut metadata = Vec::with_capacity(files.len());
        for file in &files {
            let Some(path) = file.bytes().local_path() else { return Ok(None) };
            metadata.push(cache.load_local(file, path)?);
        }
        Self::from_metadata(files, metadata, Some(table_schema)).map(Some)
    }

    fn from_metadata(
        files: Vec<Arc<SourceFile>>,
        metadata: Vec<Arc<ParquetFileMetadata>>,
        table_schema: Option<SchemaRef>,
    ) -> Result<Self> {
        let table_schema = match table_schema {
            Some(schema) => schema,
            None => crate::adapt::merge_schemas(
                files.iter().zip(&metadata).map(|(f, m)| (f.path(), m.schema.as_ref())),
            )?,
        };
        let mut parts = Vec::with_capacity(files.len());
        for (file, metadata) in files.iter().zip(metadata) {
            let mut columns = map_by_name(file.path(), &table_schema, &metadata.schema)?;
            columns.extend([FileColumn::RowIndex, FileColumn::FileName]);
            let groups = metadata.parquet().num_row_groups();
            let rows = (0..groups).map(|g| metadata.rows(g) as u64).collect();
            parts.push(ParquetFile { metadata, columns, rows, open: Mutex::default() });
        }
        let table_schema = with_virtual_columns(&table_schema);
        Ok(ParquetSource { table_schema, files, parts, statistics: OnceLock::new() })
    }

    /// Exact least and greatest value of table column `column` in file `file`, when the file has
    /// no NULL in it.
    pub(crate) fn value_range(
        &self,
        file: usize,
        column: usize,
    ) -> Result<Option<(datafusion_common::ScalarValue, datafusion_common::ScalarValue)>> {
        let part = &self.parts[file];
        let mut summary = ColumnSummary::new(self.table_schema.field(column).data_type().clone());
        summary.add(&part.metadata, part.columns[column])?;
        let found = summary.finish();
        if found.null_count != Precision::Exact(0) {
            return Ok(None);
        }
        let (min, max) = (found.min_value.get_value(), found.max_value.get_value());
        Ok(min.cloned().zip(max.cloned()))
    }
}

impl ParquetFile {
    /// The place in the file of the first row of row group `group`.
    fn first_row(&self, group: usize) -> u64 {
        self.rows[..group].iter().sum()
    }

    fn open_local(&self, path: &std::path::Path) -> Result<Arc<LocalFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.upgrade() {
            return Ok(file);
        }
        let file = Arc::new(LocalFile::open(path)?);
        *open = Arc::downgrade(&file);
        Ok(file)
    }
}

impl FileSource for ParquetSource {
    fn file_type(&self) -> &'static str {
        "parquet"
    }

    fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }

    fn table_schema(&self) -> &SchemaRef {
        &self.table_schema
    }

    fn morsel_count(&self, file: usize) -> usize {
        self.parts[file].rows.len()
    }

    fn morsel_rows(&self, file: usize, morsel: usize) -> Option<usize> {
        Some(self.parts[file].rows[morsel] as usize)
    }

    fn statistics(&self) -> Result<Statistics> {
        if let Some(known) = self.statistics.get() {
            return Ok(known.clone());
        }
        let rows: u64 = self.parts.iter().flat_map(|part| &part.rows).sum();
        let mut columns = Vec::with_capacity(self.table_schema.fields().len());
        for (i, field) in stored_schema(&self.table_schema).fields().iter().enumerate() {
            let mut summary = ColumnSummary::new(field.data_type().clone());
            for part in &self.parts {
                summary.add(&part.metadata, part.columns[i])?;
            }
            columns.push(summary.finish());
        }
        let rows_of: Vec<_> = self.parts.iter().map(|part| Some(part.rows.iter().sum())).collect();
        columns.extend(virtual_columns::statistics(&self.files, &rows_of));
        let bytes = columns.iter().filter_map(|c| c.byte_size.get_value()).sum();
        let statistics = Statistics {
            num_rows: Precision::Exact(rows as usize),
            total_byte_size: Precision::Inexact(bytes),
            column_statistics: columns,
        };
        Ok(self.statistics.get_or_init(|| statistics).clone())
    }

    fn can_prune_by(&self, filter: &PhysicalExprRef) -> bool {
        pruning::is_useful(filter, &self.table_schema)
    }

    fn filters_rows(&self) -> bool {
        true
    }

    fn morsels_to_read(
        &self,
        file: usize,
        filters: &[PhysicalExprRef],
    ) -> Result<Option<BooleanBuffer>> {
        let bounds = FileBounds {
            part: &self.parts[file],
            table_schema: &self.table_schema,
            path: self.files[file].path(),
        };
        pruning::row_groups_to_read(filters, &bounds).map(Some)
    }

    fn read(self: Arc<Self>, file: usize, morsel: usize, request: ReadRequest) -> BatchStream {
        read::row_group(self, file, morsel, request)
    }
}

/// A file's bounds in table coordinates.
struct FileBounds<'a> {
    part: &'a ParquetFile,
    table_schema: &'a SchemaRef,
    path: &'a str,
}

impl RowGroupBounds for FileBounds<'_> {
    fn schema(&self) -> &arrow::datatypes::Schema {
        self.table_schema
    }

    fn rows(&self) -> &[u64] {
        &self.part.rows
    }

    fn column(&self, column: usize) -> Result<Option<TableColumnBounds>> {
        let Some(from) = self.part.columns.get(column).copied() else { return Ok(None) };
        let groups = self.part.rows.len();
        let index = match from {
            FileColumn::Missing => return Ok(Some(TableColumnBounds::AllNull)),
            FileColumn::RowIndex => {
                let (min, max) = virtual_columns::index_bounds(&self.part.rows);
                return Ok(Some(TableColumnBounds::exact(min, max)));
            }
            FileColumn::FileName => {
                let name = virtual_columns::name_bounds(self.path, groups);
                return Ok(Some(TableColumnBounds::exact(Arc::clone(&name), name)));
            }
            FileColumn::Same(index) | FileColumn::Widened(index) => index,
        };
        let bounds = self.part.metadata.bounds(index)?;
        let (mut min, mut max) = (Arc::clone(&bounds.min), Arc::clone(&bounds.max));
        if matches!(from, FileColumn::Widened(_)) {
            let to = self.table_schema.field(column).data_type();
            match (widen(&min, to), widen(&max, to)) {
                (Ok(wide_min), Ok(wide_max)) => (min, max) = (wide_min, wide_max),
                _ => return Ok(None),
            }
        }
        Ok(Some(TableColumnBounds::Known(min, max, bounds)))
    }
}
