//! The layouts of the table against a map.

use super::*;
use crate::operators::hash_join::keys::KeyEncoder;
use crate::operators::join_testing::context;
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::NullEquality;
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::Column;
use std::collections::HashMap;

/// Keys of `columns` equal columns, in batches of 10 000 rows; `None` is NULL.
fn keys(columns: usize, values: &[Option<i64>]) -> Vec<KeyBatch> {
    let types = vec![(DataType::Int64, DataType::Int64); columns];
    let encoder = KeyEncoder::try_new(&types, NullEquality::NullEqualsNothing).unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
    let column: PhysicalExprRef = Arc::new(Column::new("k", 0));
    let exprs = vec![column; columns];
    values
        .chunks(10_000)
        .map(|chunk| {
            let array: ArrayRef = Arc::new(Int64Array::from(chunk.to_vec()));
            let batch = Batch::from_arrays(Arc::clone(&schema), vec![array], chunk.len()).unwrap();
            encoder.encode(&exprs, &batch).unwrap()
        })
        .collect()
}

async fn check(columns: usize, values: &[Option<i64>], dense: bool) {
    let ctx = context(8192);
    let build = keys(columns, values);
    let plan = plan_table(&build);
    assert_eq!(plan.dense.is_some(), dense);
    let table = JoinTable::build(build, plan, &ctx, 0).await.unwrap();
    let mut expected: HashMap<i64, Vec<u32>> = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        value.iter().for_each(|v| expected.entry(*v).or_default().push(row as u32));
    }
    assert_eq!(table.is_unique(), expected.values().all(|rows| rows.len() == 1));
    let mut asked: Vec<Option<i64>> = expected.keys().map(|k| Some(*k)).collect();
    asked.extend([None, Some(i64::MIN), Some(i64::MAX), Some(-77)]);
    for probe in keys(columns, &asked) {
        for (i, head) in table.heads(&probe).into_iter().enumerate() {
            let mut rows = vec![];
            let mut at = head;
            while at != NO_ROW {
                rows.push(at);
                at = table.next(at);
            }
            let key = match &probe.codes {
                Codes::Narrow(codes) => (codes[i] ^ (1 << 63)) as i64,
                Codes::Wide(codes) => (codes[i] as u64 ^ (1 << 63)) as i64,
                Codes::Bytes(..) => unreachable!(),
            };
            let wanted = if probe.is_valid(i) { expected.get(&key) } else { None };
            assert_eq!(rows, wanted.cloned().unwrap_or_default(), "key {key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_layouts_find_all_rows_in_order() {
    let spread = |i: usize| (i as i64).wrapping_mul(0x1234_5678_9abc_def1);
    for rows in [0, 1, 1000, PARALLEL_ROWS + 12_345] {
        let unique: Vec<Option<i64>> = (0..rows).map(|i| Some(i as i64)).collect();
        let duplicates: Vec<Option<i64>> =
            (0..rows).map(|i| (i % 11 > 0).then(|| (i as i64 * 7) % 1000)).collect();
        let sparse: Vec<Option<i64>> = (0..rows).map(|i| Some(spread(i))).collect();
        let sparse_duplicates: Vec<Option<i64>> =
            (0..rows).map(|i| (i % 5 > 0).then(|| spread(i % 321))).collect();
        check(1, &unique, rows > 0).await;
        check(1, &duplicates, rows > 1).await;
        check(1, &sparse, rows == 1).await;
        check(1, &sparse_duplicates, false).await;
        check(2, &sparse, false).await;
        check(2, &duplicates, false).await;
    }
}
