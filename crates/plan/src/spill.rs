//! Spill files (batches as Arrow IPC, compressed with LZ4), and the error for lack of memory.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use async_stream::try_stream;
use datafusion_common::{DataFusionError, Result, not_impl_err};
use datafusion_execution::spill_file::{SpillFile, SpillWriter};
use planish_batch::Batch;
use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

/// Rows that are one batch in a file, however wide they are.
const FEW_ROWS: usize = 16;

/// The error of an operator that needs `bytes` bytes more than it gets.
pub fn exhausted(operator: &str, bytes: usize) -> DataFusionError {
    let megabytes = (bytes as f64 / (1024.0 * 1024.0)).max(0.1);
    DataFusionError::ResourcesExhausted(format!(
        "{operator} needs {megabytes:.1} MB more than the memory limit allows; raise it with \
         --memory-limit or SET datafusion.runtime.memory_limit"
    ))
}

/// Batches on disk, in the order written. The file goes with the last clone.
#[derive(Clone)]
pub struct Spilled {
    file: Arc<dyn SpillFile>,
    schema: SchemaRef,
    rows: usize,
    largest_batch: usize,
    largest_batch_rows: usize,
}

impl Spilled {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in memory of the largest batch: what a reader needs.
    pub fn largest_batch(&self) -> usize {
        self.largest_batch
    }

    /// Rows of the longest batch.
    pub fn largest_batch_rows(&self) -> usize {
        self.largest_batch_rows
    }

    /// The batches again, one read per poll.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn read(&self) -> Result<BatchStream> {
        let Some(path) = self.file.path() else {
            return not_impl_err!("spill files that are not local files");
        };
        let file = File::open(path)?;
        let spilled = self.clone();
        Ok(Box::pin(try_stream! {
            let reader = StreamReader::try_new_buffered(file, None)?;
            for batch in reader {
                yield Batch::from_record_batch(&batch?).with_schema(Arc::clone(&spilled.schema));
                tokio::task::yield_now().await;
            }
        }))
    }
}

impl fmt::Debug for Spilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spilled({} rows)", self.rows)
    }
}

/// Writes batches to a new spill file.
pub struct SpillFileWriter {
    file: Arc<dyn SpillFile>,
    writer: StreamWriter<BufWriter<Box<dyn SpillWriter>>>,
    schema: SchemaRef,
    rows: usize,
    largest_batch: usize,
    largest_batch_rows: usize,
}

impl SpillFileWriter {
    /// A new file for batches of `schema`; `operator` is named in errors.
    ///
    /// # Errors
    /// When there is no spill folder, or the file cannot be made.
    pub fn try_new(operator: &str, schema: SchemaRef, ctx: &TaskContext) -> Result<Self> {
        let file = ctx.disk().create_tmp_file(operator)?;
        let options =
            IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let buffered = BufWriter::with_capacity(128 * 1024, file.open_writer()?);
        let writer = StreamWriter::try_new_with_options(buffered, &schema, options)?;
        Ok(SpillFileWriter {
            file,
            writer,
            schema,
            rows: 0,
            largest_batch: 0,
            largest_batch_rows: 0,
        })
    }

    /// Appends a batch; its columns are gathered.
    ///
    /// # Errors
    /// When the disk is full, or the limit on spilled bytes is reached.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        let batch = batch.to_record_batch()?;
        if batch.num_columns() == 0 {
            return self.write_rows(&batch);
        }
        let columns = batch.columns().iter().map(without_dead_bytes).collect();
        self.write_rows(&RecordBatch::try_new(batch.schema(), columns)?)
    }

    /// Appends the rows of a batch in batches of at most `bytes` bytes, unless a few rows alone
    /// take more. The width of rows is measured, since what reservations count is partly shared.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_pieces(&mut self, batch: &Batch, bytes: usize) -> Result<()> {
        if batch.num_columns() == 0 {
            return self.write(batch);
        }
        let mut rows = batch.num_rows();
        let mut offset = 0;
        while offset < batch.num_rows() {
            let len = rows.min(batch.num_rows() - offset);
            let piece = owned(&batch.slice(offset, len))?.to_record_batch()?;
            if piece.get_array_memory_size() > bytes && len > FEW_ROWS {
                rows = (len / 2).max(FEW_ROWS);
                continue;
            }
            self.write_rows(&piece)?;
            offset += len;
        }
        Ok(())
    }

    /// Appends a batch that holds no bytes but its rows'.
    fn write_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        self.largest_batch_rows = self.largest_batch_rows.max(batch.num_rows());
        self.largest_batch = self.largest_batch.max(batch.get_array_memory_size());
        Ok(self.writer.write(batch)?)
    }

    /// Closes the file; also says how many bytes it has.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(self) -> Result<(Spilled, usize)> {
        let SpillFileWriter { file, mut writer, schema, rows, largest_batch, largest_batch_rows } =
            self;
        writer.finish()?;
        let buffered = writer.into_inner()?;
        let mut inner =
            buffered.into_inner().map_err(|error| DataFusionError::IoError(error.into_error()))?;
        inner.finish()?;
        let bytes = file.size().unwrap_or(0) as usize;
        Ok((Spilled { file, schema, rows, largest_batch, largest_batch_rows }, bytes))
    }
}

/// View arrays write all buffers they refer to, so only the bytes in use are kept.
fn without_dead_bytes(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => Arc::clone(array),
    }
}

/// The same rows in arrays that hold nothing else, for a batch that may be a small part of
/// larger ones.
///
/// # Errors
/// When a column cannot be gathered.
pub fn owned(batch: &Batch) -> Result<Batch> {
    let rows = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    let copy = take_record_batch(&batch.to_record_batch()?, &rows)?;
    let columns = copy.columns().iter().map(without_dead_bytes).collect();
    Batch::from_arrays(Arc::clone(batch.schema()), columns, batch.num_rows())
}
