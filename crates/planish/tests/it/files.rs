//! Files, folders and globs as tables.

use crate::common::{error, rows, sorted_rows};
use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use planish::{DataFusionError, Result, Session};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

fn external(error: parquet::errors::ParquetError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn write_parquet(path: &Path, ids: &[i64]) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
    ]));
    let names = StringArray::from_iter(ids.iter().map(|i| (i % 3 != 0).then(|| format!("n{i}"))));
    let ids = Int64Array::from(ids.to_vec());
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), Arc::new(names)])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, None).map_err(external)?;
    writer.write(&batch).map_err(external)?;
    writer.close().map_err(external)?;
    Ok(())
}

#[test]
fn paths_are_tables() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    write_parquet(&path("a.parquet"), &[1, 2, 3])?;
    write_parquet(&path("b.parquet"), &[4, 5, 6])?;
    fs::write(path("c.csv"), "id,word\n1,one\n2,\"\"\n3,\n")?;
    for partitions in [1, 2, 8] {
        let session = Session::builder().target_partitions(partitions).build()?;
        let sql = |name: &str| format!("FROM '{}'", path(name).display());
        let one = rows(&session, &format!("SELECT id, name {} WHERE id > 1", sql("a.parquet")))?;
        assert_eq!(one, ["2 | n2", "3 | ∅"]);
        let many = rows(&session, &format!("SELECT count(*), sum(id) {}", sql("*.parquet")))?;
        assert_eq!(many, ["6 | 21"]);
        let csv = rows(&session, &format!("SELECT word, id {} ORDER BY id", sql("c.csv")))?;
        assert_eq!(csv, ["one | 1", " | 2", "∅ | 3"]);
        let join = format!(
            "SELECT p.name, c.word {} AS p JOIN '{}' AS c ON p.id = c.id",
            sql("a.parquet"),
            path("c.csv").display()
        );
        assert_eq!(sorted_rows(&session, &join)?, ["n1 | one", "n2 | ", "∅ | ∅"]);
        // The same query against registered tables.
        session.register_parquet("p", &path("*.parquet").display().to_string())?;
        session.register_csv("c", &path("c.csv").display().to_string())?;
        session.register_path("Mixed", &path("a.parquet").display().to_string())?;
        assert_eq!(rows(&session, "SELECT max(id) FROM p WHERE name IS NOT NULL")?, ["5"]);
        assert_eq!(rows(&session, "SELECT count(*) FROM c")?, ["3"]);
        assert_eq!(rows(&session, "SELECT count(*) FROM mixed")?, ["3"]);
        assert!(session.deregister_table("c").is_some());
        assert!(error(&session, "SELECT * FROM c").contains("table c not found"));
    }
    Ok(())
}

#[test]
fn broken_files_are_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let session = Session::new()?;
    let path = |name: &str| folder.path().join(name);
    write_parquet(&path("whole.parquet"), &[1, 2, 3])?;
    let bytes = fs::read(path("whole.parquet"))?;
    fs::write(path("half.parquet"), &bytes[..bytes.len() / 2])?;
    fs::write(path("ragged.csv"), "a,b\n1,2\n1,2,3\n")?;
    for name in ["half.parquet", "ragged.csv", "missing.csv"] {
        let error = error(&session, &format!("SELECT * FROM '{}'", path(name).display()));
        assert!(error.contains(name), "{error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    Ok(())
}

/// A query that does not reorder its rows gives them in file order.
#[test]
fn rows_come_in_file_order() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for i in 0..4_i64 {
        let ids: Vec<i64> = (i * 100..(i + 1) * 100).collect();
        write_parquet(&folder.path().join(format!("{i}.parquet")), &ids)?;
    }
    let session = Session::builder().target_partitions(1).build()?;
    session.register_path("t", &folder.path().display().to_string())?;
    let expected: Vec<String> = (0..400).filter(|i| i % 7 == 0).map(|i| i.to_string()).collect();
    assert_eq!(rows(&session, "SELECT id FROM t WHERE id % 7 = 0")?, expected);
    Ok(())
}

/// The same rows in every format that is read.
#[test]
fn one_content_in_every_format() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let ids: Vec<i64> = (1..=2000).collect();
    write_parquet(&path("t.parquet"), &ids)?;
    let name = |i: &i64| (i % 3 != 0).then(|| format!("n{i}"));
    let csv: String =
        ids.iter().map(|i| format!("{i},{}\n", name(i).unwrap_or_default())).collect();
    fs::write(path("t.csv"), format!("id,name\n{csv}"))?;
    let record = |i: &i64| match name(i) {
        Some(name) => format!("{{\"id\": {i}, \"name\": \"{name}\"}}"),
        None => format!("{{\"id\": {i}}}"),
    };
    let records: Vec<String> = ids.iter().map(record).collect();
    fs::write(path("t.ndjson"), records.join("\n"))?;
    fs::write(path("t.json"), format!("[{}]", records.join(",\n")))?;
    let names: StringArray = ids.iter().map(name).collect();
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids)) as _),
        ("name", Arc::new(names) as _),
    ])?;
    let mut file = FileWriter::try_new(File::create(path("t.arrow"))?, &batch.schema())?;
    let mut stream = StreamWriter::try_new(File::create(path("t.arrows"))?, &batch.schema())?;
    for start in (0..batch.num_rows()).step_by(300) {
        let part = batch.slice(start, 300.min(batch.num_rows() - start));
        file.write(&part)?;
        stream.write(&part)?;
    }
    file.finish()?;
    stream.finish()?;
    for (partitions, batch) in [(1, 8192), (4, 7)] {
        let session = Session::builder().target_partitions(partitions).batch_size(batch).build()?;
        for sql in [
            "SELECT count(*), sum(id), count(name), min(name), max(name) FROM t",
            "SELECT id, name FROM t WHERE id % 7 = 3 AND name > 'n5'",
            "SELECT length(name) l, count(*), max(file_row_index()) FROM t GROUP BY length(name)",
            "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.name IS NULL AND a.id < 90",
        ] {
            let mut all = vec![];
            for name in ["t.parquet", "t.csv", "t.ndjson", "t.json", "t.arrow", "t.arrows"] {
                let of = sql.replace(" t ", &format!(" '{}' ", path(name).display()));
                let of = match of.strip_suffix(" t") {
                    Some(head) => format!("{head} '{}'", path(name).display()),
                    None => of,
                };
                all.push(sorted_rows(&session, &of)?);
            }
            assert!(!all[0].is_empty());
            for rows in &all {
                assert_eq!(*rows, all[0], "{sql}");
            }
        }
    }
    Ok(())
}
