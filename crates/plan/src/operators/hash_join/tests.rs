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
