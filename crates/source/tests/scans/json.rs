//! JSON: objects one after the other or in an array, whatever the blocks and batches.

use crate::common::{cached, options, run, table};
use datafusion_common::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use planish_source::{FileTable, JsonOptions};
use std::fs;
use std::io::Write;
use std::path::Path;
use tempfile::tempdir;

/// Records with NULLs, nesting, and every character that means something.
fn records(n: usize) -> Vec<String> {
    let record = |i: usize| match i % 4 {
        0 => {
            format!(r#"{{"id": {i}, "s": "a,]}}[\" {i}", "x": {i}.5, "o": {{"k": [{i}, null]}}}}"#)
        }
        1 => format!(r#"{{"s": null, "id": {i}, "b": true}}"#),
        2 => format!("{{\n  \"id\": {i},\n  \"s\": \"ü{i}\",\n  \"o\": null\n}}"),
        _ => format!(r#"{{"id":{i},"o":{{"k":[]}},"unknown later":1}}"#),
    };
    (0..n).map(record).collect()
}

fn expected(n: usize) -> Vec<String> {
    let row = |i: usize| match i % 4 {
        0 => format!("{i}|a,]}}[\" {i}|{i}.5|{{k: [{i}, ]}}|NULL"),
        1 => format!("{i}|NULL|NULL|NULL|true"),
        2 => format!("{i}|ü{i}|NULL|NULL|NULL"),
        _ => format!("{i}|NULL|NULL|{{k: []}}|NULL"),
    };
    (0..n).map(row).collect()
}

async fn all(path: &Path, batch_size: usize) -> Result<Vec<String>> {
    let options = options(2, batch_size);
    let table = table(path).await?;
    let names = ["id", "s", "x", "o", "b"];
    let indices: Vec<usize> =
        names.iter().map(|name| table.schema().index_of(name).unwrap()).collect();
    run(&table.scan(Some(&indices), &options)?, &options).await
}

#[tokio::test]
async fn every_way_to_write_records_down_is_read() {
    let dir = tempdir().unwrap();
    for n in [4, 3000] {
        let records = records(n);
        let texts = [
            ("lines.ndjson", records.join("\n")),
            ("close.jsonl", records.join("")),
            ("array.json", format!("[{}]", records.join(","))),
            ("pretty.json", format!("\u{FEFF} [\n{}\n]\n", records.join(" ,\n"))),
        ];
        for (name, text) in texts {
            let path = dir.path().join(name);
            fs::write(&path, &text).unwrap();
            for batch_size in [1, 7, 8192] {
                assert_eq!(
                    all(&path, batch_size).await.unwrap(),
                    expected(n),
                    "{name} {batch_size}"
                );
            }
            let zipped = dir.path().join(format!("{name}.gz"));
            let mut gzip = GzEncoder::new(vec![], Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            fs::write(&zipped, gzip.finish().unwrap()).unwrap();
            assert_eq!(all(&zipped, 1000).await.unwrap(), expected(n), "{name}.gz");
            let zipped = dir.path().join(format!("{name}.zst"));
            fs::write(&zipped, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
            assert_eq!(all(&zipped, 1000).await.unwrap(), expected(n), "{name}.zst");
        }
    }
}

#[tokio::test]
async fn columns_of_many_files_meet_and_the_later_are_null_before() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.json"), r#"{"a": 1, "b": "x"}"#).unwrap();
    fs::write(dir.path().join("b.json"), r#"[{"c": [1], "a": 2.5}, {}]"#).unwrap();
    let options = options(4, 8192);
    let table = table(dir.path()).await.unwrap();
    let names: Vec<_> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let mut found = run(&table.scan(None, &options).unwrap(), &options).await.unwrap();
    found.sort();
    assert_eq!(found, ["1.0|x|NULL", "2.5|NULL|[1]", "NULL|NULL|NULL"]);
    let none = run(&table.scan(Some(&[]), &options).unwrap(), &options).await.unwrap();
    assert_eq!(none.len(), 3);
}

#[tokio::test]
async fn faults_name_the_file_and_the_record() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.json");
    for (text, part) in [
        ("{\"a\": 1}\n{\"a\": ", "is cut off after 1 record"),
        ("[{\"a\": 1}, {\"a\": 2}", "is cut off after 2 record"),
        ("{\"a\": 1}\n{a: 2}", "record 2"),
        ("[1, 2]", "record 1: a record is not an object"),
        ("{\"a\": 1}\n{\"a\": [1]}", "a is an object or a list in some records"),
        ("{\"a\": \"\u{1}\"}", "record 1"),
    ] {
        fs::write(&path, text).unwrap();
        let error = all_columns(&path, 1000).await.unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(part.starts_with("a is") || error.contains("t.json"), "{text}: {error}");
    }
    // What inference did not see.
    for (text, part) in [
        ("{\"a\": 1}\n{\"a\": 2}\n{\"a\": \"x\"}", "record"),
        ("{\"a\": 1}\n{\"a\": 2}\n{\"a\": {\"b\": 1}}", "record"),
        ("{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3", "is cut off after 2 records"),
        ("[{\"a\": 1}\n,{\"a\": 2}\n", "is cut off after 2 records"),
    ] {
        fs::write(&path, text).unwrap();
        let error = all_columns(&path, 1).await.unwrap_err().to_string();
        assert!(error.contains("t.json") && error.contains(part), "{text}: {error}");
    }
    let zipped = dir.path().join("t.json.gz");
    fs::write(&zipped, "{\"a\": 1}").unwrap();
    let error = all_columns(&zipped, 1).await.unwrap_err().to_string();
    assert!(error.contains("t.json.gz cannot be decompressed"), "{error}");
}

/// All columns, the first `infer` records looked at.
async fn all_columns(path: &Path, infer: usize) -> Result<Vec<String>> {
    let options = options(1, 2);
    let json = JsonOptions { infer_records: infer, ..JsonOptions::default() };
    let format = planish_source::FileFormatOptions { json, ..cached() };
    let table = FileTable::try_new(vec![path.display().to_string()], format).await?;
    run(&table.scan(None, &options)?, &options).await
}
