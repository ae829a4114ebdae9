//! `NestedLoopJoinExec` and `CrossJoinExec` against the oracle, driven in all ways.

use super::*;
use crate::operators::cross_join::CrossJoinExec;
use crate::operators::join_testing::*;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

fn question(join_type: JoinType, filtered: bool) -> Question {
    Question { join_type, keys: 0, nulls_equal: false, filtered, null_aware: false }
}

fn plan(question: Question, left: &PlanRef, right: &PlanRef) -> PlanRef {
    let filter = question.filtered.then(|| value_filter(&left.schema(), &right.schema()));
    let (left, right) = (Arc::clone(left), Arc::clone(right));
    Arc::new(NestedLoopJoinExec::try_new(left, right, filter, question.join_type).unwrap())
}

fn questions() -> impl Iterator<Item = Question> {
    JOIN_TYPES.into_iter().flat_map(|t| [question(t, false), question(t, true)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_join_type_is_the_oracles() {
    let right = TestTable::random(&[DataType::Int64], "r", 29, 2);
    // A large build side is paired with one probe row at a time.
    for (left_rows, right_rows) in [(17, 29), (0, 5), (5, 0), (0, 0), (700, 9)] {
        let left = TestTable::random(&[DataType::Int64], "l", left_rows, 1);
        let mut right = right.clone();
        right.rows.truncate(right_rows);
        for question in questions() {
            let expected = question.answer(&left, &right);
            for (l, r, batch) in [(1, 1, 8192), (2, 3, 7), (8, 2, 1)] {
                if left_rows == 700 && batch == 1 {
                    continue;
                }
                let join = plan(question, &left.dealt(l, batch), &right.dealt(r, batch));
                assert_eq!(run(&join, batch).await, expected, "{question:?} {l} {r} {batch}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_may_be_driven_in_any_way() {
    let left = TestTable::random(&[DataType::Int64], "l", 20, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 30, 2);
    for question in questions() {
        let expected = question.answer(&left, &right);
        let join = plan(question, &left.dealt(3, 5), &right.dealt(4, 5));
        drive_all_ways(&join, &expected).await;
    }
    let expected = question(JoinType::Inner, false).answer(&left, &right);
    let cross: PlanRef = Arc::new(CrossJoinExec::new(left.dealt(3, 5), right.dealt(4, 5)));
    drive_all_ways(&cross, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cross_join_is_the_oracles() {
    for (l, r) in [(0, 5), (5, 0), (1, 12), (30, 40)] {
        let left = TestTable::random(&[DataType::Int64], "l", l, 1);
        let right = TestTable::random(&[DataType::Int64], "r", r, 2);
        let expected = question(JoinType::Inner, false).answer(&left, &right);
        for batch in [1, 7, 8192] {
            let (l, r) = (left.dealt(2, batch), right.dealt(3, batch));
            let join = CrossJoinExec::new(l, r);
            let swapped = join.swap_inputs().unwrap();
            assert_eq!(swapped.schema(), join.schema());
            assert_eq!(run(&swapped, batch).await, expected);
            let join: PlanRef = Arc::new(join);
            assert_eq!(run(&join, batch).await, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projections_narrow_and_inputs_swap() {
    let left = TestTable::random(&[DataType::Int64], "l", 13, 1);
    let right = TestTable::random(&[DataType::Int64], "r", 17, 2);
    for question in questions() {
        let (l, r) = (left.dealt(2, 5), right.dealt(2, 5));
        let filter = question.filtered.then(|| value_filter(&l.schema(), &r.schema()));
        let join = NestedLoopJoinExec::try_new(l, r, filter, question.join_type).unwrap();
        let swapped = join.swap_inputs().unwrap();
        assert_eq!(swapped.schema(), join.schema());
        assert_eq!(run(&swapped, 7).await, question.answer(&left, &right), "{question:?}");
        let join: PlanRef = Arc::new(join);
        let last = join.schema().fields().len() - 1;
        for indices in [vec![], vec![0], vec![last, 1, last]] {
            narrowed_gives_equal_rows(&join, &indices, true).await;
        }
    }
    let cross: PlanRef = Arc::new(CrossJoinExec::new(left.dealt(1, 5), right.dealt(2, 5)));
    narrowed_gives_equal_rows(&cross, &[5, 0], true).await;
    narrowed_gives_equal_rows(&cross, &[5, 4, 3, 2, 1, 0], false).await;
    assert_eq!(offered(&cross, 0), "left");
    assert_eq!(offered(&cross, 5), "right");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_side_over_the_limit_fails_with_the_documented_error() {
    let mut left = TestTable::random(&[DataType::Int64], "l", 3000, 1);
    left.rows.iter_mut().for_each(|row| row[1] = ScalarValue::Int64(Some(1)));
    let right = TestTable::random(&[DataType::Int64], "r", 3, 2);
    let nested = plan(question(JoinType::Inner, true), &left.dealt(2, 500), &right.dealt(2, 5));
    let cross: PlanRef = Arc::new(CrossJoinExec::new(left.dealt(2, 500), right.dealt(2, 5)));
    for join in [nested, cross] {
        let (ctx, pool) = limited_context(10_000);
        let error = crate::execute::collect(&join, &ctx).await.unwrap_err();
        let text = error.find_root().to_string();
        let wanted = format!("{} needs", join.name());
        assert!(text.contains(&wanted) && text.contains("--memory-limit"), "{text}");
        drop(ctx);
        assert_eq!(pool.reserved(), 0);
    }
}
