//! Reading one CSV file, block by block.

use super::decode::ColumnDecoder;
use super::infer::{Guess, column_names};
use super::records::{RecordError, RecordReader, Records};
use super::{CsvOptions, CsvSource};
use crate::blocks::Blocks;
use crate::file_source::{ReadRequest, SourceFile};
use crate::virtual_columns::{FILE_ROW_INDEX, FileRows, Positions};
use arrow::buffer::Buffer;
use arrow::datatypes::Schema;
use async_stream::try_stream;
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use planish_batch::{Batch, Column};
use planish_plan::BatchStream;
use std::sync::Arc;

/// Bytes read at once.
const BLOCK: u64 = 1024 * 1024;

/// Bytes that one record may have.
const LONGEST_RECORD: u64 = 1 << 30;

/// The rows of file `file`.
pub(super) fn file(source: Arc<CsvSource>, file: usize, request: ReadRequest) -> BatchStream {
    Box::pin(try_stream! {
        let info = &source.files[file];
        let options = source.options.for_file(info);
        let mut blocks = Text::open(info, &options)?;
        let header = if options.has_header { blocks.header().await? } else { None };
        if options.has_header && header.is_none() {
            return;
        }
        let table = source.stored_schema.as_ref();
        let mut positions = None;
        let mut first = 0;
        while let Some(records) = blocks.next(request.batch_size).await? {
            if positions.is_none() {
                let width = records.width();
                positions = Some(place_columns(info.path(), table, header.as_deref(), width)?);
            }
            let places = positions.as_deref().unwrap_or_default();
            let rows = FileRows {
                path: info.path(),
                len: records.len(),
                positions: Positions::From(first),
            };
            let mut columns = Vec::with_capacity(request.columns.len());
            for (&column, field) in request.columns.iter().zip(request.schema.fields()) {
                columns.push(match places.get(column) {
                    None if field.name() == FILE_ROW_INDEX => rows.indices(),
                    None => rows.names(),
                    Some(&Some(position)) => {
                        let decoder = ColumnDecoder {
                            records: &records,
                            data: &blocks.data,
                            position,
                            field,
                            options: &options,
                        };
                        Column::flat(decoder.decode().map_err(|e| at_line(info.path(), &e))?)
                    }
                    Some(None) => Column::constant(
                        ScalarValue::try_new_null(field.data_type())?,
                        records.len(),
                    ),
                });
            }
            request.metrics.add("bytes_read", blocks.take_read());
            first += records.len() as u64;
            yield Batch::try_new(Arc::clone(&request.schema), columns, records.len())?;
        }
    })
}

/// What the columns of `file` look like.
pub(super) async fn guess(file: &SourceFile, options: &CsvOptions) -> Result<Guess> {
    let mut blocks = Text::open(file, options)?;
    let header = if options.has_header { blocks.header().await? } else { None };
    if options.has_header && header.is_none() {
        return plan_err!("{} has no header", file.path());
    }
    let records = blocks.next(options.infer_records.max(1)).await?.unwrap_or_default();
    Ok(Guess::new(header, &records, &blocks.data, options))
}

/// Where each table column is in a file's records: by the header's names, if it has the table's
/// names; else by position, if there are as many columns.
fn place_columns(
    path: &str,
    table: &Schema,
    header: Option<&[String]>,
    width: usize,
) -> Result<Vec<Option<usize>>> {
    let count = table.fields().len();
    let by_position = || (0..count).map(Some).collect();
    let Some(header) = header else {
        return if width == count {
            Ok(by_position())
        } else {
            exec_err!("{path} has {width} columns, the table has {count}")
        };
    };
    let by_name: Vec<Option<usize>> = table
        .fields()
        .iter()
        .map(|field| header.iter().position(|name| name == field.name()))
        .collect();
    let missing = table.fields().iter().zip(&by_name).find(|(_, place)| place.is_none());
    let named = by_name.iter().flatten().count();
    match missing {
        None => Ok(by_name),
        // Other names for the same columns.
        Some(_) if named == 0 && header.len() == count => Ok(by_position()),
        Some((field, _)) if named > 0 && field.is_nullable() => Ok(by_name),
        Some((field, _)) => {
            exec_err!("{path} has no column {}; its header is {}", field.name(), header.join(", "))
        }
    }
}

fn at_line(path: &str, error: &RecordError) -> DataFusionError {
    DataFusionError::Execution(format!("{path}, line {}: {}", error.line, error.message))
}

/// A file's text, a block at a time.
struct Text<'a> {
    file: &'a SourceFile,
    input: Blocks<'a>,
    reader: RecordReader,
    /// The block at hand: what was left of the last one, and what was read.
    data: Buffer,
    /// Where the next record starts in `data`.
    position: usize,
    /// Whether nothing was read yet.
    at_start: bool,
    /// Bytes to read next.
    block: u64,
}

impl<'a> Text<'a> {
    fn open(file: &'a SourceFile, options: &CsvOptions) -> Result<Self> {
        Ok(Text {
            file,
            input: Blocks::open(file, options.compression)?,
            reader: RecordReader::new(options),
            data: Buffer::from_vec(Vec::<u8>::new()),
            position: 0,
            at_start: true,
            block: BLOCK,
        })
    }

    /// Bytes read since this was asked last.
    fn take_read(&mut self) -> usize {
        self.input.take_read()
    }

    /// The names of the columns; `None` for a file without a record.
    async fn header(&mut self) -> Result<Option<Vec<String>>> {
        let header = self.next(1).await?;
        Ok(header.map(|header| column_names(&header, &self.data)))
    }

    /// At most `most` records of `self.data`; `None` at the end of the file.
    async fn next(&mut self, most: usize) -> Result<Option<Records>> {
        loop {
            let at_end = self.input.at_end();
            let read = self.reader.read(&self.data, self.position, at_end, most);
            let (records, next) = read.map_err(|e| at_line(self.file.path(), &e))?;
            self.position = next;
            if !records.is_empty() {
                self.reader.expect_width(records.width());
                self.block = BLOCK;
                return Ok(Some(records));
            }
            if at_end {
                return Ok(None);
            }
            self.read_block().await?;
        }
    }

    async fn read_block(&mut self) -> Result<()> {
        let rest = &self.data.as_slice()[self.position..];
        if rest.len() as u64 > LONGEST_RECORD {
            return exec_err!(
                "{}: a record has more than {LONGEST_RECORD} bytes; is a quote missing?",
                self.file.path()
            );
        }
        let bytes = self.input.next(self.block).await?;
        // A record that fills a block is cut again from its start, so blocks grow.
        self.block = (self.block * 2).min(LONGEST_RECORD);
        let bytes = if self.at_start { self.without_mark(bytes)? } else { bytes };
        self.at_start = false;
        self.data = if rest.is_empty() {
            Buffer::from(bytes)
        } else {
            let mut joined = Vec::with_capacity(rest.len() + bytes.len());
            joined.extend_from_slice(rest);
            joined.extend_from_slice(&bytes);
            Buffer::from_vec(joined)
        };
        self.position = 0;
        Ok(())
    }

    /// The file's first bytes without a byte-order mark.
    fn without_mark(&self, bytes: Bytes) -> Result<Bytes> {
        match bytes.as_ref() {
            [0xEF, 0xBB, 0xBF, ..] => Ok(bytes.slice(3..)),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                exec_err!("{} is UTF-16; only UTF-8 can be read", self.file.path())
            }
            _ => Ok(bytes),
        }
    }
}
