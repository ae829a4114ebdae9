//! JSON: an array of objects, or one object per line. NULL is `null`.

use super::ResultWriter;
use crate::error::{Result, Stop};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonFormat, LineDelimited};
use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

/// Writes rows as they come.
#[derive(Debug)]
pub(crate) struct JsonWriter {
    /// The schema under names that are unique, as the keys of an object should be.
    schema: SchemaRef,
    array: bool,
    started: bool,
}

impl JsonWriter {
    /// One array of all rows, a row a line.
    pub(crate) fn array(schema: &SchemaRef) -> Self {
        JsonWriter { schema: unique_names(schema), array: true, started: false }
    }

    /// One row a line.
    pub(crate) fn lines(schema: &SchemaRef) -> Self {
        JsonWriter { schema: unique_names(schema), array: false, started: false }
    }

    fn encode(&self, batch: &RecordBatch) -> std::result::Result<Vec<u8>, ArrowError> {
        let batch = RecordBatch::try_new(SchemaRef::clone(&self.schema), batch.columns().to_vec())?;
        let options = WriterBuilder::new().with_explicit_nulls(true);
        let mut bytes = vec![];
        if self.array {
            let mut writer = options.build::<_, ArrayRows>(&mut bytes);
            writer.write(&batch)?;
            writer.finish()?;
        } else {
            let mut writer = options.build::<_, LineDelimited>(&mut bytes);
            writer.write(&batch)?;
            writer.finish()?;
        }
        Ok(bytes)
    }
}

impl ResultWriter for JsonWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let bytes = self.encode(batch).map_err(|e| Stop::failed(e.to_string()))?;
        if self.array {
            out.write_all(if self.started { b",\n" } else { b"[" })?;
        }
        self.started = true;
        Ok(out.write_all(&bytes)?)
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        match (self.array, self.started) {
            (true, true) => Ok(out.write_all(b"]\n")?),
            (true, false) => Ok(out.write_all(b"[]\n")?),
            (false, _) => Ok(()),
        }
    }
}

/// The rows of one batch, without the brackets around all batches.
#[derive(Debug, Default)]
struct ArrayRows;

impl JsonFormat for ArrayRows {
    fn start_row<W: Write>(
        &self,
        writer: &mut W,
        is_first_row: bool,
    ) -> std::result::Result<(), ArrowError> {
        if !is_first_row {
            writer.write_all(b",\n")?;
        }
        Ok(())
    }
}

/// The schema with `_1`, `_2`... after names that came before (`SELECT * FROM a JOIN b ...`).
fn unique_names(schema: &SchemaRef) -> SchemaRef {
    let mut taken: HashSet<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let mut seen = HashSet::new();
    let mut unique = |field: &Arc<Field>| {
        if seen.insert(field.name().clone()) {
            return field.as_ref().clone();
        }
        let fresh = (1..).map(|n| format!("{}_{n}", field.name()));
        let name = fresh.into_iter().find(|name| taken.insert(name.clone()));
        field.as_ref().clone().with_name(name.unwrap_or_default())
    };
    let fields: Vec<Field> = schema.fields().iter().map(&mut unique).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, text};
    use super::*;
    use crate::args::Format;
    use arrow::datatypes::DataType;

    const FIRST: &str = r#"{"id":1,"s":"a \"b\",\n|c","x":1.5,"d":-12.34,"t":"1970-01-01T00:00:01.500","yes":true}"#;
    const SECOND: &str = r#"{"id":null,"s":"","x":null,"d":0.05,"t":null,"yes":null}"#;

    #[test]
    fn rows() {
        let batch = batch();
        let lines = format!("{FIRST}\n{SECOND}\n");
        assert_eq!(text(Format::Ndjson, std::slice::from_ref(&batch), &batch.schema()), lines);
        let array = format!("[{FIRST},\n{SECOND}]\n");
        assert_eq!(text(Format::Json, std::slice::from_ref(&batch), &batch.schema()), array);
        let slices = [batch.slice(0, 1), batch.slice(0, 0), batch.slice(1, 1)];
        assert_eq!(text(Format::Json, &slices, &batch.schema()), array);
        assert_eq!(text(Format::Ndjson, &slices, &batch.schema()), lines);
    }

    #[test]
    fn no_rows() {
        assert_eq!(text(Format::Json, &[], &batch().schema()), "[]\n");
        assert_eq!(text(Format::Ndjson, &[], &batch().schema()), "");
    }

    #[test]
    fn keys_are_unique() {
        let fields = ["a", "a", "a_1", "b", "a"].map(|n| Field::new(n, DataType::Int64, true));
        let unique = unique_names(&Arc::new(Schema::new(fields.to_vec())));
        let names: Vec<_> = unique.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_1", "b", "a_3"]);
    }
}
