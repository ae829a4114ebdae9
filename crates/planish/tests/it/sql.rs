//! SQL over tables in memory, for several numbers of partitions and batch sizes.

use crate::common::{GRID, session_with, sorted_rows};
use planish::{Result, Session};
use std::sync::Arc;

/// Queries with their rows, sorted as text.
const QUERIES: &[(&str, &[&str])] = &[
    // Without FROM, VALUES, empty.
    ("SELECT 1 + 1 AS two, 'x' AS x, NULL AS n", &["2 | x | ∅"]),
    ("VALUES (1, 'a'), (2, NULL)", &["1 | a", "2 | ∅"]),
    ("SELECT 1 WHERE false", &[]),
    // Projection and filter.
    (
        "SELECT id * 2 AS d, dept FROM emp WHERE salary > 15",
        &["10 | ops", "12 | hr", "4 | dev", "6 | ∅"],
    ),
    ("SELECT id FROM emp WHERE dept IS NULL", &["3", "7"]),
    ("SELECT id FROM emp WHERE dept LIKE 'd%' OR salary = 5", &["2", "4", "7"]),
    (
        "SELECT CASE WHEN salary > 0 THEN 100 / salary END AS q FROM emp WHERE id IN (1, 4)",
        &["10", "∅"],
    ),
    ("SELECT e.id, e.id AS again FROM emp e WHERE e.id = 1", &["1 | 1"]),
    // Aggregates.
    (
        "SELECT count(*), count(salary), sum(salary), min(dept), max(dept) FROM emp",
        &["7 | 6 | 135 | dev | ops"],
    ),
    (
        "SELECT dept, count(*) AS n, avg(salary) AS a FROM emp GROUP BY dept",
        &["dev | 2 | 20.0", "hr | 1 | 20.0", "ops | 2 | 30.0", "∅ | 2 | 17.5"],
    ),
    ("SELECT count(*) FROM emp WHERE false", &["0"]),
    ("SELECT dept, count(*) FROM emp WHERE false GROUP BY dept", &[]),
    ("SELECT count(DISTINCT salary) AS d, count(DISTINCT dept) FROM emp", &["5 | 3"]),
    (
        "SELECT dept, sum(salary) FILTER (WHERE id > 3) AS s FROM emp GROUP BY dept",
        &["dev | ∅", "hr | 20", "ops | 50", "∅ | 5"],
    ),
    ("SELECT dept FROM emp GROUP BY dept HAVING count(*) > 1", &["dev", "ops", "∅"]),
    ("SELECT DISTINCT dept FROM emp", &["dev", "hr", "ops", "∅"]),
    (
        "SELECT DISTINCT ON (dept) dept, id FROM emp ORDER BY dept, id DESC",
        &["dev | 4", "hr | 6", "ops | 5", "∅ | 7"],
    ),
    ("SELECT array_agg(id ORDER BY id DESC) AS ids FROM emp WHERE salary < 25", &["[7, 6, 2, 1]"]),
    (
        "SELECT dept, first_value(id ORDER BY salary DESC NULLS LAST) AS f FROM emp GROUP BY dept",
        &["dev | 2", "hr | 6", "ops | 5", "∅ | 3"],
    ),
    // Grouping sets.
    (
        "SELECT dept, salary > 15 AS rich, count(*) AS n FROM emp WHERE id < 4 \
      GROUP BY ROLLUP (dept, salary > 15)",
        &[
            "dev | true | 1",
            "dev | ∅ | 1",
            "ops | false | 1",
            "ops | ∅ | 1",
            "∅ | true | 1",
            "∅ | ∅ | 1",
            "∅ | ∅ | 3",
        ],
    ),
    (
        "SELECT a, b, count(*) AS n, grouping(a) AS ga, grouping(b) AS gb \
      FROM (VALUES (1, 2), (1, 3)) AS t(a, b) GROUP BY CUBE (a, b)",
        &[
            "1 | 2 | 1 | 0 | 0",
            "1 | 3 | 1 | 0 | 0",
            "1 | ∅ | 2 | 0 | 1",
            "∅ | 2 | 1 | 1 | 0",
            "∅ | 3 | 1 | 1 | 0",
            "∅ | ∅ | 2 | 1 | 1",
        ],
    ),
    (
        "SELECT a, count(*) AS n FROM (VALUES (1), (1), (2)) AS t(a) GROUP BY GROUPING SETS ((a))",
        &["1 | 2", "2 | 1"],
    ),
    (
        "SELECT a, sum(b) AS s FROM (VALUES (1, 5), (2, 6)) AS t(a, b) \
      GROUP BY GROUPING SETS ((a), (), ())",
        &["1 | 5", "2 | 6", "∅ | 11", "∅ | 11"],
    ),
    // Joins.
    (
        "SELECT id, city FROM emp JOIN dept ON dept = name",
        &["1 | Rome", "2 | Oslo", "4 | Oslo", "5 | Rome"],
    ),
    (
        "SELECT id, name FROM emp LEFT JOIN dept ON dept = name AND id < 4",
        &["1 | ops", "2 | dev", "3 | ∅", "4 | ∅", "5 | ∅", "6 | ∅", "7 | ∅"],
    ),
    (
        "SELECT id, name FROM emp RIGHT JOIN dept ON dept = name",
        &["1 | ops", "2 | dev", "4 | dev", "5 | ops", "∅ | law"],
    ),
    (
        "SELECT id, name FROM emp FULL JOIN dept ON dept = name",
        &["1 | ops", "2 | dev", "3 | ∅", "4 | dev", "5 | ops", "6 | ∅", "7 | ∅", "∅ | law"],
    ),
    ("SELECT name FROM dept WHERE EXISTS (SELECT 1 FROM emp WHERE dept = name)", &["dev", "ops"]),
    ("SELECT name FROM dept WHERE NOT EXISTS (SELECT 1 FROM emp WHERE dept = name)", &["law"]),
    ("SELECT name FROM dept WHERE name NOT IN (SELECT dept FROM emp)", &[]),
    (
        "SELECT name FROM dept WHERE name NOT IN (SELECT dept FROM emp WHERE dept IS NOT NULL)",
        &["law"],
    ),
    (
        "SELECT name FROM dept WHERE name = 'law' OR name IN (SELECT dept FROM emp WHERE id = 1)",
        &["law", "ops"],
    ),
    (
        "SELECT a.id, b.id AS other FROM emp a JOIN emp b ON a.salary < b.salary AND a.id > b.id",
        &["6 | 3", "6 | 5", "7 | 1", "7 | 2", "7 | 3", "7 | 5", "7 | 6"],
    ),
    ("SELECT count(*) FROM emp CROSS JOIN dept", &["21"]),
    ("SELECT count(*) FROM emp a JOIN emp b ON a.dept IS NOT DISTINCT FROM b.dept", &["13"]),
    ("SELECT e.id FROM emp e JOIN (VALUES (1::INT), (5::INT)) AS v(k) ON e.id = v.k", &["1", "5"]),
    // Set operations.
    ("SELECT id FROM emp WHERE id < 3 UNION ALL SELECT 2", &["1", "2", "2"]),
    ("SELECT id FROM emp WHERE id < 3 UNION SELECT 2.5", &["1.0", "2.0", "2.5"]),
    ("SELECT dept FROM emp INTERSECT SELECT name FROM dept", &["dev", "ops"]),
    ("SELECT dept FROM emp EXCEPT SELECT name FROM dept", &["hr", "∅"]),
    // Subqueries, CTEs.
    ("SELECT id FROM emp WHERE salary > (SELECT avg(salary) FROM emp)", &["3", "5"]),
    (
        "SELECT id, (SELECT max(id) FROM emp) - id AS r FROM emp WHERE id > \
      (SELECT min(id) + (SELECT count(*) FROM dept) FROM emp)",
        &["5 | 2", "6 | 1", "7 | 0"],
    ),
    ("SELECT (SELECT id FROM emp WHERE false) AS n", &["∅"]),
    ("SELECT (SELECT 1 FROM emp WHERE false) IS NULL AS yes", &["true"]),
    (
        "SELECT id FROM emp WHERE (SELECT name FROM dept WHERE false) IS NULL AND id < 3",
        &["1", "2"],
    ),
    ("SELECT count(*) FROM dept a RIGHT JOIN dept b ON a.name = b.name", &["3"]),
    // Names that repeat, literals.
    ("SELECT 1 + 2 * 3, (1 + 2) * 3", &["7 | 9"]),
    ("SELECT id, id, id AS id, * FROM emp WHERE id = 1", &["1 | 1 | 1 | 1 | ops | 10"]),
    ("SELECT 0.06 + 0.01 = 0.07, 0.1 + 0.2, 1e2, 1.5e-1 * 2", &["true | 0.3 | 100.0 | 0.3"]),
    (
        "SELECT id FROM emp e WHERE salary = (SELECT max(salary) FROM emp WHERE dept = e.dept)",
        &["2", "5", "6"],
    ),
    (
        "WITH big AS (SELECT * FROM emp WHERE salary >= 20) \
      SELECT a.id, b.id AS b FROM big a JOIN big b ON a.dept = b.dept",
        &["2 | 2", "5 | 5", "6 | 6"],
    ),
    ("SELECT count(*) FROM (SELECT id FROM emp ORDER BY id LIMIT 3) AS t", &["3"]),
];

