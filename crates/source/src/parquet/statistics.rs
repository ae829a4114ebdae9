//! What footers say of columns: bounds per row group, and statistics of whole tables.
//!
//! Bounds are used only where they can be trusted: a column order defined by its type, or old
//! fields of signed numbers; never INT96, never NaN.

use super::metadata::{ParquetFileMetadata, parquet_error};
use crate::adapt::{FileColumn, widen};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, Result, ScalarValue};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{ColumnOrder, LogicalType, SortOrder, Type as PhysicalType};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use std::sync::Arc;

/// Bounds of one column in each row group of a file. A value that is NULL is unknown.
#[derive(Debug)]
pub(crate) struct ColumnBounds {
    /// No value is less; NULLs and NaNs aside.
    pub(crate) min: ArrayRef,
    /// No value is greater; NULLs and NaNs aside.
    pub(crate) max: ArrayRef,
    /// Whether the least value occurs.
    pub(crate) min_exact: Vec<bool>,
    /// Whether the greatest value occurs.
    pub(crate) max_exact: Vec<bool>,
    /// NULLs per row group.
    pub(crate) null_count: Vec<Option<u64>>,
    /// Bytes per row group, uncompressed.
    pub(crate) bytes: Vec<u64>,
}

impl ColumnBounds {
    /// The bounds of root column `column`.
    pub(crate) fn of(file: &ParquetFileMetadata, column: usize) -> Result<Self> {
        let metadata = file.parquet();
        let groups = metadata.row_groups();
        let field = file.schema.field(column);
        let Some(leaf) = file.flat_leaves[column] else {
            return Ok(Self::unknown(file, column));
        };
        let descr = metadata.file_metadata().schema_descr();
        let converter = StatisticsConverter::from_column_index(leaf, field, descr)
            .map_err(parquet_error)?
            .with_missing_null_counts_as_zero(false);
        let trusted: BooleanArray =
            groups.iter().map(|group| Some(trusts_bounds(metadata, group, leaf))).collect();
        let bounds = |array: ArrayRef| -> Result<ArrayRef> {
            if array.data_type() != field.data_type() || array.len() != groups.len() {
                return Ok(new_null_array(field.data_type(), groups.len()));
            }
            let array = without(&array, &arrow::compute::not(&trusted)?)?;
            without_nan(&array)
        };
        let exact = |flags: BooleanArray| -> Vec<bool> {
            flags.iter().map(|flag| flag == Some(true)).collect()
        };
        let required = descr.column(leaf).max_def_level() == 0;
        let null_count = converter.row_group_null_counts(groups).map_err(parquet_error)?;
        Ok(ColumnBounds {
            min: bounds(converter.row_group_mins(groups).map_err(parquet_error)?)?,
            max: bounds(converter.row_group_maxes(groups).map_err(parquet_error)?)?,
            min_exact: exact(
                converter.row_group_is_min_value_exact(groups).map_err(parquet_error)?,
            ),
            max_exact: exact(
                converter.row_group_is_max_value_exact(groups).map_err(parquet_error)?,
            ),
            null_count: null_count
                .iter()
                .map(|count| if required { Some(0) } else { count })
                .collect(),
            bytes: bytes_of(file, column),
        })
    }

    fn unknown(file: &ParquetFileMetadata, column: usize) -> Self {
        let groups = file.parquet().num_row_groups();
        let nothing = new_null_array(file.schema.field(column).data_type(), groups);
        ColumnBounds {
            min: Arc::clone(&nothing),
            max: nothing,
            min_exact: vec![false; groups],
            max_exact: vec![false; groups],
            null_count: vec![None; groups],
            bytes: bytes_of(file, column),
        }
    }
}

fn bytes_of(file: &ParquetFileMetadata, column: usize) -> Vec<u64> {
    let metadata = file.parquet();
    let descr = metadata.file_metadata().schema_descr();
    let leaves: Vec<usize> =
        (0..descr.num_columns()).filter(|&l| descr.get_column_root_idx(l) == column).collect();
    let of_group = |group: &RowGroupMetaData| {
        leaves.iter().map(|&l| group.column(l).uncompressed_size().max(0) as u64).sum()
    };
    metadata.row_groups().iter().map(of_group).collect()
}

