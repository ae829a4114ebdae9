//! The 22 TPC-H queries: right answers, whatever the partitions, batch sizes and repetitions.
//!
//! Queries and answers are in `tests/tpch`; `tests/tpch/answers.py` computes the answers with
//! DuckDB and says how they compare. The data comes from the same generator as there.

#![allow(clippy::unwrap_used, clippy::panic)] // All of this file is tests.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use planish::{Query, Session};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

const QUERIES: std::ops::RangeInclusive<usize> = 1..=22;
const TABLES: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

// --- Data ---------------------------------------------------------------------------------------

/// The folder with the tables at scale factor 0.01, made once per test process.
fn data() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| generate(0.01).unwrap()).path()
}

/// As [`data`], at a tenth of the size.
fn small_data() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| generate(0.001).unwrap()).path()
}

fn generate(scale: f64) -> Result<TempDir, ArrowError> {
    let folder = tempfile::tempdir()?;
    let make = |name: &str, batches: &mut dyn Iterator<Item = Result<RecordBatch, ArrowError>>| {
        write_parquet(&folder.path().join(format!("{name}.parquet")), batches)
    };
    make("customer", &mut CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)))?;
    make("lineitem", &mut LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)))?;
    make("nation", &mut NationArrow::new(NationGenerator::default()))?;
    make("orders", &mut OrderArrow::new(OrderGenerator::new(scale, 1, 1)))?;
    make("part", &mut PartArrow::new(PartGenerator::new(scale, 1, 1)))?;
    make("partsupp", &mut PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)))?;
    make("region", &mut RegionArrow::new(RegionGenerator::default()))?;
    make("supplier", &mut SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)))?;
    Ok(folder)
}

/// Several row groups per table, so that there is something to share between partitions.
fn write_parquet(
    path: &Path,
    batches: &mut dyn Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(), ArrowError> {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10_000)).build();
    let mut batches = batches.peekable();
    let schema = match batches.peek() {
        Some(Ok(batch)) => batch.schema(),
        _ => return Err(ArrowError::ParquetError(format!("no rows for {}", path.display()))),
    };
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

fn session(data: &Path, partitions: usize, batch_size: usize) -> Session {
    let builder = Session::builder().target_partitions(partitions).batch_size(batch_size);
    let session = builder.build().unwrap();
    for table in TABLES {
        let path = data.join(format!("{table}.parquet"));
        session.register_path(table, path.to_str().unwrap()).unwrap();
    }
    session
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tpch")
}

/// Runs the script of query `number` up to its one query, which `run` runs, and the rest.
fn with_query<T>(session: &Session, number: usize, run: impl Fn(&Query) -> T) -> T {
    let script = fs::read_to_string(tests_folder().join(format!("queries/q{number}.sql")));
    let mut result = None;
    for statement in session.statements(&script.unwrap()).unwrap() {
        let query = session.run(&statement).unwrap_or_else(|e| panic!("q{number}: {e}"));
        if query.returns_rows() {
            result = Some(run(&query));
        }
    }
    result.unwrap()
}

// --- Rows and answers ---------------------------------------------------------------------------

/// A row; `None` is NULL.
type Row = Vec<Option<String>>;

/// A result as text.
#[derive(Debug)]
struct Rows {
    types: Vec<DataType>,
    rows: Vec<Row>,
}

impl Rows {
    fn of(query: &Query) -> Rows {
        Self::try_of(query).unwrap_or_else(|e| panic!("{e}"))
    }

    fn try_of(query: &Query) -> planish::Result<Rows> {
        Ok(Rows::new(&query.schema(), &query.collect()?)?)
    }

    fn new(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Rows, ArrowError> {
        let types = schema.fields().iter().map(|f| f.data_type().clone()).collect();
        let mut rows = vec![];
        for batch in batches {
            let options = FormatOptions::new();
            let formatters = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options));
            let formatters = formatters.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let cells = formatters.iter().zip(batch.columns());
                rows.push(
                    cells
                        .map(|(f, column)| column.is_valid(row).then(|| f.value(row).to_string()))
                        .collect(),
                );
            }
        }
        Ok(Rows { types, rows })
    }
}

