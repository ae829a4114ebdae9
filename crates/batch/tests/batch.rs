//! Batches against eager arrow: selections, composition, gathering, encodings, slices.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Int32Array, Int64Array,
    StringArray, StringViewArray, UInt32Array,
};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use planish_batch::{
    Batch, BatchCoalescer, Column, Form, NO_ROW, RowRef, Selection, counters, gather_rows,
};
use proptest::prelude::*;
use std::sync::Arc;

const DECIMAL: DataType = DataType::Decimal128(15, 2);

/// Int64 flat, strings as a dictionary, a narrowed decimal, a constant, view strings.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("flat", DataType::Int64, true),
        Field::new("codes", DataType::Utf8, true),
        Field::new("narrow", DECIMAL, true),
        Field::new("constant", DataType::Int32, true),
        Field::new("views", DataType::Utf8View, true),
    ]))
}

/// `rows` rows whose values start at `from`, with a NULL here and there.
fn sample(from: i64, rows: usize, constant: Option<i32>) -> Batch {
    let values: Vec<i64> = (from..from + rows as i64).collect();
    let some = |v: i64, m: i64| (v % m != 0).then_some(v);
    let flat: Int64Array = values.iter().map(|v| some(*v, 5)).collect();
    let text: Vec<Option<String>> =
        values.iter().map(|v| some(*v, 3).map(|v| format!("text {}", v % 7))).collect();
    let codes: DictionaryArray<Int32Type> = text.iter().map(Option::as_deref).collect();
    let narrow: Int64Array = values.iter().map(|v| some(*v, 4)).collect();
    let views: StringViewArray =
        values.iter().map(|v| some(*v, 6).map(|v| format!("a longer text, number {v}"))).collect();
    let columns = vec![
        Column::flat(Arc::new(flat)),
        Column::encoded(Arc::new(codes), &DataType::Utf8),
        Column::encoded(Arc::new(narrow), &DECIMAL),
        Column::constant(ScalarValue::Int32(constant), rows),
        Column::flat(Arc::new(views)),
    ];
    Batch::try_new(schema(), columns, rows).unwrap()
}

/// The same rows as plain arrays.
fn plain(from: i64, rows: usize, constant: Option<i32>) -> Vec<ArrayRef> {
    let values: Vec<i64> = (from..from + rows as i64).collect();
    let some = |v: i64, m: i64| (v % m != 0).then_some(v);
    vec![
        Arc::new(values.iter().map(|v| some(*v, 5)).collect::<Int64Array>()),
        Arc::new(
            values
                .iter()
                .map(|v| some(*v, 3).map(|v| format!("text {}", v % 7)))
                .collect::<StringArray>(),
        ),
        Arc::new(
            values
                .iter()
                .map(|v| some(*v, 4).map(i128::from))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(15, 2)
                .unwrap(),
        ),
        Arc::new(Int32Array::from(vec![constant; rows])),
        Arc::new(
            values
                .iter()
                .map(|v| some(*v, 6).map(|v| format!("a longer text, number {v}")))
                .collect::<StringViewArray>(),
        ),
    ]
}

fn assert_rows(batch: &Batch, expected: &[ArrayRef]) {
    let rows = expected[0].len();
    assert_eq!(batch.num_rows(), rows);
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(batch.columns()[i].len(), rows, "column {i}");
        assert_eq!(&batch.columns()[i].data_type(), expected.data_type(), "column {i}");
        assert_eq!(&batch.column(i).unwrap(), expected, "column {i}");
    }
    let record_batch = batch.to_record_batch().unwrap();
    assert_eq!(record_batch.columns(), expected);
}

fn take_all(arrays: &[ArrayRef], rows: &UInt32Array) -> Vec<ArrayRef> {
    arrays.iter().map(|a| take(a, rows, None).unwrap()).collect()
}

fn nullable(rows: &[u32]) -> UInt32Array {
    rows.iter().map(|&row| (row != NO_ROW).then_some(row)).collect()
}

#[test]
fn select_and_compose() {
    let (batch, arrays) = (sample(0, 20, Some(3)), plain(0, 20, Some(3)));
    let first = vec![19, 3, 3, 0, 7, 12];
    let selected = batch.select(&Arc::new(Selection::rows(first.clone())));
    let expected = take_all(&arrays, &first.into());
    assert_rows(&selected, &expected);
    let second = vec![5, 0, 0];
    // Once from lazy columns, once after the values were read.
    let lazy = batch
        .select(&Arc::new(Selection::rows(vec![19, 3, 3, 0, 7, 12])))
        .select(&Arc::new(Selection::rows(second.clone())));
    let read = selected.select(&Arc::new(Selection::rows(second.clone())));
    let expected = take_all(&expected, &second.into());
    assert_rows(&lazy, &expected);
    assert_rows(&read, &expected);
}

