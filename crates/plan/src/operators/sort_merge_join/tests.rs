//! `SortMergeJoinExec` against the oracle.

use super::*;
use crate::execute::collect;
use crate::operators::join_testing::*;
use crate::operators::memory::MemoryScanExec;
use crate::operators::sort::SortExec;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion_common::ScalarValue;
use futures::StreamExt;

const PLAIN: SortOptions = SortOptions { descending: false, nulls_first: false };

fn options(seed: usize) -> SortOptions {
    SortOptions { descending: seed % 2 == 1, nulls_first: seed / 2 % 2 == 1 }
}

/// The join of the scans, sorted first.
fn plan(question: Question, left: PlanRef, right: PlanRef, seed: usize) -> PlanRef {
    let on = keys_on(&left.schema(), &right.schema(), question.keys);
    let sort_options: Vec<SortOptions> = (0..on.len()).map(|i| options(seed + i)).collect();
    let sorted = |input: PlanRef, keys: Vec<&PhysicalExprRef>| -> PlanRef {
        let keys = keys.into_iter().zip(&sort_options);
        let keys = keys.map(|(e, &o)| PhysicalSortExpr::new(Arc::clone(e), o)).collect();
        Arc::new(SortExec::new(keys, input).with_preserve_partitioning(true))
    };
    let left = sorted(left, on.iter().map(|(l, _)| l).collect());
    let right = sorted(right, on.iter().map(|(_, r)| r).collect());
    let nulls = match question.nulls_equal {
        true => NullEquality::NullEqualsNull,
        false => NullEquality::NullEqualsNothing,
    };
    let filter = question.filtered.then(|| value_filter(&left.schema(), &right.schema()));
    let join_type = question.join_type;
    let join = SortMergeJoinExec::try_new(left, right, on, filter, join_type, sort_options, nulls);
    Arc::new(join.unwrap())
}

