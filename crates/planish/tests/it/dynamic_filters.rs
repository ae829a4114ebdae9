//! Filters that are found while a query runs: the same rows with and without them, less work.

use crate::common::{rows, sorted_rows};
use arrow::array::{
    Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use planish::{DataFusionError, Result, Session};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Rows of the large table.
const ROWS: i64 = 6000;

fn write(path: &Path, batch: &RecordBatch, rows_per_group: usize) -> Result<()> {
    let external = |e| DataFusionError::External(Box::new(e));
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties))
        .map_err(external)?;
    writer.write(batch).map_err(external)?;
    writer.close().map_err(external)?;
    Ok(())
}

/// `big`: keys in file order (`id`), scattered (`k`), with NULLs and of many types; `small`: keys
/// of a few rows, a NULL among them; `none`: no row.
fn folder() -> Result<TempDir> {
    let folder = TempDir::new()?;
    let ids: Vec<i64> = (0..ROWS).collect();
    let k = |i: i64| (i * 7919) % ROWS;
    let sparse = |i: i64| (i % 11 != 0).then_some(k(i) / 3);
    let float = |i: i64| match i % 97 {
        0 => None,
        1 => Some(f64::NAN),
        2 => Some(-0.0),
        3 => Some(f64::NEG_INFINITY),
        _ => Some(k(i) as f64 / 8.0),
    };
    let decimals = ids.iter().map(|&i| sparse(i).map(|v| i128::from(v) - 500));
    let big = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids.clone())) as _),
        ("k", Arc::new(ids.iter().map(|&i| Some(k(i))).collect::<Int64Array>()) as _),
        ("n", Arc::new(ids.iter().map(|&i| sparse(i)).collect::<Int64Array>()) as _),
        ("f", Arc::new(ids.iter().map(|&i| float(i)).collect::<Float64Array>()) as _),
        (
            "s",
            Arc::new(
                ids.iter().map(|&i| sparse(i).map(|v| format!("s{v}"))).collect::<StringArray>(),
            ) as _,
        ),
        (
            "d",
            Arc::new(decimals.collect::<Decimal128Array>().with_precision_and_scale(12, 2)?) as _,
        ),
        (
            "t",
            Arc::new(ids.iter().map(|&i| sparse(i).map(|v| v as i32)).collect::<Date32Array>())
                as _,
        ),
        (
            "x",
            Arc::new(ids.iter().map(|&i| Some(format!("payload {i}"))).collect::<StringArray>())
                as _,
        ),
    ])?;
    write(&folder.path().join("big.parquet"), &big, 500)?;
    let small = RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(Int64Array::from(vec![Some(17), Some(4711), None, Some(17), Some(9999)])) as _,
        ),
        ("n", Arc::new(Int64Array::from(vec![Some(3), None, Some(700), Some(3), Some(-1)])) as _),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("s3"), None, Some("s700"), Some("s9"), Some("")]))
                as _,
        ),
        ("g", Arc::new(Int32Array::from(vec![1, 2, 3, 1, 2])) as _),
    ])?;
    write(&folder.path().join("small.parquet"), &small, 2)?;
    write(&folder.path().join("none.parquet"), &small.slice(0, 0), 2)?;
    Ok(folder)
}

fn session(folder: &Path, partitions: usize, batch_size: usize, on: bool) -> Result<Session> {
    let session =
        Session::builder().target_partitions(partitions).batch_size(batch_size).build()?;
    for table in ["big", "small", "none"] {
        let path = folder.join(format!("{table}.parquet"));
        session.register_parquet(table, &path.display().to_string())?;
    }
    let set = format!("SET datafusion.optimizer.enable_dynamic_filter_pushdown = {on}");
    session.sql(&set)?.collect()?;
    Ok(session)
}

/// Asserts that `sql` gives the same rows, in the same order if it has one, in every way.
fn alike(folder: &Path, sql: &str, ordered: bool) -> Result<Vec<String>> {
    let of = |session: &Session| match ordered {
        true => rows(session, sql),
        false => sorted_rows(session, sql),
    };
    let expected = of(&session(folder, 1, 8192, false)?)?;
    for (partitions, batch_size) in [(1, 8192), (1, 64), (3, 100)] {
        let session = session(folder, partitions, batch_size, true)?;
        assert_eq!(of(&session)?, expected, "{partitions} {batch_size}: {sql}");
        session.sql("SET planish.optimizer.disable = 'all'")?.collect()?;
        assert_eq!(of(&session)?, expected, "not optimized: {sql}");
    }
    Ok(expected)
}

