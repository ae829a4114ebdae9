//! Spill files: batches in Arrow's stream format, in the session's spill folder.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use async_stream::try_stream;
use datafusion_common::Result;
use datafusion_execution::{SpillFile, SpillWriter as Sink};
use futures::StreamExt;
use planish_batch::Batch;
use std::sync::Arc;

/// A spill file being written.
pub(super) struct SpillWriter {
    file: Arc<dyn SpillFile>,
    writer: StreamWriter<Box<dyn Sink>>,
}

impl SpillWriter {
    /// A new file for batches of `schema`; `name` is the operator's.
    ///
    /// # Errors
    /// When no file can be made.
    pub(super) fn try_new(ctx: &TaskContext, schema: &SchemaRef, name: &str) -> Result<Self> {
        let file = ctx.disk().create_tmp_file(&format!("spilling {name}"))?;
        let writer = StreamWriter::try_new(file.open_writer()?, schema)?;
        Ok(SpillWriter { file, writer })
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.writer.write(batch)?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> Result<SpilledFile> {
        self.writer.finish()?;
        self.writer.get_mut().finish()?;
        Ok(SpilledFile { file: self.file })
    }
}

/// A complete spill file; deleted when dropped.
pub(super) struct SpilledFile {
    file: Arc<dyn SpillFile>,
}

impl SpilledFile {
    /// Bytes on disk.
    pub(super) fn bytes(&self) -> usize {
        self.file.size().unwrap_or(0) as usize
    }

    /// The batches, in the order in which they were written.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn stream(self) -> Result<BatchStream> {
        let mut chunks = self.file.read_stream()?;
        Ok(Box::pin(try_stream! {
            let _kept = self;
            let mut decoder = StreamDecoder::new();
            while let Some(chunk) = chunks.next().await {
                let mut buffer = Buffer::from(chunk?);
                while !buffer.is_empty() {
                    if let Some(batch) = decoder.decode(&mut buffer)? {
                        yield Batch::from_record_batch(&batch);
                    }
                }
            }
            decoder.finish()?;
        }))
    }
}
