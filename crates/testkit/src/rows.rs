//! Rows as text, to compare results as multisets or in order, and the naive oracles on them.

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::ScalarValue;
use planish_batch::Batch;
use std::cmp::Ordering;
use std::collections::HashMap;

/// How NULL prints, so that it differs from any string.
pub const NULL: &str = "∅";

/// Each row of `batches` as text, in order.
///
/// # Panics
/// When a batch cannot be gathered or a type not printed.
pub fn of(batches: &[Batch]) -> Vec<String> {
    let batches: Vec<RecordBatch> = batches.iter().map(|b| b.to_record_batch().unwrap()).collect();
    of_record_batches(&batches)
}

/// As [`of`], for record batches.
///
/// # Panics
/// As [`of`].
pub fn of_record_batches(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null(NULL);
    let mut out = vec![];
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            out.push(cells.join(" | "));
        }
    }
    out
}

/// The rows of `batches` as scalars, for oracles that compute with them.
///
/// # Panics
/// When a batch cannot be gathered.
pub fn scalars(batches: &[Batch]) -> Vec<Vec<ScalarValue>> {
    let mut out = vec![];
    for batch in batches {
        let batch = batch.to_record_batch().unwrap();
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter();
            out.push(cells.map(|c| ScalarValue::try_from_array(c, row).unwrap()).collect());
        }
    }
    out
}

/// Rows of scalars as [`of`] would print them.
///
/// # Panics
/// When a value cannot be printed.
pub fn of_scalars(rows: &[Vec<ScalarValue>]) -> Vec<String> {
    let options = FormatOptions::default().with_null(NULL);
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .map(|value| {
                    let array = value.to_array().unwrap();
                    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).unwrap();
                    formatter.value(0).to_string()
                })
                .collect();
            cells.join(" | ")
        })
        .collect()
}

/// Compares two rows by keys `(column, options)`; floats in total order, as arrow sorts.
///
/// # Panics
/// When two values cannot be compared.
pub fn compare(a: &[ScalarValue], b: &[ScalarValue], keys: &[(usize, SortOptions)]) -> Ordering {
    keys.iter()
        .map(|&(column, options)| compare_values(&a[column], &b[column], options))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn compare_values(a: &ScalarValue, b: &ScalarValue, options: SortOptions) -> Ordering {
    let null_side = if options.nulls_first { Ordering::Less } else { Ordering::Greater };
    match (a.is_null(), b.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return null_side,
        (false, true) => return null_side.reverse(),
        (false, false) => {}
    }
    let ordering = match (a, b) {
        (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) => {
            normal(*a).total_cmp(&normal(*b))
        }
        (ScalarValue::Float32(Some(a)), ScalarValue::Float32(Some(b))) => {
            normal(f64::from(*a)).total_cmp(&normal(f64::from(*b)))
        }
        _ => a.partial_cmp(b).unwrap(),
    };
    if options.descending { ordering.reverse() } else { ordering }
}

/// `-0.0` as `0.0`, every NaN as one, for comparisons as SQL makes them.
fn normal(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// Asserts that `batches`, read in order, are sorted by `keys`.
///
/// # Panics
/// When they are not.
pub fn assert_sorted(batches: &[Batch], keys: &[(usize, SortOptions)]) {
    let columns: Vec<usize> = keys.iter().map(|(column, _)| *column).collect();
    let keys: Vec<_> = keys.iter().enumerate().map(|(i, (_, options))| (i, *options)).collect();
    let mut last: Option<Vec<ScalarValue>> = None;
    for batch in batches {
        let arrays: Vec<_> = columns.iter().map(|&c| batch.column(c).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells = arrays.iter().map(|a| ScalarValue::try_from_array(a, row).unwrap());
            let next: Vec<ScalarValue> = cells.collect();
            if let Some(last) = &last {
                assert!(compare(last, &next, &keys).is_le(), "{next:?} comes after {last:?}");
            }
            last = Some(next);
        }
    }
}

/// Asserts that two lists hold the same rows, each as often.
///
/// # Panics
/// With the first rows that differ.
pub fn assert_same(actual: &[String], expected: &[String], what: &str) {
    let (missing, extra) = difference(actual, expected);
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{what}: {} rows instead of {}; missing {:?}, extra {:?}",
        actual.len(),
        expected.len(),
        &missing[..missing.len().min(5)],
        &extra[..extra.len().min(5)]
    );
}

/// Asserts that each row of `actual` is in `expected`, at most as often.
///
/// # Panics
/// With the first rows that are not.
pub fn assert_part_of(actual: &[String], expected: &[String], what: &str) {
    let (_, extra) = difference(actual, expected);
    assert!(extra.is_empty(), "{what}: rows nobody expects: {:?}", &extra[..extra.len().min(5)]);
}

/// Rows of `expected` that `actual` lacks, and those it has in excess.
fn difference<'a>(actual: &'a [String], expected: &'a [String]) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut counts: HashMap<&str, i64> = HashMap::new();
    expected.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    actual.iter().for_each(|row| *counts.entry(row).or_default() -= 1);
    let mut missing = vec![];
    let mut extra = vec![];
    for (row, count) in counts {
        let list = if count > 0 { &mut missing } else { &mut extra };
        list.extend(std::iter::repeat_n(row, count.unsigned_abs() as usize));
    }
    missing.sort_unstable();
    extra.sort_unstable();
    (missing, extra)
}
