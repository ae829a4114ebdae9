//! Files as tables: paths to tables, and `CREATE EXTERNAL TABLE`.

use arrow::compute::SortOptions;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, not_impl_err, plan_err};
use datafusion_expr::{CreateExternalTable, Expr, SortExpr};
use planish_expr::expressions::Column;
use planish_expr::{LexOrdering, PhysicalSortExpr};
use planish_plan::PlanRef;
use planish_planner::Table;
use planish_source::{Compression, CsvOptions, FileFormat, FileFormatOptions, FileTable};
use std::collections::HashMap;
use std::sync::Arc;

/// Files of one format.
#[derive(Debug)]
struct Files {
    table: FileTable,
}

#[async_trait]
impl Table for Files {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.table.schema())
    }

    fn scan_schema(&self) -> SchemaRef {
        self.table.scan_schema()
    }

    async fn scan(&self, projection: Option<&[usize]>, options: &ConfigOptions) -> Result<PlanRef> {
        self.table.scan(projection, options)
    }
}

/// The table of the files that `paths` stand for.
pub(crate) async fn open(paths: Vec<String>, options: FileFormatOptions) -> Result<Arc<dyn Table>> {
    Ok(Arc::new(Files { table: FileTable::try_new(paths, options).await? }))
}

/// Parquet, whatever the extension says.
pub(crate) fn parquet() -> FileFormatOptions {
    FileFormatOptions { format: Some(FileFormat::Parquet), ..Default::default() }
}

/// CSV, whatever the extension says.
pub(crate) fn csv() -> FileFormatOptions {
    FileFormatOptions { format: Some(FileFormat::Csv), ..Default::default() }
}

/// JSON, whatever the extension says.
pub(crate) fn json() -> FileFormatOptions {
    FileFormatOptions { format: Some(FileFormat::Json), ..Default::default() }
}

/// Arrow IPC, whatever the extension says.
pub(crate) fn arrow() -> FileFormatOptions {
    FileFormatOptions { format: Some(FileFormat::Arrow), ..Default::default() }
}

/// The table that `CREATE EXTERNAL TABLE` describes. A clause that would have no effect is an
/// error.
pub(crate) async fn external(
    statement: &CreateExternalTable,
    defaults: &ConfigOptions,
) -> Result<Arc<dyn Table>> {
    if !statement.table_partition_cols.is_empty() {
        return not_impl_err!("PARTITIONED BY in CREATE EXTERNAL TABLE is not supported yet");
    }
    if statement.unbounded {
        return not_impl_err!("CREATE UNBOUNDED EXTERNAL TABLE is not supported yet");
    }
    if !statement.constraints.is_empty() {
        return not_impl_err!("constraints in CREATE EXTERNAL TABLE are not supported yet");
    }
    if !statement.column_defaults.is_empty() {
        return not_impl_err!("DEFAULT in CREATE EXTERNAL TABLE is not supported yet");
    }
    let format = FileFormat::by_name(&statement.file_type)?;
    let given: &Schema = statement.schema.as_arrow();
    let schema = (!given.fields().is_empty()).then(|| Arc::clone(statement.schema.inner()));
    let mut options = FileFormatOptions {
        format: Some(format),
        csv: CsvOptions { has_header: defaults.catalog.has_header, ..Default::default() },
        schema,
        ..Default::default()
    };
    if statement.file_type.eq_ignore_ascii_case("tsv") {
        options.csv.delimiter = b'\t';
    }
    set_format_options(&statement.options, format, &mut options)?;
    options.orderings = statement
        .order_exprs
        .iter()
        .map(|keys| ordering(keys, given))
        .collect::<Result<Vec<_>>>()?;
    open(statement.locations.clone(), options).await
}

/// The keys of `OPTIONS (...)`, each with or without `format.` in front.
fn set_format_options(
    given: &HashMap<String, String>,
    format: FileFormat,
    options: &mut FileFormatOptions,
) -> Result<()> {
    let (csv, json) = (&mut options.csv, &mut options.json);
    for (key, value) in given {
        let name = key.strip_prefix("format.").unwrap_or(key);
        match (format, name) {
            (FileFormat::Csv, "has_header" | "header") => csv.has_header = flag(key, value)?,
            (FileFormat::Csv, "delimiter") => csv.delimiter = character(key, value)?,
            (FileFormat::Csv, "quote") => csv.quote = optional_character(key, value)?,
            (FileFormat::Csv, "escape") => csv.escape = optional_character(key, value)?,
            (FileFormat::Csv, "comment") => csv.comment = optional_character(key, value)?,
            (FileFormat::Csv, "null_value" | "null_regex") => {
                if name == "null_regex" {
                    return not_impl_err!("option {key} is not supported yet; see null_value");
                }
                csv.null_value = Some(value.clone());
            }
            (FileFormat::Csv, "schema_infer_max_rec") => csv.infer_records = number(key, value)?,
            (FileFormat::Json, "schema_infer_max_rec") => json.infer_records = number(key, value)?,
            (FileFormat::Csv, "compression") => {
                csv.compression = Some(Compression::by_name(value)?)
            }
            (FileFormat::Json, "compression") => {
                json.compression = Some(Compression::by_name(value)?);
            }
            (_, "compression") if value.eq_ignore_ascii_case("uncompressed") => {}
            _ => return not_impl_err!("option {key} is not supported for {format} files"),
        }
    }
    Ok(())
}

fn number(key: &str, value: &str) -> Result<usize> {
    let Ok(number) = value.parse() else {
        return plan_err!("option {key} must be a number, it is '{value}'");
    };
    Ok(number)
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => plan_err!("option {key} must be true or false, it is '{value}'"),
    }
}

fn character(key: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => plan_err!("option {key} must be one ASCII character, it is '{value}'"),
    }
}

fn optional_character(key: &str, value: &str) -> Result<Option<u8>> {
    if value.is_empty() { Ok(None) } else { character(key, value).map(Some) }
}

/// `WITH ORDER (a, b DESC)`, over the columns as declared.
fn ordering(keys: &[SortExpr], schema: &Schema) -> Result<LexOrdering> {
    keys.iter()
        .map(|key| {
            let Expr::Column(column) = &key.expr else {
                return not_impl_err!("WITH ORDER by an expression: {}", key.expr);
            };
            let column = Column::new_with_schema(&column.name, schema)?;
            let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
            Ok(PhysicalSortExpr::new(Arc::new(column), options))
        })
        .collect()
}
