//! The bytes of the column chunks of one row group, as the `parquet` crate wants them.
//!
//! Local chunks are read through windows that grow: a `LIMIT 10` reads little, a whole chunk
//! takes few reads. Pages are slices of a window, never copies. Chunks of other sources have
//! been fetched whole before decoding starts.

use crate::bytes::LocalFile;
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use planish_plan::NodeMetrics;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

/// First and largest window.
const WINDOW: (u64, u64) = (256 * 1024, 4 * 1024 * 1024);

/// Column chunks of one row group.
#[derive(Clone)]
pub(crate) struct ColumnChunks(Arc<Inner>);

struct Inner {
    /// By start, disjoint.
    chunks: Vec<Chunk>,
    file: Option<Arc<LocalFile>>,
    file_len: u64,
    metrics: Arc<NodeMetrics>,
}

struct Chunk {
    range: Range<u64>,
    window: Mutex<Window>,
}

struct Window {
    start: u64,
    bytes: Bytes,
    next_len: u64,
}

impl ColumnChunks {
    /// The chunks at `ranges` of a local file.
    pub(crate) fn local(
        file: Arc<LocalFile>,
        ranges: Vec<Range<u64>>,
        metrics: Arc<NodeMetrics>,
    ) -> Self {
        let empty = |range| (range, Bytes::new());
        let file_len = file.len();
        Self::new(ranges.into_iter().map(empty).collect(), Some(file), file_len, metrics)
    }

    /// Chunks whose bytes are there.
    pub(crate) fn fetched(
        chunks: Vec<(Range<u64>, Bytes)>,
        file_len: u64,
        metrics: Arc<NodeMetrics>,
    ) -> Self {
        Self::new(chunks, None, file_len, metrics)
    }

    fn new(
        mut chunks: Vec<(Range<u64>, Bytes)>,
        file: Option<Arc<LocalFile>>,
        file_len: u64,
        metrics: Arc<NodeMetrics>,
    ) -> Self {
        chunks.sort_by_key(|(range, _)| range.start);
        let chunks = chunks
            .into_iter()
            .map(|(range, bytes)| {
                let window = Window { start: range.start, bytes, next_len: WINDOW.0 };
                Chunk { range, window: Mutex::new(window) }
            })
            .collect();
        ColumnChunks(Arc::new(Inner { chunks, file, file_len, metrics }))
    }
}

impl Inner {
    /// At least `least` bytes from `start` on, as many more as are at hand.
    fn bytes_from(&self, start: u64, least: u64) -> Result<Bytes> {
        let after = self.chunks.partition_point(|chunk| chunk.range.start <= start);
        let Some(chunk) = after.checked_sub(1).map(|i| &self.chunks[i]) else {
            return Err(out_of_chunk(start, least));
        };
        let end = chunk.range.end;
        if start.checked_add(least).is_none_or(|wanted| wanted > end) {
            return Err(out_of_chunk(start, least));
        }
        let mut window = chunk.window.lock();
        let known = window.start..window.start + window.bytes.len() as u64;
        if start >= known.start && start + least <= known.end {
            return Ok(window.bytes.slice((start - known.start) as usize..));
        }
        let Some(file) = &self.file else { return Err(out_of_chunk(start, least)) };
        let len = window.next_len.max(least).min(end - start);
        let bytes =
            file.read(start..start + len).map_err(|e| ParquetError::External(Box::new(e)))?;
        self.metrics.add("bytes_read", bytes.len());
        window.start = start;
        window.bytes = bytes.clone();
        window.next_len = (window.next_len * 4).min(WINDOW.1);
        Ok(bytes)
    }
}

fn out_of_chunk(start: u64, len: u64) -> ParquetError {
    ParquetError::EOF(format!("{len} bytes at {start} are not inside of a column chunk"))
}

impl Length for ColumnChunks {
    fn len(&self) -> u64 {
        self.0.file_len
    }
}

impl ChunkReader for ColumnChunks {
    type T = ChunkCursor;

    fn get_read(&self, start: u64) -> Result<ChunkCursor> {
        Ok(ChunkCursor { chunks: Arc::clone(&self.0), position: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.0.bytes_from(start, length as u64)?.slice(..length))
    }
}

/// Reads on from a position; used for page headers.
pub(crate) struct ChunkCursor {
    chunks: Arc<Inner>,
    position: u64,
    bytes: Bytes,
}

impl Read for ChunkCursor {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.bytes.is_empty() {
            self.bytes = self.chunks.bytes_from(self.position, 1).map_err(std::io::Error::other)?;
        }
        let taken = buffer.len().min(self.bytes.len());
        self.bytes.copy_to_slice(&mut buffer[..taken]);
        self.position += taken as u64;
        Ok(taken)
    }
}
