//! Reading one JSON file.

use super::flatten::Flattener;
use super::infer::Guess;
use super::{JsonOptions, JsonSource};
use crate::blocks::Blocks;
use crate::file_source::{ReadRequest, SourceFile};
use crate::virtual_columns::{FILE_ROW_INDEX, FileRows, INPUT_FILE_NAME, Positions};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;
use async_stream::try_stream;
use bytes::{Buf, Bytes};
use datafusion_common::{DataFusionError, Result, internal_err, plan_err};
use planish_batch::{Batch, Column};
use planish_plan::BatchStream;
use std::sync::Arc;

/// Bytes read at once.
const BLOCK: u64 = 1024 * 1024;

/// Bytes looked at for a schema, at most.
const INFERRED_BYTES: usize = 16 * 1024 * 1024;

/// The rows of file `file`.
pub(super) fn file(source: Arc<JsonSource>, file: usize, request: ReadRequest) -> BatchStream {
    Box::pin(try_stream! {
        let info = &source.files[file];
        let mut records = Records::open(info, &source.options, &request)?;
        let mut first = 0;
        while let Some(batch) = records.next().await? {
            request.metrics.add("bytes_read", records.blocks.take_read());
            let rows = FileRows {
                path: info.path(),
                len: batch.num_rows(),
                positions: Positions::From(first),
            };
            first += rows.len as u64;
            yield with_virtual(&request, &batch, &rows)?;
        }
        request.metrics.add("bytes_read", records.blocks.take_read());
    })
}

/// The columns asked for, given the stored ones among them.
fn with_virtual(request: &ReadRequest, batch: &RecordBatch, rows: &FileRows<'_>) -> Result<Batch> {
    let mut stored = batch.columns().iter();
    let mut columns = Vec::with_capacity(request.columns.len());
    for field in request.schema.fields() {
        columns.push(match field.name().as_str() {
            FILE_ROW_INDEX => rows.indices(),
            INPUT_FILE_NAME => rows.names(),
            name => match stored.next() {
                Some(array) => Column::flat(Arc::clone(array)),
                None => return internal_err!("{}: {name} was not decoded", rows.path),
            },
        });
    }
    Batch::try_new(Arc::clone(&request.schema), columns, rows.len)
}

/// A file's records in batches of the stored columns that are asked for.
struct Records<'a> {
    path: &'a str,
    blocks: Blocks<'a>,
    flattener: Flattener,
    decoder: Decoder,
    /// Bytes that the decoder has not taken yet.
    rest: Bytes,
    batch_size: usize,
    /// Records handed out.
    count: usize,
}

impl<'a> Records<'a> {
    fn open(info: &'a SourceFile, options: &JsonOptions, request: &ReadRequest) -> Result<Self> {
        let is_stored = |name: &str| name != FILE_ROW_INDEX && name != INPUT_FILE_NAME;
        let fields = request.schema.fields().iter().filter(|f| is_stored(f.name()));
        let schema = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let decoder = ReaderBuilder::new(schema)
            .with_batch_size(request.batch_size)
            .with_coerce_primitive(true)
            .build_decoder()?;
        Ok(Records {
            path: info.path(),
            blocks: Blocks::open(info, options.compression)?,
            flattener: Flattener::default(),
            decoder,
            rest: Bytes::new(),
            batch_size: request.batch_size,
            count: 0,
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let taken = self.decoder.decode(&self.rest).map_err(|e| self.at_record(&e))?;
            self.rest.advance(taken);
            if self.decoder.len() >= self.batch_size {
                return self.flush();
            }
            if !self.rest.is_empty() {
                continue;
            }
            if self.blocks.at_end() {
                if self.decoder.has_partial_record() || self.flattener.is_open() {
                    return Err(self.cut_off());
                }
                return self.flush();
            }
            let block = self.blocks.next(BLOCK).await?;
            self.rest = self.flattener.next(block);
        }
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.decoder.flush().map_err(|e| self.at_record(&e))?;
        self.count += batch.as_ref().map_or(0, RecordBatch::num_rows);
        Ok(batch)
    }

    fn at_record(&self, error: &ArrowError) -> DataFusionError {
        let from = self.count + 1;
        let to = self.count + self.decoder.len().max(1);
        let place =
            if from == to { format!("record {from}") } else { format!("records {from} to {to}") };
        let text = match error {
            ArrowError::JsonError(text) => text.clone(),
            other => other.to_string(),
        };
        DataFusionError::Execution(format!("{}, {place}: {text}", self.path))
    }

    fn cut_off(&self) -> DataFusionError {
        let partial = usize::from(self.decoder.has_partial_record());
        let records = self.count + self.decoder.len().saturating_sub(partial);
        DataFusionError::Execution(format!("{} is cut off after {records} records", self.path))
    }
}

/// What the records of `file` look like.
pub(super) async fn guess(file: &SourceFile, options: &JsonOptions) -> Result<Guess> {
    let mut blocks = Blocks::open(file, options.compression)?;
    let mut flattener = Flattener::default();
    let mut text = vec![];
    let mut wanted = BLOCK;
    loop {
        while !blocks.at_end() && (text.len() as u64) < wanted {
            text.extend_from_slice(&flattener.next(blocks.next(BLOCK).await?));
        }
        let mut all = Guess::default();
        let mut records = 0;
        let mut values = serde_json::Deserializer::from_slice(&text).into_iter::<Guess>();
        let cut = loop {
            if records == options.infer_records.max(1) {
                break false;
            }
            match values.next() {
                None => break false,
                Some(Ok(record)) => all.merge(record),
                Some(Err(error)) if error.is_eof() => break true,
                Some(Err(error)) => {
                    return plan_err!("{}, record {}: {error}", file.path(), records + 1);
                }
            }
            records += 1;
        };
        match (cut, blocks.at_end()) {
            (true, true) => return plan_err!("{} is cut off after {records} records", file.path()),
            // The last record of the text at hand goes on behind it.
            (true, false) if records == 0 && text.len() < INFERRED_BYTES => wanted *= 4,
            (true, false) if records == 0 => {
                return plan_err!(
                    "{} starts with a record of over {INFERRED_BYTES} bytes",
                    file.path()
                );
            }
            _ => return Ok(all),
        }
    }
}
