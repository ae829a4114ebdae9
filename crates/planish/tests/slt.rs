//! Runs the files of `tests/slt`, each under several numbers of partitions and batch sizes.
//!
//! `tests/slt/fill.py` computes what they expect with DuckDB. Besides what a file creates, there
//! are the tables of `examples/data`.

#![allow(clippy::unwrap_used, clippy::panic)] // All of this file is tests.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planish::{DataFusionError, Session};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner, strict_column_validator};
use std::fs;
use std::path::{Path, PathBuf};

/// A session as the runner knows databases.
struct Database {
    session: Session,
}

impl Database {
    fn new(partitions: usize, batch_size: usize, set: &[&str]) -> Result<Self, DataFusionError> {
        let builder = Session::builder().target_partitions(partitions).batch_size(batch_size);
        let session = builder.build()?;
        for setting in set {
            session.sql(setting)?.collect()?;
        }
        for file in ["sales.parquet", "stores.csv", "products.csv"] {
            let path = root().join("examples/data").join(file);
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            session.register_path(name, &path.to_string_lossy())?;
        }
        Ok(Database { session })
    }
}

impl DB for Database {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    fn engine_name(&self) -> &str {
        "planish"
    }

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, DataFusionError> {
        let query = self.session.sql(sql)?;
        if !query.returns_rows() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = query.schema().fields().iter().map(|f| kind(f.data_type())).collect();
        let mut rows = vec![];
        for batch in query.collect()? {
            rows.extend(texts(&batch)?);
        }
        Ok(DBOutput::Rows { types, rows })
    }
}

fn kind(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_numeric() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn texts(batch: &RecordBatch) -> Result<Vec<Vec<String>>, DataFusionError> {
    let columns = batch.columns().iter().map(column_texts);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let row = |i: usize| columns.iter().map(|column| column[i].clone()).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}

fn column_texts(column: &ArrayRef) -> Result<Vec<String>, DataFusionError> {
    let options = FormatOptions::new().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"));
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |i: usize| {
        if column.is_null(i) {
            return "NULL".to_owned();
        }
        match column.data_type() {
            DataType::Float64 => number(column.as_primitive::<Float64Type>().value(i)),
            DataType::Float32 => number(column.as_primitive::<Float32Type>().value(i).into()),
            // Integers are numbers without a point, which nothing is trimmed from.
            t if t.is_numeric() => trimmed(&formatter.value(i).to_string()),
            _ => match formatter.value(i).to_string() {
                empty if empty.is_empty() => "(empty)".to_owned(),
                text => text,
            },
        }
    };
    Ok((0..column.len()).map(text).collect())
}

/// At most six decimals, no trailing zeros, no negative zero.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".to_owned() } else { value.to_string() };
    }
    trimmed(&format!("{value:.6}"))
}

fn trimmed(number: &str) -> String {
    let Some((whole, decimals)) = number.split_once('.') else { return number.to_owned() };
    let decimals = decimals.get(..6).unwrap_or(decimals).trim_end_matches('0');
    match (whole, decimals) {
        ("-0", "") => "0".to_owned(),
        (_, "") => whole.to_owned(),
        _ => format!("{whole}.{decimals}"),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all files, sorted.
fn files() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("tests/slt")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "slt"));
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Runs all files, and lists what fails, at most one record per file.
fn run_all(partitions: usize, batch_size: usize) {
    run_set(partitions, batch_size, &[], &files());
}

/// Runs `files` in sessions with the settings `set`.
fn run_set(partitions: usize, batch_size: usize, set: &[&str], files: &[PathBuf]) {
    let mut failures = vec![];
    for file in files {
        let mut runner = Runner::new(async || Database::new(partitions, batch_size, set));
        runner.with_column_validator(strict_column_validator);
        if let Err(e) = runner.run_file(file) {
            failures.push(e.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{} files fail:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn one_partition() {
    run_all(1, 8192);
}

#[test]
fn four_partitions() {
    run_all(4, 8192);
}

#[test]
fn batches_of_one_row() {
    run_all(1, 1);
}

#[test]
fn four_partitions_of_one_row_batches() {
    run_all(4, 1);
}

/// Files with joins, by sorting instead of hashing.
#[test]
fn sort_merge_joins() {
    let mut files = files();
    files.retain(|path| fs::read_to_string(path).unwrap().to_lowercase().contains("join"));
    assert!(files.len() >= 2);
    for (partitions, batch_size) in [(1, 8192), (4, 8192), (4, 1)] {
        let set = ["SET datafusion.optimizer.prefer_hash_join = false"];
        run_set(partitions, batch_size, &set, &files);
    }
}
