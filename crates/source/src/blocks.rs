//! A file's bytes from its start to its end, block by block, decompressed on the way.

use crate::bytes::{LocalFile, io_error};
use crate::file_source::SourceFile;
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result, plan_err};
use flate2::write::MultiGzDecoder;
use std::fmt;
use std::io::Write;

/// How a text file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip (`.gz`), several members included.
    Gzip,
    /// Zstandard (`.zst`), several frames included.
    Zstd,
}

impl Compression {
    /// By the extension of `name`.
    pub fn of(name: &str) -> Compression {
        match name.rsplit_once('.') {
            Some((_, extension)) if extension.eq_ignore_ascii_case("gz") => Compression::Gzip,
            Some((_, extension)) if extension.eq_ignore_ascii_case("zst") => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// By its name in `OPTIONS (compression ...)`.
    ///
    /// # Errors
    /// A plan error naming those that there are.
    pub fn by_name(name: &str) -> Result<Compression> {
        match name.to_ascii_lowercase().as_str() {
            "uncompressed" | "none" => Ok(Compression::None),
            "gzip" | "gz" => Ok(Compression::Gzip),
            "zstd" | "zst" => Ok(Compression::Zstd),
            _ => plan_err!("compression '{name}' is not one of gzip, zstd, uncompressed"),
        }
    }
}

/// `name` without the extension that says how the file is compressed.
pub(crate) fn uncompressed_name(name: &str) -> &str {
    match (Compression::of(name), name.rsplit_once('.')) {
        (Compression::Gzip | Compression::Zstd, Some((rest, _))) => rest,
        _ => name,
    }
}

enum Decoder {
    None,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
}

/// Reads a file from start to end.
pub(crate) struct Blocks<'a> {
    file: &'a SourceFile,
    local: Option<LocalFile>,
    decoder: Decoder,
    /// Bytes of the file read so far.
    offset: u64,
    size: u64,
    finished: bool,
    unreported: usize,
}

impl fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blocks({} at {} of {})", self.file.path(), self.offset, self.size)
    }
}

impl<'a> Blocks<'a> {
    /// `file` from its start; by default its name tells how it is compressed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(file: &'a SourceFile, compression: Option<Compression>) -> Result<Self> {
        let local = file.bytes().local_path().map(LocalFile::open).transpose()?;
        let size = local.as_ref().map_or(file.version().size, LocalFile::len);
        let decoder = match compression.unwrap_or_else(|| Compression::of(file.name())) {
            Compression::None => Decoder::None,
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(vec![]))),
            Compression::Zstd => {
                let decoder = zstd::stream::write::Decoder::new(vec![]);
                Decoder::Zstd(Box::new(decoder.map_err(|e| io_error(file.path(), &e))?))
            }
        };
        Ok(Blocks { file, local, decoder, offset: 0, size, finished: false, unreported: 0 })
    }

    /// Whether all bytes were handed out.
    pub(crate) fn at_end(&self) -> bool {
        match self.decoder {
            Decoder::None => self.offset == self.size,
            _ => self.finished,
        }
    }

    /// Bytes of the file read since this was asked last.
    pub(crate) fn take_read(&mut self) -> usize {
        std::mem::take(&mut self.unreported)
    }

    /// The next bytes, of about `wanted` bytes of the file; empty only at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is not compressed as it should be.
    pub(crate) async fn next(&mut self, wanted: u64) -> Result<Bytes> {
        loop {
            if self.offset == self.size {
                return self.finish();
            }
            let range = self.offset..self.size.min(self.offset.saturating_add(wanted));
            let bytes = match &self.local {
                Some(open) => open.read(range.clone())?,
                None => self.file.bytes().read_range(range.clone()).await?,
            };
            self.unreported += bytes.len();
            self.offset = range.end;
            let decoded = match &mut self.decoder {
                Decoder::None => return Ok(bytes),
                Decoder::Gzip(decoder) => {
                    decoder.write_all(&bytes).map(|()| std::mem::take(decoder.get_mut()))
                }
                Decoder::Zstd(decoder) => {
                    decoder.write_all(&bytes).map(|()| std::mem::take(decoder.get_mut()))
                }
            };
            let decoded = decoded.map_err(|e| self.not_decoded(&e))?;
            if !decoded.is_empty() {
                return Ok(Bytes::from(decoded));
            }
        }
    }

    fn finish(&mut self) -> Result<Bytes> {
        let rest = match &mut self.decoder {
            _ if self.finished => return Ok(Bytes::new()),
            Decoder::None => Ok(vec![]),
            Decoder::Gzip(decoder) => {
                decoder.try_finish().map(|()| std::mem::take(decoder.get_mut()))
            }
            Decoder::Zstd(decoder) => decoder.flush().map(|()| std::mem::take(decoder.get_mut())),
        };
        self.finished = true;
        rest.map(Bytes::from).map_err(|e| self.not_decoded(&e))
    }

    fn not_decoded(&self, error: &std::io::Error) -> DataFusionError {
        DataFusionError::Execution(format!("{} cannot be decompressed: {error}", self.file.path()))
    }
}
