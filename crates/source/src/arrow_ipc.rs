//! Arrow IPC: files, whose record batches are morsels, and streams, which are one morsel each.
//!
//! A file's first bytes tell which of the two it is. Text becomes views; dictionaries stay codes.

use crate::adapt::{FileColumn, map_by_name, merge_schemas, named, table_type};
use crate::bytes::LocalFile;
use crate::file_source::{FileSource, ReadRequest, SourceFile};
use crate::virtual_columns::{self, FileRows, Positions, with_virtual_columns};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, StreamReader, read_footer_length};
use arrow::ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use async_stream::try_stream;
use bytes::Bytes;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics, exec_err, internal_err};
use futures::{FutureExt, StreamExt};
use planish_batch::{Batch, Column};
use planish_plan::BatchStream;
use std::io::Cursor;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a file (and not a stream) starts with.
const MAGIC: &[u8] = b"ARROW1";

/// Bytes of a file's end that hold the footer's length and the magic.
const TRAILER: u64 = 10;

/// Arrow IPC files of one table.
#[derive(Debug)]
pub struct ArrowSource {
    table_schema: SchemaRef,
    files: Vec<Arc<SourceFile>>,
    parts: Vec<Part>,
}

/// What is known of one file.
#[derive(Debug)]
struct Part {
    /// Its columns as stored.
    stored: SchemaRef,
    /// Where each column of the table comes from.
    columns: Vec<FileColumn>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Stream,
    File {
        version: MetadataVersion,
        dictionaries: Vec<Block>,
        /// Each record batch, and its rows.
        batches: Vec<(Block, u64)>,
    },
}

/// Where bytes are read from.
enum Input<'a> {
    Local(LocalFile),
    Other(&'a SourceFile),
}

impl<'a> Input<'a> {
    fn open(file: &'a SourceFile) -> Result<Self> {
        Ok(match file.bytes().local_path() {
            Some(path) => Input::Local(LocalFile::open(path)?),
            None => Input::Other(file),
        })
    }

    fn len(&self) -> u64 {
        match self {
            Input::Local(open) => open.len(),
            Input::Other(file) => file.version().size,
        }
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match self {
            Input::Local(open) => open.read(range),
            Input::Other(file) => file.bytes().read_range(range).await,
        }
    }

    async fn block(&self, block: &Block) -> Result<Buffer> {
        Ok(Buffer::from(self.read(range_of(block, self.len())?).await?))
    }
}

fn range_of(block: &Block, file: u64) -> Result<Range<u64>> {
    let start = u64::try_from(block.offset()).ok();
    let header = u64::try_from(block.metaDataLength()).ok();
    let body = u64::try_from(block.bodyLength()).ok();
    let end = start.zip(header).zip(body).and_then(|((s, h), b)| s.checked_add(h)?.checked_add(b));
    match (start, end) {
        (Some(start), Some(end)) if end <= file => Ok(start..end),
        _ => exec_err!("the file is corrupt: a block is not inside of it"),
    }
}

impl ArrowSource {
    /// The files as one table: of `stored_schema`, or of the columns of all files.
    ///
    /// # Errors
    /// When a file cannot be read, or columns do not fit together.
    pub async fn try_new(
        files: Vec<Arc<SourceFile>>,
        stored_schema: Option<SchemaRef>,
    ) -> Result<Self> {
        let mut parts = Vec::with_capacity(files.len());
        for file in &files {
            parts.push(Part::describe(file).await.map_err(|e| named(file.path(), e))?);
        }
        let typed: Vec<Schema> = parts.iter().map(|part| in_table_types(&part.stored)).collect();
        let stored = match stored_schema {
            Some(schema) => schema,
            None => merge_schemas(files.iter().map(|file| file.path()).zip(&typed))?,
        };
        for ((file, part), typed) in files.iter().zip(&mut parts).zip(&typed) {
            part.columns = map_by_name(file.path(), &stored, typed)?;
            part.columns.extend([FileColumn::RowIndex, FileColumn::FileName]);
        }
        Ok(ArrowSource { table_schema: with_virtual_columns(&stored), files, parts })
    }

    /// As [`Self::try_new`] for local files, which are read without waiting; `None` when a file is
    /// not local.
    pub(crate) fn try_new_local(
        files: Vec<Arc<SourceFile>>,
        stored_schema: SchemaRef,
    ) -> Result<Option<Self>> {
        if files.iter().any(|file| file.bytes().local_path().is_none()) {
            return Ok(None);
        }
        Self::try_new(files, Some(stored_schema)).now_or_never().transpose()
    }
}

fn in_table_types(stored: &Schema) -> Schema {
    let typed = |f: &Field| f.clone().with_data_type(table_type(f.data_type()));
    Schema::new(stored.fields().iter().map(|f| typed(f)).collect::<Vec<_>>())
}

