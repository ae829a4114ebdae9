//! [`FileSource`]: the part of a scan that knows a format.

use crate::bytes::{ByteSource, FileVersion};
use crate::row_filter::RowFilter;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, Statistics};
use planish_expr::PhysicalExprRef;
use planish_plan::{BatchStream, NodeMetrics};
use std::fmt::Debug;
use std::sync::Arc;

/// One file, in the version that was listed.
#[derive(Debug)]
pub struct SourceFile {
    bytes: Arc<dyn ByteSource>,
    version: FileVersion,
}

impl SourceFile {
    /// The file behind `bytes`.
    pub fn new(bytes: Arc<dyn ByteSource>, version: FileVersion) -> Self {
        SourceFile { bytes, version }
    }

    /// What to call it.
    pub fn path(&self) -> &str {
        self.bytes.path()
    }

    /// Its last path component.
    pub fn name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Where its bytes are.
    pub fn bytes(&self) -> &Arc<dyn ByteSource> {
        &self.bytes
    }

    /// The version that was listed.
    pub fn version(&self) -> &FileVersion {
        &self.version
    }
}

/// What a scan wants of a morsel.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Table columns, ascending, once each.
    pub columns: Arc<[usize]>,
    /// The schema of these columns, in the table's types.
    pub schema: SchemaRef,
    /// Rows per batch.
    pub batch_size: usize,
    /// Rows after which nobody reads on.
    pub limit: Option<usize>,
    /// Rows that do not pass may be left out; for sources that filter rows.
    pub row_filter: Option<Arc<RowFilter>>,
    /// The scan's metrics.
    pub metrics: Arc<NodeMetrics>,
}

/// Files of one format, adapted to one table schema: everything a scan needs to know of a
/// format. Columns and filters are in *table* coordinates; what they are in a file is the
/// source's own business.
pub trait FileSource: Debug + Send + Sync {
    /// `parquet`, `csv`.
    fn file_type(&self) -> &'static str;

    /// The files.
    fn files(&self) -> &[Arc<SourceFile>];

    /// The columns that are stored, then the virtual ones ([`crate::FILE_ROW_INDEX`],
    /// [`crate::INPUT_FILE_NAME`]).
    fn table_schema(&self) -> &SchemaRef;

    /// Into how many morsels file `file` is cut.
    fn morsel_count(&self, file: usize) -> usize;

    /// Rows of a morsel, where known.
    fn morsel_rows(&self, file: usize, morsel: usize) -> Option<usize>;

    /// Statistics of all files, of all table columns.
    ///
    /// # Errors
    /// When stored statistics cannot be read.
    fn statistics(&self) -> Result<Statistics>;

    /// Whether [`Self::morsels_to_read`] can make use of `filter`, which is over the table's
    /// columns.
    fn can_prune_by(&self, _filter: &PhysicalExprRef) -> bool {
        false
    }

    /// Whether [`Self::read`] makes use of a row filter.
    fn filters_rows(&self) -> bool {
        false
    }

    /// Which morsels of `file` may hold rows that pass all `filters` (over the table's columns);
    /// `None` for all of them. A morsel is left out only when no row of it can pass.
    ///
    /// # Errors
    /// When stored statistics cannot be read.
    fn morsels_to_read(
        &self,
        _file: usize,
        _filters: &[PhysicalExprRef],
    ) -> Result<Option<BooleanBuffer>> {
        Ok(None)
    }

    /// The rows of one morsel, in file order.
    fn read(self: Arc<Self>, file: usize, morsel: usize, request: ReadRequest) -> BatchStream;
}