#[test]
fn the_first_rows_in_every_order_of_every_type() -> Result<()> {
    let folder = folder()?;
    for key in ["id", "k", "n", "f", "s", "d", "t", "n + 1", "-f"] {
        for order in ["ASC NULLS LAST", "ASC NULLS FIRST", "DESC NULLS LAST", "DESC NULLS FIRST"] {
            for limit in ["3", "700", "0", "2 OFFSET 5"] {
                // The id makes the order total.
                let sql = format!(
                    "SELECT id, {key}, x FROM big ORDER BY {key} {order}, id LIMIT {limit}"
                );
                alike(folder.path(), &sql, true)?;
            }
        }
    }
    for sql in [
        "SELECT id, x FROM big WHERE k % 5 = 2 ORDER BY n DESC, id LIMIT 5",
        "SELECT n, count(*), max(x) FROM big GROUP BY n ORDER BY n NULLS LAST LIMIT 4",
        "SELECT n, id, row_number() OVER (PARTITION BY n ORDER BY id) r FROM big ORDER BY n, id LIMIT 5",
        "SELECT * FROM (SELECT id, x FROM big UNION ALL SELECT id, s FROM small WHERE id > 0) u \
         ORDER BY id, x LIMIT 4",
        "SELECT b.id, s.n FROM big b LEFT JOIN small s ON b.id = s.id ORDER BY b.k, b.id LIMIT 6",
        "SELECT b.id, s.n FROM big b JOIN small s ON b.id >= s.id ORDER BY s.n DESC NULLS LAST, b.id LIMIT 6",
        "SELECT id FROM (SELECT id, k FROM big ORDER BY k LIMIT 100) t ORDER BY id LIMIT 3",
    ] {
        alike(folder.path(), sql, true)?;
    }
    Ok(())
}

#[test]
fn joins_of_every_type_on_keys_of_every_type() -> Result<()> {
    let folder = folder()?;
    for (build, probe) in [("small", "big"), ("none", "big"), ("big", "small")] {
        for on in
            ["a.id = b.id", "a.n = b.n", "a.s = b.s", "a.id = b.id AND a.n = b.n", "a.n = b.n + 1"]
        {
            for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
                let sql = format!(
                    "SELECT a.id, a.n, b.id, b.x FROM (SELECT id, n, s, id AS x FROM {build}) a {join} \
                     (SELECT id, n, s, s AS x FROM {probe}) b ON {on} \
                     WHERE coalesce(a.id, 0) < 5000 OR b.id IS NULL"
                );
                alike(folder.path(), &sql, false)?;
            }
            for test in ["EXISTS", "NOT EXISTS"] {
                let sql = format!(
                    "SELECT b.id, b.s FROM {probe} b WHERE {test} (SELECT 1 FROM {build} a WHERE {on})"
                );
                alike(folder.path(), &sql, false)?;
            }
        }
        for sql in [
            format!("SELECT b.id FROM {probe} b WHERE n IN (SELECT n FROM {build}) OR b.id = 5"),
            format!("SELECT b.id FROM {probe} b WHERE n NOT IN (SELECT n FROM {build})"),
            format!("SELECT b.id FROM {probe} b JOIN {build} a ON b.n IS NOT DISTINCT FROM a.n"),
            format!(
                "SELECT count(*), sum(b.id) FROM {probe} b JOIN {build} a ON b.n = a.n AND b.id > a.id"
            ),
        ] {
            alike(folder.path(), &sql, false)?;
        }
    }
    let sql = "SELECT b.id, b.c FROM small s JOIN (SELECT n, min(id) id, count(*) c FROM big GROUP BY n) b \
               ON s.n = b.n JOIN big c ON c.id = b.id AND c.k = b.id WHERE s.g < 3";
    alike(folder.path(), sql, false)?;
    Ok(())
}

#[test]
fn row_groups_and_rows_are_skipped() -> Result<()> {
    let folder = folder()?;
    let session = session(folder.path(), 1, 256, true)?;
    let analyzed = |sql: &str| -> Result<String> {
        Ok(rows(&session, &format!("EXPLAIN ANALYZE {sql}"))?.join("\n"))
    };
    let plan = analyzed("SELECT * FROM big ORDER BY id LIMIT 10")?;
    assert!(plan.contains("dynamic_filter=DynamicFilter[id@0]"), "{plan}");
    assert!(plan.contains("predicate=DynamicFilter[id@0]"), "{plan}");
    assert!(plan.contains("row_groups_pruned_by_dynamic_filter=11"), "{plan}");
    let plan = analyzed("SELECT * FROM big ORDER BY k DESC LIMIT 10")?;
    assert!(plan.contains("rows_pruned_by_filter="), "{plan}");
    let plan = analyzed("SELECT b.x FROM small s JOIN big b ON s.id = b.id")?;
    assert!(plan.contains("row_groups_pruned_by_dynamic_filter=10"), "{plan}");
    assert!(plan.contains("rows_pruned_by_filter=998"), "{plan}");
    for knob in ["topk", "join"] {
        let sql = format!("SET datafusion.optimizer.enable_{knob}_dynamic_filter_pushdown = false");
        session.sql(&sql)?.collect()?;
    }
    let plan = analyzed("SELECT b.x FROM small s JOIN big b ON s.id = b.id ORDER BY b.k LIMIT 1")?;
    assert!(!plan.contains("DynamicFilter"), "{plan}");
    Ok(())
}

/// The plan holds no value: two runs at once, and one after the other, give the same rows.
#[test]
fn a_query_can_run_many_times_at_once() -> Result<()> {
    let folder = folder()?;
    let session = session(folder.path(), 2, 100, true)?;
    let query = session
        .sql("SELECT b.id FROM small s JOIN big b ON s.n = b.n ORDER BY b.k DESC, b.id LIMIT 3")?;
    let text = |batches: &[RecordBatch]| planish_testkit::rows::of_record_batches(batches);
    let expected = text(&query.collect()?);
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| query.collect().map(|b| text(&b)))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap().unwrap(), expected);
        }
    });
    assert_eq!(text(&query.collect()?), expected);
    Ok(())
}
