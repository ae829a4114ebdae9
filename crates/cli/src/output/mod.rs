//! How results are written, one file per form.

mod csv;
mod json;
mod plan;
mod table;

use crate::args::Format;
use crate::error::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{DurationFormat, FormatOptions};
use std::io::Write;

pub(crate) use csv::CsvWriter;
pub(crate) use json::JsonWriter;
pub(crate) use plan::PlanWriter;
pub(crate) use table::TableWriter;

/// Writes the result of one statement, batch by batch.
pub(crate) trait ResultWriter {
    /// Takes the next rows.
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()>;

    /// Ends the result. Called once, after all rows.
    fn finish(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// A writer of `format` for rows of `schema`.
pub(crate) fn writer(format: Format, schema: &SchemaRef) -> Box<dyn ResultWriter> {
    match format {
        Format::Table if PlanWriter::fits(schema) => Box::new(PlanWriter),
        Format::Table => Box::new(TableWriter::plain(schema)),
        Format::Markdown => Box::new(TableWriter::markdown(schema)),
        Format::Csv => Box::new(CsvWriter::new(schema, b',')),
        Format::Tsv => Box::new(CsvWriter::new(schema, b'\t')),
        Format::Json => Box::new(JsonWriter::array(schema)),
        Format::Ndjson => Box::new(JsonWriter::lines(schema)),
    }
}

/// How values become text in tables and CSV: dates and times as SQL writes them.
fn values_as_text<'a>() -> FormatOptions<'a> {
    FormatOptions::new()
        .with_display_error(false)
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_duration_format(DurationFormat::Pretty)
}

#[cfg(test)]
mod testing {
    use super::*;
    use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringArray};
    use arrow::array::{BooleanArray, TimestampMicrosecondArray};
    use std::sync::Arc;

    /// Two rows of several types, with NULLs, quotes and line ends.
    pub(super) fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from(vec![Some(1), None]))),
            ("s", Arc::new(StringArray::from(vec!["a \"b\",\n|c", ""]))),
            ("x", Arc::new(Float64Array::from(vec![Some(1.5), None]))),
            (
                "d",
                Arc::new(
                    Decimal128Array::from(vec![Some(-1234), Some(5)])
                        .with_precision_and_scale(9, 2)
                        .unwrap(),
                ),
            ),
            ("t", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]))),
            ("yes", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
            .unwrap()
    }

    /// What `format` makes of these batches.
    pub(super) fn text(format: Format, batches: &[RecordBatch], schema: &SchemaRef) -> String {
        let mut writer = writer(format, schema);
        let mut out = vec![];
        for batch in batches {
            writer.write(batch, &mut out).unwrap();
        }
        writer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}
