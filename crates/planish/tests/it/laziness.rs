//! Values move only when they are read, shown by the gathered-bytes counters.

use crate::common::rows;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use planish::{Result, Session};
use std::sync::Arc;

const ROWS: i64 = 100_000;

/// `wide(k, pick, c0, .., c13)`, of which `pick = 0` keeps one row in a hundred, and `dim(k, name)`.
fn session() -> Result<Session> {
    let session = Session::builder().target_partitions(2).build()?;
    let mut fields =
        vec![Field::new("k", DataType::Int64, false), Field::new("pick", DataType::Int64, false)];
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i % 50))),
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i % 100))),
    ];
    for c in 0..14 {
        fields.push(Field::new(format!("c{c}"), DataType::Int64, false));
        columns.push(Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * c))));
    }
    let wide = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    session.register_batches("wide", vec![wide])?;
    let dim = RecordBatch::try_new(
        Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int64, false),
            Field::new("name", DataType::Int64, false),
        ])),
        vec![
            Arc::new(Int64Array::from_iter_values(0..50)),
            Arc::new(Int64Array::from_iter_values(100..150)),
        ],
    )?;
    session.register_batches("dim", vec![dim])?;
    Ok(session)
}

/// The sum of `gathered_bytes=` over the nodes of an EXPLAIN ANALYZE.
fn gathered(explained: &str) -> u64 {
    explained
        .split("gathered_bytes=")
        .skip(1)
        .map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn a_filter_a_join_and_a_limit_gather_what_is_read() -> Result<()> {
    let session = session()?;
    let sql = "SELECT * FROM wide JOIN dim ON wide.k = dim.k WHERE pick = 0 LIMIT 10";
    assert_eq!(rows(&session, sql)?.len(), 10);
    let explained = rows(&session, &format!("EXPLAIN ANALYZE {sql}"))?.join("\n");
    let bytes = gathered(&explained);
    // The 1000 rows that pass have 128 kB over 16 columns; their keys alone have 8 kB. The
    // buffers of gathered arrays are rounded up.
    assert!((1..=24_000).contains(&bytes), "{bytes} bytes were gathered:\n{explained}");
    Ok(())
}
