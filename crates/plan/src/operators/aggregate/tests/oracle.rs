//! The oracle: rows as text, groups in ordered maps, functions by their definitions.

use super::*;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planish_batch::Batch;
use std::collections::{BTreeMap, BTreeSet};

/// A call of an aggregate function on a column.
#[derive(Clone, Default)]
pub(super) struct Call {
    pub(super) fun: &'static str,
    pub(super) arg: Option<&'static str>,
    pub(super) distinct: bool,
    pub(super) filter: Option<&'static str>,
    pub(super) order_by: Vec<&'static str>,
}

impl Call {
    pub(super) fn name(&self) -> String {
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let filter = self.filter.map(|f| format!(" FILTER {f}")).unwrap_or_default();
        format!("{}({distinct}{}){filter}", self.fun, self.arg.unwrap_or("*"))
    }
}

/// A table of `n` rows: keys of several types with few values, `n` a number without repeats.
pub(super) fn table(n: usize) -> RecordBatch {
    let mut state = 42u64;
    let mut next = |modulo: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % modulo
    };
    let word = |i: u64| match i {
        0 => None,
        1 => Some(String::new()),
        2 => Some("R".to_owned()),
        i => Some(format!("word number {i}")),
    };
    let words: Vec<Option<String>> = (0..n).map(|_| word(next(6))).collect();
    let entries: Vec<Option<String>> = (0..n).map(|_| word(next(5))).collect();
    let floats = [Some(0.0), Some(-0.0), None, Some(f64::NAN), Some(-f64::NAN), Some(1.5)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "n",
            Arc::new(
                (0..n as i64).map(|i| i * 7919 % 1009 + 2000 * (i / 1009)).collect::<Int64Array>(),
            ),
        ),
        (
            "k",
            Arc::new(
                (0..n).map(|_| Some(next(7) as i64).filter(|v| *v > 0)).collect::<Int64Array>(),
            ),
        ),
        ("s", Arc::new(words.iter().map(Option::as_deref).collect::<StringArray>())),
        (
            "d",
            Arc::new(entries.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
        ),
        ("f", Arc::new((0..n).map(|_| floats[next(6) as usize]).collect::<Float64Array>())),
        (
            "keep",
            Arc::new(
                (0..n)
                    .map(|_| Some(next(3)).filter(|v| *v > 0).map(|v| v == 1))
                    .collect::<BooleanArray>(),
            ),
        ),
        (
            "v",
            Arc::new(
                (0..n)
                    .map(|_| Some(next(9) as i64 - 4).filter(|v| *v != 0))
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "l",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..n).map(|_| {
                let v = next(4) as i32;
                (v > 0).then(|| vec![Some(v); v as usize])
            }))),
        ),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, c)| Field::new(*name, c.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, c)| c).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    let array = super::super::keys::normalize_floats(array).unwrap();
    let format = ArrayFormatter::try_new(array.as_ref(), &FormatOptions::new()).unwrap();
    let nulls = array.logical_nulls();
    (0..array.len())
        .map(|i| nulls.as_ref().is_none_or(|n| n.is_valid(i)).then(|| format.value(i).to_string()))
        .collect()
}

fn shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "NULL".to_owned())
}

/// The rows of a batch as text.
pub(super) fn rows_of(batch: &Batch) -> Vec<String> {
    let columns: Vec<Vec<Option<String>>> =
        (0..batch.num_columns()).map(|i| texts(&batch.column(i).unwrap())).collect();
    (0..batch.num_rows())
        .map(|row| {
            let values: Vec<String> = columns.iter().map(|c| shown(c[row].clone())).collect();
            values.join("|")
        })
        .collect()
}

/// What grouping `batch` by each of `sets` (of `keys`) gives, as sorted text.
pub(super) fn expected(
    batch: &RecordBatch,
    sets: &[&[&str]],
    keys: &[&str],
    calls: &[Call],
) -> Vec<String> {
    let columns: BTreeMap<String, Vec<Option<String>>> = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name().clone(), texts(column)))
        .collect();
    let column = |name: &str| &columns[name];
    let single = sets.len() == 1 && sets[0].len() == keys.len();
    let mut out = vec![];
    for (s, set) in sets.iter().enumerate() {
        let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        if set.is_empty() {
            let id = keys.iter().map(|_| "NULL".to_owned()).collect();
            groups.insert(id, vec![]);
        }
        for row in 0..batch.num_rows() {
            let key = keys
                .iter()
                .map(
                    |k| if set.contains(k) { shown(column(k)[row].clone()) } else { "NULL".into() },
                )
                .collect();
            groups.entry(key).or_default().push(row);
        }
        let mask = keys.iter().fold(0, |m, k| m * 2 + u64::from(!set.contains(k)));
        let ordinal = sets[..s].iter().filter(|other| other == &set).count() as u64;
        for (mut key, rows) in groups {
            if !single {
                key.push((mask + (ordinal << keys.len())).to_string());
            }
            key.extend(calls.iter().map(|call| evaluate(call, &rows, &column)));
            out.push(key.join("|"));
        }
    }
    out.sort();
    out
}

fn evaluate<'a>(
    call: &Call,
    rows: &[usize],
    column: &dyn Fn(&str) -> &'a Vec<Option<String>>,
) -> String {
    let mut rows = rows.to_vec();
    if let Some(filter) = call.filter {
        let keep = column(filter);
        rows.retain(|r| keep[*r].as_deref() == Some("true"));
    }
    if let [key] = call.order_by[..] {
        let keys = column(key);
        rows.sort_by_key(|r| keys[*r].as_ref().unwrap().parse::<i64>().unwrap());
    }
    let all: Vec<Option<String>> = match call.arg {
        Some(arg) => {
            let values = column(arg);
            rows.iter().map(|r| values[*r].clone()).collect()
        }
        None => vec![Some("1".to_owned()); rows.len()],
    };
    let mut values: Vec<String> = all.iter().flatten().cloned().collect();
    if call.distinct {
        values = values.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    }
    let numbers = || values.iter().map(|v| v.parse::<i64>().unwrap());
    match call.fun {
        "count" => values.len().to_string(),
        "sum" if values.is_empty() => "NULL".to_owned(),
        "sum" => numbers().sum::<i64>().to_string(),
        "max" => shown(numbers().max().map(|v| v.to_string())),
        "min" => shown(values.into_iter().min()),
        "array_agg" if all.is_empty() => "NULL".to_owned(),
        "array_agg" => {
            let shown: Vec<String> = all.into_iter().map(Option::unwrap_or_default).collect();
            format!("[{}]", shown.join(", "))
        }
        "first_value" => shown(all.into_iter().next().flatten()),
        other => unreachable!("{other}"),
    }
}
