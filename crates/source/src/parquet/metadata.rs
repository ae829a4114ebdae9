//! Parquet footers, parsed once per version of a file.

use super::statistics::ColumnBounds;
use crate::adapt::{named, table_type};
use crate::bytes::{FileVersion, LocalFile};
use crate::file_source::SourceFile;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use datafusion_common::{DataFusionError, Result, exec_err};
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

/// Bytes at a file's end that are read at once, in the hope that the footer is inside.
const TAIL: u64 = 64 * 1024;

/// Bytes of parsed footers that a cache keeps.
const CACHE_BYTES: usize = 256 * 1024 * 1024;

/// What is known of a Parquet file from its footer.
#[derive(Debug)]
pub(crate) struct ParquetFileMetadata {
    /// For the crate's readers; its schema has our types, short decimals aside.
    pub(crate) reader: ArrowReaderMetadata,
    /// The file's columns in our types, without metadata.
    pub(crate) schema: SchemaRef,
    /// For each root column, its leaf when it is flat.
    pub(crate) flat_leaves: Vec<Option<usize>>,
    /// For each root column, its bounds per row group, once someone asked.
    bounds: Vec<OnceLock<Arc<ColumnBounds>>>,
}

impl ParquetFileMetadata {
    fn try_new(metadata: ParquetMetaData) -> Result<Self> {
        let metadata = Arc::new(metadata);
        let options = ArrowReaderOptions::new();
        let stored =
            ArrowReaderMetadata::try_new(Arc::clone(&metadata), options).map_err(parquet_error)?;
        let parquet_schema = metadata.file_metadata().schema_descr();
        let mut flat_leaves = vec![None; stored.schema().fields().len()];
        for leaf in 0..parquet_schema.num_columns() {
            let root = parquet_schema.get_column_root_idx(leaf);
            if parquet_schema.get_column_root(leaf).is_primitive() && root < flat_leaves.len() {
                flat_leaves[root] = Some(leaf);
            }
        }
        let typed: Vec<Field> = stored
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_data_type(table_type(f.data_type())))
            .collect();
        let read_as = typed.iter().zip(&flat_leaves).map(|(field, leaf)| {
            let physical = leaf.map(|leaf| parquet_schema.column(leaf).physical_type());
            field.clone().with_data_type(read_type(field.data_type(), physical))
        });
        let read_as = Schema::new_with_metadata(
            read_as.collect::<Vec<Field>>(),
            stored.schema().metadata().clone(),
        );
        let reader = if read_as == **stored.schema() {
            stored
        } else {
            let options = ArrowReaderOptions::new().with_schema(Arc::new(read_as));
            ArrowReaderMetadata::try_new(Arc::clone(&metadata), options).map_err(parquet_error)?
        };
        let bare = |f: &Field| {
            let mut kept = f.metadata().clone();
            kept.retain(|key, _| key.starts_with("ARROW:extension:"));
            f.clone().with_metadata(kept)
        };
        let schema = Schema::new(typed.iter().map(bare).collect::<Vec<_>>());
        if metadata.row_groups().iter().any(|group| group.num_rows() < 0) {
            return exec_err!("a row group has a negative number of rows");
        }
        let bounds = (0..schema.fields().len()).map(|_| OnceLock::new()).collect();
        Ok(ParquetFileMetadata { reader, schema: Arc::new(schema), flat_leaves, bounds })
    }

    /// The footer itself.
    pub(crate) fn parquet(&self) -> &Arc<ParquetMetaData> {
        self.reader.metadata()
    }

    /// Rows of row group `index`.
    pub(crate) fn rows(&self, index: usize) -> usize {
        self.parquet().row_group(index).num_rows() as usize
    }

    /// Bounds of root column `column` in each row group.
    pub(crate) fn bounds(&self, column: usize) -> Result<Arc<ColumnBounds>> {
        if let Some(known) = self.bounds[column].get() {
            return Ok(Arc::clone(known));
        }
        let bounds = Arc::new(ColumnBounds::of(self, column)?);
        Ok(Arc::clone(self.bounds[column].get_or_init(|| bounds)))
    }
}

/// The type in which the crate's reader hands on a column of type `table`: decimals that are
/// stored in 64 bits stay so until someone reads them.
fn read_type(table: &DataType, physical: Option<PhysicalType>) -> DataType {
    match (table, physical) {
        (
            DataType::Decimal128(precision @ 1..=18, scale),
            Some(PhysicalType::INT32 | PhysicalType::INT64),
        ) => DataType::Decimal64(*precision, *scale),
        _ => table.clone(),
    }
}

