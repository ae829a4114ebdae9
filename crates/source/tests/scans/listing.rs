//! Paths, folders, globs.

use crate::common::*;
use planish_source::{FileFormat, FileFormatOptions, FileTable, list_paths};
use std::fs;
use tempfile::tempdir;

fn names(paths: &[String], format: Option<FileFormat>) -> Vec<String> {
    let listed = list_paths(paths, format).unwrap();
    listed.files.iter().map(|file| file.name().to_owned()).collect()
}

fn error(path: &str) -> String {
    list_paths(&[path.to_owned()], None).unwrap_err().to_string()
}

#[test]
fn folders_and_globs_skip_what_is_not_data() {
    let dir = tempdir().unwrap();
    let root = dir.path();
    for (name, text) in [
        ("b.csv", "a\n1\n"),
        ("a.csv", "a\n2\n"),
        (".hidden.csv", "x"),
        ("_SUCCESS", ""),
        ("a.csv.crc", "x"),
        ("empty.csv", ""),
        ("README.txt", "x"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("sub/c.csv"), "a\n3\n").unwrap();
    fs::create_dir(root.join("_temporary")).unwrap();
    fs::write(root.join("_temporary/d.csv"), "a\n3\n").unwrap();
    let folder = root.display().to_string();
    assert_eq!(names(std::slice::from_ref(&folder), None), ["a.csv", "b.csv", "c.csv"]);
    assert_eq!(names(&[format!("{folder}/*.csv")], None), ["a.csv", "b.csv"]);
    assert_eq!(names(&[format!("{folder}/**/*.csv")], None), ["a.csv", "b.csv", "c.csv"]);
    assert_eq!(names(&[format!("{folder}/{{b,a}}.csv")], None), ["a.csv", "b.csv"]);
    assert_eq!(names(&[format!("file://{folder}/b.csv")], None), ["b.csv"]);
    let both = [format!("{folder}/b.csv"), format!("{folder}/a.csv")];
    assert_eq!(names(&both, None), ["b.csv", "a.csv"]);
    assert!(error(&format!("{folder}/none.csv")).contains("none.csv"));
    assert!(error(&format!("{folder}/x*.csv")).contains("x*.csv"));
    assert!(error(&format!("{folder}/empty.csv")).contains("empty"));
}

#[test]
fn formats_that_cannot_be_read_are_named() {
    let dir = tempdir().unwrap();
    for name in ["t.orc", "t.parquet.gz", "t.csv.bz2", "t.avro"] {
        let path = dir.path().join(name);
        fs::write(&path, "x").unwrap();
        let message = error(&path.display().to_string());
        assert!(message.contains("not implemented"), "{message}");
    }
    assert!(error("s3://bucket/t.parquet").contains("s3://"));
    let parts = dir.path().join("year=2024");
    fs::create_dir(&parts).unwrap();
    fs::write(parts.join("a.csv"), "a\n1\n").unwrap();
    for name in ["t.orc", "t.parquet.gz", "t.csv.bz2", "t.avro"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert!(error(&dir.path().display().to_string()).contains("partition"));
}

#[test]
fn formats_are_not_mixed_unless_one_is_named() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.csv"), "a\n1\n").unwrap();
    write_parquet(&dir.path().join("b.parquet"), &[sample(0, 1)], 10);
    let folder = dir.path().display().to_string();
    assert!(error(&folder).contains("several formats"));
    assert_eq!(names(&[folder], Some(FileFormat::Parquet)), ["b.parquet"]);
}

#[tokio::test]
async fn a_glob_is_a_table() {
    let dir = tempdir().unwrap();
    write_parquet(&dir.path().join("a1.parquet"), &[sample(0, 5)], 10);
    write_parquet(&dir.path().join("a2.parquet"), &[sample(5, 5)], 10);
    write_parquet(&dir.path().join("b.parquet"), &[sample(10, 5)], 10);
    let glob = format!("{}/a?.parquet", dir.path().display());
    let table = FileTable::try_new(vec![glob], FileFormatOptions::default()).await.unwrap();
    let options = options(1, 8192);
    let plan = table.scan(Some(&[0]), &options).unwrap();
    let wanted: Vec<String> = (0..10).map(|i| i.to_string()).collect();
    assert_eq!(run(&plan, &options).await.unwrap(), wanted);
}
