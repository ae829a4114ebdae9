//! `HashJoinExec` against the oracle, driven in all ways.

use super::*;
use crate::operators::join_testing::*;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

struct Case {
    question: Question,
    mode: PartitionMode,
}

fn plan(case: &Case, left: &PlanRef, right: &PlanRef) -> PlanRef {
    let (ls, rs) = (left.schema(), right.schema());
    let Question { join_type, keys, nulls_equal, filtered, null_aware } = case.question;
    let null_equality =
        if nulls_equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
    let join = HashJoinExec::try_new(
        Arc::clone(left),
        Arc::clone(right),
        keys_on(&ls, &rs, keys),
        filtered.then(|| value_filter(&ls, &rs)),
        join_type,
        case.mode,
        null_equality,
        null_aware,
    );
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
    for filtered in [false, true] {
        let join_type = JoinType::LeftAnti;
        out.push(Question { join_type, keys, nulls_equal: false, filtered, null_aware: true });
    }
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_join_type_in_every_mode_is_the_oracles() {
    let left = TestTable::random(&[DataType::Int64], "l", 37, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 53, 2);
    for question in questions(1) {
        let expected = question.answer(&left, &right);
        for (l, r) in [(1, 1), (2, 3), (8, 2), (1, 8)] {
            for batch in [1, 7, 8192] {
                let case = Case { question, mode: PartitionMode::CollectLeft };
                let join = plan(&case, &left.dealt(l, batch), &right.dealt(r, batch));
                assert_eq!(run(&join, batch).await, expected, "{question:?} {l} {r} {batch}");
            }
        }
        if question.null_aware {
            continue;
        }
        for n in [1, 4] {
            let case = Case { question, mode: PartitionMode::Partitioned };
            let join = plan(&case, &left.hashed(1, n, 5), &right.hashed(1, n, 5));
            assert_eq!(run(&join, 7).await, expected, "{question:?} partitioned {n}");
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
        (vec![DataType::Date32], vec![DataType::Date32]),
        (vec![DataType::Float64], vec![DataType::Float64]),
        (vec![DataType::Decimal128(38, 2)], vec![DataType::Decimal128(38, 2)]),
        (vec![DataType::Utf8], vec![DataType::Utf8]),
        (vec![DataType::Utf8View], vec![DataType::Utf8View]),
        (vec![dictionary.clone()], vec![dictionary.clone()]),
        (vec![dictionary.clone()], vec![DataType::Utf8]),
        (vec![DataType::Int8, DataType::UInt32], vec![DataType::Int8, DataType::UInt32]),
        (vec![DataType::Int64, DataType::Date32], vec![DataType::Int64, DataType::Date32]),
        (vec![DataType::Int64, DataType::Utf8View], vec![DataType::Int64, DataType::Utf8View]),
        (vec![DataType::Float64, dictionary], vec![DataType::Float64, DataType::Utf8]),
    ];
    for (i, (left_types, right_types)) in keys.iter().enumerate() {
        let left = TestTable::random(left_types, "l", 31, 10 + i as u64);
        let right = TestTable::random(right_types, "r", 29, 50 + i as u64);
        for question in questions(left_types.len()) {
            let expected = question.answer(&left, &right);
            let case = Case { question, mode: PartitionMode::CollectLeft };
            let join = plan(&case, &left.dealt(2, 5), &right.dealt(3, 4));
            assert_eq!(run(&join, 7).await, expected, "{question:?} {left_types:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_sides_and_all_null_keys() {
    let types = [DataType::Int64];
    let some = |prefix, seed| TestTable::random(&types, prefix, 11, seed);
    let none = |prefix| TestTable::random(&types, prefix, 0, 0);
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
            let case = Case { question, mode: PartitionMode::CollectLeft };
            let join = plan(&case, &left.dealt(2, 3), &right.dealt(2, 3));
            assert_eq!(run(&join, 4).await, question.answer(&left, &right), "{question:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_may_be_driven_in_any_way() {
    let left = TestTable::random(&[DataType::Int64], "l", 40, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 60, 2);
    for question in questions(1) {
        let expected = question.answer(&left, &right);
        let case = Case { question, mode: PartitionMode::CollectLeft };
        drive_all_ways(&plan(&case, &left.dealt(3, 5), &right.dealt(4, 5)), &expected).await;
    }
}

/// Keys `0..rows`, with every `step`-th value of `v` smaller than the key.
fn counted(prefix: &str, rows: usize, keys: impl Fn(usize) -> i64) -> TestTable {
    let mut table = TestTable::random(&[DataType::Int64], prefix, rows, 9);
    for (i, row) in table.rows.iter_mut().enumerate() {
        row[0] = ScalarValue::Int64(Some(keys(i)));
        row[1] = ScalarValue::Int64(Some(if i % 5 == 0 { i64::MIN } else { i64::MAX }));
    }
    table
}

fn simple(join_type: JoinType) -> Case {
    let question =
        Question { join_type, keys: 1, nulls_equal: false, filtered: false, null_aware: false };
    Case { question, mode: PartitionMode::CollectLeft }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_with_many_rows_comes_out_in_batches() {
    let left = counted("l", 1500, |_| 7);
    let right = counted("r", 300, |i| if i % 3 == 0 { 7 } else { 8 });
    for (join_type, rows) in [
        (JoinType::Inner, 150_000),
        (JoinType::Left, 150_000),
        (JoinType::Right, 150_200),
        (JoinType::Full, 150_200),
        (JoinType::LeftSemi, 1500),
        (JoinType::LeftAnti, 0),
        (JoinType::RightSemi, 100),
        (JoinType::RightAnti, 200),
    ] {
        let join = plan(&simple(join_type), &left.dealt(2, 100), &right.dealt(2, 100));
        let batches = crate::execute::collect(&join, &context(1000)).await.unwrap();
        assert!(batches.iter().all(|b| b.num_rows() <= 1000));
        let total: usize = batches.iter().map(planish_batch::Batch::num_rows).sum();
        assert_eq!(total, rows, "{join_type}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payload_that_nobody_reads_is_not_gathered() {
    use crate::operators::filter::FilterExec;
    use planish_batch::Form;
    let rows = 4000;
    let filtered = |table: &TestTable| -> PlanRef {
        let scan = table.dealt(2, 1000);
        Arc::new(FilterExec::try_new(less_than(0, 1), scan).unwrap())
    };
    let (left, right) = (counted("l", rows, |i| i as i64), counted("r", rows, |i| i as i64));
    let join = plan(&simple(JoinType::Inner), &filtered(&left), &filtered(&right));
    let ctx = context(1000);
    let batches = crate::execute::collect(&join, &ctx).await.unwrap();
    assert!(!batches.is_empty());
    for batch in &batches {
        for payload in [1, 2, 4, 5] {
            assert!(matches!(batch.columns()[payload].form(), Form::Selected(..)), "{payload}");
        }
    }
    // The keys of both sides, and nothing else.
    let gathered = ctx.metrics().node(node_id(join.as_ref())).gathered_bytes();
    assert!(gathered > 0);
    assert!(gathered <= (2 * rows * size_of::<i64>()) as u64 + 4096, "{gathered} bytes");
    let before = planish_batch::counters::gathered_bytes();
    let read = batches[0].column(1).unwrap();
    let bytes = planish_batch::counters::gathered_bytes() - before;
    assert_eq!(bytes, read.get_buffer_memory_size() as u64, "one column is read alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_side_over_the_limit_fails_with_the_documented_error() {
    let (left, right) = (counted("l", 5000, |i| i as i64), counted("r", 10, |i| i as i64));
    let join = plan(&simple(JoinType::Inner), &left.dealt(2, 500), &right.dealt(2, 5));
    let (ctx, pool) = limited_context(20_000);
    let error = crate::execute::collect(&join, &ctx).await.unwrap_err();
    let root = error.find_root();
    assert!(matches!(root, datafusion_common::DataFusionError::ResourcesExhausted(_)));
    let text = root.to_string();
    assert!(text.contains("HashJoinExec needs") && text.contains("--memory-limit"), "{text}");
    drop(ctx);
    assert_eq!(pool.reserved(), 0);

    let (ctx, pool) = limited_context(50_000_000);
    let batches = crate::execute::collect(&join, &ctx).await.unwrap();
    assert_eq!(batches.iter().map(planish_batch::Batch::num_rows).sum::<usize>(), 10);
    assert_eq!(pool.reserved(), 0, "freed with the last partition");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_order_is_kept_where_it_is_claimed() {
    let left = TestTable::random(&[DataType::Int64], "l", 40, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 60, 2);
    for question in questions(1) {
        let case = Case { question, mode: PartitionMode::CollectLeft };
        let join = plan(&case, &left.dealt(3, 5), &right.dealt(1, 5));
        if !join.maintains_input_order()[1] {
            continue;
        }
        // The probe side's strings carry the row's number.
        let at = match question.join_type {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => 2,
            _ => 5,
        };
        let rows = drain(&join, 0, &context(7)).await;
        let numbers: Vec<usize> = rows
            .iter()
            .map(|row| {
                let cell = row.split('|').nth(at).unwrap();
                cell[1..].split(',').next().unwrap().parse().unwrap()
            })
            .collect();
        assert!(numbers.is_sorted(), "{question:?} {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapped_inputs_give_the_same_rows_and_schema() {
    let left = TestTable::random(&[DataType::Int64], "l", 23, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 31, 2);
    for question in questions(1) {
        let (l, r) = (left.dealt(2, 5), right.dealt(3, 5));
        let (ls, rs) = (l.schema(), r.schema());
        let null_equality = if question.nulls_equal {
            NullEquality::NullEqualsNull
        } else {
            NullEquality::NullEqualsNothing
        };
        let join = HashJoinExec::try_new(
            l,
            r,
            keys_on(&ls, &rs, 1),
            question.filtered.then(|| value_filter(&ls, &rs)),
            question.join_type,
            PartitionMode::CollectLeft,
            null_equality,
            question.null_aware,
        )
        .unwrap();
        if question.null_aware {
            assert!(!join.supports_swap() && join.swap_inputs(join.mode()).is_err());
            continue;
        }
        let swapped = join.swap_inputs(PartitionMode::CollectLeft).unwrap();
        assert_eq!(swapped.schema(), join.schema());
        assert_eq!(run(&swapped, 7).await, question.answer(&left, &right), "{question:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_above_narrows_the_inputs() {
    let left = TestTable::random(&[DataType::Int64, DataType::Utf8], "l", 23, 1);
    let right = TestTable::random(&[DataType::Int64, DataType::Utf8], "r", 31, 2);
    for question in questions(1) {
        // Keys: column 0; the value and the string are columns 2 and 3.
        let case = Case { question, mode: PartitionMode::CollectLeft };
        let join = plan(&case, &left.dealt(2, 5), &right.dealt(2, 5));
        let columns = join.schema().fields().len();
        for indices in [vec![], vec![0], vec![2], vec![columns - 1, 1, columns - 1], vec![3, 0, 2]]
        {
            narrowed_gives_equal_rows(&join, &indices, true).await;
        }
        let all: Vec<usize> = (0..columns).rev().collect();
        let drops = !matches!(columns, 8);
        narrowed_gives_equal_rows(&join, &all, drops).await;
    }
}

#[test]
fn properties_are_what_the_join_keeps() {
    use crate::properties::EmissionType;
    use planish_expr::{Partitioning, PhysicalSortExpr};
    let left = TestTable::random(&[DataType::Int64], "l", 5, 1).dealt(2, 5);
    let right = TestTable::random(&[DataType::Int64], "r", 5, 2);
    let scan = right.dealt(3, 5);
    let by_key = |i: usize| {
        let column: PhysicalExprRef = Arc::new(planish_expr::expressions::Column::new("rk0", i));
        PhysicalSortExpr::new(column, Default::default())
    };
    let right: PlanRef = Arc::new(
        scan.downcast_ref::<crate::operators::memory::MemoryScanExec>()
            .unwrap()
            .try_with_ordering(vec![by_key(0)])
            .unwrap(),
    );
    for join_type in JOIN_TYPES {
        let join = plan(&simple(join_type), &left, &right);
        let properties = join.properties();
        assert_eq!(properties.partitioning, Partitioning::UnknownPartitioning(3));
        let emission = match join_type {
            JoinType::Left | JoinType::Full => EmissionType::Both,
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => EmissionType::Final,
            _ => EmissionType::Incremental,
        };
        assert_eq!(properties.emission, emission, "{join_type}");
        let at = match join_type {
            JoinType::Inner | JoinType::Right => Some(3),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => Some(0),
            _ => None,
        };
        match at {
            Some(at) => assert!(properties.equivalences.ordering_satisfied(&[by_key(at)])),
            None => assert!(properties.output_ordering().is_none(), "{join_type}"),
        }
        let by_left_key = properties.equivalences.ordering_satisfied(&[by_key(0)]);
        let shows_right_first = at == Some(0);
        assert_eq!(by_left_key, join_type == JoinType::Inner || shows_right_first, "{join_type}");
    }
}

#[test]
fn filters_go_to_the_preserved_side_they_read() {
    let left = TestTable::random(&[DataType::Boolean], "l", 5, 1).dealt(1, 5);
    let right = TestTable::random(&[DataType::Boolean], "r", 5, 2).dealt(1, 5);
    use JoinType::*;
    for (join_type, first, fourth) in [
        (Inner, "left", "right"),
        (Left, "left", ""),
        (Right, "", "right"),
        (Full, "", ""),
        (LeftSemi, "left", "none"),
        (LeftAnti, "left", "none"),
        (LeftMark, "left", ""),
        (RightSemi, "right", "none"),
        (RightAnti, "right", "none"),
        (RightMark, "right", ""),
    ] {
        let join = plan(&simple(join_type), &left, &right);
        assert_eq!(offered(&join, 0), first, "{join_type}");
        if fourth != "none" {
            assert_eq!(offered(&join, 3), fourth, "{join_type}");
        }
    }
}

#[test]
fn it_is_shown_like_this() {
    let left = TestTable::random(&[DataType::Int64], "l", 5, 1).dealt(1, 5);
    let right = TestTable::random(&[DataType::Int64], "r", 5, 2).dealt(1, 5);
    let mut case = simple(JoinType::Inner);
    case.question.filtered = true;
    let join = plan(&case, &left, &right);
    let text = crate::display::displayable(&join).to_string();
    assert_eq!(
        text.lines().next(),
        Some(
            "HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(lk0@0, rk0@0)], filter=@1 < @0"
        )
    );
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let left = TestTable::random(&[DataType::Int64], "l", 5, 1).dealt(1, 5);
    let right = TestTable::random(&[DataType::Utf8], "r", 5, 2).dealt(1, 5);
    let (ls, rs) = (left.schema(), right.schema());
    let join = |on, join_type, mode, null_aware| {
        HashJoinExec::try_new(
            Arc::clone(&left),
            Arc::clone(&right),
            on,
            None,
            join_type,
            mode,
            NullEquality::NullEqualsNothing,
            null_aware,
        )
        .map(|_| ())
        .map_err(|e| e.to_string())
    };
    let collect = PartitionMode::CollectLeft;
    assert!(join(keys_on(&ls, &rs, 1), JoinType::Inner, collect, false).is_err());
    assert!(join(vec![], JoinType::Inner, collect, false).is_err());
    assert!(join(keys_on(&ls, &ls, 1), JoinType::Inner, collect, true).is_err());
}
