//! Decoding one row group.

use super::chunks::ColumnChunks;
use super::metadata::{guarded, parquet_error};
use super::{ParquetFile, ParquetSource};
use crate::adapt::FileColumn;
use crate::file_source::ReadRequest;
use arrow::array::{ArrayRef, RecordBatch};
use async_stream::try_stream;
use datafusion_common::{Result, internal_err};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
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
        let wanted = Wanted::new(part, &request);
        request.metrics.add("row_groups_read", 1);
        if wanted.roots.is_empty() {
            // Nothing is stored of these columns but how many rows there are.
            let mut left = part.rows[group] as usize;
            while left > 0 {
                let rows = left.min(request.batch_size);
                yield wanted.adapt(None, rows, path)?;
                left -= rows;
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
        let mut reader = guarded(path, || wanted.reader(part, group, chunks, &request))?;
        let mut rows = 0;
        while let Some(batch) =
            guarded(path, || Ok(reader.next().transpose()?))?
        {
            rows += batch.num_rows() as u64;
            yield wanted.adapt(Some(&batch), batch.num_rows(), path)?;
        }
        if request.limit.is_none() && rows != part.rows[group] {
            guarded(path, || -> Result<()> {
                datafusion_common::exec_err!(
                    "row group {group} has {rows} rows, its footer says {}",
                    part.rows[group]
                )
            })?;
        }
    })
}

/// The columns of a request in one file.
struct Wanted {
    /// Root columns of the file, ascending, once each.
    roots: Vec<usize>,
    columns: Vec<FileColumn>,
    /// For each wanted column, its place among `roots`.
    places: Vec<Option<usize>>,
    schema: arrow::datatypes::SchemaRef,
}

impl Wanted {
    fn new(part: &ParquetFile, request: &ReadRequest) -> Self {
        let columns: Vec<FileColumn> = request.columns.iter().map(|&c| part.columns[c]).collect();
        let mut roots: Vec<usize> = columns.iter().filter_map(|c| c.index()).collect();
        roots.sort_unstable();
        roots.dedup();
        let places = columns.iter().map(|c| roots.binary_search(&c.index()?).ok()).collect();
        Wanted { roots, columns, places, schema: Arc::clone(&request.schema) }
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

    fn reader<R: ChunkReader + 'static>(
        &self,
        part: &ParquetFile,
        group: usize,
        chunks: R,
        request: &ReadRequest,
    ) -> Result<ParquetRecordBatchReader> {
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            chunks,
            part.metadata.reader.clone(),
        )
        .with_projection(self.mask(part))
        .with_row_groups(vec![group])
        .with_batch_size(request.batch_size);
        if let Some(limit) = request.limit {
            builder = builder.with_limit(limit);
        }
        builder.build().map_err(parquet_error)
    }

    /// The rows read from the file in the table's columns and types.
    fn adapt(&self, batch: Option<&RecordBatch>, rows: usize, path: &str) -> Result<Batch> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for ((from, place), field) in
            self.columns.iter().zip(&self.places).zip(self.schema.fields())
        {
            let array: Option<&ArrayRef> = match (batch, place) {
                (Some(batch), Some(place)) => match batch.columns().get(*place) {
                    Some(array) => Some(array),
                    None => return internal_err!("{path}: column {place} was not read"),
                },
                _ => None,
            };
            columns.push(from.adapt(array, field, rows, path)?);
        }
        Batch::try_new(Arc::clone(&self.schema), columns, rows)
    }
}