#[test]
fn no_row_reads_null() {
    let (batch, arrays) = (sample(1, 6, Some(3)), plain(1, 6, Some(3)));
    let rows = vec![NO_ROW, 2, NO_ROW, 0];
    let selection = Selection::nullable_rows(rows.clone());
    let selected = batch.select(&Arc::new(selection));
    let expected = take_all(&arrays, &nullable(&rows));
    assert_rows(&selected, &expected);
    assert!(selected.column(3).unwrap().is_null(0), "a constant too");
    let again = vec![1, NO_ROW, 0];
    let twice = selected.select(&Arc::new(Selection::nullable_rows(again.clone())));
    assert_rows(&twice, &take_all(&expected, &nullable(&again)));
    let all_gone = batch.slice(0, 0).select(&Arc::new(Selection::nullable_rows(vec![NO_ROW; 2])));
    assert_rows(&all_gone, &take_all(&arrays, &nullable(&[NO_ROW; 2])));
}

#[test]
fn filter_counts_null_as_false() {
    let (batch, arrays) = (sample(0, 5, None), plain(0, 5, None));
    let mask = BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None]);
    assert_rows(&batch.filter(&mask), &take_all(&arrays, &vec![0, 3].into()));
    let all = BooleanArray::from(vec![true; 5]);
    assert!(matches!(batch.filter(&all).columns()[0].form(), Form::Flat(_)), "nothing to select");
    assert_eq!(batch.filter(&BooleanArray::new_null(5)).num_rows(), 0);
}

#[test]
fn slices_of_every_form() {
    let (batch, arrays) = (sample(0, 20, Some(1)), plain(0, 20, Some(1)));
    let rows: Vec<u32> = (0..20).rev().collect();
    let selected = batch.select(&Arc::new(Selection::rows(rows.clone())));
    let reversed = take_all(&arrays, &rows.into());
    for (offset, len) in [(0, 20), (3, 0), (3, 11), (19, 1)] {
        let cut = |a: &[ArrayRef]| a.iter().map(|a| a.slice(offset, len)).collect::<Vec<_>>();
        assert_rows(&batch.slice(offset, len), &cut(&arrays));
        assert_rows(&selected.slice(offset, len), &cut(&reversed));
        let half = selected
            .slice(offset, len)
            .select(&Arc::new(Selection::rows((0..len as u32 / 2).collect())));
        let shorter: Vec<_> = cut(&reversed).iter().map(|a| a.slice(0, len / 2)).collect();
        assert_rows(&half, &shorter);
    }
}

#[test]
fn gather_rows_of_many_batches() {
    let batches = [
        sample(0, 5, Some(1)),
        sample(100, 3, None).select(&Arc::new(Selection::nullable_rows(vec![2, NO_ROW, 0]))),
        sample(200, 4, Some(2)),
    ];
    let refs = [
        RowRef::new(2, 3),
        RowRef::NONE,
        RowRef::new(0, 4),
        RowRef::new(1, 1),
        RowRef::new(1, 0),
        RowRef::new(2, 3),
    ];
    let gathered = gather_rows(&schema(), &batches, &refs).unwrap();
    let expected: Vec<ArrayRef> = (0..5)
        .map(|i| {
            let all: Vec<ArrayRef> = batches.iter().map(|b| b.column(i).unwrap()).collect();
            let all: Vec<&dyn Array> = all.iter().map(AsRef::as_ref).collect();
            let all = concat(&all).unwrap();
            let rows = UInt32Array::from(vec![Some(11), None, Some(4), Some(6), Some(5), Some(11)]);
            take(&all, &rows, None).unwrap()
        })
        .collect();
    assert_rows(&gathered, &expected);
    let again = gathered.select(&Arc::new(Selection::rows(vec![3, 1, 0])));
    assert_rows(&again, &take_all(&expected, &vec![3, 1, 0].into()));
    // A chunked selection inside another gather.
    let nested =
        gather_rows(&schema(), &[again.clone(), gathered], &[RowRef::new(1, 5), RowRef::new(0, 2)])
            .unwrap();
    assert_rows(&nested, &take_all(&expected, &vec![5, 0].into()));
}