/// An answer file: three header lines, then rows.
#[derive(Debug)]
struct Answer {
    names: Vec<String>,
    /// DuckDB's names of the types.
    types: Vec<String>,
    /// The columns of ORDER BY.
    order: Vec<usize>,
    rows: Vec<Row>,
}

impl Answer {
    fn read(number: usize) -> Answer {
        let path = tests_folder().join(format!("answers-sf0.01/q{number}.csv"));
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(fields);
        let mut header = || -> Vec<String> {
            lines.next().unwrap().into_iter().map(Option::unwrap_or_default).collect()
        };
        let (names, types, places) = (header(), header(), header());
        let order = (0..places.len()).filter(|i| !places[*i].is_empty()).collect();
        Answer { names, types, order, rows: lines.collect() }
    }

    /// What in `ours` differs first, if anything does.
    fn difference(&self, ours: &Rows) -> Option<String> {
        if ours.types.len() != self.names.len() {
            return Some(format!("{} columns instead of {}", ours.types.len(), self.names.len()));
        }
        if ours.rows.len() != self.rows.len() {
            return Some(format!("{} rows instead of {}", ours.rows.len(), self.rows.len()));
        }
        let cell = |i: usize, a: &Row, b: &Row| {
            (!equal(&a[i], &ours.types[i], &b[i], &self.types[i]))
                .then(|| format!("{} is {:?} instead of {:?}", self.names[i], a[i], b[i]))
        };
        for (n, (a, b)) in ours.rows.iter().zip(&self.rows).enumerate() {
            if let Some(text) = self.order.iter().find_map(|i| cell(*i, a, b)) {
                return Some(format!("out of order: in row {n} {text}"));
            }
        }
        // Columns that compare exactly tell all rows of a TPC-H answer apart.
        let inexact = |t: &String| t == "DOUBLE" || t.starts_with("DECIMAL");
        let exact: Vec<_> = (0..self.types.len()).filter(|i| !inexact(&self.types[*i])).collect();
        let sorted = |rows: &[Row]| {
            let mut rows = rows.to_vec();
            rows.sort_by_key(|row| exact.iter().map(|i| row[*i].clone()).collect::<Row>());
            rows
        };
        let (a, b) = (sorted(&ours.rows), sorted(&self.rows));
        let all = 0..self.names.len();
        a.iter().zip(&b).find_map(|(a, b)| all.clone().find_map(|i| cell(i, a, b)))
    }
}

/// The fields of a line of an answer file. An empty field is NULL, `""` an empty string.
fn fields(line: &str) -> Row {
    let mut fields = vec![];
    let mut chars = line.chars().peekable();
    loop {
        let quoted = chars.next_if_eq(&'"').is_some();
        let (mut inside, mut text) = (quoted, String::new());
        let more = loop {
            match chars.next() {
                Some('"') if inside && chars.next_if_eq(&'"').is_none() => inside = false,
                Some(',') if !inside => break true,
                Some(c) => text.push(c),
                None => break false,
            }
        };
        fields.push((quoted || !text.is_empty()).then_some(text));
        if !more {
            return fields;
        }
    }
}

/// Whether our value equals DuckDB's: exactly, but for decimals of other scales and for doubles,
/// which may differ by one unit in the last place of the coarser one.
fn equal(ours: &Option<String>, our_type: &DataType, theirs: &Option<String>, kind: &str) -> bool {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return ours == theirs };
    let their_scale = match kind {
        "DOUBLE" => None,
        _ => match kind.strip_prefix("DECIMAL(").and_then(|k| k.strip_suffix(')')) {
            Some(k) => k.split_once(',').and_then(|(_, scale)| scale.trim().parse::<i32>().ok()),
            None => return ours == theirs,
        },
    };
    let our_scale = match our_type {
        DataType::Decimal128(_, scale) => Some(i32::from(*scale)),
        _ => None,
    };
    if our_scale.is_some() && our_scale == their_scale {
        return ours == theirs;
    }
    let (Ok(a), Ok(b)) = (ours.parse::<f64>(), theirs.parse::<f64>()) else { return false };
    let unit = match (our_scale, their_scale) {
        (Some(a), Some(b)) => 10_f64.powi(-a.min(b)),
        (Some(scale), None) | (None, Some(scale)) => 10_f64.powi(-scale),
        (None, None) => 0.0,
    };
    (a - b).abs() <= unit * 1.000_001 + 1e-12 * b.abs()
}

