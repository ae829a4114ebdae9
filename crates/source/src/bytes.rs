//! [`ByteSource`]: where the bytes of a file come from.
//!
//! Local files are read by position, directly on the worker thread (they mostly sit in the page
//! cache); everything else goes through `object_store`.

use async_trait::async_trait;
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// A file that can be read at any position.
#[async_trait]
pub trait ByteSource: Debug + Send + Sync {
    /// What to call the file in messages and caches: a path or a URL.
    fn path(&self) -> &str;

    /// Its size in bytes.
    ///
    /// # Errors
    /// When the file is not there or cannot be asked.
    async fn size(&self) -> Result<u64>;

    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    /// When the file cannot be read or ends before the range does.
    async fn read_range(&self, range: Range<u64>) -> Result<Bytes>;

    /// The bytes of each range, in order.
    ///
    /// # Errors
    /// As [`Self::read_range`].
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut out = Vec::with_capacity(ranges.len());
        for range in ranges {
            out.push(self.read_range(range.clone()).await?);
        }
        Ok(out)
    }

    /// The path on the local file system, for sources that are read without waiting.
    fn local_path(&self) -> Option<&Path> {
        None
    }
}

/// A file of the local file system.
#[derive(Debug)]
pub struct LocalByteSource {
    path: PathBuf,
    display: String,
}

impl LocalByteSource {
    /// The file at `path`; it is opened when it is read.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let display = path.display().to_string();
        LocalByteSource { path, display }
    }
}

#[async_trait]
impl ByteSource for LocalByteSource {
    fn path(&self) -> &str {
        &self.display
    }

    async fn size(&self) -> Result<u64> {
        Ok(LocalFile::open(&self.path)?.len())
    }

    async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        LocalFile::open(&self.path)?.read(range)
    }

    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let file = LocalFile::open(&self.path)?;
        ranges.iter().map(|range| file.read(range.clone())).collect()
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// An open local file, shared by everyone who reads it: reads carry their position.
#[derive(Debug)]
pub(crate) struct LocalFile {
    file: File,
    len: u64,
    path: PathBuf,
}

impl LocalFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || -> std::io::Result<LocalFile> {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            Ok(LocalFile { file, len, path: path.to_owned() })
        };
        open().map_err(|e| io_error(&path.display().to_string(), &e))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of `range`, all of them.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let path = || self.path.display().to_string();
        if range.start > range.end || range.end > self.len {
            return Err(past_end(&path(), &range, self.len));
        }
        let mut buffer = vec![0; (range.end - range.start) as usize];
        read_exact_at(&self.file, &mut buffer, range.start).map_err(|e| io_error(&path(), &e))?;
        Ok(Bytes::from(buffer))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[read..];
        offset += read as u64;
    }
    Ok(())
}

/// An object of an object store.
#[derive(Debug)]
pub struct ObjectByteSource {
    store: Arc<dyn ObjectStore>,
    location: ObjectPath,
    display: String,
}

impl ObjectByteSource {
    /// The object at `location` of `store`, called `display` in messages and caches, which must
    /// be unique among all stores: the URL.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        location: ObjectPath,
        display: impl Into<String>,
    ) -> Self {
        ObjectByteSource { store, location, display: display.into() }
    }
}

#[async_trait]
impl ByteSource for ObjectByteSource {
    fn path(&self) -> &str {
        &self.display
    }

    async fn size(&self) -> Result<u64> {
        let meta = self.store.head(&self.location).await;
        Ok(meta.map_err(|e| store_error(&self.display, e))?.size)
    }

    async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end - range.start;
        let bytes = self.store.get_range(&self.location, range.clone()).await;
        let bytes = bytes.map_err(|e| store_error(&self.display, e))?;
        if bytes.len() as u64 != wanted {
            return Err(past_end(&self.display, &range, range.start + bytes.len() as u64));
        }
        Ok(bytes)
    }

    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let bytes = self.store.get_ranges(&self.location, ranges).await;
        bytes.map_err(|e| store_error(&self.display, e))
    }
}

/// Which version of a file was looked at: what caches are keyed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Bytes.
    pub size: u64,
    /// Time of last change in nanoseconds since 1970, 0 where unknown.
    pub modified_nanos: i128,
}

impl FileVersion {
    /// The version of the local file that `metadata` is of.
    pub fn of_local(metadata: &std::fs::Metadata) -> Self {
        let modified = metadata.modified().ok();
        let nanos = modified.map_or(0, |time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        });
        FileVersion { size: metadata.len(), modified_nanos: nanos }
    }
}

pub(crate) fn io_error(path: &str, error: &std::io::Error) -> DataFusionError {
    DataFusionError::IoError(std::io::Error::new(error.kind(), format!("{path}: {error}")))
}

fn past_end(path: &str, range: &Range<u64>, len: u64) -> DataFusionError {
    DataFusionError::Execution(format!(
        "{path}: bytes {}..{} are past the end of the file, which has {len}",
        range.start, range.end
    ))
}

fn store_error(path: &str, error: object_store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error)).context(path.to_owned())
}