fn questions(keys: usize) -> Vec<Question> {
    let mut out = vec![];
    for join_type in JOIN_TYPES {
        for nulls_equal in [false, true] {
            for filtered in [false, true] {
                out.push(Question { join_type, keys, nulls_equal, filtered, null_aware: false });
            }
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_join_type_is_the_oracles() {
    for (i, (l, r)) in [(37, 53), (90, 5), (5, 90), (1, 1)].into_iter().enumerate() {
        let left = TestTable::random(&[DataType::Int64], "l", l, 1 + i as u64);
        let right = TestTable::random(&[DataType::Int64], "r", r, 2 + i as u64);
        for question in questions(1) {
            let expected = question.answer(&left, &right);
            for n in [1, 2, 8] {
                for batch in [1, 7, 8192] {
                    let (l, r) = (left.hashed(1, n, batch), right.hashed(1, n, batch));
                    let join = plan(question, l, r, i);
                    assert_eq!(run(&join, batch).await, expected, "{question:?} {n} {batch}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_type_is_the_oracles() {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let keys: Vec<(Vec<DataType>, Vec<DataType>)> = vec![
        (vec![DataType::Boolean], vec![DataType::Boolean]),
        (vec![DataType::Int8], vec![DataType::Int8]),
        (vec![DataType::UInt64], vec![DataType::UInt64]),
        (vec![DataType::Float64], vec![DataType::Float64]),
        (vec![DataType::Decimal128(38, 2)], vec![DataType::Decimal128(38, 2)]),
        (vec![DataType::Utf8], vec![DataType::Utf8]),
        (vec![DataType::Utf8View], vec![DataType::Utf8View]),
        (vec![dictionary.clone()], vec![dictionary.clone()]),
        (vec![dictionary.clone()], vec![DataType::Utf8]),
        (vec![DataType::Int8, DataType::UInt32], vec![DataType::Int8, DataType::UInt32]),
        (vec![DataType::Int64, DataType::Utf8View], vec![DataType::Int64, DataType::Utf8View]),
        (vec![DataType::Float64, dictionary], vec![DataType::Float64, DataType::Utf8]),
    ];
    for (i, (left_types, right_types)) in keys.iter().enumerate() {
        let left = TestTable::random(left_types, "l", 31, 10 + i as u64);
        let right = TestTable::random(right_types, "r", 29, 50 + i as u64);
        for question in questions(left_types.len()) {
            let expected = question.answer(&left, &right);
            let (l, r) = (left.dealt(1, 5), right.dealt(1, 4));
            let join = plan(question, l, r, i);
            assert_eq!(run(&join, 7).await, expected, "{question:?} {left_types:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_sides_and_all_null_keys() {
    let some = |prefix, seed| TestTable::random(&[DataType::Int64], prefix, 11, seed);
    let none = |prefix| TestTable::random(&[DataType::Int64], prefix, 0, 0);
    let nulls = |prefix, seed| {
        let mut table = some(prefix, seed);
        table.rows.iter_mut().for_each(|row| row[0] = ScalarValue::Int64(None));
        table
    };
    let pairs = [
        (none("l"), some("r", 1)),
        (some("l", 1), none("r")),
        (none("l"), none("r")),
        (nulls("l", 3), some("r", 4)),
        (some("l", 3), nulls("r", 4)),
        (nulls("l", 5), nulls("r", 6)),
    ];
    for (left, right) in pairs {
        for question in questions(1) {
            for batch in [1, 3, 8192] {
                let join = plan(question, left.dealt(1, batch), right.dealt(1, batch), batch);
                let expected = question.answer(&left, &right);
                assert_eq!(run(&join, batch).await, expected, "{question:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_may_be_driven_in_any_way() {
    let left = TestTable::random(&[DataType::Int64], "l", 40, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 60, 2);
    for question in questions(1) {
        let expected = question.answer(&left, &right);
        let join = plan(question, left.hashed(1, 4, 5), right.hashed(1, 4, 5), 0);
        drive_all_ways(&join, &expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimed_orders_hold() {
    let left = TestTable::random(&[DataType::Int64], "l", 60, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 70, 2);
    for (i, question) in questions(1).into_iter().enumerate() {
        let join = plan(question, left.dealt(1, 5), right.dealt(1, 5), i);
        let ordering = join.properties().output_ordering().cloned();
        assert_eq!(ordering.is_some(), question.join_type != JoinType::Full, "{question:?}");
        let Some(ordering) = ordering else { continue };
        let batches = collect(&join, &context(7)).await.unwrap();
        let batch = Batch::concat(&join.schema(), &batches).unwrap();
        let columns: Vec<_> = ordering
            .iter()
            .map(|key| arrow::compute::SortColumn {
                values: key.expr.evaluate_array(&batch).unwrap(),
                options: Some(key.options),
            })
            .collect();
        let comparator = arrow::compute::LexicographicalComparator::try_new(&columns).unwrap();
        for row in 1..batch.num_rows() {
            assert!(comparator.compare(row - 1, row).is_le(), "{question:?} row {row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projections_narrow() {
    let left = TestTable::random(&[DataType::Int64], "l", 23, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 31, 2);
    for question in questions(1) {
        let join = plan(question, left.dealt(1, 5), right.dealt(1, 5), 0);
        let last = join.schema().fields().len() - 1;
        for indices in [vec![], vec![0], vec![last, 0, last]] {
            let plain = run(&join, 7).await;
            let some = join.with_output_columns(&indices).unwrap().unwrap();
            let picked: Vec<String> = plain
                .iter()
                .map(|row| {
                    let cells: Vec<&str> = row.split('|').collect();
                    indices.iter().map(|&i| cells[i]).collect::<Vec<_>>().join("|")
                })
                .collect();
            assert_eq!(run(&some, 7).await, sorted(picked.into_iter()), "{question:?}");
            let one_side = join.schema().fields().len() <= 4;
            if !one_side || indices.len() < 3 {
                narrowed_gives_equal_rows(&join, &indices, true).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_go_to_preserved_sides() {
    let left = TestTable::random(&[DataType::Int64], "l", 3, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 3, 2);
    let to = |join_type, column| {
        let question =
            Question { join_type, keys: 1, nulls_equal: false, filtered: false, null_aware: false };
        offered(&plan(question, left.dealt(1, 5), right.dealt(1, 5), 0), column)
    };
    assert_eq!((to(JoinType::Inner, 0), to(JoinType::Inner, 4)), ("left", "right"));
    assert_eq!((to(JoinType::Left, 0), to(JoinType::Left, 4)), ("left", ""));
    assert_eq!((to(JoinType::Right, 0), to(JoinType::Right, 4)), ("", "right"));
    assert_eq!((to(JoinType::Full, 0), to(JoinType::Full, 4)), ("", ""));
    assert_eq!((to(JoinType::LeftMark, 0), to(JoinType::LeftMark, 3)), ("left", ""));
    assert_eq!(to(JoinType::RightAnti, 0), "right");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_over_the_limit_fails_and_smaller_ones_do_not() {
    let mut left = TestTable::random(&[DataType::Int64], "l", 10, 1);
    let mut right = TestTable::random(&[DataType::Int64], "r", 4000, 2);
    let question = Question {
        join_type: JoinType::Inner,
        keys: 1,
        nulls_equal: false,
        filtered: true,
        null_aware: false,
    };
    for (i, row) in right.rows.iter_mut().enumerate() {
        row[0] = ScalarValue::Int64(Some(i as i64 / 200));
    }
    for (i, row) in left.rows.iter_mut().enumerate() {
        row[0] = ScalarValue::Int64(Some(i as i64));
    }
    // Sorted already: the scans alone.
    let joined = |left: &TestTable, right: &TestTable| -> PlanRef {
        let (l, r) = (left.dealt(1, 50), right.dealt(1, 50));
        let on = keys_on(&l.schema(), &r.schema(), 1);
        let filter = Some(value_filter(&l.schema(), &r.schema()));
        let nulls = NullEquality::NullEqualsNothing;
        let join =
            SortMergeJoinExec::try_new(l, r, on, filter, JoinType::Inner, vec![PLAIN], nulls);
        Arc::new(join.unwrap())
    };
    let join = joined(&left, &right);
    let (ctx, pool) = limited_context(1_000_000);
    let found = texts(&collect(&join, &ctx).await.unwrap());
    assert_eq!(sorted(found.into_iter()), question.answer(&left, &right));
    assert_eq!(pool.reserved(), 0);

    right.rows.iter_mut().for_each(|row| row[0] = ScalarValue::Int64(Some(3)));
    let join = joined(&left, &right);
    let (ctx, pool) = limited_context(10_000);
    let error = collect(&join, &ctx).await.unwrap_err().to_string();
    assert!(error.contains("SortMergeJoinExec needs") && error.contains("--memory-limit"));
    drop(ctx);
    assert_eq!(pool.reserved(), 0);
}

/// `cargo test --release --workspace --lib ten_million -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes seconds: run it by command"]
async fn ten_million_rows_a_side_under_64_mb() {
    const ROWS: i64 = 10_000_000;
    let schema = |k: &str| {
        Arc::new(Schema::new(vec![
            Field::new(k, DataType::Int64, false),
            Field::new("v", DataType::Int64, false),
        ]))
    };
    // One batch of keys, each twice, moved on by a projection would do; here by many batches
    // made as they are asked for.
    let side = |k: &str| -> PlanRef {
        let schema = schema(k);
        let batches = (0..ROWS / 8192 + 1).map(|b| {
            let rows = (b * 8192)..((b + 1) * 8192).min(ROWS);
            let keys: ArrayRef = Arc::new(rows.clone().map(|r| r / 2).collect::<Int64Array>());
            let values: ArrayRef = Arc::new(rows.collect::<Int64Array>());
            RecordBatch::try_new(Arc::clone(&schema), vec![keys, values]).unwrap()
        });
        let batches: Vec<_> = batches.collect();
        Arc::new(MemoryScanExec::try_new(vec![batches], schema, None).unwrap())
    };
    let (left, right) = (side("a"), side("b"));
    for filtered in [false, true] {
        let on = keys_on(&left.schema(), &right.schema(), 1);
        let filter = filtered.then(|| value_filter(&left.schema(), &right.schema()));
        let join = SortMergeJoinExec::try_new(
            Arc::clone(&left),
            Arc::clone(&right),
            on,
            filter,
            JoinType::Inner,
            vec![PLAIN],
            NullEquality::NullEqualsNothing,
        );
        let join: PlanRef = Arc::new(join.unwrap());
        let (ctx, pool) = limited_context(64 << 20);
        let started = std::time::Instant::now();
        let mut stream = execute_stream(&join, 0, &ctx).unwrap();
        let (mut rows, mut peak) = (0, 0);
        while let Some(batch) = stream.next().await {
            let batch = batch.unwrap();
            rows += batch.num_rows();
            batch.column(1).unwrap();
            peak = peak.max(pool.reserved());
        }
        println!("filtered {filtered}: {rows} rows, {:?}, {peak} bytes", started.elapsed());
        // Four pairs of each key; the condition is on columns 0: keys are equal, none less.
        assert_eq!(rows, if filtered { 0 } else { 2 * ROWS as usize });
        assert!(peak < 1 << 20);
    }
}