/// Runs `work` on bytes of a file; a panic that a corrupt file causes is an error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(_) => exec_err!("the file is corrupt"),
    }
}

impl Part {
    async fn describe(file: &SourceFile) -> Result<Part> {
        let input = Input::open(file)?;
        let size = input.len();
        let start = input.read(0..size.min(MAGIC.len() as u64)).await?;
        if start.as_ref() != MAGIC {
            let all = input.read(0..size).await?;
            let stored = guarded(|| Ok(StreamReader::try_new(Cursor::new(all), None)?.schema()))?;
            return Ok(Part { stored, columns: vec![], content: Content::Stream });
        }
        if size < MAGIC.len() as u64 + TRAILER {
            return exec_err!("the file is cut off");
        }
        let trailer = input.read(size - TRAILER..size).await?;
        let footer_len = guarded(|| match <[u8; TRAILER as usize]>::try_from(trailer.as_ref()) {
            Ok(trailer) => Ok(read_footer_length(trailer)? as u64),
            Err(_) => exec_err!("the file is cut off"),
        })?;
        let Some(footer_start) = (size - TRAILER).checked_sub(footer_len) else {
            return exec_err!("the file is cut off: its footer is longer than the file");
        };
        let footer = input.read(footer_start..size - TRAILER).await?;
        let (stored, version, dictionaries, blocks) = guarded(|| parse_footer(&footer))?;
        let mut batches = Vec::with_capacity(blocks.len());
        for block in blocks {
            let header = input.read(header_of(&block, size)?).await?;
            batches.push((block, guarded(|| rows_of(&header))?));
        }
        let content = Content::File { version, dictionaries, batches };
        Ok(Part { stored, columns: vec![], content })
    }

    /// The place in the file of the first row of morsel `morsel`.
    fn first_row(&self, morsel: usize) -> u64 {
        match &self.content {
            Content::Stream => 0,
            Content::File { batches, .. } => batches[..morsel].iter().map(|(_, rows)| rows).sum(),
        }
    }

    fn rows(&self) -> Option<u64> {
        match &self.content {
            Content::Stream => None,
            Content::File { batches, .. } => Some(batches.iter().map(|(_, rows)| rows).sum()),
        }
    }
}

fn header_of(block: &Block, file: u64) -> Result<Range<u64>> {
    let all = range_of(block, file)?;
    Ok(all.start..all.start + block.metaDataLength() as u64)
}

type Footer = (SchemaRef, MetadataVersion, Vec<Block>, Vec<Block>);

fn parse_footer(bytes: &[u8]) -> Result<Footer> {
    let Ok(footer) = root_as_footer(bytes) else { return exec_err!("its footer is corrupt") };
    let Some(schema) = footer.schema() else { return exec_err!("its footer has no schema") };
    let dictionaries = footer.dictionaries().map(|list| list.iter().copied().collect());
    let batches = footer.recordBatches().map(|list| list.iter().copied().collect());
    let stored = Arc::new(fb_to_schema(schema));
    let blocks = (dictionaries.unwrap_or_default(), batches.unwrap_or_default());
    Ok((stored, footer.version(), blocks.0, blocks.1))
}

/// Rows of the record batch whose message starts with `header`.
fn rows_of(header: &[u8]) -> Result<u64> {
    // A message's length comes first, after a continuation mark in newer files.
    let skip = if header.starts_with(&[0xFF; 4]) { 8 } else { 4 };
    let message = header.get(skip..).and_then(|bytes| root_as_message(bytes).ok());
    match message.and_then(|message| message.header_as_record_batch().map(|b| b.length())) {
        Some(rows) if rows >= 0 => Ok(rows as u64),
        _ => exec_err!("the header of a record batch is corrupt"),
    }
}