#[test]
fn queries() -> Result<()> {
    for (partitions, batch_size) in GRID {
        let builder = Session::builder().target_partitions(*partitions).batch_size(*batch_size);
        let session = session_with(builder)?;
        for (sql, expected) in QUERIES {
            let place = format!("{partitions} partitions, batches of {batch_size}: {sql}");
            match sorted_rows(&session, sql) {
                Ok(rows) => assert_eq!(rows, *expected, "{place}"),
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
    Ok(())
}

/// Queries with their rows in order.
const ORDERED: &[(&str, &[&str])] = &[
    ("SELECT id FROM emp ORDER BY id DESC", &["7", "6", "5", "4", "3", "2", "1"]),
    (
        "SELECT id, salary FROM emp ORDER BY salary, id",
        &["7 | 5", "1 | 10", "2 | 20", "6 | 20", "3 | 30", "5 | 50", "4 | ∅"],
    ),
    ("SELECT id FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 3", &["5", "3", "2"]),
    ("SELECT id FROM emp ORDER BY id LIMIT 2 OFFSET 3", &["4", "5"]),
    ("SELECT id FROM emp ORDER BY id OFFSET 5", &["6", "7"]),
    ("SELECT id FROM emp ORDER BY id LIMIT 1 + 1", &["1", "2"]),
    ("SELECT id FROM emp ORDER BY id LIMIT 0", &[]),
    (
        "SELECT dept, count(*) AS n FROM emp GROUP BY dept ORDER BY n DESC, dept LIMIT 2",
        &["dev | 2", "ops | 2"],
    ),
    (
        "SELECT id FROM (SELECT id FROM emp ORDER BY id LIMIT 5) AS t ORDER BY id DESC LIMIT 2",
        &["5", "4"],
    ),
];

#[test]
fn ordered_queries() -> Result<()> {
    for (partitions, batch_size) in GRID {
        let builder = Session::builder().target_partitions(*partitions).batch_size(*batch_size);
        let session = session_with(builder)?;
        for (sql, expected) in ORDERED {
            let place = format!("{partitions} partitions, batches of {batch_size}: {sql}");
            match crate::common::rows(&session, sql) {
                Ok(rows) => assert_eq!(rows, *expected, "{place}"),
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
    Ok(())
}

#[test]
fn results_have_the_schema_of_the_logical_plan() -> Result<()> {
    let session = crate::common::session()?;
    for (sql, _) in QUERIES.iter().chain(ORDERED) {
        let query = session.sql(sql)?;
        let promised = Arc::clone(query.logical_plan().schema().inner());
        assert_eq!(query.schema(), promised, "{sql}");
        for batch in query.collect()? {
            assert_eq!(batch.schema(), promised, "{sql}");
        }
    }
    Ok(())
}

#[test]
fn limits_without_an_order_keep_that_many_rows() -> Result<()> {
    let session = crate::common::session()?;
    assert_eq!(crate::common::rows(&session, "SELECT id FROM emp LIMIT 3")?.len(), 3);
    assert_eq!(crate::common::rows(&session, "SELECT id FROM emp LIMIT 10 OFFSET 5")?.len(), 2);
    Ok(())
}
