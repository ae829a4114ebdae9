//! `file_row_index()` and `input_file_name()`: what they stand for, whatever is skipped.

use crate::common::{error, rows, sorted_rows};
use arrow::array::{Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use planish::{DataFusionError, Result, Session};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Rows of each of the two files.
const ROWS: [usize; 2] = [95, 40];

/// Two files in row groups of ten rows; `place` is the row's place in its file, `v` repeats, with
/// NULLs, `s` is wide enough to be worth decoding late.
fn write(folder: &Path) -> Result<()> {
    for (name, count) in ["a.parquet", "b.parquet"].into_iter().zip(ROWS) {
        let places = 0..count as i64;
        let v = places.clone().map(|i| (i % 4 != 0).then_some(i * 7 % 13));
        let batch = RecordBatch::try_from_iter([
            ("place", Arc::new(Int64Array::from_iter_values(places.clone())) as _),
            ("v", Arc::new(v.collect::<Int64Array>()) as _),
            ("s", Arc::new(places.map(|i| Some(format!("row {i}"))).collect::<StringArray>()) as _),
        ])?;
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
        let file = File::create(folder.join(name))?;
        let external = |e| DataFusionError::External(Box::new(e));
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties)).map_err(external)?;
        writer.write(&batch).map_err(external)?;
        writer.close().map_err(external)?;
    }
    Ok(())
}

fn folder() -> Result<TempDir> {
    let folder = TempDir::new()?;
    write(folder.path())?;
    Ok(folder)
}

/// A session over the files as `t`, and over the first alone as `a`.
fn session_over(folder: &Path, partitions: usize, batch_size: usize) -> Result<Session> {
    let session =
        Session::builder().target_partitions(partitions).batch_size(batch_size).build()?;
    for (table, path) in [("t", folder.to_owned()), ("a", folder.join("a.parquet"))] {
        let sql = format!(
            "CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'",
            path.display()
        );
        session.sql(&sql)?.collect()?;
    }
    Ok(session)
}