impl FileSource for ArrowSource {
    fn file_type(&self) -> &'static str {
        "arrow"
    }

    fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }

    fn table_schema(&self) -> &SchemaRef {
        &self.table_schema
    }

    fn morsel_count(&self, file: usize) -> usize {
        match &self.parts[file].content {
            Content::Stream => 1,
            Content::File { batches, .. } => batches.len(),
        }
    }

    fn morsel_rows(&self, file: usize, morsel: usize) -> Option<usize> {
        match &self.parts[file].content {
            Content::Stream => None,
            Content::File { batches, .. } => batches.get(morsel).map(|(_, rows)| *rows as usize),
        }
    }

    fn statistics(&self) -> Result<Statistics> {
        let bytes: u64 = self.files.iter().map(|file| file.version().size).sum();
        let mut statistics = Statistics::new_unknown(&self.table_schema);
        let rows: Vec<Option<u64>> = self.parts.iter().map(Part::rows).collect();
        if let Some(all) = rows.iter().copied().sum::<Option<u64>>() {
            statistics.num_rows = Precision::Exact(all as usize);
        }
        statistics.total_byte_size = Precision::Inexact(bytes as usize);
        virtual_columns::add_statistics(&mut statistics, &self.files, &rows);
        Ok(statistics)
    }

    fn read(self: Arc<Self>, file: usize, morsel: usize, request: ReadRequest) -> BatchStream {
        Box::pin(try_stream! {
            let info = &self.files[file];
            let part = &self.parts[file];
            let wanted = Wanted::new(part, &request);
            let mut batches = read_batches(info, part, morsel, wanted.stored.clone());
            let mut first = part.first_row(morsel);
            while let Some(batch) = batches.next().await {
                let batch = batch.map_err(|e| named(info.path(), e))?;
                request.metrics.add("bytes_read", batch.get_array_memory_size());
                let mut offset = 0;
                while offset < batch.num_rows() {
                    let len = request.batch_size.min(batch.num_rows() - offset);
                    let positions = Positions::From(first + offset as u64);
                    let rows = FileRows { path: info.path(), len, positions };
                    yield wanted.adapt(&batch.slice(offset, len), &rows, &request)?;
                    offset += len;
                }
                first += batch.num_rows() as u64;
            }
        })
    }
}

type RecordBatches<'a> =
    std::pin::Pin<Box<dyn futures::Stream<Item = Result<RecordBatch>> + Send + 'a>>;

/// The record batches of one morsel, of the stored columns `stored`.
fn read_batches<'a>(
    info: &'a SourceFile,
    part: &'a Part,
    morsel: usize,
    stored: Vec<usize>,
) -> RecordBatches<'a> {
    Box::pin(try_stream! {
        let input = Input::open(info)?;
        match &part.content {
            Content::Stream => {
                let all = input.read(0..input.len()).await?;
                let mut reader =
                    guarded(|| Ok(StreamReader::try_new(Cursor::new(all), Some(stored))?))?;
                while let Some(batch) = guarded(|| Ok(reader.next().transpose()?))? {
                    yield batch;
                }
            }
            Content::File { version, dictionaries, batches } => {
                let mut decoder = FileDecoder::new(Arc::clone(&part.stored), *version)
                    .with_projection(stored);
                for block in dictionaries {
                    let bytes = input.block(block).await?;
                    guarded(|| Ok(decoder.read_dictionary(block, &bytes)?))?;
                }
                let (block, rows) = &batches[morsel];
                let bytes = input.block(block).await?;
                let batch = guarded(|| Ok(decoder.read_record_batch(block, &bytes)?))?;
                match batch {
                    Some(batch) if batch.num_rows() as u64 == *rows => yield batch,
                    _ => corrupt(morsel)?,
                }
            }
        }
    })
}

fn corrupt(morsel: usize) -> Result<()> {
    exec_err!("record batch {morsel} has other rows than its header says")
}

/// The columns that a request wants of a file.
struct Wanted {
    /// Stored columns, ascending, once each.
    stored: Vec<usize>,
    columns: Vec<FileColumn>,
}

impl Wanted {
    fn new(part: &Part, request: &ReadRequest) -> Self {
        let columns: Vec<FileColumn> = request.columns.iter().map(|&c| part.columns[c]).collect();
        let mut stored: Vec<usize> = columns.iter().filter_map(|c| c.index()).collect();
        stored.sort_unstable();
        stored.dedup();
        Wanted { stored, columns }
    }

    fn adapt(
        &self,
        batch: &RecordBatch,
        rows: &FileRows<'_>,
        request: &ReadRequest,
    ) -> Result<Batch> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (from, field) in self.columns.iter().zip(request.schema.fields()) {
            let array = match from.index().map(|i| self.stored.binary_search(&i)) {
                Some(Ok(place)) => Some(batch.column(place)),
                Some(Err(_)) => {
                    return internal_err!("{}: {} was not read", rows.path, field.name());
                }
                None => None,
            };
            columns.push(match (from, array) {
                (FileColumn::Same(_), Some(array)) => in_table_form(array, field.data_type())?,
                (_, array) => from.adapt(array, field, rows)?,
            });
        }
        Batch::try_new(Arc::clone(&request.schema), columns, rows.len)
    }
}

/// A stored array as a column of type `to`: dictionaries of such values as codes.
fn in_table_form(array: &ArrayRef, to: &DataType) -> Result<Column> {
    Ok(match array.data_type() {
        stored if stored == to => Column::flat(Arc::clone(array)),
        DataType::Dictionary(_, values) if values.as_ref() == to => {
            Column::encoded(Arc::clone(array), to)
        }
        _ => Column::flat(cast(array, to)?),
    })
}