/// Panics unless query `number` gives the stored answer in this session.
fn assert_answer(session: &Session, number: usize, setting: &str) {
    let ours = with_query(session, number, Rows::of);
    if let Some(text) = Answer::read(number).difference(&ours) {
        panic!("q{number} ({setting}): {text}");
    }
}

// --- Tests --------------------------------------------------------------------------------------

#[test]
fn answers_are_right() {
    let session = session(data(), 2, 8192);
    for number in QUERIES {
        assert_answer(&session, number, "2 partitions");
    }
}

#[test]
fn partitions_and_batch_sizes_change_nothing() {
    for (partitions, batch_size) in [(1, 8192), (8, 8192), (1, 7), (2, 7), (8, 7)] {
        let session = session(data(), partitions, batch_size);
        for number in QUERIES {
            let setting = format!("{partitions} partitions, batches of {batch_size}");
            assert_answer(&session, number, &setting);
        }
    }
}

#[test]
fn batches_of_one_row_change_nothing() {
    let reference = session(small_data(), 1, 8192);
    let expected: Vec<_> = QUERIES.map(|n| with_query(&reference, n, Rows::of)).collect();
    for partitions in [1, 2, 8] {
        let session = session(small_data(), partitions, 1);
        for (number, expected) in QUERIES.zip(&expected) {
            let Answer { names, order, .. } = Answer::read(number);
            // Ours on both sides: every value is exact.
            let types = vec![String::new(); names.len()];
            let expected = Answer { names, types, order, rows: expected.rows.clone() };
            let ours = with_query(&session, number, Rows::of);
            let difference = expected.difference(&ours);
            assert_eq!(difference, None, "q{number}, {partitions} partitions");
        }
    }
}

#[test]
fn one_plan_runs_twice_and_twice_at_once() {
    let session = session(data(), 2, 8192);
    for number in QUERIES {
        let answer = Answer::read(number);
        let runs = with_query(&session, number, |query| {
            let twice = [Rows::of(query), Rows::of(query)];
            let at_once = std::thread::scope(|scope| {
                let runs = [(); 2].map(|()| scope.spawn(|| Rows::of(query)));
                runs.map(|run| run.join().unwrap())
            });
            [twice, at_once]
        });
        for (n, run) in runs.iter().flatten().enumerate() {
            assert_eq!(answer.difference(run), None, "q{number}, run {}", n + 1);
        }
    }
}

#[test]
fn differences_are_found() {
    let text = |s: &str| Some(s.to_owned());
    let decimal = DataType::Decimal128(15, 2);
    assert!(equal(&text("1.50"), &decimal, &text("1.50"), "DECIMAL(38,2)"));
    assert!(!equal(&text("1.51"), &decimal, &text("1.50"), "DECIMAL(38,2)"));
    assert!(equal(&text("1.51"), &decimal, &text("1.5049"), "DOUBLE"));
    assert!(!equal(&text("1.52"), &decimal, &text("1.5049"), "DOUBLE"));
    assert!(!equal(&text("1.5"), &DataType::Float64, &text("1.5049"), "DOUBLE"));
    assert!(!equal(&None, &decimal, &text("0.00"), "DECIMAL(38,2)"));
    assert!(!equal(&text("a"), &DataType::Utf8, &text("b"), "VARCHAR"));

    assert_eq!(fields("a,,\"\",\"x,\"\"y\""), [text("a"), None, text(""), text("x,\"y")]);
    assert_eq!(fields(""), [None]);

    let answer = Answer {
        names: vec!["k".into(), "v".into()],
        types: vec!["BIGINT".into(), "VARCHAR".into()],
        order: vec![0],
        rows: vec![vec![text("1"), text("a")], vec![text("1"), text("b")]],
    };
    let rows = |rows: [[&str; 2]; 2]| Rows {
        types: vec![DataType::Int64, DataType::Utf8],
        rows: rows.map(|row| row.map(text).to_vec()).to_vec(),
    };
    assert_eq!(answer.difference(&rows([["1", "b"], ["1", "a"]])), None);
    assert!(answer.difference(&rows([["1", "a"], ["1", "a"]])).is_some());
    assert!(answer.difference(&rows([["2", "a"], ["1", "b"]])).is_some());
}
