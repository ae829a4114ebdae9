//! Small tables, and rows as text.

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planish::{MemTable, Result, Session, SessionBuilder};
use std::sync::Arc;

/// Partitions and batch sizes under which results must be the same.
pub(crate) const GRID: &[(usize, usize)] = &[(1, 8192), (1, 1), (2, 7), (8, 2), (8, 8192)];

/// `emp(id, dept, salary)` in three partitions, one of them empty, and `dept(name, city)`.
pub(crate) fn session_with(builder: SessionBuilder) -> Result<Session> {
    let session = builder.build()?;
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("dept", DataType::Utf8, true),
        Field::new("salary", DataType::Int64, true),
    ]));
    let emp = |ids: &[i64], depts: &[Option<&str>], salaries: &[Option<i64>]| {
        RecordBatch::try_new(
            Arc::clone(&schema),
            vec![
                Arc::new(Int64Array::from(ids.to_vec())),
                Arc::new(StringArray::from(depts.to_vec())),
                Arc::new(Int64Array::from(salaries.to_vec())),
            ],
        )
    };
    let first =
        emp(&[1, 2, 3], &[Some("ops"), Some("dev"), None], &[Some(10), Some(20), Some(30)])?;
    let second = emp(
        &[4, 5, 6, 7],
        &[Some("dev"), Some("ops"), Some("hr"), None],
        &[None, Some(50), Some(20), Some(5)],
    )?;
    let table = MemTable::try_new(Arc::clone(&schema), vec![vec![first], vec![], vec![second]])?;
    session.register_table("emp", Arc::new(table));
    let dept = RecordBatch::try_new(
        Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("city", DataType::Utf8, true),
        ])),
        vec![
            Arc::new(StringArray::from(vec!["dev", "ops", "law"])),
            Arc::new(StringArray::from(vec![Some("Oslo"), Some("Rome"), None])),
        ],
    )?;
    session.register_batches("dept", vec![dept])?;
    Ok(session)
}

/// As [`session_with`], with two partitions.
pub(crate) fn session() -> Result<Session> {
    session_with(Session::builder().target_partitions(2))
}

/// The rows of `sql`, one text each, NULL as `∅`.
pub(crate) fn rows(session: &Session, sql: &str) -> Result<Vec<String>> {
    Ok(planish_testkit::rows::of_record_batches(&session.sql(sql)?.collect()?))
}

/// As [`rows`], sorted.
pub(crate) fn sorted_rows(session: &Session, sql: &str) -> Result<Vec<String>> {
    let mut rows = rows(session, sql)?;
    rows.sort();
    Ok(rows)
}

/// The error of `sql`, when it is planned or when it runs.
pub(crate) fn error(session: &Session, sql: &str) -> String {
    match rows(session, sql) {
        Ok(rows) => format!("no error but {rows:?}"),
        Err(error) => error.to_string(),
    }
}
