//! CSV scans.

use crate::common::*;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion_common::Result;
use planish_source::{CsvOptions, FileFormat, FileFormatOptions, FileTable};
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

async fn read_with(path: &Path, options: FileFormatOptions) -> Result<(FileTable, Vec<String>)> {
    let table = FileTable::try_new(vec![path.display().to_string()], options).await?;
    let options = options_of(3);
    let plan = table.scan(None, &options)?;
    let rows = run(&plan, &options).await?;
    Ok((table, rows))
}

fn options_of(batch_size: usize) -> datafusion_common::config::ConfigOptions {
    options(2, batch_size)
}

async fn read(text: &str, csv: CsvOptions) -> Result<(FileTable, Vec<String>)> {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    read_with(&path, FileFormatOptions { csv, ..FileFormatOptions::default() }).await
}

fn types(table: &FileTable) -> Vec<DataType> {
    table.schema().fields().iter().map(|f| f.data_type().clone()).collect()
}

#[tokio::test]
async fn types_are_guessed() {
    let text = "i,f,b,d,t,ms,s,n,big\n\
                1,1.5,true,2024-02-29,2024-01-01 10:00:00,2024-01-01T10:00:00.123,x,,99999999999999999999\n\
                -2,3,FALSE,1066-10-14,1066-10-14 09:00:00,2024-01-01T10:00:00,1,,1\n";
    let (table, rows) = read(text, CsvOptions::default()).await.unwrap();
    assert_eq!(
        types(&table),
        [
            DataType::Int64,
            DataType::Float64,
            DataType::Boolean,
            DataType::Date32,
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Utf8View,
            DataType::Utf8View,
            DataType::Utf8View,
        ]
    );
    assert_eq!(
        rows,
        [
            "1|1.5|true|2024-02-29|2024-01-01T10:00:00|2024-01-01T10:00:00.123|x|NULL|99999999999999999999",
            "-2|3.0|false|1066-10-14|1066-10-14T09:00:00|2024-01-01T10:00:00|1|NULL|1",
        ]
    );
}

#[tokio::test]
async fn quotes_newlines_and_empty_strings() {
    let text = "a,b,c\r\n\"x, y\",\"say \"\"hi\"\"\",1\r\n\"two\nlines\",\"\",2\r\n,end,\r\n";
    let (_, rows) = read(text, CsvOptions::default()).await.unwrap();
    assert_eq!(rows, ["x, y|say \"hi\"|1", "two\nlines||2", "NULL|end|NULL"]);
}

#[tokio::test]
async fn byte_order_marks_comments_and_blank_lines_are_skipped() {
    let csv = CsvOptions { comment: Some(b'#'), ..CsvOptions::default() };
    let (table, rows) = read("\u{feff}a,b\n# no\n1,2\n\n3,4", csv).await.unwrap();
    assert_eq!(table.schema().field(0).name(), "a");
    assert_eq!(rows, ["1|2", "3|4"]);
}

#[tokio::test]
async fn other_dialects() {
    let csv = CsvOptions {
        delimiter: b'|',
        quote: Some(b'\''),
        escape: Some(b'\\'),
        has_header: false,
        null_value: Some("\\N".to_owned()),
        ..CsvOptions::default()
    };
    let (table, rows) = read("1|'it\\'s'|\\N\n2||'\\\\N'\n", csv).await.unwrap();
    assert_eq!(table.schema().field(2).name(), "column_3");
    assert_eq!(rows, ["1|it's|NULL", "2||\\N"]);
}

#[tokio::test]
async fn records_of_another_width_are_errors_with_a_line() {
    for text in ["a,b\n1,2\n3\n", "a,b\n1,2\n3,4,5\n"] {
        let error = read(text, CsvOptions::default()).await.unwrap_err().to_string();
        assert!(error.contains("t.csv, line 3"), "{error}");
        assert!(error.contains("where 2 are expected"), "{error}");
    }
    let error = read("a\n\"never ends", CsvOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[tokio::test]
async fn a_value_of_another_type_is_an_error_with_file_and_line() {
    let mut text = "a\n".to_owned();
    for i in 0..2000 {
        text += &format!("{i}\n");
    }
    text += "oops\n";
    let error = read(&text, CsvOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("t.csv, line 2002"), "{error}");
    assert!(error.contains("'oops'"), "{error}");
}

#[tokio::test]
async fn records_longer_than_a_block_and_many_blocks() {
    let long = "x".repeat(3 << 20);
    let mut text = "id,s\n".to_owned();
    for i in 0..50_000 {
        text += &format!("{i},\"line\none {i}\"\n");
    }
    text += &format!("50000,\"{long}\"\n50001,end\n");
    let (_, rows) = read(&text, CsvOptions::default()).await.unwrap();
    assert_eq!(rows.len(), 50_002);
    for (i, row) in rows[..50_000].iter().enumerate() {
        assert_eq!(*row, format!("{i}|line\none {i}"));
    }
    assert_eq!(rows[50_000].len(), long.len() + 6);
}

#[tokio::test]
async fn declared_columns_and_headers_in_another_order() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("1.csv"), "a,b\n1,x\n").unwrap();
    std::fs::write(dir.path().join("2.csv"), "b,a\ny,2\n").unwrap();
    std::fs::write(dir.path().join("3.csv"), "a\n3\n").unwrap();
    let (_, mut rows) = read_with(dir.path(), FileFormatOptions::default()).await.unwrap();
    rows.sort();
    assert_eq!(rows, ["1|x", "2|y", "3|NULL"]);
    let schema = Schema::new(vec![
        Field::new("a", DataType::Decimal128(5, 2), true),
        Field::new("b", DataType::Utf8, true),
    ]);
    let options =
        FileFormatOptions { schema: Some(Arc::new(schema)), ..FileFormatOptions::default() };
    let (table, mut rows) = read_with(dir.path(), options.clone()).await.unwrap();
    assert_eq!(types(&table)[1], DataType::Utf8View);
    rows.sort();
    assert_eq!(rows, ["1.00|x", "2.00|y", "3.00|NULL"]);
    let path = dir.path().join("other.csv");
    std::fs::write(&path, "p,q\n9,z\n").unwrap();
    let (_, rows) = read_with(&path, options).await.unwrap();
    assert_eq!(rows, ["9.00|z"], "other names, as many columns: by position");
}

#[tokio::test]
async fn projections_of_csv_and_counting() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "a,b\n1,x\n2,y\n").unwrap();
    let table = FileTable::try_new(vec![path.display().to_string()], FileFormatOptions::default())
        .await
        .unwrap();
    let options = options_of(8192);
    let plan = table.scan(Some(&[1, 0, 1]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["x|1|x", "y|2|y"]);
    let plan = table.scan(Some(&[]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_tbl_file_needs_its_format_named() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.tbl");
    std::fs::write(&path, "1|2\n").unwrap();
    let error = read_with(&path, FileFormatOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("t.tbl"), "{error}");
    let csv = CsvOptions { delimiter: b'|', has_header: false, ..CsvOptions::default() };
    let options =
        FileFormatOptions { format: Some(FileFormat::Csv), csv, ..FileFormatOptions::default() };
    let (_, rows) = read_with(&path, options).await.unwrap();
    assert_eq!(rows, ["1|2"]);
}
