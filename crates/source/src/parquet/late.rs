//! Decoding one row group in two steps: the columns of the filters, then the others for the rows
//! that pass.

use super::ParquetSource;
use super::chunks::ColumnChunks;
use super::metadata::guarded;
use super::read::{Columns, check_rows};
use crate::file_source::ReadRequest;
use crate::row_filter::RowFilter;
use crate::virtual_columns::{FileRows, Positions};
use arrow::array::{ArrayRef, BooleanBufferBuilder, Int64Array, RecordBatch, RecordBatchReader};
use arrow::compute::{concat_batches, filter_record_batch};
use async_stream::try_stream;
use datafusion_common::Result;
use parquet::arrow::arrow_reader::RowSelection;
use planish_plan::BatchStream;
use std::sync::Arc;

/// Rows of a row group that pass its filters.
pub(super) struct Survivors {
    selection: RowSelection,
    rows: usize,
    /// Their values of the filters' columns.
    early: RecordBatch,
    columns: Columns,
    /// Their places in the file, one by one, if someone asks for them.
    positions: Option<Int64Array>,
}

/// The rows of `group` that pass; `None` when so many do that it does not pay to tell them apart.
pub(super) async fn survivors(
    source: &ParquetSource,
    file: usize,
    group: usize,
    chunks: &ColumnChunks,
    filter: &RowFilter,
    request: &ReadRequest,
    wanted: &Columns,
) -> Result<Option<Survivors>> {
    let part = &source.parts[file];
    let path = source.files[file].path();
    let columns = Columns::new(part, filter.columns(), filter.schema());
    let rows = part.rows[group] as usize;
    let mut passing = BooleanBufferBuilder::new(rows);
    let mut early = vec![];
    let mut reader = guarded(path, || {
        columns.reader(part, group, chunks.clone(), request.batch_size, |builder| builder)
    })?;
    while let Some(batch) = guarded(path, || Ok(reader.next().transpose()?))? {
        let positions = Positions::From(part.first_row(group) + passing.len() as u64);
        let rows = FileRows { path, len: batch.num_rows(), positions };
        let table = columns.adapt(Some(&batch), &rows)?;
        let answers = filter.passing(&table)?;
        if !filter.pays() {
            return Ok(None);
        }
        passing.append_buffer(answers.values());
        if answers.true_count() > 0 {
            early.push(filter_record_batch(&batch, &answers)?);
        }
        tokio::task::consume_budget().await;
    }
    check_rows(path, part, group, passing.len() as u64)?;
    let early = concat_batches(&reader.schema(), &early)?;
    let survivors = early.num_rows();
    request.metrics.add("rows_pruned_by_filter", rows - survivors);
    let passing = passing.finish();
    let first = part.first_row(group) as i64;
    let places = || passing.set_indices().map(|row| first + row as i64).collect();
    Ok(Some(Survivors {
        positions: wanted.with_row_index().then(places),
        selection: RowSelection::from_boolean_buffer(passing),
        rows: survivors,
        early,
        columns,
    }))
}

/// The surviving rows of `group` with all `wanted` columns.
pub(super) fn read(
    source: Arc<ParquetSource>,
    file: usize,
    group: usize,
    chunks: ColumnChunks,
    wanted: Columns,
    survivors: Survivors,
    batch_size: usize,
) -> BatchStream {
    Box::pin(try_stream! {
        let part = &source.parts[file];
        let path = source.files[file].path();
        if survivors.rows == 0 {
            return;
        }
        let late = wanted.without(&survivors.columns);
        let mut reader = None;
        if !late.roots.is_empty() {
            reader = Some(guarded(path, || {
                late.reader(part, group, chunks, batch_size, |builder| {
                    builder.with_row_selection(survivors.selection)
                })
            })?);
        }
        let mut offset = 0;
        while offset < survivors.rows {
            let decoded = match &mut reader {
                Some(reader) => guarded(path, || Ok(reader.next().transpose()?))?,
                None => None,
            };
            let rows = match &decoded {
                Some(batch) => batch.num_rows(),
                None if reader.is_some() => 0,
                None => batch_size.min(survivors.rows - offset),
            };
            if rows == 0 || offset + rows > survivors.rows {
                corrupt(path, group, offset + rows, survivors.rows)?;
            }
            let early = survivors.early.slice(offset, rows);
            let columns = merged(&wanted, &survivors.columns, &early, &late, decoded.as_ref());
            let positions = match &survivors.positions {
                Some(places) => Positions::Listed(places, offset),
                None => Positions::From(0),
            };
            yield wanted.adapt_columns(&columns, &FileRows { path, len: rows, positions })?;
            offset += rows;
        }
    })
}

fn corrupt(path: &str, group: usize, rows: usize, expected: usize) -> Result<()> {
    guarded(path, || {
        datafusion_common::exec_err!(
            "row group {group} has {rows} rows in some columns, {expected} in others"
        )
    })
}

/// For each root column of `wanted`, its array.
fn merged(
    wanted: &Columns,
    early: &Columns,
    early_batch: &RecordBatch,
    late: &Columns,
    late_batch: Option<&RecordBatch>,
) -> Vec<Option<ArrayRef>> {
    let of = |columns: &Columns, batch: &RecordBatch, root: usize| {
        let place = columns.roots.binary_search(&root).ok()?;
        batch.columns().get(place).cloned()
    };
    wanted
        .roots
        .iter()
        .map(|&root| of(early, early_batch, root).or_else(|| of(late, late_batch?, root)))
        .collect()
}