#[test]
fn batches_over_the_same_bases_take_them_once() {
    let parts: Vec<Batch> = (0..50).map(|i| sample(i * 10, 10, None)).collect();
    let whole = Batch::concat(&schema(), &parts).unwrap();
    let picks: Vec<Vec<u32>> = (0..40).map(|i| vec![i, 499 - i, i * 7]).collect();
    let picked: Vec<Batch> =
        picks.iter().map(|rows| whole.select(&Arc::new(Selection::rows(rows.clone())))).collect();
    let joined = Batch::concat(&schema(), &picked).unwrap();
    let Form::Selected(chunks, _) = joined.columns()[0].form() else { panic!("not a selection") };
    assert_eq!(chunks.len(), 50, "not fifty for each of the forty batches");
    let rows = UInt32Array::from(picks.concat());
    assert_rows(&joined, &take_all(&plain(0, 500, None), &rows));

    // A few rows of many bases, and none at all.
    let rows = vec![400, NO_ROW, 3, NO_ROW, 401];
    let few = whole.select(&Arc::new(Selection::nullable_rows(rows.clone())));
    let none = whole.select(&Arc::new(Selection::nullable_rows(vec![NO_ROW; 3])));
    let constant = |rows: &[u32]| take_all(&plain(0, 500, None), &nullable(rows));
    assert_rows(&few, &constant(&rows));
    assert_rows(&none, &constant(&[NO_ROW; 3]));
}

#[test]
fn gathering_from_nothing() {
    let none = gather_rows(&schema(), &[], &[RowRef::NONE; 3]).unwrap();
    assert_rows(&none, &take_all(&plain(0, 1, None), &UInt32Array::new_null(3)));
    assert!(gather_rows(&schema(), &[], &[RowRef::new(0, 0)]).is_err());
    assert_eq!(gather_rows(&schema(), &[], &[]).unwrap().num_rows(), 0);
    assert_eq!(Batch::concat(&schema(), &[]).unwrap().num_rows(), 0);
}

#[test]
fn encodings_that_differ_are_gathered_all_the_same() {
    let flat = Batch::from_arrays(schema(), plain(50, 4, None), 4).unwrap();
    let both = Batch::concat(&schema(), &[sample(0, 3, Some(1)), flat]).unwrap();
    let expected: Vec<ArrayRef> = plain(0, 3, Some(1))
        .iter()
        .zip(&plain(50, 4, None))
        .map(|(a, b)| concat(&[a.as_ref(), b.as_ref()]).unwrap())
        .collect();
    assert_rows(&both, &expected);
}

#[test]
fn values_move_once_and_only_when_read() {
    let batch = sample(0, 100, Some(1));
    let before = counters::gathered_bytes();
    let selected = batch.select(&Arc::new(Selection::rows(vec![1, 2, 3])));
    let joined = Batch::concat(&schema(), &[selected.clone(), selected]).unwrap();
    let joined = joined.slice(1, 4);
    assert_eq!(counters::gathered_bytes(), before);
    let first = joined.column(0).unwrap();
    let after_one = counters::gathered_bytes();
    assert!(after_one > before);
    assert!(Arc::ptr_eq(&first, &joined.column(0).unwrap()));
    assert_eq!(counters::gathered_bytes(), after_one);
}

#[test]
fn compact_keeps_rows_and_lets_bases_go() {
    let batch = sample(0, 10_000, Some(1));
    let few = batch.select(&Arc::new(Selection::rows(vec![5, 9_999, 17])));
    let compacted = few.compact().unwrap();
    assert!(compacted.retained_bytes() * 100 < few.retained_bytes());
    assert_rows(&compacted, &take_all(&plain(0, 10_000, Some(1)), &vec![5, 9_999, 17].into()));
}

#[test]
fn shared_bases_are_counted_once() {
    let batch = sample(0, 1000, None);
    let alone = batch.retained_bytes();
    let doubled =
        Schema::new(schema().fields().iter().chain(schema().fields()).cloned().collect::<Vec<_>>());
    let twice = batch.zip(&batch, Arc::new(doubled)).unwrap();
    assert_eq!(twice.retained_bytes(), alone);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let one = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    assert!(Batch::from_arrays(Arc::clone(&one), vec![Arc::clone(&array)], 3).is_err());
    assert!(Batch::from_arrays(Arc::clone(&one), vec![], 2).is_err());
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    assert!(Batch::from_arrays(Arc::clone(&one), vec![text], 2).is_err());
    let batch = Batch::from_arrays(Arc::clone(&one), vec![array], 2).unwrap();
    assert!(batch.column(1).is_err());
    assert!(batch.project(&[1], Arc::clone(&one)).is_err());
    assert!(batch.zip(&batch.slice(0, 1), one).is_err());
}

#[test]
fn projections_repeat_and_permute() {
    let batch = sample(0, 4, None);
    let fields = schema().project(&[4, 0, 0]).unwrap();
    let projected = batch.project(&[4, 0, 0], Arc::new(fields)).unwrap();
    let arrays = plain(0, 4, None);
    assert_rows(&projected, &[4, 0, 0].map(|i| Arc::clone(&arrays[i])));
}

