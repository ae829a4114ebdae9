//! Files of one table whose columns differ: how each table column is made from a file's.

use crate::virtual_columns::FileRows;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Decimal64Type, Field, FieldRef, Int64Type, Schema, SchemaRef, TimeUnit,
};
use datafusion_common::{DataFusionError, Result, ScalarValue, plan_err};
use planish_batch::Column;
use std::sync::Arc;

/// Where a table column comes from in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileColumn {
    /// Column of the file's schema, in the table's type.
    Same(usize),
    /// Column of the file's schema, to be cast to the table's type.
    Widened(usize),
    /// Not in the file: NULL in every row.
    Missing,
    /// The row's index within the file.
    RowIndex,
    /// The file's name.
    FileName,
}

impl FileColumn {
    /// The column's index in the file's schema.
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            FileColumn::Same(i) | FileColumn::Widened(i) => Some(i),
            FileColumn::Missing | FileColumn::RowIndex | FileColumn::FileName => None,
        }
    }

    /// The table column of `field` over `rows`, given the file's array of it.
    pub(crate) fn adapt(
        self,
        array: Option<&ArrayRef>,
        field: &Field,
        rows: &FileRows<'_>,
    ) -> Result<Column> {
        match (self, array) {
            (FileColumn::RowIndex, _) => Ok(rows.indices()),
            (FileColumn::FileName, _) => Ok(rows.names()),
            (FileColumn::Same(_), Some(array)) => Ok(match array.data_type() {
                DataType::Decimal64(..) => {
                    let narrow = array.as_primitive::<Decimal64Type>();
                    let narrow = narrow.reinterpret_cast::<Int64Type>();
                    Column::encoded(Arc::new(narrow), field.data_type())
                }
                _ => Column::flat(Arc::clone(array)),
            }),
            (FileColumn::Widened(_), Some(array)) => widen(array, field.data_type())
                .map(Column::flat)
                .map_err(|e| e.context(format!("{}, column {}", rows.path, field.name()))),
            _ => Ok(Column::constant(ScalarValue::try_new_null(field.data_type())?, rows.len)),
        }
    }
}

/// `array` in the wider type `to`; a value that does not fit is an error.
pub(crate) fn widen(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &options)?)
}

/// For each table column, where it comes from in the file `path` of schema `file`; by name.
pub(crate) fn map_by_name(path: &str, table: &Schema, file: &Schema) -> Result<Vec<FileColumn>> {
    table.fields().iter().map(|field| map_field(path, field, file)).collect()
}

fn map_field(path: &str, field: &Field, file: &Schema) -> Result<FileColumn> {
    let mut found =
        file.fields().iter().enumerate().filter(|(_, candidate)| candidate.name() == field.name());
    match (found.next(), found.next()) {
        (None, _) if field.is_nullable() => Ok(FileColumn::Missing),
        (None, _) => plan_err!("{path} has no column {}, which may not be NULL", field.name()),
        (Some(_), Some(_)) => plan_err!("{path} has several columns {}", field.name()),
        (Some((i, candidate)), None) if candidate.data_type() == field.data_type() => {
            Ok(FileColumn::Same(i))
        }
        (Some((i, candidate)), None) if widens(candidate.data_type(), field.data_type()) => {
            Ok(FileColumn::Widened(i))
        }
        (Some((_, candidate)), None) => plan_err!(
            "column {} of {path} is {}, the table's is {}",
            field.name(),
            candidate.data_type(),
            field.data_type()
        ),
    }
}

/// The columns of all files: those of the first, then what later files add. A column is
/// nullable when it is in any file, or missing from one; types widen where that loses nothing.
pub(crate) fn merge_schemas<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a Schema)>,
) -> Result<SchemaRef> {
    let mut merged: Vec<(FieldRef, usize)> = vec![];
    let mut count = 0;
    for (path, schema) in files {
        count += 1;
        for field in schema.fields() {
            let known = merged.iter_mut().find(|(known, _)| known.name() == field.name());
            let Some((known, seen)) = known else {
                merged.push((Arc::clone(field), 1));
                continue;
            };
            *seen += 1;
            let data_type = if known.data_type() == field.data_type()
                || widens(field.data_type(), known.data_type())
            {
                known.data_type().clone()
            } else if widens(known.data_type(), field.data_type()) {
                field.data_type().clone()
            } else {
                return plan_err!(
                    "column {} of {path} is {}, in the files before it is {}",
                    field.name(),
                    field.data_type(),
                    known.data_type()
                );
            };
            let nullable = known.is_nullable() || field.is_nullable();
            let field = known.as_ref().clone().with_data_type(data_type).with_nullable(nullable);
            *known = Arc::new(field);
        }
    }
    let fields = merged.into_iter().map(|(field, seen)| {
        if seen < count { Arc::new(field.as_ref().clone().with_nullable(true)) } else { field }
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>())))
}

/// Whether every value of `from` has an equal in `to`, and the order of values is kept.
pub(crate) fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Decimal128, Decimal256, Float16, Float32, Float64,
        Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, Null, Timestamp, UInt8, UInt16, UInt32,
        UInt64, Utf8, Utf8View,
    };
    let digits = |t: &DataType| match t {
        Int8 | UInt8 => Some(3),
        Int16 | UInt16 => Some(5),
        Int32 | UInt32 => Some(10),
        Int64 => Some(19),
        UInt64 => Some(20),
        _ => None,
    };
    match (from, to) {
        (Null, _) => true,
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64) => true,
        (Int16, Int32 | Int64 | Float32 | Float64) => true,
        (Int32, Int64 | Float64) => true,
        (UInt8, UInt16 | UInt32 | UInt64 | Int16 | Int32 | Int64 | Float32 | Float64) => true,
        (UInt16, UInt32 | UInt64 | Int32 | Int64 | Float32 | Float64) => true,
        (UInt32, UInt64 | Int64 | Float64) => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Utf8 | LargeUtf8, Utf8View) | (Binary | LargeBinary, BinaryView) => true,
        (Date32, Timestamp(TimeUnit::Second | TimeUnit::Millisecond, None)) => true,
        (Decimal128(p, s), Decimal128(q, t) | Decimal256(q, t)) => {
            s <= t && i16::from(*p) - i16::from(*s) <= i16::from(*q) - i16::from(*t)
        }
        (int, Decimal128(p, s)) if *s >= 0 => {
            digits(int).is_some_and(|d| d <= i16::from(*p) - i16::from(*s))
        }
        (Boolean, _) => false,
        _ => false,
    }
}

/// The types in which columns are handed on: strings and binaries as views (gathering moves 16
/// bytes, not the text), decimals as the functions want them; no dictionaries or runs, which are
/// forms and not types.
pub(crate) fn table_type(stored: &DataType) -> DataType {
    match stored {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, value) => table_type(value),
        DataType::RunEndEncoded(_, value) => table_type(value.data_type()),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        other => other.clone(),
    }
}

/// `path: error`, with the kind of error kept.
pub(crate) fn named(path: &str, error: DataFusionError) -> DataFusionError {
    error.context(path.to_owned())
}