/// Whether the bounds of `leaf` in `group` mean what they seem to.
fn trusts_bounds(metadata: &ParquetMetaData, group: &RowGroupMetaData, leaf: usize) -> bool {
    let Some(statistics) = group.column(leaf).statistics() else { return false };
    let column = metadata.file_metadata().schema_descr().column(leaf);
    if column.physical_type() == PhysicalType::INT96 {
        return false;
    }
    if statistics.is_min_max_deprecated() {
        // Written before orders were defined: compared as signed, whatever the type.
        let signed = matches!(
            column.physical_type(),
            PhysicalType::INT32 | PhysicalType::INT64 | PhysicalType::BOOLEAN
        );
        let unsigned_type = matches!(
            column.logical_type_ref(),
            Some(LogicalType::Integer(int)) if !int.is_signed
        ) || matches!(
            column.converted_type(),
            parquet::basic::ConvertedType::UINT_8
                | parquet::basic::ConvertedType::UINT_16
                | parquet::basic::ConvertedType::UINT_32
                | parquet::basic::ConvertedType::UINT_64
        );
        return signed && !unsigned_type;
    }
    let orders = metadata.file_metadata().column_orders();
    match orders.and_then(|orders| orders.get(leaf)) {
        Some(ColumnOrder::TYPE_DEFINED_ORDER(order)) => *order != SortOrder::UNDEFINED,
        _ => false,
    }
}

fn without(array: &ArrayRef, unknown: &BooleanArray) -> Result<ArrayRef> {
    Ok(if unknown.true_count() == 0 { Arc::clone(array) } else { nullif(array, unknown)? })
}

/// A bound that is NaN bounds nothing.
fn without_nan(array: &ArrayRef) -> Result<ArrayRef> {
    let nan: BooleanArray = match array.data_type() {
        DataType::Float16 => {
            array.as_primitive::<Float16Type>().iter().map(|v| v.map(|v| v.is_nan())).collect()
        }
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|v| v.map(f32::is_nan)).collect()
        }
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().iter().map(|v| v.map(f64::is_nan)).collect()
        }
        _ => return Ok(Arc::clone(array)),
    };
    without(array, &nan)
}

/// Statistics of one table column over many files.
#[derive(Debug)]
pub(crate) struct ColumnSummary {
    data_type: DataType,
    null_count: Option<u64>,
    min: Bound,
    max: Bound,
    bytes: u64,
}

/// A bound over all files so far.
#[derive(Debug)]
enum Bound {
    /// No value seen yet.
    Empty,
    Known(ScalarValue, bool),
    Unknown,
}

impl ColumnSummary {
    pub(crate) fn new(data_type: DataType) -> Self {
        ColumnSummary {
            data_type,
            null_count: Some(0),
            min: Bound::Empty,
            max: Bound::Empty,
            bytes: 0,
        }
    }

