//! Operators that stream: joins of sorted inputs, end to end.

use crate::common::{GRID, session, session_with, sorted_rows};
use planish::{Result, Session};

fn physical(session: &Session, sql: &str) -> Result<String> {
    Ok(crate::common::rows(session, &format!("EXPLAIN {sql}"))?.join("\n"))
}

#[test]
fn joins_by_sorting_give_the_rows_of_hash_joins() -> Result<()> {
    let merge = "SET datafusion.optimizer.prefer_hash_join = false";
    for sql in [
        "SELECT id, name, city FROM emp JOIN dept ON dept = name ORDER BY id",
        "SELECT id, city FROM emp LEFT JOIN dept ON dept = name AND salary > length(city) * 5",
        "SELECT id, name FROM emp FULL JOIN dept ON dept = name AND salary > 15",
        "SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM dept WHERE name = dept AND city > 'P')",
        "SELECT id FROM emp WHERE dept NOT IN (SELECT name FROM dept)",
        "SELECT dept FROM emp INTERSECT SELECT name FROM dept",
        "SELECT name, count(id), max(salary) FROM dept LEFT JOIN emp ON name = dept GROUP BY name",
    ] {
        let expected = sorted_rows(&session()?, sql)?;
        for &(partitions, batch) in GRID {
            let builder = Session::builder().target_partitions(partitions).batch_size(batch);
            let session = session_with(builder)?;
            session.sql(merge)?.collect()?;
            let null_aware = sql.contains("NOT IN");
            let plan = physical(&session, sql)?;
            assert_eq!(plan.contains("SortMergeJoinExec"), !null_aware, "{plan}");
            assert_eq!(sorted_rows(&session, sql)?, expected, "{partitions} {batch}: {sql}");
        }
    }
    Ok(())
}
