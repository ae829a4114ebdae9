//! Every statement that is no query.

use crate::common::{error, rows, session, sorted_rows};
use planish::Result;
use std::fs;

#[test]
fn views() -> Result<()> {
    let session = session()?;
    let create = session
        .sql("CREATE VIEW rich (who, pay) AS SELECT id, salary FROM emp WHERE salary > 25")?;
    assert!(!create.returns_rows());
    assert!(create.collect()?.is_empty());
    assert_eq!(sorted_rows(&session, "SELECT who + pay FROM rich")?, ["33", "55"]);
    assert!(error(&session, "CREATE VIEW rich AS SELECT 1").contains("view rich already exists"));
    session.sql("CREATE OR REPLACE VIEW rich AS SELECT id FROM emp WHERE salary = 5")?;
    assert_eq!(rows(&session, "SELECT * FROM rich")?, ["7"]);
    assert!(error(&session, "DROP TABLE rich").contains("rich is a view; use DROP VIEW"));
    session.sql("DROP VIEW rich")?;
    assert!(error(&session, "SELECT * FROM rich").contains("table rich not found"));
    assert!(error(&session, "DROP VIEW rich").contains("rich not found"));
    session.sql("DROP VIEW IF EXISTS rich")?;
    Ok(())
}

#[test]
fn views_are_checked_when_made() -> Result<()> {
    let session = session()?;
    assert!(error(&session, "CREATE VIEW v AS SELECT nothing FROM emp").contains("nothing"));
    assert!(error(&session, "CREATE VIEW v AS SELECT id + dept FROM emp").contains("Utf8"));
    assert_eq!(session.table_names(), ["dept", "emp"]);
    Ok(())
}

#[test]
fn views_of_views() -> Result<()> {
    let session = session()?;
    session.sql("CREATE VIEW a AS SELECT id, salary FROM emp WHERE salary >= 20")?;
    session.sql("CREATE VIEW b AS SELECT count(*) AS n, max(salary) AS m FROM a")?;
    assert_eq!(rows(&session, "SELECT n, m, x.id FROM b, a x WHERE x.salary = m")?, ["4 | 50 | 5"]);
    Ok(())
}

#[test]
fn tables_in_memory() -> Result<()> {
    let session = session()?;
    session.sql("CREATE TABLE t AS SELECT id, dept FROM emp WHERE id < 3")?;
    assert_eq!(sorted_rows(&session, "SELECT * FROM t")?, ["1 | ops", "2 | dev"]);
    session.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1")?;
    assert_eq!(rows(&session, "SELECT count(*) FROM t")?, ["2"]);
    assert!(error(&session, "CREATE TABLE t AS SELECT 1").contains("table t already exists"));
    session.sql("CREATE OR REPLACE TABLE t (a INT, b VARCHAR) AS VALUES (1, 'x'), (2, NULL)")?;
    assert_eq!(sorted_rows(&session, "SELECT b, a FROM t")?, ["x | 1", "∅ | 2"]);
    session.sql("CREATE TABLE none (a INT)")?;
    assert_eq!(rows(&session, "SELECT count(*), max(a) FROM none")?, ["0 | ∅"]);
    session.sql("DROP TABLE t")?;
    session.sql("DROP TABLE IF EXISTS t")?;
    assert!(error(&session, "DROP TABLE t").contains("table t not found"));
    Ok(())
}

#[test]
fn options() -> Result<()> {
    let session = session()?;
    session.sql("SET datafusion.execution.batch_size = 17")?;
    let shown = rows(&session, "SHOW datafusion.execution.batch_size")?;
    assert!(shown[0].starts_with("datafusion.execution.batch_size | 17 | "), "{shown:?}");
    session.sql("RESET datafusion.execution.batch_size")?;
    assert_eq!(session.get("datafusion.execution.batch_size")?.as_deref(), Some("8192"));
    session.sql("SET planish.optimizer.disable = 'all'")?;
    let shown = rows(&session, "SHOW planish.optimizer.disable")?;
    assert!(shown[0].starts_with("planish.optimizer.disable | all | "), "{shown:?}");
    assert_eq!(rows(&session, "SELECT count(*) FROM emp")?, ["7"]);
    session.sql("RESET planish.optimizer.disable")?;
    session.sql("SET datafusion.runtime.memory_limit = '64MB'")?;
    let shown = rows(&session, "SHOW datafusion.runtime.memory_limit")?;
    assert!(shown[0].starts_with("datafusion.runtime.memory_limit | 64MB | "), "{shown:?}");
    let all = rows(&session, "SHOW ALL")?;
    assert!(all.len() > 100 && all.iter().any(|row| row.starts_with("planish.")), "{all:?}");
    let wrong = error(&session, "SET datafusion.execution.batchsize = 1");
    assert!(wrong.contains("did you mean datafusion.execution.batch_size?"), "{wrong}");
    assert!(error(&session, "SHOW no_such_thing").contains("no_such_thing"));
    let wrong = error(&session, "SET datafusion.execution.batch_size = 'many'");
    assert!(wrong.contains("many"), "{wrong}");
    Ok(())
}

