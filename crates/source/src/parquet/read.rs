//! Decoding one row group.

use super::chunks::ColumnChunks;
use super::late;
use super::metadata::{guarded, parquet_error};
use super::{ParquetFile, ParquetSource};
use crate::adapt::FileColumn;
use crate::file_source::ReadRequest;
use crate::virtual_columns::{FileRows, Positions};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use async_stream::try_stream;
use datafusion_common::{Result, internal_err};
use futures::StreamExt;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use planish_batch::Batch;
use planish_plan::BatchStream;
use std::ops::Range;
use std::sync::Arc;

/// The rows of row group `group` of file `file`.
pub(super) fn row_group(
    source: Arc<ParquetSource>,
    file: usize,
    group: usize,
    request: ReadRequest,
) -> BatchStream {
    Box::pin(try_stream! {
        let part = &source.parts[file];
        let info = &source.files[file];
        let path = info.path();
        let wanted = Columns::new(part, &request.columns, &request.schema);
        request.metrics.add("row_groups_read", 1);
        if wanted.roots.is_empty() {
            // Nothing is stored of these columns but how many rows there are.
            let mut left = part.rows[group] as usize;
            let mut first = part.first_row(group);
            while left > 0 {
                let len = left.min(request.batch_size);
                let rows = FileRows { path, len, positions: Positions::From(first) };
                yield wanted.adapt(None, &rows)?;
                left -= len;
                first += len as u64;
            }
            return;
        }
        let ranges = guarded(path, || wanted.chunk_ranges(part, group))?;
        let chunks = match info.bytes().local_path() {
            Some(local) => {
                let open = part.open_local(local)?;
                ColumnChunks::local(open, ranges, Arc::clone(&request.metrics))
            }
            None => {
                let bytes = info.bytes().read_ranges(&ranges).await?;
                request.metrics.add("bytes_read", bytes.iter().map(bytes::Bytes::len).sum());
                let chunks = ranges.into_iter().zip(bytes).collect();
                let size = info.version().size;
                ColumnChunks::fetched(chunks, size, Arc::clone(&request.metrics))
            }
        };
        if let Some(filter) = request.row_filter.as_ref().filter(|filter| filter.pays()) {
            let found = late::survivors(&source, file, group, &chunks, filter, &request, &wanted).await?;
            if let Some(found) = found {
                let size = request.batch_size;
                let source = Arc::clone(&source);
                let mut rows = late::read(source, file, group, chunks, wanted, found, size);
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
                return;
            }
        }
        let mut reader = guarded(path, || {
            wanted.reader(part, group, chunks, request.batch_size, |builder| match request.limit {
                Some(limit) => builder.with_limit(limit),
                None => builder,
            })
        })?;
        let mut rows = 0;
        while let Some(batch) =
            guarded(path, || Ok(reader.next().transpose()?))?
        {
            let positions = Positions::From(part.first_row(group) + rows);
            rows += batch.num_rows() as u64;
            let file_rows = FileRows { path, len: batch.num_rows(), positions };
            yield wanted.adapt(Some(&batch), &file_rows)?;
        }
        if request.limit.is_none() {
            check_rows(path, part, group, rows)?;
        }
    })
}

/// An error when a row group was found to have other than the rows that its footer promises.
pub(super) fn check_rows(path: &str, part: &ParquetFile, group: usize, rows: u64) -> Result<()> {
    let expected = part.rows[group];
    if rows == expected {
        return Ok(());
    }
    guarded(path, || {
        datafusion_common::exec_err!(
            "row group {group} has {rows} rows, its footer says {expected}"
        )
    })
}

/// Some table columns in one file.
pub(super) struct Columns {
    /// Root columns of the file, ascending, once each.
    pub(super) roots: Vec<usize>,
    columns: Vec<FileColumn>,
    /// For each wanted column, its place among `roots`.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
}

impl Columns {
    /// The table columns `columns`, of `schema`.
    pub(super) fn new(part: &ParquetFile, columns: &[usize], schema: &SchemaRef) -> Self {
        let columns: Vec<FileColumn> = columns.iter().map(|&c| part.columns[c]).collect();
        let mut roots: Vec<usize> = columns.iter().filter_map(|c| c.index()).collect();
        roots.sort_unstable();
        roots.dedup();
        let places = columns.iter().map(|c| roots.binary_search(&c.index()?).ok()).collect();
        Columns { roots, columns, places, schema: Arc::clone(schema) }
    }

    /// The root columns that are not among `others`; for reading only.
    pub(super) fn without(&self, others: &Columns) -> Self {
        let left = |root: &usize| others.roots.binary_search(root).is_err();
        Columns {
            roots: self.roots.iter().copied().filter(left).collect(),
            columns: vec![],
            places: vec![],
            schema: Arc::new(Schema::empty()),
        }
    }

    fn mask(&self, part: &ParquetFile) -> ProjectionMask {
        let descr = part.metadata.parquet().file_metadata().schema_descr();
        ProjectionMask::roots(descr, self.roots.iter().copied())
    }

    /// Where the wanted column chunks of `group` lie.
    fn chunk_ranges(&self, part: &ParquetFile, group: usize) -> Result<Vec<Range<u64>>> {
        let metadata = part.metadata.parquet();
        let descr = metadata.file_metadata().schema_descr();
        let group = metadata.row_group(group);
        let mut ranges = vec![];
        for leaf in 0..group.num_columns() {
            if self.roots.binary_search(&descr.get_column_root_idx(leaf)).is_ok() {
                let (start, len) = group.column(leaf).byte_range();
                ranges.push(start..start.saturating_add(len));
            }
        }
        Ok(ranges)
    }

    pub(super) fn reader(
        &self,
        part: &ParquetFile,
        group: usize,
        chunks: ColumnChunks,
        batch_size: usize,
        with: impl FnOnce(Builder) -> Builder,
    ) -> Result<ParquetRecordBatchReader> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            chunks,
            part.metadata.reader.clone(),
        )
        .with_projection(self.mask(part))
        .with_row_groups(vec![group])
        .with_batch_size(batch_size);
        with(builder).build().map_err(parquet_error)
    }

    /// The rows read from the file in the table's columns and types.
    pub(super) fn adapt(&self, batch: Option<&RecordBatch>, rows: &FileRows<'_>) -> Result<Batch> {
        let columns = batch.map(RecordBatch::columns).unwrap_or_default();
        let columns: Vec<Option<ArrayRef>> = columns.iter().cloned().map(Some).collect();
        self.adapt_columns(&columns, rows)
    }

    /// Whether a row's place in the file is asked for.
    pub(super) fn with_row_index(&self) -> bool {
        self.columns.contains(&FileColumn::RowIndex)
    }

    /// As [`Self::adapt`], of an array for each root column.
    pub(super) fn adapt_columns(
        &self,
        arrays: &[Option<ArrayRef>],
        rows: &FileRows<'_>,
    ) -> Result<Batch> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for ((from, place), field) in
            self.columns.iter().zip(&self.places).zip(self.schema.fields())
        {
            let array = match place {
                Some(place) => match arrays.get(*place) {
                    Some(Some(array)) => Some(array),
                    _ => return internal_err!("{}: column {place} was not read", rows.path),
                },
                None => None,
            };
            columns.push(from.adapt(array, field, rows)?);
        }
        Batch::try_new(Arc::clone(&self.schema), columns, rows.len)
    }
}

type Builder = ParquetRecordBatchReaderBuilder<ColumnChunks>;
