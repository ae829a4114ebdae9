//! [`FileTable`]: files of one format with one schema, ready to be scanned.

use crate::adapt::table_type;
use crate::arrow_ipc::ArrowSource;
use crate::csv::CsvSource;
use crate::exec::DataSourceExec;
use crate::file_source::{FileSource, SourceFile};
use crate::format::{FileFormat, FileFormatOptions};
use crate::json::JsonSource;
use crate::listing::{ListedFiles, list_paths};
use crate::parquet::{MetadataCache, ParquetSource};
use crate::scan_config::FileScanConfig;
use crate::virtual_columns::{stored_schema, with_virtual_columns};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue, plan_err};
use parking_lot::Mutex;
use planish_expr::expressions::Column;
use planish_expr::projection::ProjectionExprs;
use planish_expr::{LexOrdering, PhysicalSortExpr};
use planish_plan::PlanRef;
use std::cmp::Ordering;
use std::sync::Arc;

/// Files as a table. Its schema is fixed when it is made; its files are looked up anew for each
/// scan, so that a replaced file is read as it is then.
#[derive(Debug)]
pub struct FileTable {
    paths: Vec<String>,
    options: FileFormatOptions,
    format: FileFormat,
    cache: Arc<MetadataCache>,
    schema: SchemaRef,
    current: Mutex<Current>,
}

/// The files as they were last seen.
#[derive(Clone, Debug)]
struct Current {
    source: Arc<dyn FileSource>,
    orderings: Vec<LexOrdering>,
}

impl FileTable {
    /// The table of the files that `paths` stand for: files, folders or globs. The schema is
    /// that of the options, or else what the files say.
    ///
    /// # Errors
    /// When paths are missing, files cannot be read, or their columns do not fit together.
    pub async fn try_new(paths: Vec<String>, options: FileFormatOptions) -> Result<FileTable> {
        let listed = list_paths(&paths, options.format)?;
        Self::try_new_with_files(paths, listed, options).await
    }

    /// The table of `listed` files, for files that are not on the local file system; `paths` is
    /// what to call them.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub async fn try_new_with_files(
        paths: Vec<String>,
        listed: ListedFiles,
        options: FileFormatOptions,
    ) -> Result<FileTable> {
        let cache = options.metadata_cache.clone().unwrap_or_else(MetadataCache::global);
        let declared = options.schema.as_ref().map(|schema| declared_schema(schema));
        let current = match listed.format {
            FileFormat::Parquet => {
                let source = ParquetSource::try_new(listed.files, declared, &cache).await?;
                parquet_current(source, &options.orderings)?
            }
            FileFormat::Csv => {
                let csv = options.csv.clone();
                let source = CsvSource::try_new(listed.files, declared, csv).await?;
                unread_current(Arc::new(source), &options.orderings)
            }
            FileFormat::Json => {
                let json = options.json.clone();
                let source = JsonSource::try_new(listed.files, declared, json).await?;
                unread_current(Arc::new(source), &options.orderings)
            }
            FileFormat::Arrow => {
                let source = ArrowSource::try_new(listed.files, declared).await?;
                unread_current(Arc::new(source), &options.orderings)
            }
        };
        Ok(FileTable {
            schema: stored_schema(current.source.table_schema()),
            format: listed.format,
            current: Mutex::new(current),
            paths,
            options,
            cache,
        })
    }

    /// The table's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table's columns, then those that only a scan knows: [`crate::FILE_ROW_INDEX`] and
    /// [`crate::INPUT_FILE_NAME`].
    pub fn scan_schema(&self) -> SchemaRef {
        with_virtual_columns(&self.schema)
    }

    /// The files' format.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// The paths the table was made from.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// A plan that yields the columns at `projection` of [`Self::scan_schema`], in that order;
    /// all columns of the table for `None`.
    ///
    /// # Errors
    /// When a file is gone or no longer fits the table, or an index is out of bounds.
    pub fn scan(&self, projection: Option<&[usize]>, options: &ConfigOptions) -> Result<PlanRef> {
        let current = self.refreshed()?;
        let mut config = FileScanConfig::new(current.source)
            .with_orderings(current.orderings)
            .with_target_partitions(options.execution.target_partitions);
        if let Some(indices) = projection {
            let schema = self.scan_schema();
            if let Some(i) = indices.iter().find(|&&i| i >= schema.fields().len()) {
                return plan_err!("column {i} of a table of {}", self.schema.fields().len());
            }
            config = config.with_projection(ProjectionExprs::from_indices(indices, &schema));
        }
        Ok(Arc::new(DataSourceExec::try_new(config)?))
    }

    /// The files as they are now. Files that are not local are taken as they were.
    fn refreshed(&self) -> Result<Current> {
        let known = self.current.lock().clone();
        if known.source.files().iter().any(|file| file.bytes().local_path().is_none()) {
            return Ok(known);
        }
        let listed = list_paths(&self.paths, Some(self.format))?;
        if same_files(&listed.files, known.source.files()) {
            return Ok(known);
        }
        let schema = Arc::clone(&self.schema);
        let current = match self.format {
            FileFormat::Parquet => {
                match ParquetSource::try_new_local(listed.files, schema, &self.cache)? {
                    Some(source) => parquet_current(source, &self.options.orderings)?,
                    None => known,
                }
            }
            FileFormat::Csv => {
                let source = CsvSource::new(listed.files, schema, self.options.csv.clone());
                unread_current(Arc::new(source), &self.options.orderings)
            }
            FileFormat::Json => {
                let source = JsonSource::new(listed.files, &schema, self.options.json.clone());
                unread_current(Arc::new(source), &self.options.orderings)
            }
            FileFormat::Arrow => match ArrowSource::try_new_local(listed.files, schema)? {
                Some(source) => unread_current(Arc::new(source), &self.options.orderings),
                None => known,
            },
        };
        *self.current.lock() = current.clone();
        Ok(current)
    }
}

