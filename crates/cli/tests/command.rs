//! The built binary, from the outside: what it prints, where, and how it exits.

#![allow(clippy::unwrap_used, clippy::panic)] // All of this file is tests.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn planish() -> Command {
    Command::new(env!("CARGO_BIN_EXE_planish"))
}

/// What a run ended with.
#[derive(Debug, Eq, PartialEq)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

fn run(words: &[&str]) -> Ran {
    planish().args(words).stdin(Stdio::null()).output().unwrap().into()
}

fn run_with_stdin(words: &[&str], input: &str) -> Ran {
    let mut command = planish();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The child may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// The output of a run that must succeed and say nothing else.
fn output(words: &[&str]) -> String {
    let ran = run(words);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}: {}", ran.out);
    ran.out
}

/// The message of a run that must fail with one error and no output.
fn failure(words: &[&str]) -> String {
    let ran = run(words);
    assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
    assert_one_error(&ran);
    assert_eq!(ran.out, "", "{words:?}");
    ran.err
}

fn assert_one_error(ran: &Ran) {
    assert!(ran.err.starts_with("Error: "), "{ran:?}");
    let errors = ran.err.lines().filter(|line| line.starts_with("Error: ")).count();
    assert_eq!(errors, 1, "{ran:?}");
    for word in ["panicked", "RUST_BACKTRACE", "backtrace", "github.com"] {
        assert!(!ran.err.contains(word), "{ran:?}");
    }
}

fn examples() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    path.to_str().unwrap().to_owned()
}

fn write(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

// --- Results ------------------------------------------------------------------------------------

const MIXED: &str = "SELECT * FROM (VALUES (1, 'a,b'), (2, ''), (3, NULL)) AS v(n, s) ORDER BY n";

#[test]
fn formats() {
    let of = |format| output(&["--format", format, "-c", MIXED]);
    assert_eq!(of("csv"), "n,s\n1,\"a,b\"\n2,\"\"\n3,\n");
    assert_eq!(of("tsv"), "n\ts\n1\ta,b\n2\t\"\"\n3\t\n");
    let rows = [r#"{"n":1,"s":"a,b"}"#, r#"{"n":2,"s":""}"#, r#"{"n":3,"s":null}"#];
    assert_eq!(of("ndjson"), rows.join("\n") + "\n");
    assert_eq!(of("json"), format!("[{}]\n", rows.join(",\n")));
    assert_eq!(of("markdown").lines().count(), 5);
    let table = of("table");
    assert_eq!(table, output(&["-c", MIXED]), "the default");
    assert!(table.contains("NULL") && table.ends_with("(3 rows)\n"), "{table}");
}

#[test]
fn json_is_json() {
    let text = output(&[&examples(), "--format", "json", "-c", "SELECT * FROM sales LIMIT 20"]);
    let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 20);
    assert!(rows[0]["sale_id"].is_i64(), "{}", rows[0]);
    let none = output(&["--format", "json", "-c", "SELECT 1 AS x WHERE false"]);
    assert_eq!(none, "[]\n");
}

#[test]
fn statements_without_rows_print_nothing() {
    let ran = output(&[
        "--format",
        "csv",
        "-c",
        "CREATE VIEW v AS SELECT 1 AS x",
        "-c",
        "SELECT x FROM v",
    ]);
    assert_eq!(ran, "x\n1\n");
}

#[test]
fn no_rows() {
    assert_eq!(output(&["--format", "csv", "-c", "SELECT 1 AS x WHERE false"]), "x\n");
    assert_eq!(output(&["--format", "ndjson", "-c", "SELECT 1 AS x WHERE false"]), "");
}

// --- Inputs -------------------------------------------------------------------------------------

#[test]
fn commands_and_files_run_in_order_in_one_session() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(&dir, "1.sql", "-- a view\nCREATE VIEW v AS SELECT 2 AS n;\nSELECT n FROM v");
    let second = write(&dir, "2.sql", "SELECT n + 2 AS n FROM v; ;");
    let words = ["--format", "csv", "-c", "SELECT 1 AS n", "-f", &first, "-c"];
    let words = [&words[..], &["SELECT n + 1 AS n FROM v", "-f", &second]].concat();
    assert_eq!(output(&words), "n\n1\nn\n2\nn\n3\nn\n4\n");
}

#[test]
fn scripts_on_standard_input() {
    let script = "/* first; */ SELECT 'a;b' AS x; -- then\n\nSELECT 2\n AS x -- the end";
    let ran = run_with_stdin(&["--format", "csv"], script);
    assert_eq!(ran, Ran { code: 0, out: "x\na;b\nx\n2\n".to_owned(), err: String::new() });
    let ran = run_with_stdin(&["--format", "csv", "-f", "-"], "SELECT 1 AS x");
    assert_eq!(ran.out, "x\n1\n");
    assert_eq!(run_with_stdin(&[], "").code, 0);
    assert_eq!(run_with_stdin(&[], "-- nothing\n").code, 0);
}

