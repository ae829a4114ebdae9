//! What projections and join filters become, end to end: the plan, and the rows with the rule on
//! and off. Expected rows are DuckDB's.

use crate::common::{GRID, session, session_with, sorted_rows};
use planish::{Result, Session};

fn physical(session: &Session, sql: &str) -> Result<String> {
    let rows = planish_testkit::rows::of_record_batches(
        &session.sql(&format!("EXPLAIN {sql}"))?.collect()?,
    );
    Ok(rows.join("\n"))
}

/// The rows of `sql` in all ways of running it, with `rule` on and off.
fn in_all_ways(sql: &str) -> Result<Vec<String>> {
    let mut all = vec![];
    for &(partitions, batch) in GRID {
        for off in ["", "ProjectionPushdown", "JoinSelection", "FilterPushdown", "all"] {
            let builder = Session::builder().target_partitions(partitions).batch_size(batch);
            let session = session_with(builder)?;
            session.sql(&format!("SET planish.optimizer.disable = '{off}'"))?.collect()?;
            all.push((format!("{partitions} {batch} {off}"), sorted_rows(&session, sql)?));
        }
    }
    let (_, expected) = all[0].clone();
    for (way, rows) in all {
        assert_eq!(rows, expected, "{way}: {sql}");
    }
    Ok(expected)
}

#[test]
fn a_function_of_one_side_is_computed_once_per_row() -> Result<()> {
    let sql = "SELECT e.id, d.name FROM emp e JOIN dept d ON upper(e.dept) < upper(d.name)";
    let plan = physical(&session()?, sql)?;
    let filter = "NestedLoopJoinExec: join_type=Inner, filter=join_proj_push_down_";
    assert!(plan.contains(filter), "{plan}");
    assert!(plan.contains("upper(dept@1) AS join_proj_push_down_"), "{plan}");
    assert!(plan.contains("upper(name@0) AS join_proj_push_down_"), "{plan}");
    assert_eq!(
        in_all_ways(sql)?,
        ["2 | law", "2 | ops", "4 | law", "4 | ops", "6 | law", "6 | ops"]
    );
    Ok(())
}

#[test]
fn outer_joins_on_computed_conditions() -> Result<()> {
    let sql = "SELECT e.id, d.name FROM emp e LEFT JOIN dept d \
               ON length(d.name) + e.salary > length(e.dept) + 20 AND d.city <> 'Rome'";
    assert_eq!(
        in_all_ways(sql)?,
        [
            "1 | \u{2205}",
            "2 | \u{2205}",
            "3 | \u{2205}",
            "4 | \u{2205}",
            "5 | dev",
            "6 | dev",
            "7 | \u{2205}"
        ]
    );
    let sql = "SELECT e.id FROM emp e WHERE NOT EXISTS \
               (SELECT 1 FROM dept d WHERE upper(d.name) > upper(e.dept))";
    assert_eq!(in_all_ways(sql)?, ["1", "3", "5", "7"]);
    Ok(())
}

#[test]
fn a_guard_in_a_join_condition_is_not_overtaken() -> Result<()> {
    let sql = "SELECT e.id, f.id FROM emp e JOIN emp f \
               ON e.salary <> 20 AND 100 / (e.salary - 20) > f.salary - e.salary";
    let of_3 = [1, 2, 3, 6, 7].map(|id| format!("3 | {id}"));
    let of_5 = [1, 2, 3, 5, 6, 7].map(|id| format!("5 | {id}"));
    assert_eq!(in_all_ways(sql)?, [&of_3[..], &of_5[..]].concat());
    // Nobody is paid more than 50: no pair is ever looked at.
    let sql = "SELECT e.id FROM emp e JOIN (SELECT id FROM emp WHERE salary > 50) f \
               ON 100 / (e.salary - 20) > f.id";
    assert!(in_all_ways(sql)?.is_empty());
    Ok(())
}

#[test]
fn columns_come_in_the_order_asked_whatever_absorbs_them() -> Result<()> {
    let sql = "SELECT d.city, e.id, d.name, e.id FROM emp e JOIN dept d ON e.dept = d.name \
               WHERE e.salary > 10 OR d.city = 'Oslo'";
    assert_eq!(
        in_all_ways(sql)?,
        ["Oslo | 2 | dev | 2", "Oslo | 4 | dev | 4", "Rome | 5 | ops | 5"]
    );
    let sql = "SELECT salary, id FROM emp WHERE dept = 'ops'";
    assert_eq!(in_all_ways(sql)?, ["10 | 1", "50 | 5"]);
    Ok(())
}

#[test]
fn a_volatile_column_is_drawn_once() -> Result<()> {
    let sql = "SELECT count(*) FROM (SELECT r, r AS s FROM (SELECT random() AS r FROM emp)) \
               WHERE r <> s";
    assert_eq!(in_all_ways(sql)?, ["0"]);
    Ok(())
}

/// The article's plan: the projection is the scan's list of columns, in the order asked.
#[test]
fn permuted_columns_dissolve_into_the_scan_of_a_file() -> Result<()> {
    let session = Session::builder().target_partitions(2).build()?;
    let path = |name: &str| format!("{}/../../examples/data/{name}", env!("CARGO_MANIFEST_DIR"));
    for (file, columns, shown) in [
        ("sales.parquet", "quantity, store_id", "projection=[quantity@4, store_id@2]"),
        ("products.csv", "name, product_id", "projection=[name@1, product_id@0]"),
    ] {
        let plan = physical(&session, &format!("SELECT {columns} FROM '{}'", path(file)))?;
        assert!(plan.contains(shown), "{plan}");
        assert!(!plan.contains("ProjectionExec"), "{plan}");
    }
    Ok(())
}
