//! The rows of EXPLAIN as plain text, where a table would be as wide as the widest plan node.

use super::ResultWriter;
use crate::error::Result;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use std::io::Write;

/// Writes each plan under its title.
#[derive(Debug)]
pub(crate) struct PlanWriter;

impl PlanWriter {
    /// Whether `schema` is that of EXPLAIN: a title and a text.
    pub(crate) fn fits(schema: &SchemaRef) -> bool {
        let fields = schema.fields().iter().map(|f| (f.name().as_str(), f.data_type()));
        fields.eq([("plan_type", &DataType::Utf8), ("plan", &DataType::Utf8)])
    }
}

impl ResultWriter for PlanWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let column = |i: usize| batch.column(i).as_string::<i32>().iter();
        for (title, text) in column(0).zip(column(1)) {
            writeln!(out, "{}:", title.unwrap_or_default())?;
            for line in text.unwrap_or_default().lines() {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::text;
    use super::*;
    use crate::args::Format;
    use arrow::array::{ArrayRef, StringArray};
    use std::sync::Arc;

    #[test]
    fn plans() {
        let strings = |s: [&str; 2]| Arc::new(StringArray::from(s.to_vec())) as ArrayRef;
        let titles = ("plan_type", strings(["logical_plan", "physical_plan"]));
        let plans = ("plan", strings(["Limit: 1\n  Scan", "Exec"]));
        let batch = RecordBatch::try_from_iter([titles, plans]).unwrap();
        let expected = "logical_plan:\n  Limit: 1\n    Scan\nphysical_plan:\n  Exec\n";
        assert_eq!(text(Format::Table, std::slice::from_ref(&batch), &batch.schema()), expected);
    }
}