fn same_files(a: &[Arc<SourceFile>], b: &[Arc<SourceFile>]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.path() == b.path() && a.version() == b.version())
}

/// A schema as declared, in the types in which scans hand on columns.
fn declared_schema(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_data_type(table_type(f.data_type())))
        .collect::<Vec<Field>>();
    Arc::new(Schema::new(fields))
}

/// Of a format that says nothing of values, so only the order of a single file can be believed.
fn unread_current(source: Arc<dyn FileSource>, orderings: &[LexOrdering]) -> Current {
    let orderings = if source.files().len() == 1 { orderings.to_vec() } else { vec![] };
    Current { source, orderings }
}

fn parquet_current(source: ParquetSource, orderings: &[LexOrdering]) -> Result<Current> {
    let mut kept = vec![];
    for ordering in orderings {
        if files_follow(&source, ordering)? {
            kept.push(ordering.clone());
        }
    }
    Ok(Current { source: Arc::new(source), orderings: kept })
}

/// Whether rows that are in `ordering` within each file are so over all files: each file's
/// leading key must lie behind that of the file before.
fn files_follow(source: &ParquetSource, ordering: &[PhysicalSortExpr]) -> Result<bool> {
    let files = source.files().len();
    if files <= 1 {
        return Ok(true);
    }
    let Some(key) = ordering.first() else { return Ok(false) };
    let Some(column) = key.expr.downcast_ref::<Column>() else { return Ok(false) };
    let mut last: Option<ScalarValue> = None;
    for file in 0..files {
        if (0..source.morsel_count(file)).all(|m| source.morsel_rows(file, m) == Some(0)) {
            continue;
        }
        let Some((min, max)) = source.value_range(file, column.index())? else {
            return Ok(false);
        };
        let (first, end) = if key.options.descending { (max, min) } else { (min, max) };
        if first.data_type().is_floating() {
            return Ok(false);
        }
        if let Some(last) = &last {
            let wanted = if key.options.descending { Ordering::Less } else { Ordering::Greater };
            let follows = match first.partial_cmp(last) {
                Some(Ordering::Equal) => ordering.len() == 1,
                Some(order) => order == wanted,
                None => false,
            };
            if !follows {
                return Ok(false);
            }
        }
        last = Some(end);
    }
    Ok(true)
}