#[test]
fn statements_of_a_pipe_run_as_they_come() {
    let mut command = planish();
    command.args(["--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in ["1", "2"] {
        writeln!(input, "SELECT {number} AS x;").unwrap();
        input.flush().unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "x");
        assert_eq!(lines.next().unwrap().unwrap(), number);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn files_and_folders_become_tables() {
    let data = examples();
    let count = "SELECT count(*) AS n FROM stores JOIN sales USING (store_id)";
    assert_eq!(output(&[&data, "--format", "csv", "-c", count]), "n\n12000\n");

    let stores = format!("{data}/stores.csv");
    let one = ["--format", "csv", "-c", "SELECT city FROM stores WHERE store_id = 1", &stores];
    assert_eq!(output(&one), "city\nOslo\n");

    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("parts")).unwrap();
    write(&dir, "parts/1.csv", "a,b\n1,x\n");
    write(&dir, "parts/2.csv", "a,b\n2,y\n");
    write(&dir, "one.csv", "a\n5\n");
    let folder = dir.path().to_str().unwrap();
    let sql = "SELECT sum(parts.a), sum(one.a) FROM parts, one";
    assert_eq!(output(&[folder, "--format", "csv", "-c", sql]).lines().nth(1), Some("3,10"));

    let sql = format!("SELECT sum(a) FROM '{folder}/parts/*.csv'");
    assert_eq!(output(&["--format", "csv", "-c", &sql]).lines().nth(1), Some("3"));
    let sql = format!("SELECT count(*) FROM '{data}/sales.parquet'");
    assert_eq!(output(&["--format", "csv", "-c", &sql]).lines().nth(1), Some("12000"));
}

#[test]
fn settings() {
    let show = ["--format", "csv", "-c", "SHOW datafusion.execution.batch_size"];
    let words = [&["--set", "datafusion.execution.batch_size=77"][..], &show].concat();
    assert!(output(&words).contains("77"));
    assert!(failure(&["--set", "no.such.option=1", "-c", "SELECT 1"]).contains("no.such.option"));
    let words = ["--memory-limit", "300MB", "--format", "csv", "-c", "SELECT 1 AS x"];
    assert_eq!(output(&words), "x\n1\n");
}

#[test]
fn timing_goes_to_standard_error() {
    let words =
        ["--timing", "--format", "csv", "-c", "CREATE VIEW v AS SELECT 1 AS x; SELECT x FROM v"];
    let ran = run(&words);
    assert_eq!((ran.code, ran.out.as_str()), (0, "x\n1\n"));
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.err);
    for line in lines {
        let number = line.strip_prefix("Time: ").and_then(|l| l.strip_suffix(" ms")).unwrap();
        let (_, decimals) = number.split_once('.').unwrap();
        assert!(number.parse::<f64>().unwrap() > 0.0 && decimals.len() == 3, "{line}");
    }
}

// --- Output -------------------------------------------------------------------------------------

#[test]
fn output_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    let words = ["--format", "csv", "-o", path.to_str().unwrap()];
    let select = ["-c", "SELECT 1 AS x", "-c", "SELECT 2 AS x"];
    assert_eq!(output(&[&words[..], &select].concat()), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\n1\nx\n2\n");

    let failing = ["-c", "SELECT 3 AS x", "-c", "SELECT 1 / 0"];
    failure(&[&words[..], &failing].concat());
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\n1\nx\n2\n", "the old file stays whole");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "and nothing beside it");

    let missing = dir.path().join("no/folder.csv");
    let missing = missing.to_str().unwrap();
    assert!(failure(&["-o", missing, "-c", "SELECT 1"]).contains(missing));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for format in ["csv", "ndjson", "table"] {
        let mut command = planish();
        let sql = "SELECT a.sale_id, b.name FROM sales a CROSS JOIN products b";
        command.args([&examples(), "--format", format, "-c", sql]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut start = [0; 8];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let ran = child.wait_with_output().unwrap();
        assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(0), &b""[..]), "{format}");
    }
}

// --- Faults -------------------------------------------------------------------------------------

#[test]
fn the_first_failing_statement_stops_the_run() {
    let ran = run(&["--format", "csv", "-c", "SELECT 1 AS x; SELECT 1 / 0; SELECT 2 AS x"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "x\n1\n"));
    assert_one_error(&ran);
    let ran = run_with_stdin(&["--format", "csv"], "SELECT 1 AS x;\n\nSELEC;\nSELECT 2;");
    assert_eq!((ran.code, ran.out.as_str()), (1, "x\n1\n"));
    assert!(ran.err.contains("line 3"), "{}", ran.err);
}

