//! Expressions over values at the edges of their types, against DuckDB's answers.
//!
//! `tests/expressions/make.py` computes `cases.tsv` with DuckDB. Where we differ on purpose,
//! `differences.tsv` says so: a pattern of `table expression` (`*` stands for anything), what we
//! do (`error`, `value`, or `any`), and why. A difference that no line explains fails the test,
//! and so does a line that explains nothing.

#![allow(clippy::unwrap_used, clippy::panic)] // All of this file is tests.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planish::Session;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Expressions per query: each query is planned, which takes longer than to run it.
const PER_QUERY: usize = 64;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/expressions")
}

struct Case {
    table: String,
    expr: String,
    expected: String,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(folder().join("cases.tsv")).unwrap();
    let case = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        Case { table: next(), expr: next(), expected: next() }
    };
    text.lines().map(case).collect()
}

fn session(batch_size: usize) -> Session {
    let session = Session::builder().target_partitions(1).batch_size(batch_size).build().unwrap();
    let zone = "SET datafusion.execution.time_zone = 'Europe/Berlin';\n";
    let script = zone.to_owned() + &fs::read_to_string(folder().join("tables.sql")).unwrap();
    for statement in session.statements(&script).unwrap() {
        session.run(&statement).unwrap().collect().unwrap();
    }
    session
}

/// The values of each expression over all rows, `error: ...` where it fails.
fn evaluate(session: &Session, source: &str, exprs: &[&str]) -> Vec<String> {
    let columns: Vec<String> =
        exprs.iter().enumerate().map(|(i, expr)| format!("{expr} AS c{i}")).collect();
    let sql = format!("SELECT {} FROM {source} ORDER BY id", columns.join(", "));
    let error = match session.sql(&sql).and_then(|query| query.collect()) {
        Ok(batches) => {
            let column = |i| {
                let of = |b: &arrow::array::RecordBatch| texts(b.column(i));
                batches.iter().flat_map(of).collect::<Vec<_>>().join("|")
            };
            return (0..exprs.len()).map(column).collect();
        }
        Err(error) => error,
    };
    if let [_] = exprs {
        let text = error.to_string();
        assert!(!text.to_lowercase().contains("internal"), "{sql}: {text}");
        return vec![format!("error: {}", text.lines().next().unwrap_or_default())];
    }
    let (left, right) = exprs.split_at(exprs.len() / 2);
    let mut all = evaluate(session, source, left);
    all.extend(evaluate(session, source, right));
    all
}

fn texts(array: &ArrayRef) -> Vec<String> {
    let array = match array.data_type() {
        DataType::Float16 | DataType::Float32 => cast(array, &DataType::Float64).unwrap(),
        DataType::Timestamp(_, zone) => {
            cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).unwrap()
        }
        _ => Arc::clone(array),
    };
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.6f"));
    let formatter = ArrayFormatter::try_new(&array, &options).unwrap();
    let text = |row| match array.data_type() {
        _ if array.is_null(row) => "NULL".to_owned(),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            decimal(&formatter.value(row).to_string())
        }
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
            let value = formatter.value(row).to_string();
            let value = value.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n");
            format!("'{}'", value.replace('|', "\\p"))
        }
        _ => formatter.value(row).to_string(),
    };
    (0..array.len()).map(text).collect()
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{}", value as i64)
    } else if value.is_finite() {
        format!("{value:.8e}")
    } else {
        value.to_string()
    }
}