#[test]
fn what_there_is() -> Result<()> {
    let session = session()?;
    session.sql("CREATE VIEW v AS SELECT 1 AS one")?;
    let tables = sorted_rows(&session, "SHOW TABLES")?;
    assert_eq!(
        tables,
        [
            "datafusion | public | dept | BASE TABLE",
            "datafusion | public | emp | BASE TABLE",
            "datafusion | public | v | VIEW",
        ]
    );
    assert_eq!(
        rows(&session, "DESCRIBE emp")?,
        ["id | Int64 | NO", "dept | Utf8 | YES", "salary | Int64 | YES",]
    );
    assert_eq!(
        rows(&session, "SHOW COLUMNS FROM v")?,
        ["datafusion | public | v | one | Int64 | NO"]
    );
    assert!(error(&session, "DESCRIBE nothing").contains("nothing"));
    Ok(())
}

#[test]
fn explain() -> Result<()> {
    let session = session()?;
    let sql = "SELECT dept, count(*) FROM emp WHERE id > 1 GROUP BY dept";
    let plans = rows(&session, &format!("EXPLAIN {sql}"))?;
    assert_eq!(plans.len(), 2);
    assert!(plans[0].starts_with("logical_plan | ") && plans[0].contains("Aggregate"), "{plans:?}");
    assert!(plans[1].starts_with("physical_plan | ") && plans[1].contains("AggregateExec"));
    let verbose = rows(&session, &format!("EXPLAIN VERBOSE {sql}"))?;
    assert!(verbose.iter().any(|row| row.contains("physical_plan after EnsureRequirements")));
    let analyzed = rows(&session, &format!("EXPLAIN ANALYZE {sql}"))?;
    assert!(analyzed[0].contains("rows=") && analyzed[0].contains("gathered_bytes="));
    assert!(analyzed[1].contains("4 rows in"), "{analyzed:?}");
    let failing = error(&session, "EXPLAIN ANALYZE SELECT 1 / (id - id) FROM emp");
    assert!(failing.to_lowercase().contains("divide by zero"), "{failing}");
    let text = session.sql(sql)?.explain(true, true)?;
    assert!(text.contains("plan_with_metrics:"), "{text}");
    assert!(rows(&session, "EXPLAIN CREATE VIEW w AS SELECT 1")?[0].contains("CreateView"));
    assert!(error(&session, "SELECT * FROM w").contains("not found"));
    Ok(())
}

#[test]
fn external_tables() -> Result<()> {
    let session = session()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("t.txt");
    fs::write(&file, "1;x\n2;\n3;z\n")?;
    let location = file.display();
    session.sql(&format!(
        "CREATE EXTERNAL TABLE t (a BIGINT, b VARCHAR) STORED AS CSV LOCATION '{location}' \
         OPTIONS ('format.has_header' 'false', 'format.delimiter' ';')"
    ))?;
    assert_eq!(sorted_rows(&session, "SELECT * FROM t")?, ["1 | x", "2 | ∅", "3 | z"]);
    let again = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{location}'");
    assert!(error(&session, &again).contains("table t already exists"));
    session.sql(&format!(
        "CREATE OR REPLACE EXTERNAL TABLE t (a BIGINT, b VARCHAR) STORED AS CSV WITH ORDER (a) \
         LOCATION '{location}' OPTIONS ('format.has_header' 'false', 'format.delimiter' ';')"
    ))?;
    let plan = session.sql("SELECT a FROM t ORDER BY a")?.explain(false, false)?;
    assert!(!plan.contains("SortExec"), "{plan}");
    assert_eq!(rows(&session, "SELECT a FROM t ORDER BY a")?, ["1", "2", "3"]);
    session.sql("DROP TABLE t")?;
    for (clause, said) in
        [("(a INT) STORED AS CSV PARTITIONED BY (p)", "PARTITIONED BY"), ("STORED AS ORC", "orc")]
    {
        let sql = format!("CREATE EXTERNAL TABLE u {clause} LOCATION '{location}'");
        let wrong = error(&session, &sql);
        assert!(wrong.to_lowercase().contains(&said.to_lowercase()), "{wrong}");
    }
    let sql = format!("CREATE UNBOUNDED EXTERNAL TABLE u STORED AS CSV LOCATION '{location}'");
    assert!(error(&session, &sql).contains("UNBOUNDED"));
    let sql = format!(
        "CREATE EXTERNAL TABLE u STORED AS CSV LOCATION '{location}' OPTIONS ('format.colour' 'red')"
    );
    assert!(error(&session, &sql).contains("format.colour"));
    let sql = "CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '/no/such/file.parquet'";
    assert!(error(&session, sql).contains("/no/such/file.parquet"));
    Ok(())
}

#[test]
fn scripts() -> Result<()> {
    let session = session()?;
    let script = "-- a comment with a ;\n;;CREATE VIEW v AS SELECT 'a;b' AS s;\n\
                  /* another; */ SELECT s FROM v;\nSELECT 2";
    let statements = session.statements(script)?;
    assert_eq!(statements.len(), 3);
    assert_eq!(statements[2].to_string(), "SELECT 2");
    let mut counts = vec![];
    for statement in &statements {
        let query = session.run(statement)?;
        counts.push((query.returns_rows(), query.collect()?.len()));
    }
    assert_eq!(counts, [(false, 0), (true, 1), (true, 1)]);
    assert!(session.statements("  -- nothing\n")?.is_empty());
    assert!(session.sql("SELECT 1; SELECT 2").is_err());
    assert!(session.sql("").is_err());
    Ok(())
}