    /// Adds what `file`'s footer says; `column` is where the table column comes from.
    pub(crate) fn add(&mut self, file: &ParquetFileMetadata, column: FileColumn) -> Result<()> {
        let groups = file.parquet().num_row_groups();
        let Some(index) = column.index() else {
            let rows: usize = (0..groups).map(|g| file.rows(g)).sum();
            self.null_count = self.null_count.map(|n| n + rows as u64);
            return Ok(());
        };
        let bounds = file.bounds(index)?;
        self.bytes += bounds.bytes.iter().sum::<u64>();
        let cast = |array: &ArrayRef| match column {
            FileColumn::Widened(_) => widen(array, &self.data_type),
            _ => Ok(Arc::clone(array)),
        };
        let (min, max) = (cast(&bounds.min)?, cast(&bounds.max)?);
        // A float column may hold NaN, which bounds leave out, and -0.0 under a bound of 0.0.
        let float = self.data_type.is_floating();
        for group in 0..groups {
            let nulls = bounds.null_count[group];
            self.null_count = self.null_count.zip(nulls).map(|(a, b)| a + b);
            if nulls == Some(file.rows(group) as u64) {
                continue;
            }
            let exact = !float && bounds.min_exact[group];
            self.min.add(&min, group, exact, std::cmp::Ordering::Less)?;
            let exact = !float && bounds.max_exact[group];
            self.max.add(&max, group, exact, std::cmp::Ordering::Greater)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> ColumnStatistics {
        let count = |n: Option<u64>| n.map_or(Precision::Absent, |n| Precision::Exact(n as usize));
        let mut out = ColumnStatistics::new_unknown();
        out.null_count = count(self.null_count);
        out.min_value = self.min.finish();
        out.max_value = self.max.finish();
        out.byte_size = Precision::Inexact(self.bytes as usize);
        out
    }
}

impl Bound {
    fn add(
        &mut self,
        array: &ArrayRef,
        group: usize,
        exact: bool,
        wins: std::cmp::Ordering,
    ) -> Result<()> {
        if matches!(self, Bound::Unknown) {
            return Ok(());
        }
        if array.is_null(group) {
            *self = Bound::Unknown;
            return Ok(());
        }
        let value = ScalarValue::try_from_array(array, group)?;
        *self = match std::mem::replace(self, Bound::Unknown) {
            Bound::Known(known, known_exact) => match value.partial_cmp(&known) {
                // An inexact bound that loses may stand for a value that wins less clearly, but
                // never for one beyond the winner.
                Some(order) if order == wins => Bound::Known(value, exact),
                Some(std::cmp::Ordering::Equal) => Bound::Known(known, known_exact || exact),
                Some(_) => Bound::Known(known, known_exact),
                None => Bound::Unknown,
            },
            _ => Bound::Known(value, exact),
        };
        Ok(())
    }

    fn finish(self) -> Precision<ScalarValue> {
        match self {
            Bound::Known(value, true) => Precision::Exact(value),
            Bound::Known(value, false) => Precision::Inexact(value),
            Bound::Empty | Bound::Unknown => Precision::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, RecordBatch, StringArray, UInt32Array};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{FileMetaData, ParquetMetaDataReader};
    use parquet::file::statistics::Statistics as Stored;

    fn written() -> ParquetMetaData {
        let batch = RecordBatch::try_from_iter([
            ("i", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
            ("u", Arc::new(UInt32Array::from(vec![1, u32::MAX]))),
            ("s", Arc::new(StringArray::from(vec!["a", "b"]))),
        ])
        .unwrap();
        let mut bytes = vec![];
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes)).unwrap()
    }

    fn trusted(metadata: &ParquetMetaData) -> Vec<bool> {
        let group = metadata.row_group(0);
        (0..3).map(|leaf| trusts_bounds(metadata, group, leaf)).collect()
    }

    /// The same footer, as written before column orders were.
    fn without_orders(
        metadata: &ParquetMetaData,
        groups: Vec<RowGroupMetaData>,
    ) -> ParquetMetaData {
        let file = metadata.file_metadata();
        let schema = file.schema_descr_ptr();
        ParquetMetaData::new(FileMetaData::new(1, 2, None, None, schema, None), groups)
    }

    #[test]
    fn bounds_without_an_order_are_not_trusted() {
        let metadata = written();
        assert_eq!(trusted(&metadata), [true, true, true]);
        let groups = metadata.row_groups().to_vec();
        assert_eq!(trusted(&without_orders(&metadata, groups)), [false, false, false]);
    }

    #[test]
    fn old_bounds_are_trusted_for_signed_numbers_only() {
        let metadata = written();
        let old = [
            Stored::int32(Some(1), Some(2), None, Some(0), true),
            Stored::int32(Some(-1), Some(1), None, Some(0), true),
            Stored::byte_array(Some("a".into()), Some("b".into()), None, Some(0), true),
        ];
        let mut group = metadata.row_group(0).clone().into_builder();
        let columns = metadata.row_group(0).columns().iter().zip(old);
        group = group.set_column_metadata(
            columns
                .map(|(c, old)| c.clone().into_builder().set_statistics(old).build().unwrap())
                .collect(),
        );
        let old = without_orders(&metadata, vec![group.build().unwrap()]);
        assert_eq!(trusted(&old), [true, false, false]);
    }
}
