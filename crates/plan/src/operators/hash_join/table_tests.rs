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
fn keys(encoder: &KeyEncoder, columns: usize, values: &[Option<i64>]) -> Vec<KeyBatch> {
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

async fn check(columns: usize, values: &[Option<i64>], layout: &str) {
    let ctx = context(8192);
    let types = vec![(DataType::Int64, DataType::Int64); columns];
    let encoder = KeyEncoder::try_new(&types, NullEquality::NullEqualsNothing).unwrap();
    let build = keys(&encoder, columns, values);
    let lanes = encoder.lanes();
    let spans = build.iter().map(|k| Spans::of(k, &lanes));
    let spans = spans.fold(Spans::default(), |all, own| all.union(&own));
    let plan = plan_table(&build, &spans, &lanes);
    let chosen = match plan.choice {
        Choice::Dense { .. } => "dense",
        Choice::Ranked { .. } => "ranked",
        Choice::Narrow => "narrow",
        Choice::Wide => "wide",
    };
    assert_eq!(chosen, layout, "{columns} {}", values.len());
    let table = JoinTable::build(build, plan, &ctx, 0).await.unwrap();
    let mut expected: HashMap<i64, Vec<u32>> = HashMap::new();
    for (row, value) in values.iter().enumerate() {
        value.iter().for_each(|v| expected.entry(*v).or_default().push(row as u32));
    }
    assert_eq!(table.is_unique(), expected.values().all(|rows| rows.len() == 1));
    let mut asked: Vec<Option<i64>> = expected.keys().map(|k| Some(*k)).collect();
    asked.extend([None, Some(i64::MIN), Some(i64::MAX), Some(-77)]);
    for probe in keys(&encoder, columns, &asked) {
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
            let wanted = if probe.nulls.as_ref().is_none_or(|n| n.is_valid(i)) {
                expected.get(&key)
            } else {
                None
            };
            assert_eq!(rows, wanted.cloned().unwrap_or_default(), "key {key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_layouts_find_all_rows_in_order() {
    let spread = |i: usize| (i as i64).wrapping_mul(0x1234_5678_9abc_def1);
    let many = PARALLEL_ROWS + 12_345;
    for rows in [1000, many] {
        let unique: Vec<_> = (0..rows).map(|i| Some(i as i64 - 7)).collect();
        let repeated: Vec<_> =
            (0..rows).map(|i| (i % 11 > 0).then(|| (i as i64 * 7) % 1000)).collect();
        let loose: Vec<_> = (0..rows).map(|i| Some(i as i64 * 60 + (i as i64 % 5))).collect();
        let loose_repeated: Vec<_> =
            (0..rows).map(|i| (i % 3 > 0).then(|| (i as i64 / 2) * 97)).collect();
        let sparse: Vec<_> = (0..rows).map(|i| Some(spread(i))).collect();
        let sparse_repeated: Vec<_> =
            (0..rows).map(|i| (i % 5 > 0).then(|| spread(i % 321))).collect();
        check(1, &unique, "dense").await;
        check(1, &repeated, "dense").await;
        let loosely = if rows == many { "ranked" } else { "dense" };
        check(1, &loose, loosely).await;
        check(1, &loose_repeated, loosely).await;
        check(1, &sparse, "narrow").await;
        check(1, &sparse_repeated, "narrow").await;
        check(2, &sparse, "wide").await;
        check(2, &sparse_repeated, "wide").await;
        // Recoded: a million pairs of values.
        check(2, &repeated, if rows == many { "ranked" } else { "narrow" }).await;
        check(2, &unique, "narrow").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_hardly_any_rows() {
    check(1, &[], "narrow").await;
    check(1, &[None, None], "narrow").await;
    check(1, &[Some(i64::MAX)], "dense").await;
    check(1, &[Some(i64::MIN), Some(i64::MAX)], "narrow").await;
    check(2, &[Some(5), None, Some(5)], "dense").await;
    check(2, &[Some(i64::MIN), Some(i64::MAX)], "wide").await;
}
