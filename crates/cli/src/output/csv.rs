//! Comma- and tab-separated values: a header line, NULL as an empty field, an empty string as `""`.

use super::{ResultWriter, values_as_text};
use crate::error::{Result, Stop};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::ArrayFormatter;
use std::fmt::Write as _;
use std::io::Write;

/// Writes rows as they come.
#[derive(Debug)]
pub(crate) struct CsvWriter {
    delimiter: u8,
    /// The header, until it is written.
    schema: Option<SchemaRef>,
    /// Bytes of the batch at hand, and one field's text; both kept for their capacity.
    buffer: Vec<u8>,
    field: String,
}

impl CsvWriter {
    /// A writer that puts `delimiter` between fields.
    pub(crate) fn new(schema: &SchemaRef, delimiter: u8) -> Self {
        let schema = Some(SchemaRef::clone(schema));
        CsvWriter { delimiter, schema, buffer: vec![], field: String::new() }
    }

    fn header(&mut self) {
        let Some(schema) = self.schema.take() else { return };
        for (i, field) in schema.fields().iter().enumerate() {
            if i > 0 {
                self.buffer.push(self.delimiter);
            }
            push_quoted(&mut self.buffer, field.name(), self.delimiter);
        }
        self.buffer.push(b'\n');
    }

    fn rows(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        let options = values_as_text();
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<std::result::Result<_, _>>()?;
        // A column of type NULL has no validity bitmap, nor has a NULL that a dictionary refers to.
        let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
        for row in 0..batch.num_rows() {
            for (i, column) in columns.iter().enumerate() {
                if i > 0 {
                    self.buffer.push(self.delimiter);
                }
                if nulls[i].as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    continue;
                }
                self.field.clear();
                write!(self.field, "{}", column.value(row))
                    .map_err(|_| ArrowError::CsvError(format!("row {row} cannot be written")))?;
                push_quoted(&mut self.buffer, &self.field, self.delimiter);
            }
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        let result = out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(result?)
    }
}

impl ResultWriter for CsvWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        self.header();
        self.rows(batch).map_err(|e| Stop::failed(e.to_string()))?;
        self.flush(out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        self.header();
        self.flush(out)
    }
}

/// Appends `text`, in quotes where a reader would otherwise take it for something else.
fn push_quoted(buffer: &mut Vec<u8>, text: &str, delimiter: u8) {
    let special = |b: u8| b == delimiter || matches!(b, b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.bytes().any(special) {
        buffer.extend_from_slice(text.as_bytes());
        return;
    }
    buffer.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            buffer.push(b'"');
        }
        buffer.push(byte);
    }
    buffer.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, text};
    use crate::args::Format;
    use arrow::array::{
        ArrayRef, DictionaryArray, Int32Array, NullArray, RecordBatch, StringArray,
    };
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    #[test]
    fn fields() {
        let batch = batch();
        let expected = "id,s,x,d,t,yes\n\
                        1,\"a \"\"b\"\",\n|c\",1.5,-12.34,1970-01-01 00:00:01.500,true\n\
                        ,\"\",,0.05,,\n";
        assert_eq!(text(Format::Csv, std::slice::from_ref(&batch), &batch.schema()), expected);
        let slices = [batch.slice(0, 1), batch.slice(1, 1)];
        assert_eq!(text(Format::Csv, &slices, &batch.schema()), expected);
    }

    #[test]
    fn tabs() {
        let batch = batch().project(&[0, 4]).unwrap();
        let expected = "id\tt\n1\t1970-01-01 00:00:01.500\n\t\n";
        assert_eq!(text(Format::Tsv, std::slice::from_ref(&batch), &batch.schema()), expected);
    }

    /// NULLs that no validity bitmap of the column's own shows.
    #[test]
    fn nulls_of_all_kinds_are_empty_fields() {
        let words = StringArray::from(vec![Some("a"), None, Some("")]);
        let keys = Int32Array::from(vec![1, 0, 2]);
        let codes = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(words)).unwrap();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(NullArray::new(3))), ("c", Arc::new(codes))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let expected = "n,c\n,\n,a\n,\"\"\n";
        assert_eq!(text(Format::Csv, std::slice::from_ref(&batch), &batch.schema()), expected);
    }

    #[test]
    fn no_rows() {
        assert_eq!(text(Format::Csv, &[], &batch().schema()), "id,s,x,d,t,yes\n");
    }
}
