//! How queries run: many times, at once, from anywhere, and not to the end.

use crate::common::{rows, session, session_with};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion_expr::{LogicalPlanBuilder, col, lit};
use futures::StreamExt;
use planish::{ConfigOptions, DataFusionError, PlanRef, Result, Session, Table};
use planish_planner::TableSourceAdapter;
use planish_testkit::rows::of_record_batches;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SQL: &str = "SELECT e.dept, count(*) AS n, sum(salary) AS s FROM emp e \
                   LEFT JOIN dept ON e.dept = name WHERE salary > (SELECT min(salary) FROM emp) \
                   GROUP BY e.dept ORDER BY e.dept";

const ROWS: &[&str] = &["dev | 1 | 20", "hr | 1 | 20", "ops | 2 | 60", "∅ | 1 | 30"];

#[test]
fn one_plan_twice_and_twice_at_once() -> Result<()> {
    for partitions in [1, 2, 8] {
        let session = session_with(Session::builder().target_partitions(partitions))?;
        let query = session.sql(SQL)?;
        for _ in 0..2 {
            assert_eq!(of_record_batches(&query.collect()?), ROWS);
        }
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let query = query.clone();
                std::thread::spawn(move || query.collect())
            })
            .collect();
        for thread in threads {
            assert_eq!(of_record_batches(&thread.join().unwrap()?), ROWS);
        }
    }
    Ok(())
}

#[test]
fn inside_of_a_foreign_runtime() -> Result<()> {
    for flavor in ["current_thread", "multi_thread"] {
        let runtime = match flavor {
            "current_thread" => tokio::runtime::Builder::new_current_thread().build()?,
            _ => tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?,
        };
        runtime.block_on(async {
            // Made, used and dropped in an asynchronous context; blocking calls too.
            let session = session()?;
            assert_eq!(rows(&session, SQL)?, ROWS);
            let query = session.sql_async(SQL).await?;
            assert_eq!(of_record_batches(&query.collect_async().await?), ROWS);
            assert_eq!(query.batches().collect::<Result<Vec<_>>>()?.len(), 1);
            Ok::<_, DataFusionError>(())
        })?;
    }
    Ok(())
}

#[test]
fn on_any_executor() -> Result<()> {
    let session = session()?;
    let query = futures::executor::block_on(session.sql_async(SQL))?;
    assert_eq!(of_record_batches(&futures::executor::block_on(query.collect_async())?), ROWS);
    // A blocking call inside of another executor.
    let rows = futures::executor::block_on(async { rows(&session, SQL) })?;
    assert_eq!(rows, ROWS);
    Ok(())
}

#[test]
fn streams_end_when_dropped() -> Result<()> {
    let session = session_with(Session::builder().target_partitions(2).batch_size(1))?;
    let big =
        "SELECT count(*) FROM emp a, emp b, emp c, emp d, emp e, emp f, emp g, emp h, emp i, emp j";
    let started = Instant::now();
    let stream = session.sql(big)?.stream();
    std::thread::sleep(Duration::from_millis(50));
    drop(stream);
    // What follows runs at once, since the cancelled query holds no worker.
    assert_eq!(rows(&session, SQL)?, ROWS);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let mut stream = session.sql("SELECT a.id FROM emp a, emp b, emp c, emp d")?.stream();
    let first = futures::executor::block_on(stream.next());
    assert!(first.is_some_and(|batch| batch.is_ok()));
    drop(stream);
    assert_eq!(rows(&session, SQL)?, ROWS);
    Ok(())
}

#[test]
fn a_stream_outlives_its_session() -> Result<()> {
    let batches = session()?.sql(SQL)?.batches();
    assert_eq!(batches.schema().fields().len(), 3);
    assert_eq!(of_record_batches(&batches.collect::<Result<Vec<_>>>()?), ROWS);
    Ok(())
}

#[test]
fn logical_plans() -> Result<()> {
    let session = session()?;
    let emp = session.table("emp").unwrap();
    let source = Arc::new(TableSourceAdapter::new(emp));
    let plan = LogicalPlanBuilder::scan("e", source, None)?
        .filter(col("e.id").gt(lit(5_i64)))?
        .project(vec![col("dept"), (col("salary") * lit(2_i64)).alias("double")])?
        .sort(vec![col("double").sort(true, false)])?
        .build()?;
    let query = session.plan(plan)?;
    assert_eq!(of_record_batches(&query.collect()?), ["∅ | 10", "hr | 40"]);
    assert_eq!(query.schema().field(1).name(), "double");
    assert!(!query.trace().steps().is_empty());
    assert_eq!(query.physical_plan().partition_count(), 1);
    Ok(())
}

/// A table whose scan panics.
#[derive(Debug)]
struct Broken(SchemaRef);

#[async_trait]
impl Table for Broken {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0)
    }

    async fn scan(&self, _: Option<&[usize]>, _: &ConfigOptions) -> Result<PlanRef> {
        panic!("broken on purpose")
    }
}

#[test]
fn panics_become_errors_of_the_query() -> Result<()> {
    let session = session()?;
    let schema = session.table("emp").unwrap().schema();
    session.register_table("broken", Arc::new(Broken(schema)));
    let error = crate::common::error(&session, "SELECT * FROM broken");
    assert!(error.contains("broken on purpose"), "{error}");
    assert_eq!(rows(&session, SQL)?, ROWS);
    Ok(())
}

#[test]
fn memory_limits_hold() -> Result<()> {
    let session = session()?;
    session.set("datafusion.runtime.memory_limit", "100KB")?;
    let cross = "(SELECT a.id, b.dept FROM emp a, emp b, emp c, emp d, emp e, emp f)";
    let sql = format!("SELECT count(*) FROM {cross} x JOIN {cross} y ON x.id = y.id + 100");
    let error = crate::common::error(&session, &sql);
    assert!(error.contains("memory limit") && error.contains("memory_limit"), "{error}");
    session.reset("datafusion.runtime.memory_limit")?;
    assert_eq!(rows(&session, &sql)?, ["0"]);
    Ok(())
}

#[test]
fn values_of_the_session_s_clock_and_randomness() -> Result<()> {
    let session = session()?;
    assert_eq!(rows(&session, "SELECT count(DISTINCT now()) FROM emp")?, ["1"]);
    assert_eq!(rows(&session, "SELECT count(DISTINCT random()) FROM emp")?, ["7"]);
    let sql = "SELECT count(*) FROM (SELECT random() AS r FROM emp) AS t WHERE r = r";
    assert_eq!(rows(&session, sql)?, ["7"]);
    Ok(())
}