fn decimal(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => {
            if whole == "-0" {
                "0".to_owned()
            } else {
                whole.to_owned()
            }
        }
        Some(_) => format!("{:.8e}", text.parse::<f64>().unwrap()),
        None => text.to_owned(),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line of `differences.tsv`.
struct Difference {
    pattern: String,
    kind: String,
    used: usize,
}

fn differences() -> Vec<Difference> {
    let text = fs::read_to_string(folder().join("differences.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            let [pattern, kind, _why] = parts[..] else { panic!("{line}") };
            Difference { pattern: pattern.to_owned(), kind: kind.to_owned(), used: 0 }
        })
        .collect()
}

#[test]
fn expressions_are_what_duckdb_says() {
    let session = session(8192);
    let cases = cases();
    assert!(cases.len() > 3000);
    let mut known = differences();
    let mut unexplained = String::new();
    let mut differing = 0;
    for chunk in cases.chunk_by(|a, b| a.table == b.table).flat_map(|t| t.chunks(PER_QUERY)) {
        let exprs: Vec<&str> = chunk.iter().map(|case| case.expr.as_str()).collect();
        let found = evaluate(&session, &chunk[0].table, &exprs);
        for (case, found) in chunk.iter().zip(found) {
            let failed = found.starts_with("error");
            if found == case.expected || (failed && case.expected == "error") {
                continue;
            }
            differing += 1;
            let text = format!("{} {}", case.table, case.expr);
            let kind = if failed { "error" } else { "value" };
            let explains = |d: &&mut Difference| {
                (d.kind == "any" || d.kind == kind) && matches(&d.pattern, &text)
            };
            match known.iter_mut().find(explains) {
                Some(difference) => difference.used += 1,
                None => writeln!(unexplained, "{text}\n   {found}\n   {}", case.expected).unwrap(),
            }
        }
    }
    assert!(unexplained.is_empty(), "of {differing} differences, without a reason:\n{unexplained}");
    let idle: Vec<&str> =
        known.iter().filter(|d| d.used == 0).map(|d| d.pattern.as_str()).collect();
    assert!(idle.is_empty(), "no difference is like {idle:?}");
}

/// The form that columns are in changes no value and no error.
#[test]
fn the_form_of_columns_does_not_matter() {
    let plain = session(8192);
    let single = session(1);
    let cases = cases();
    let chunks = cases.chunk_by(|a, b| a.table == b.table).flat_map(|t| t.chunks(PER_QUERY));
    for (number, chunk) in chunks.enumerate() {
        let exprs: Vec<&str> = chunk.iter().map(|case| case.expr.as_str()).collect();
        let table = &chunk[0].table;
        // Each part of the cases in one form: all in all would take minutes.
        let (session, source) = match number % 12 {
            0 => (&single, table.clone()),
            4 => (&plain, format!("(SELECT t.* FROM {table} t JOIN {table} USING (id))")),
            8 => {
                let part = |condition| format!("SELECT * FROM {table} WHERE id {condition}");
                (&plain, format!("({} UNION ALL {})", part("< 4"), part("> 3")))
            }
            _ => continue,
        };
        let expected = evaluate(&plain, table, &exprs);
        let found = evaluate(session, &source, &exprs);
        for ((expr, found), expected) in exprs.iter().zip(found).zip(&expected) {
            let failed = found.starts_with("error") && expected.starts_with("error");
            assert!(found == *expected || failed, "{expr} over {source}: {found}, {expected}");
        }
    }
}

/// The front end evaluates constants itself, with functions of its own.
#[test]
fn constants_and_columns_are_alike() {
    let session = session(8192);
    let rows = literal_rows();
    let cases = cases();
    let chunks = cases.chunk_by(|a, b| a.table == b.table).flat_map(|t| t.chunks(PER_QUERY));
    for (number, chunk) in chunks.enumerate().filter(|(number, _)| number % 3 == 0) {
        let exprs: Vec<&str> = chunk.iter().map(|case| case.expr.as_str()).collect();
        let table = &chunk[0].table;
        let of_table: Vec<_> = rows.iter().filter(|(name, ..)| name == table).collect();
        let (_, id, constants) = of_table[(number / 3) % of_table.len()];
        let expected =
            evaluate(&session, &format!("(SELECT * FROM {table} WHERE id = {id})"), &exprs);
        let found = evaluate(&session, &format!("(SELECT {constants})"), &exprs);
        for ((expr, found), expected) in exprs.iter().zip(found).zip(&expected) {
            let failed = found.starts_with("error") && expected.starts_with("error");
            assert!(found == *expected || failed, "{expr} of {table} {id}: {found}, {expected}");
        }
    }
}

/// Table, id, and the columns as constants, of each row of `tables.sql`.
fn literal_rows() -> Vec<(String, String, String)> {
    let script = fs::read_to_string(folder().join("tables.sql")).unwrap();
    let mut rows = vec![];
    for statement in script.split(';') {
        let Some((_, statement)) = statement.split_once("CREATE TABLE ") else { continue };
        let (table, rest) = statement.split_once(' ').unwrap();
        let (select, rest) = rest.split_once("FROM (VALUES").unwrap();
        let (values, names) = rest.split_once(") AS v(").unwrap();
        let names: Vec<&str> = names.trim_end_matches(')').split(", ").collect();
        for row in values.lines().filter_map(|line| line.strip_prefix("  (")) {
            let values: Vec<&str> = row.trim_end_matches([')', ',']).split(", ").collect();
            assert_eq!(values.len(), names.len(), "{row}");
            let constant = |(value, name): (&&str, &&str)| {
                format!("CAST({value} AS {}) AS {name}", type_of(name, select))
            };
            let constants: Vec<String> = values.iter().zip(&names).map(constant).collect();
            rows.push((table.to_owned(), values[0].to_owned(), constants.join(", ")));
        }
    }
    rows
}

/// The type that `select` casts the column `name` to.
fn type_of<'a>(name: &str, select: &'a str) -> &'a str {
    match (select.split_once(&format!("CAST({name} AS ")), name) {
        (Some((_, rest)), _) => rest.split_once(") AS").unwrap().0,
        (None, "id") => "BIGINT",
        (None, "b") => "BOOLEAN",
        (None, _) => "VARCHAR",
    }
}