#[test]
fn errors_in_a_file_tell_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "x.sql", "SELECT 1;\n\n-- here\nSELECT nothing;");
    let ran = run(&["--format", "csv", "-f", &path]);
    assert!(ran.code == 1 && ran.err.contains(&format!("{path}:4: ")), "{ran:?}");
    let missing = dir.path().join("missing.sql");
    let missing = missing.to_str().unwrap();
    assert!(failure(&["-f", missing]).contains(missing));
}

#[test]
fn missing_files() {
    assert!(failure(&["nowhere.parquet", "-c", "SELECT 1"]).contains("nowhere.parquet"));
    assert!(failure(&["-c", "SELECT * FROM 'nowhere.parquet'"]).contains("nowhere.parquet"));
    assert!(failure(&["-c", "SELECT * FROM nowhere"]).contains("nowhere"));
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().to_str().unwrap();
    assert!(failure(&[empty, "-c", "SELECT 1"]).contains(empty));
}

#[test]
fn wrong_names_and_types() {
    let data = examples();
    let fails = |sql: &str| failure(&[&data, "-c", sql]);
    assert!(fails("SELECT colour FROM products").contains("colour"));
    assert!(
        fails("SELECT sale_id FROM sales WHERE no_such_function(1)").contains("no_such_function")
    );
    assert!(fails("SELECT sum(name) FROM products").to_lowercase().contains("sum"));
    assert!(fails("SELECT CAST(name AS INTEGER) FROM products").contains("Espresso beans"));
    assert!(fails("SELECT 1 / 0").to_lowercase().contains("divide by zero"));
    assert!(fails("SELECT 1 / (sale_id - sale_id) FROM sales").to_lowercase().contains("zero"));
}

#[test]
fn wrong_syntax_and_unsupported_statements() {
    assert!(failure(&["-c", "SELEC 1"]).contains("SELEC"));
    assert!(failure(&["-c", "SELECT 'open"]).to_lowercase().contains("unterminated"));
    for statement in ["INSERT INTO t VALUES (1)", "DELETE FROM t", "COPY t TO 'x.csv'"] {
        let name = statement.split(' ').next().unwrap();
        let ran =
            run(&["--format", "csv", "-c", "CREATE TABLE t AS SELECT 1 AS x", "-c", statement]);
        assert!(ran.code == 1 && ran.err.contains(name), "{ran:?}");
        assert_one_error(&ran);
    }
}

#[test]
fn truncated_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(PathBuf::from(examples()).join("sales.parquet")).unwrap();
    for (name, bytes) in [
        ("half.parquet", &whole[..whole.len() / 2]),
        ("short.parquet", &whole[..3]),
        ("empty.parquet", &whole[..0]),
    ] {
        let path = write(&dir, name, bytes);
        let err = failure(&[&path, "-c", "SELECT 1"]);
        assert!(err.contains(name), "{err}");
    }
    // Whole at the end, broken inside: the footer reads, the pages do not.
    let mut broken = whole.clone();
    let middle = broken.len() / 2;
    broken[100..middle].fill(0xAB);
    let path = write(&dir, "broken.parquet", &broken);
    let err = failure(&[&path, "--format", "csv", "-c", "SELECT sum(sale_id) FROM broken"]);
    assert!(err.contains("broken.parquet"), "{err}");
}

#[test]
fn csv_rows_that_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "many.csv", "a,b\n1,2\n3,4,5\n");
    let err = failure(&[&path, "--format", "csv", "-c", "SELECT * FROM many"]);
    assert!(err.contains("many.csv") && err.contains('3'), "{err}");
    // A value unlike those that the type was inferred from.
    let mut rows = "a\n".to_owned() + &"1\n".repeat(50_000);
    rows.push_str("x\n");
    let path = write(&dir, "late.csv", rows);
    let ran = run(&[&path, "--format", "csv", "-c", "SELECT sum(a) FROM late"]);
    if ran.code != 0 {
        assert!(ran.err.contains("late.csv"), "{ran:?}");
        assert_one_error(&ran);
    }
}

#[test]
fn wrong_usage() {
    for words in [
        &["--format", "xml"][..],
        &["--set", "nothing"],
        &["--memory-limit", "lots"],
        &["--no-such-option"],
        &["-c"],
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}");
        assert!(ran.err.contains("error: "), "{words:?}: {}", ran.err);
    }
    assert!(output(&["--help"]).contains("--memory-limit"));
    assert!(output(&["--version"]).starts_with("planish "));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_query() {
    let mut command = planish();
    let sql =
        "SELECT count(*) FROM sales a, sales b, sales c WHERE a.sale_id + b.sale_id > c.sale_id";
    command.args([&examples(), "-c", sql]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130));
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "Error: interrupted\n");
}

#[test]
fn a_full_device_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let ran = planish().args(["-c", "SELECT 1"]).stdout(full).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).starts_with("Error: cannot write"), "{ran:?}");
}
