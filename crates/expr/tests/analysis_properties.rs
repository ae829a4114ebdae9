//! Interval analysis over generated expressions and rows: no row has a value that the analysis
//! excludes.
#![allow(clippy::unwrap_used, clippy::panic)]
// Helpers of tests count as tests.

mod generator;

use arrow::datatypes::{DataType, Schema};
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision};
use datafusion_expr::{ColumnarValue, Operator};
use generator::{Expressions, Random, input, rows};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::analysis::{
    Truth, ValueBounds, distinct_count, possible_truth, selectivity, value_bounds,
};
use planish_expr::expressions::{BinaryExpr, lit};
use std::sync::Arc;

const CASES: u64 = 4000;

fn is_nan(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Float64(Some(v)) if v.is_nan())
}

/// `a <= b`, by the engine itself.
fn at_most(a: &ScalarValue, b: &ScalarValue) -> bool {
    let test = BinaryExpr::new(lit(a.clone()), Operator::LtEq, lit(b.clone()));
    let no_columns = Batch::from_arrays(Arc::new(Schema::empty()), vec![], 1).unwrap();
    let test: PhysicalExprRef = Arc::new(test);
    match test.evaluate(&no_columns).unwrap() {
        ColumnarValue::Scalar(ScalarValue::Boolean(Some(holds))) => holds,
        other => panic!("{other:?}"),
    }
}

fn column(batch: &Batch, i: usize) -> Vec<ScalarValue> {
    let array = batch.column(i).unwrap();
    (0..array.len()).map(|row| ScalarValue::try_from_array(&array, row).unwrap()).collect()
}

/// The tightest facts about a column.
fn facts(batch: &Batch, i: usize) -> ValueBounds {
    let values = column(batch, i);
    let numbers = || values.iter().filter(|v| !v.is_null() && !is_nan(v)).cloned();
    let lower = numbers().reduce(|a, b| if at_most(&a, &b) { a } else { b });
    let upper = numbers().reduce(|a, b| if at_most(&a, &b) { b } else { a });
    ValueBounds {
        lower,
        upper,
        may_be_nan: values.iter().any(is_nan),
        may_be_null: values.iter().any(ScalarValue::is_null),
        all_null: values.iter().all(ScalarValue::is_null),
    }
}

/// The value in each row that is not an error.
fn values(expr: &PhysicalExprRef, batch: &Batch) -> Vec<ScalarValue> {
    (0..batch.num_rows())
        .filter_map(|row| {
            let array = expr.evaluate_array(&batch.slice(row, 1)).ok()?;
            Some(ScalarValue::try_from_array(&array, 0).unwrap())
        })
        .collect()
}

#[test]
fn no_row_is_outside_the_bounds() {
    let (mut bounded, mut total) = (0, 0);
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let (schema, batch) = (input(), rows(r));
        let expr = Expressions { schema: &schema, failing: true }.number(r, 3);
        let bounds = value_bounds(&expr, &schema, &|i| facts(&batch, i));
        total += 1;
        bounded += usize::from(bounds.lower.is_some() && bounds.upper.is_some());
        for value in values(&expr, &batch) {
            let shown = || format!("seed {seed}: {value} of {expr} and {bounds:?}");
            if value.is_null() {
                assert!(bounds.may_be_null, "{}", shown());
                continue;
            }
            assert!(!bounds.all_null, "{}", shown());
            if is_nan(&value) {
                assert!(bounds.may_be_nan, "{}", shown());
                continue;
            }
            let above = bounds.lower.as_ref().is_none_or(|low| at_most(low, &value));
            let below = bounds.upper.as_ref().is_none_or(|high| at_most(&value, high));
            assert!(above && below, "{}", shown());
        }
    }
    assert!(bounded * 3 > total, "{bounded} of {total} are bounded");
}

#[test]
fn no_row_has_a_truth_value_that_is_excluded() {
    let (mut decided, mut total) = (0, 0);
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let (schema, batch) = (input(), rows(r));
        let condition = Expressions { schema: &schema, failing: true }.truth(r, 2);
        let truth = possible_truth(&condition, &schema, &|i| facts(&batch, i));
        total += 1;
        decided += usize::from(truth != Truth::ANY);
        for value in values(&condition, &batch) {
            let possible = match value {
                ScalarValue::Boolean(Some(true)) => truth.may_be_true,
                ScalarValue::Boolean(Some(false)) => truth.may_be_false,
                _ => truth.may_be_null,
            };
            assert!(possible, "seed {seed}: {value} of {condition}, not in {truth:?}");
        }
        // The same as bounds of a boolean, and back.
        let bounds = value_bounds(&condition, &schema, &|i| facts(&batch, i));
        assert_eq!(Truth::from(&bounds), truth, "seed {seed}: {condition}");
    }
    assert!(decided * 3 > total, "{decided} of {total} are narrowed");
}

fn statistics(batch: &Batch) -> Statistics {
    let column = |i| {
        let known = facts(batch, i);
        let nulls = column(batch, i).iter().filter(|v| v.is_null()).count();
        let end = |v: Option<ScalarValue>| v.map_or(Precision::Absent, Precision::Exact);
        ColumnStatistics {
            null_count: Precision::Exact(nulls),
            min_value: end(known.lower),
            max_value: end(known.upper),
            ..ColumnStatistics::new_unknown()
        }
    };
    Statistics {
        num_rows: Precision::Exact(batch.num_rows()),
        total_byte_size: Precision::Absent,
        column_statistics: (0..batch.num_columns()).map(column).collect(),
    }
}

#[test]
fn estimates_are_shares_and_counts() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let (schema, batch) = (input(), rows(r));
        let generator = Expressions { schema: &schema, failing: true };
        let stats = statistics(&batch);
        let condition = generator.truth(r, 2);
        let share = selectivity(&condition, &stats, &schema);
        assert!((0.0..=1.0).contains(&share), "seed {seed}: {share} for {condition}");
        let expr = generator.any(r);
        let estimate = distinct_count(&expr, &stats, &schema);
        assert_ne!(estimate.is_exact(), Some(true));
        assert!(estimate.get_value().is_none_or(|n| *n <= batch.num_rows()), "seed {seed}: {expr}");
        // Where the range of values is what limits it, it is an upper bound.
        let mut seen = values(&expr, &batch);
        seen.retain(|v| !v.is_null());
        let count = seen.iter().collect::<std::collections::HashSet<_>>().len();
        let whole = expr.data_type(&schema).unwrap() != DataType::Float64;
        if let Some(n) = estimate.get_value().filter(|_| whole) {
            assert!(count <= *n, "seed {seed}: {count} values of {expr}, estimated {n}");
        }
    }
}
