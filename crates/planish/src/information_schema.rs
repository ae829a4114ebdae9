//! `information_schema`: the session's tables, columns and options as tables.

use crate::catalog::Catalog;
use crate::config::SessionOptions;
use crate::tables::MemTable;
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::Result;
use datafusion_common::config::ConfigEntry;
use planish_planner::Table;
use std::sync::Arc;

/// The table `name` of the information schema, if it has one.
pub(crate) fn table(
    name: &str,
    catalog: &Catalog,
    options: &SessionOptions,
) -> Option<Result<Arc<dyn Table>>> {
    let batch = match name {
        "tables" => tables(catalog, options),
        "columns" => columns(catalog, options),
        "df_settings" => settings(&options.entries()),
        _ => return None,
    };
    Some(batch.and_then(|batch| {
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Arc::new(table) as Arc<dyn Table>)
    }))
}

/// Options as rows of name, value and description.
pub(crate) fn settings(entries: &[ConfigEntry]) -> Result<RecordBatch> {
    let value = |e: &ConfigEntry| e.value.clone();
    batch(&[
        ("name", false, text(entries.iter().map(|e| Some(e.key.clone())))),
        ("value", true, text(entries.iter().map(value))),
        ("description", false, text(entries.iter().map(|e| Some(e.description.to_owned())))),
    ])
}

fn tables(catalog: &Catalog, options: &SessionOptions) -> Result<RecordBatch> {
    let rows: Vec<_> = catalog.iter().collect();
    let kind =
        |table: &Arc<dyn Table>| if table.view_plan().is_some() { "VIEW" } else { "BASE TABLE" };
    let catalogs = &options.options.catalog;
    batch(&[
        ("table_catalog", false, repeated(&catalogs.default_catalog, rows.len())),
        ("table_schema", false, repeated(&catalogs.default_schema, rows.len())),
        ("table_name", false, text(rows.iter().map(|(name, _)| Some((*name).to_owned())))),
        ("table_type", false, text(rows.iter().map(|(_, t)| Some(kind(t).to_owned())))),
    ])
}

fn columns(catalog: &Catalog, options: &SessionOptions) -> Result<RecordBatch> {
    let mut rows: Vec<(&str, u64, Field)> = vec![];
    for (name, table) in catalog.iter() {
        for (i, field) in table.schema().fields().iter().enumerate() {
            rows.push((name, i as u64, field.as_ref().clone()));
        }
    }
    let yes = |b: bool| Some(if b { "YES" } else { "NO" }.to_owned());
    let catalogs = &options.options.catalog;
    let positions = UInt64Array::from_iter_values(rows.iter().map(|(_, i, _)| *i));
    batch(&[
        ("table_catalog", false, repeated(&catalogs.default_catalog, rows.len())),
        ("table_schema", false, repeated(&catalogs.default_schema, rows.len())),
        ("table_name", false, text(rows.iter().map(|(name, _, _)| Some((*name).to_owned())))),
        ("column_name", false, text(rows.iter().map(|(_, _, f)| Some(f.name().clone())))),
        ("ordinal_position", false, Arc::new(positions)),
        ("is_nullable", false, text(rows.iter().map(|(_, _, f)| yes(f.is_nullable())))),
        ("data_type", false, text(rows.iter().map(|(_, _, f)| Some(f.data_type().to_string())))),
    ])
}

/// The columns of a schema, as `DESCRIBE` shows them.
pub(crate) fn describe(schema: &Schema) -> Result<RecordBatch> {
    let yes = |b: bool| Some(if b { "YES" } else { "NO" }.to_owned());
    let fields = schema.fields();
    batch(&[
        ("column_name", false, text(fields.iter().map(|f| Some(f.name().clone())))),
        ("data_type", false, text(fields.iter().map(|f| Some(f.data_type().to_string())))),
        ("is_nullable", false, text(fields.iter().map(|f| yes(f.is_nullable())))),
    ])
}

pub(crate) fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn repeated(value: &str, times: usize) -> ArrayRef {
    text(std::iter::repeat_n(Some(value.to_owned()), times))
}

pub(crate) fn batch(columns: &[(&str, bool, ArrayRef)]) -> Result<RecordBatch> {
    let field = |(name, nullable, array): &(&str, bool, ArrayRef)| {
        let data_type: DataType = array.data_type().clone();
        Field::new(*name, data_type, *nullable)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.iter().map(|(_, _, array)| Arc::clone(array)).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
}