#[test]
fn the_coalescer_keeps_all_rows_in_order() {
    for target in [1, 2, 7, 8192] {
        let mut coalescer = BatchCoalescer::new(schema(), target);
        let (mut out, mut from) = (vec![], 0);
        for rows in [0usize, 1, 3, 0, 10, 2, 1] {
            if let Some(full) = coalescer.push(sample(from, rows, Some(1))).unwrap() {
                assert!(full.num_rows() * 2 >= target);
                out.push(full);
            }
            from += rows as i64;
        }
        out.extend(coalescer.finish().unwrap());
        assert!(coalescer.finish().unwrap().is_none());
        let all = Batch::concat(&schema(), &out).unwrap();
        assert_rows(&all, &plain(0, 17, Some(1)));
    }
}

/// A step that a plan may take.
#[derive(Clone, Debug)]
enum Step {
    Select(Vec<u32>),
    Filter(Vec<Option<bool>>),
    Slice(u32, u32),
    Concat(u32),
    Gather(Vec<Option<(u32, u32)>>),
    Read(usize),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let any_rows = proptest::collection::vec(any::<u32>(), 0..20);
    prop_oneof![
        any_rows.prop_map(Step::Select),
        proptest::collection::vec(any::<Option<bool>>(), 1..20).prop_map(Step::Filter),
        (any::<u32>(), any::<u32>()).prop_map(|(o, l)| Step::Slice(o, l)),
        (0u32..30).prop_map(Step::Concat),
        proptest::collection::vec(any::<Option<(u32, u32)>>(), 0..20).prop_map(Step::Gather),
        (0usize..5).prop_map(Step::Read),
        Just(Step::Compact),
    ]
}

/// Every fourth index is "no row", the others are brought into bounds.
fn in_bounds(rows: &[u32], len: usize) -> Vec<u32> {
    rows.iter()
        .filter_map(|&r| match (r % 4, len) {
            (0, _) => Some(NO_ROW),
            (_, 0) => None,
            _ => Some(r % len as u32),
        })
        .collect()
}

proptest! {
    #[test]
    fn lazy_is_eager(rows in 0usize..30, steps in proptest::collection::vec(step(), 0..8)) {
        let mut batch = sample(0, rows, Some(3));
        let mut eager = plain(0, rows, Some(3));
        for step in steps {
            let len = batch.num_rows();
            match step {
                Step::Select(rows) => {
                    let rows = in_bounds(&rows, len);
                    eager = take_all(&eager, &nullable(&rows));
                    batch = batch.select(&Arc::new(Selection::nullable_rows(rows)));
                }
                Step::Filter(pattern) => {
                    let mask: BooleanArray =
                        (0..len).map(|i| pattern[i % pattern.len()]).collect();
                    eager = eager
                        .iter()
                        .map(|a| arrow::compute::filter(a, &mask).unwrap())
                        .collect();
                    batch = batch.filter(&mask);
                }
                Step::Slice(offset, length) => {
                    let offset = offset as usize % (len + 1);
                    let length = length as usize % (len - offset + 1);
                    eager = eager.iter().map(|a| a.slice(offset, length)).collect();
                    batch = batch.slice(offset, length);
                }
                Step::Concat(more) => {
                    let other = plain(40, more as usize, None);
                    eager = eager
                        .iter()
                        .zip(&other)
                        .map(|(a, b)| concat(&[a.as_ref(), b.as_ref()]).unwrap())
                        .collect();
                    let other = sample(40, more as usize, None);
                    batch = Batch::concat(&schema(), &[batch, other]).unwrap();
                }
                Step::Gather(picks) => {
                    let other = (sample(70, 9, Some(4)), plain(70, 9, Some(4)));
                    let refs: Vec<RowRef> = picks
                        .iter()
                        .filter_map(|pick| match pick {
                            None => Some(RowRef::NONE),
                            Some((0x8000_0000.., row)) => Some(RowRef::new(1, row % 9)),
                            Some(_) if len == 0 => None,
                            Some((_, row)) => Some(RowRef::new(0, row % len as u32)),
                        })
                        .collect();
                    let flat: UInt32Array = refs
                        .iter()
                        .map(|r| (!r.is_none()).then(|| r.chunk() * len as u32 + r.row()))
                        .collect();
                    let both: Vec<ArrayRef> = eager
                        .iter()
                        .zip(&other.1)
                        .map(|(a, b)| concat(&[a.as_ref(), b.as_ref()]).unwrap())
                        .collect();
                    eager = take_all(&both, &flat);
                    batch = gather_rows(&schema(), &[batch, other.0], &refs).unwrap();
                }
                Step::Read(i) => {
                    prop_assert_eq!(&batch.column(i).unwrap(), &eager[i]);
                }
                Step::Compact => batch = batch.compact().unwrap(),
            }
        }
        assert_rows(&batch, &eager);
    }
}
