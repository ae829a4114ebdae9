//! Mistakes and missing features: one clear error that names the thing.

use crate::common::{error, session};
use planish::Result;

#[test]
fn errors_name_the_thing() -> Result<()> {
    let session = session()?;
    for (sql, said) in [
        ("SELECT nothing FROM emp", "nothing"),
        ("SELECT * FROM empp", "table empp not found; did you mean emp?"),
        ("SELECT * FROM data.parquet", "the name of a file needs quotes: FROM 'data.parquet'"),
        ("SELECT * FROM '/no/such/file.parquet'", "/no/such/file.parquet"),
        ("SELECT * FROM 'no/such/*.csv'", "no/such"),
        ("SELECT no_function(id) FROM emp", "no_function"),
        ("SELECT 1 / 0", "ivide by zero"),
        ("SELECT 10 / (id - 1) FROM emp", "ivide by zero"),
        ("SELECT CAST(dept AS INT) FROM emp", "cannot cast string"),
        ("SELECT id + dept FROM emp", "Utf8"),
        ("SELECT id FROM emp WHERE id", "Int64"),
        ("SELEKT 1", "SELEKT"),
        ("SELECT (SELECT id FROM emp)", "more than one row"),
        ("SELECT id, count(*) FROM emp", "emp.id"),
        ("SELECT id FROM emp LIMIT -1", "-1"),
        ("SELECT sum(id) OVER w FROM emp", "there is no window w"),
        ("SELECT unnest([1, 2])", "UNNEST is not supported yet"),
        ("INSERT INTO emp VALUES (1, 'x', 2)", "INSERT is not supported yet"),
        ("DELETE FROM emp", "DELETE is not supported yet"),
        ("COPY emp TO 'x.parquet'", "COPY"),
        ("PREPARE p AS SELECT 1", "Prepare"),
        ("CREATE SCHEMA s", "CreateCatalogSchema"),
        ("CREATE TABLE other.t AS SELECT 1", "other"),
        ("GRANT SELECT ON emp TO me", "GRANT"),
        ("SELECT * FROM emp TABLESAMPLE BERNOULLI (50)", "TABLESAMPLE"),
        (
            "SELECT id FROM emp WHERE id = 1 OR dept NOT IN (SELECT name FROM dept)",
            "NOT IN (subquery)",
        ),
        ("SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM dept OFFSET 5)", "OFFSET"),
        ("INSERT INTO nothing VALUES (1)", "INSERT"),
        ("SELECT name FROM dept a FULL JOIN dept b USING (name)", "FULL JOIN with USING"),
        ("SELECT name FROM dept a RIGHT JOIN dept b USING (name)", "RIGHT JOIN with USING"),
        ("EXPLAIN FORMAT TREE SELECT 1", "tree"),
    ] {
        let error = error(&session, sql);
        assert!(error.to_lowercase().contains(&said.to_lowercase()), "{sql}: {error}");
        assert!(!error.contains("Internal") && !error.contains("panicked"), "{sql}: {error}");
    }
    Ok(())
}

/// A session is as good as new after errors.
#[test]
fn errors_leave_no_trace() -> Result<()> {
    let session = session()?;
    for _ in 0..20 {
        let _ = error(&session, "SELECT 1 / (id - 5) FROM emp");
    }
    assert_eq!(crate::common::rows(&session, "SELECT count(*) FROM emp")?, ["7"]);
    Ok(())
}