#[test]
fn the_index_is_the_place_under_every_way_of_skipping_rows() -> Result<()> {
    let folder = folder()?;
    let conditions = [
        "true",
        "place = 37",
        "place >= 41 AND place < 63",
        "v = 3",
        "v IS NULL",
        "v > 2 AND place % 3 = 1",
        "s LIKE '%7'",
        "file_row_index() = 52",
        "file_row_index() % 9 = 4",
        "file_row_index() > 88 OR v = 1",
        "file_row_index() = place AND s > 'row 5'",
        "input_file_name() LIKE '%b.parquet' AND file_row_index() >= 33",
        "file_row_index() > 1000",
    ];
    for (partitions, batch) in [(1, 8192), (1, 1), (4, 7), (4, 8192)] {
        for off in ["", "FilterPushdown", "ProjectionPushdown", "all"] {
            for late in [true, false] {
                let session = session_over(folder.path(), partitions, batch)?;
                for set in [
                    format!("SET planish.optimizer.disable = '{off}'"),
                    format!("SET datafusion.execution.parquet.pushdown_filters = {late}"),
                ] {
                    session.sql(&set)?.collect()?;
                }
                for condition in conditions {
                    let way = format!("{partitions} {batch} '{off}' {late}: {condition}");
                    let sql = |index: &str, file: &str, condition: &str| {
                        format!("SELECT {index}, {file}, s FROM t WHERE {condition}")
                    };
                    let file = "right(input_file_name(), 9)";
                    let found = sorted_rows(&session, &sql("file_row_index()", file, condition))?;
                    // The same told from what is stored: the files differ in a stored column only
                    // by their length, so they are read one by one.
                    let mut expected = vec![];
                    for name in ["a.parquet", "b.parquet"] {
                        let table = format!("'{}'", folder.path().join(name).display());
                        let stored = condition
                            .replace("file_row_index()", "place")
                            .replace("input_file_name()", &format!("'{name}'"));
                        let sql = sql("place", &format!("'{name}'"), &stored);
                        expected.extend(rows(
                            &session,
                            &sql.replace("FROM t", &format!("FROM {table}")),
                        )?);
                    }
                    expected.sort();
                    assert_eq!(found, expected, "{way}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn calls_are_columns_through_the_nodes_between() -> Result<()> {
    let folder = folder()?;
    for (partitions, batch) in [(1, 8192), (4, 3)] {
        let session = session_over(folder.path(), partitions, batch)?;
        let check = |sql: &str, expected: &[&str]| -> Result<()> {
            assert_eq!(rows(&session, sql)?, expected, "{sql}");
            Ok(())
        };
        check("SELECT max(file_row_index()), count(*) FROM t", &["94 | 135"])?;
        check(
            "SELECT file_row_index() FROM (SELECT * FROM (SELECT v, s FROM a) x ORDER BY s LIMIT 3) y \
             ORDER BY 1",
            &["0", "1", "10"],
        )?;
        check("SELECT place FROM a ORDER BY file_row_index() DESC LIMIT 2", &["94", "93"])?;
        check(
            "SELECT right(input_file_name(), 9) f, count(*), max(file_row_index()) FROM t \
             GROUP BY input_file_name() ORDER BY f",
            &["a.parquet | 95 | 94", "b.parquet | 40 | 39"],
        )?;
        // As a join key, each call over its own scan.
        check(
            "SELECT count(*), sum(x.place) FROM (SELECT *, file_row_index() i FROM a) x \
             JOIN (SELECT *, file_row_index() i FROM t WHERE place < 5) y ON x.i = y.i",
            &["10 | 20"],
        )?;
        check(
            "SELECT x.place FROM (SELECT place FROM a WHERE file_row_index() IN (3, 50)) x \
             LEFT JOIN (VALUES (3)) v(k) ON x.place = v.k AND file_row_index() < 10 ORDER BY 1",
            &["3", "50"],
        )?;
        check(
            "SELECT place FROM a WHERE place IN (SELECT file_row_index() + 1 FROM t WHERE v = 3) \
             ORDER BY 1 LIMIT 2",
            &["7", "20"],
        )?;
        check(
            "SELECT row_number() OVER (ORDER BY file_row_index() DESC) r FROM a \
             WHERE file_row_index() < 3 ORDER BY r",
            &["1", "2", "3"],
        )?;
        check(
            "WITH q AS (SELECT * FROM a WHERE v = 3) \
             SELECT count(*) FROM q JOIN q p ON q.place = p.place WHERE q.place < 20",
            &["2"],
        )?;
        check("SELECT DISTINCT file_row_index() < 3 AS b FROM a ORDER BY b", &["false", "true"])?;
        check(
            "SELECT * FROM (SELECT place FROM a WHERE file_row_index() = 1 \
             UNION ALL SELECT place FROM a WHERE file_row_index() = 2) u ORDER BY 1",
            &["1", "2"],
        )?;
    }
    Ok(())
}

#[test]
fn the_call_dissolves_into_the_scan_and_prunes_row_groups() -> Result<()> {
    let folder = folder()?;
    let session = session_over(folder.path(), 1, 8192)?;
    let plan = rows(&session, "EXPLAIN SELECT file_row_index() AS idx, a.place FROM a")?.join("\n");
    let scan = "projection=[__planish_file_row_index@3 as idx, place@0]";
    assert!(plan.to_lowercase().contains(scan), "{plan}");
    assert!(!plan.contains("ProjectionExec"), "{plan}");
    let sql = "EXPLAIN ANALYZE SELECT place FROM a WHERE file_row_index() = 52";
    let plan = rows(&session, sql)?.join("\n");
    assert!(plan.contains("row_groups_read=1"), "{plan}");
    assert!(plan.contains("row_groups_pruned=9"), "{plan}");
    Ok(())
}

#[test]
fn csv_rows_count_from_the_first_record() -> Result<()> {
    let folder = TempDir::new()?;
    let text: String = (0..50).map(|i| format!("{i},\"x\n{i}\"\n")).collect();
    std::fs::write(folder.path().join("c.csv"), format!("place,s\n{text}"))?;
    for batch in [1, 7, 8192] {
        let session = Session::builder().batch_size(batch).build()?;
        let path = folder.path().join("c.csv");
        let sql = format!(
            "SELECT count(*), min(right(input_file_name(), 5)) FROM '{}' \
             WHERE file_row_index() = place",
            path.display()
        );
        assert_eq!(rows(&session, &sql)?, ["50 | c.csv"]);
    }
    Ok(())
}

#[test]
fn a_call_without_one_file_scan_behind_it_is_an_error() -> Result<()> {
    let folder = folder()?;
    let session = session_over(folder.path(), 2, 8192)?;
    session.sql("CREATE VIEW m AS SELECT * FROM (VALUES (1)) v(x)")?.collect()?;
    session.sql("CREATE TABLE n AS SELECT 1 AS x")?.collect()?;
    for (sql, part) in [
        ("SELECT file_row_index()", "file_row_index() has no file behind it"),
        ("SELECT file_row_index() FROM m", "has no file behind it"),
        ("SELECT input_file_name() FROM n", "n is not a table of files"),
        ("SELECT 1 FROM a JOIN t ON file_row_index() = t.place", "ambiguous: 2 tables"),
        ("SELECT file_row_index() FROM a, t", "ambiguous: 2 tables"),
        ("SELECT file_row_index() FROM (SELECT count(*) FROM a) x", "the rows of Aggregate"),
        ("SELECT file_row_index() FROM (SELECT DISTINCT v FROM a) x", "the rows of Distinct"),
        (
            "SELECT file_row_index() FROM (SELECT v FROM a UNION ALL SELECT v FROM a) x",
            "ambiguous: 2 tables",
        ),
        ("SELECT file_row_index(1) FROM a", "file_row_index"),
    ] {
        let error = error(&session, sql);
        assert!(error.contains(part), "{sql}: {error}");
        assert!(!error.contains("source dependent"), "{sql}: {error}");
    }
    Ok(())
}
