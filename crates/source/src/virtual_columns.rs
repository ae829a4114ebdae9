//! Columns that no file stores: a row's index within its file, and the file's name.
//!
//! They follow the stored columns in a source's table schema, so a projection, a filter or a
//! pruning bound refers to them by index like to any other column; nothing is evaluated per row.

use crate::file_source::SourceFile;
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};
use planish_batch::Column;
use std::sync::Arc;

/// The column that `file_row_index()` stands for: 0 for a file's first row.
pub const FILE_ROW_INDEX: &str = "__planish_file_row_index";

/// The column that `input_file_name()` stands for.
pub const INPUT_FILE_NAME: &str = "__planish_input_file_name";

/// How many there are.
const COUNT: usize = 2;

/// `stored` and the virtual columns: the row index, then the name.
pub(crate) fn with_virtual_columns(stored: &Schema) -> SchemaRef {
    let mut fields = stored.fields().to_vec();
    fields.push(Arc::new(Field::new(FILE_ROW_INDEX, DataType::Int64, false)));
    fields.push(Arc::new(Field::new(INPUT_FILE_NAME, DataType::Utf8, false)));
    Arc::new(Schema::new_with_metadata(fields, stored.metadata().clone()))
}

/// The schema of the stored columns, given the one of all.
pub(crate) fn stored_schema(all: &Schema) -> SchemaRef {
    let stored = all.fields().len() - COUNT;
    Arc::new(Schema::new_with_metadata(all.fields()[..stored].to_vec(), all.metadata().clone()))
}

/// A batch's rows in their file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRows<'a> {
    /// What the file is called.
    pub(crate) path: &'a str,
    /// Number of rows.
    pub(crate) len: usize,
    /// Where they are in the file.
    pub(crate) positions: Positions<'a>,
}

/// Which rows of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Positions<'a> {
    /// Consecutive ones.
    From(u64),
    /// Those at the places in `array[offset..]`.
    Listed(&'a Int64Array, usize),
}

impl FileRows<'_> {
    /// The values of `file_row_index()`.
    pub(crate) fn indices(&self) -> Column {
        let array = match self.positions {
            Positions::From(start) => {
                (start as i64..start as i64 + self.len as i64).collect::<Int64Array>()
            }
            Positions::Listed(array, offset) => array.slice(offset, self.len),
        };
        Column::flat(Arc::new(array))
    }

    /// The values of `input_file_name()`.
    pub(crate) fn names(&self) -> Column {
        Column::constant(ScalarValue::Utf8(Some(self.path.to_owned())), self.len)
    }
}

/// Statistics of the virtual columns of `files`, given the rows of each where they are known.
pub(crate) fn statistics(files: &[Arc<SourceFile>], rows: &[Option<u64>]) -> [ColumnStatistics; 2] {
    let mut index = ColumnStatistics::new_unknown();
    let mut name = ColumnStatistics::new_unknown();
    index.null_count = Precision::Exact(0);
    name.null_count = Precision::Exact(0);
    let longest =
        rows.iter().copied().collect::<Option<Vec<u64>>>().and_then(|rows| rows.into_iter().max());
    if let Some(longest @ 1..) = longest {
        index.min_value = Precision::Exact(ScalarValue::Int64(Some(0)));
        index.max_value = Precision::Exact(ScalarValue::Int64(Some(longest as i64 - 1)));
        index.distinct_count = Precision::Inexact(longest as usize);
    }
    name.distinct_count = Precision::Inexact(files.len().max(1));
    [index, name]
}

/// Fills in what is known of the virtual columns of `files`, of `rows` rows each where they are
/// counted; they are the last columns of `statistics`.
pub(crate) fn add_statistics(
    statistics: &mut Statistics,
    files: &[Arc<SourceFile>],
    rows: &[Option<u64>],
) {
    let stored = statistics.column_statistics.len().saturating_sub(COUNT);
    statistics.column_statistics.truncate(stored);
    statistics.column_statistics.extend(self::statistics(files, rows));
}

/// Least and greatest row index of each row group, given the rows of each.
pub(crate) fn index_bounds(rows: &[u64]) -> (ArrayRef, ArrayRef) {
    let mut first = 0i64;
    let mut bounds = (vec![], vec![]);
    for rows in rows {
        bounds.0.push(first);
        first += *rows as i64;
        bounds.1.push((first - 1).max(bounds.0[bounds.0.len() - 1]));
    }
    (Arc::new(Int64Array::from(bounds.0)), Arc::new(Int64Array::from(bounds.1)))
}

/// The file's name as a bound of each of `groups` row groups.
pub(crate) fn name_bounds(path: &str, groups: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(path, groups)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    #[test]
    fn bounds_of_row_groups_follow_each_other() {
        let (min, max) = index_bounds(&[3, 0, 2]);
        assert_eq!(min.as_primitive::<Int64Type>().values(), &[0, 3, 3]);
        assert_eq!(max.as_primitive::<Int64Type>().values(), &[2, 3, 4]);
    }

    #[test]
    fn virtual_columns_follow_the_stored_ones() {
        let stored = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let all = with_virtual_columns(&stored);
        assert_eq!(all.fields().len(), 1 + COUNT);
        assert_eq!(*stored_schema(&all), stored);
    }
}