/// Footers by path, each of the version of the file that was seen last.
#[derive(Debug, Default)]
pub struct MetadataCache {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_path: HashMap<String, (FileVersion, Arc<ParquetFileMetadata>)>,
    bytes: usize,
}

static GLOBAL: LazyLock<Arc<MetadataCache>> = LazyLock::new(Arc::default);

impl MetadataCache {
    /// The process's cache.
    pub fn global() -> Arc<MetadataCache> {
        Arc::clone(&GLOBAL)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.entries.lock() = Entries::default();
    }

    /// Number of files remembered.
    pub fn len(&self) -> usize {
        self.entries.lock().by_path.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The footer of `file`, read when this version of it has not been seen.
    pub(crate) async fn load(&self, file: &SourceFile) -> Result<Arc<ParquetFileMetadata>> {
        if let Some(local) = file.bytes().local_path() {
            return self.load_local(file, local);
        }
        if let Some(known) = self.known(file) {
            return Ok(known);
        }
        let size = file.version().size;
        let mut wanted = TAIL.min(size);
        let metadata = loop {
            let tail = file.bytes().read_range(size - wanted..size).await?;
            match parse(file.path(), &tail, size)? {
                Parsed::Footer(metadata) => break metadata,
                Parsed::Needs(bytes) => wanted = bytes,
            }
        };
        self.remember(file, metadata)
    }

    /// As [`Self::load`], for a local file.
    pub(crate) fn load_local(
        &self,
        file: &SourceFile,
        path: &Path,
    ) -> Result<Arc<ParquetFileMetadata>> {
        if let Some(known) = self.known(file) {
            return Ok(known);
        }
        let open = LocalFile::open(path)?;
        let size = open.len();
        let mut wanted = TAIL.min(size);
        let metadata = loop {
            let tail = open.read(size - wanted..size)?;
            match parse(file.path(), &tail, size)? {
                Parsed::Footer(metadata) => break metadata,
                Parsed::Needs(bytes) => wanted = bytes,
            }
        };
        self.remember(file, metadata)
    }

    fn known(&self, file: &SourceFile) -> Option<Arc<ParquetFileMetadata>> {
        let entries = self.entries.lock();
        let (version, metadata) = entries.by_path.get(file.path())?;
        (version == file.version()).then(|| Arc::clone(metadata))
    }

    fn remember(
        &self,
        file: &SourceFile,
        metadata: Box<ParquetMetaData>,
    ) -> Result<Arc<ParquetFileMetadata>> {
        let bytes = metadata.memory_size();
        let parsed = guarded(file.path(), || ParquetFileMetadata::try_new(*metadata))?;
        let parsed = Arc::new(parsed);
        let mut entries = self.entries.lock();
        if entries.bytes + bytes > CACHE_BYTES {
            *entries = Entries::default();
        }
        entries.bytes += bytes;
        let entry = (file.version().clone(), Arc::clone(&parsed));
        if let Some((_, replaced)) = entries.by_path.insert(file.path().to_owned(), entry) {
            entries.bytes = entries.bytes.saturating_sub(replaced.parquet().memory_size());
        }
        Ok(parsed)
    }
}

enum Parsed {
    Footer(Box<ParquetMetaData>),
    /// That many bytes of the file's end are needed.
    Needs(u64),
}

fn parse(path: &str, tail: &Bytes, size: u64) -> Result<Parsed> {
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    guarded(path, || match reader.try_parse_sized(tail, size) {
        Ok(()) => Ok(Parsed::Footer(Box::new(reader.finish().map_err(parquet_error)?))),
        Err(ParquetError::NeedMoreData(needed)) if needed as u64 <= size && needed > tail.len() => {
            Ok(Parsed::Needs(needed as u64))
        }
        Err(ParquetError::NeedMoreData(_)) => {
            exec_err!("the file is cut off: its footer is longer than the file")
        }
        Err(error) => Err(parquet_error(error)),
    })
}

/// Runs `work` on bytes of the file `path`: an error names the file, and so does the panic that
/// a corrupt file may cause in the reading library.
pub(crate) fn guarded<T>(path: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| named(path, e)),
        Err(_) => {
            let error = DataFusionError::Execution("the file is corrupt".to_owned());
            Err(named(path, error))
        }
    }
}

/// The crate's error as ours; errors of our own that went through the crate come out unchanged.
pub(crate) fn parquet_error(error: ParquetError) -> DataFusionError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<DataFusionError>() {
            Ok(ours) => *ours,
            Err(other) => DataFusionError::External(other),
        },
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::ArrowError(text) => {
            DataFusionError::Execution(text)
        }
        ParquetError::NYI(text) => DataFusionError::NotImplemented(text),
        other => DataFusionError::External(Box::new(other)),
    }
}
