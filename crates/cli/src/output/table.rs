//! Tables for readers: boxes of text, or Markdown. Both need all rows before the first line, since
//! the widest value sets a column's width.

use super::{ResultWriter, values_as_text};
use crate::error::{Result, Stop};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::ArrayFormatter;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use std::io::Write;

/// The frame of a plain table, in comfy-table's order of parts.
const FRAME: &str = "||--+-++|    ++++++";

/// Collects rows and writes one table.
#[derive(Debug)]
pub(crate) struct TableWriter {
    table: Table,
    rows: usize,
    markdown: bool,
}

impl TableWriter {
    /// A box with a line that counts the rows.
    pub(crate) fn plain(schema: &SchemaRef) -> Self {
        Self::new(schema, false)
    }

    /// A Markdown table.
    pub(crate) fn markdown(schema: &SchemaRef) -> Self {
        Self::new(schema, true)
    }

    fn new(schema: &SchemaRef, markdown: bool) -> Self {
        let mut table = Table::new();
        table.load_preset(if markdown { ASCII_MARKDOWN } else { FRAME });
        table.set_content_arrangement(ContentArrangement::Disabled);
        let cell = |name: &String| if markdown { escaped(name) } else { name.clone() };
        table.set_header(schema.fields().iter().map(|f| cell(f.name())));
        for (field, column) in schema.fields().iter().zip(table.column_iter_mut()) {
            if field.data_type().is_numeric() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        TableWriter { table, rows: 0, markdown }
    }

    fn rows(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        let options = values_as_text().with_null("NULL");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<std::result::Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(columns.len());
            for column in &columns {
                let text = column.value(row).try_to_string()?;
                cells.push(Cell::new(if self.markdown { escaped(&text) } else { text }));
            }
            self.table.add_row(cells);
        }
        self.rows += batch.num_rows();
        Ok(())
    }
}

impl ResultWriter for TableWriter {
    fn write(&mut self, batch: &RecordBatch, _: &mut dyn Write) -> Result<()> {
        self.rows(batch).map_err(|e| Stop::failed(e.to_string()))
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        for line in self.table.lines() {
            writeln!(out, "{line}")?;
        }
        if !self.markdown {
            let noun = if self.rows == 1 { "row" } else { "rows" };
            writeln!(out, "({} {noun})", self.rows)?;
        }
        Ok(())
    }
}

/// Text that stays inside its Markdown cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace("\r\n", "<br>").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, text};
    use crate::args::Format;

    #[test]
    fn plain() {
        let batch = batch().project(&[0, 1, 3]).unwrap();
        let expected = "\
+------+--------+--------+
|   id | s      |      d |
+------+--------+--------+
|    1 | a \"b\", | -12.34 |
|      | |c     |        |
| NULL |        |   0.05 |
+------+--------+--------+
(2 rows)
";
        assert_eq!(text(Format::Table, std::slice::from_ref(&batch), &batch.schema()), expected);
        assert!(text(Format::Table, &[batch.slice(0, 1)], &batch.schema()).ends_with("(1 row)\n"));
        assert!(text(Format::Table, &[], &batch.schema()).ends_with("(0 rows)\n"));
    }

    #[test]
    fn markdown() {
        let batch = batch().project(&[0, 1]).unwrap();
        let expected = "\
|   id | s             |
|------|---------------|
|    1 | a \"b\",<br>\\|c |
| NULL |               |
";
        assert_eq!(text(Format::Markdown, std::slice::from_ref(&batch), &batch.schema()), expected);
    }
}
