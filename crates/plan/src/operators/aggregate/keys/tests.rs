//! The tables against an oracle that compares keys as text.

use super::*;
use arrow::array::*;
use arrow::datatypes::*;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::ScalarValue;
use planish_batch::{NO_ROW, RowRef, Selection};
use std::collections::HashMap;
use std::sync::Arc;

fn field(data_type: &DataType) -> FieldRef {
    Arc::new(Field::new("k", data_type.clone(), true))
}

/// Rows as text; equal keys give equal text.
fn text(arrays: &[ArrayRef]) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let arrays: Vec<ArrayRef> = arrays.iter().map(|a| normalize_floats(a).unwrap()).collect();
    let formats: Vec<ArrayFormatter<'_>> =
        arrays.iter().map(|a| ArrayFormatter::try_new(a.as_ref(), &options).unwrap()).collect();
    (0..arrays[0].len())
        .map(|i| formats.iter().map(|f| f.value(i).to_string()).collect::<Vec<_>>().join("|"))
        .collect()
}

/// Interns the rows of `arrays` in pieces of several sizes and compares groups and keys.
fn check(arrays: &[ArrayRef]) -> GroupKeys {
    let fields: Vec<FieldRef> = arrays.iter().map(|a| field(a.data_type())).collect();
    let rows = arrays[0].len();
    let expected = text(arrays);
    for size in [1, 7, 8192] {
        let mut table = GroupKeys::try_new(&fields).unwrap();
        let mut groups = vec![];
        for start in (0..rows).step_by(size) {
            let len = size.min(rows - start);
            let columns: Vec<Column> =
                arrays.iter().map(|a| Column::flat(a.slice(start, len))).collect();
            table.intern(&columns, len, &mut groups).unwrap();
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut first = vec![];
        for (row, key) in expected.iter().enumerate() {
            let next = numbers.len();
            let number = *numbers.entry(key).or_insert_with(|| {
                first.push(key.clone());
                next
            });
            assert_eq!(groups[row], number, "row {row}: {key}");
        }
        assert_eq!(table.len(), first.len());
        assert!(table.size() > 0);
        let keys = table.emit().unwrap();
        for (key, array) in keys.iter().zip(arrays) {
            assert_eq!(key.data_type(), array.data_type());
        }
        assert_eq!(text(&keys), first);
        assert_eq!(table.len(), 0);
        // The table can be used again.
        groups.clear();
        let columns: Vec<Column> = arrays.iter().map(|a| Column::flat(Arc::clone(a))).collect();
        table.intern(&columns, rows, &mut groups).unwrap();
        assert_eq!(table.len(), first.len());
    }
    GroupKeys::try_new(&fields).unwrap()
}

fn ints(n: i64, modulo: i64) -> ArrayRef {
    Arc::new((0..n).map(|i| (i % 11 != 3).then_some(i * 7 % modulo - 2)).collect::<Int64Array>())
}

fn words(n: usize) -> Vec<Option<String>> {
    (0..n)
        .map(|i| match i % 6 {
            0 => None,
            1 => Some(String::new()),
            2 => Some("R".to_owned()),
            3 => Some(format!("w{}", i % 5)),
            4 => Some(format!("exactly 12 b{}", i % 3)),
            _ => Some(format!("a longer string, number {}", i % 17)),
        })
        .collect()
}

fn all_types() -> Vec<ArrayRef> {
    let n = 100;
    let words = words(n);
    let strs = || words.iter().map(|w| w.as_deref());
    let bytes = || words.iter().map(|w| w.as_deref().map(str::as_bytes));
    let narrow = |v: i64| (v % 7 != 2).then_some(v % 9 - 4);
    let cast = |t: &DataType| arrow::compute::cast(&ints(n as i64, 40), t).unwrap();
    let mut all: Vec<ArrayRef> =
        vec![
            Arc::new(NullArray::new(n)),
            Arc::new((0..n).map(|i| (i % 5 != 0).then_some(i % 2 == 0)).collect::<BooleanArray>()),
            ints(n as i64, 30),
            Arc::new(strs().collect::<StringArray>()),
            Arc::new(strs().collect::<LargeStringArray>()),
            Arc::new(strs().collect::<StringViewArray>()),
            Arc::new(bytes().collect::<BinaryArray>()),
            Arc::new(bytes().collect::<LargeBinaryArray>()),
            Arc::new(bytes().collect::<BinaryViewArray>()),
            Arc::new(strs().collect::<DictionaryArray<Int8Type>>()),
            Arc::new(strs().collect::<DictionaryArray<UInt32Type>>()),
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    (0..n).map(|i| (i % 4 != 1).then_some([i as u8 % 3, 1, 2])),
                    3,
                )
                .unwrap(),
            ),
            Arc::new(
                (0..n as i64)
                    .map(|v| narrow(v).map(i128::from))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
            Arc::new(
                (0..n as i64)
                    .map(|v| narrow(v).map(|v| i128::from(v) << 70))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(38, 2)
                    .unwrap(),
            ),
            Arc::new(
                (0..n as i64)
                    .map(|v| narrow(v).map(|v| i256::from_i128(i128::from(v))))
                    .collect::<Decimal256Array>(),
            ),
            Arc::new(
                (0..n as i64)
                    .map(|v| narrow(v).map(|v| IntervalMonthDayNano::new(v as i32, 1, v)))
                    .collect::<IntervalMonthDayNanoArray>(),
            ),
            Arc::new(
                (0..n as i64)
                    .map(|v| narrow(v).map(|v| IntervalDayTime::new(v as i32, 5)))
                    .collect::<IntervalDayTimeArray>(),
            ),
            Arc::new(
                (0..n)
                    .map(|i| match i % 7 {
                        0 => None,
                        1 => Some(0.0),
                        2 => Some(-0.0),
                        3 => Some(f64::NAN),
                        4 => Some(-f64::NAN),
                        _ => Some(i as f64 / 10.0),
                    })
                    .collect::<Float64Array>(),
            ),
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>((0..n).map(|i| {
                (i % 5 != 2).then(|| vec![Some(if i % 2 == 0 { 0.0 } else { -0.0 }), None])
            }))),
        ];
    for data_type in [
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Date32,
        DataType::Float32,
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64)),
    ] {
        all.push(cast(&data_type));
    }
    all
}

#[test]
fn one_column_of_every_type() {
    for array in all_types() {
        check(&[Arc::clone(&array)]);
        check(&[array.slice(13, 60)]);
        check(&[new_null_array(array.data_type(), 9)]);
        let table = GroupKeys::try_new(&[field(array.data_type())]).unwrap();
        let packs = !matches!(array.data_type(), DataType::List(_) | DataType::Decimal256(..));
        assert_eq!(format!("{table:?}").contains("PackedKeys"), packs, "{}", array.data_type());
    }
}

#[test]
fn pairs_and_many_columns() {
    let all = all_types();
    for pair in all.windows(2) {
        check(pair);
    }
    for triple in all.windows(3).step_by(3) {
        check(triple);
    }
    // Four and eight words; too many for eight.
    let strings = |n: usize| vec![Arc::clone(&all[3]); n];
    check(&[strings(3), vec![ints(100, 30), ints(100, 20)]].concat());
    check(&[strings(8), vec![ints(100, 30), ints(100, 20)]].concat());
    let table = check(&strings(17));
    assert!(format!("{table:?}").contains("RowKeys"));
}

#[test]
fn tables_grow() {
    check(&[ints(20_000, 20_011)]);
    let strings: StringArray =
        (0..20_000).map(|i| Some(format!("key number {}", i % 9973))).collect();
    check(&[Arc::new(strings), ints(20_000, 3)]);
}

#[test]
fn constants_and_encoded_columns() {
    let data_types = [DataType::Utf8, DataType::Decimal128(10, 2), DataType::Int64];
    let fields: Vec<FieldRef> = data_types.iter().map(field).collect();
    let mut table = GroupKeys::try_new(&fields).unwrap();
    let mut groups = vec![];
    let codes: DictionaryArray<Int32Type> = vec!["a", "b", "a"].into_iter().collect();
    let narrow = Int64Array::from(vec![100, 100, 100]);
    let columns = [
        Column::encoded(Arc::new(codes), &DataType::Utf8),
        Column::encoded(Arc::new(narrow), &DataType::Decimal128(10, 2)),
        Column::constant(ScalarValue::Int64(None), 3),
    ];
    table.intern(&columns, 3, &mut groups).unwrap();
    let flat: [ArrayRef; 3] = [
        Arc::new(StringArray::from(vec!["b", "c"])),
        Arc::new(Decimal128Array::from(vec![100, 100]).with_precision_and_scale(10, 2).unwrap()),
        Arc::new(Int64Array::from(vec![None, None])),
    ];
    table.intern(&flat.clone().map(Column::flat), 2, &mut groups).unwrap();
    assert_eq!(groups, [0, 1, 0, 1, 2]);
    assert_eq!(text(&table.emit().unwrap()), ["a|1.00|NULL", "b|1.00|NULL", "c|1.00|NULL"]);
}

#[test]
fn selections_over_shared_bases() {
    let words = words(40);
    let strs = |range: std::ops::Range<usize>| words[range].iter().map(|w| w.as_deref());
    let chunks: Vec<ArrayRef> = vec![
        Arc::new(strs(0..25).collect::<StringArray>()),
        Arc::new(strs(25..40).collect::<StringArray>()),
    ];
    let codes: ArrayRef = Arc::new(strs(0..25).collect::<DictionaryArray<Int8Type>>());
    let refs = |step: usize| -> Vec<RowRef> {
        (0..60)
            .map(|i| match i * step % 41 {
                40 => RowRef::NONE,
                row if row < 25 => RowRef::new(0, row as u32),
                row => RowRef::new(1, row as u32 - 25),
            })
            .collect()
    };
    let rows = |step: u32| -> Vec<u32> {
        (0..60).map(|i| if i % 7 == 6 { NO_ROW } else { i * step % 25 }).collect()
    };
    let mut table = GroupKeys::try_new(&[field(&DataType::Utf8)]).unwrap();
    let (mut groups, mut expected) = (vec![], vec![]);
    for step in [1, 3, 7] {
        let one = |base: &ArrayRef| {
            let selection = Arc::new(Selection::nullable_rows(rows(step)));
            Column::selected(DataType::Utf8, Arc::new([Arc::clone(base)]), selection)
        };
        let many = Column::selected(
            DataType::Utf8,
            chunks.clone().into(),
            Arc::new(Selection::refs(refs(step as usize))),
        );
        for column in [many, one(&chunks[0]), one(&codes)] {
            table.intern(std::slice::from_ref(&column), 60, &mut groups).unwrap();
            expected.extend(text(&[column.values().unwrap()]));
        }
    }
    let keys = text(&table.emit().unwrap());
    let found: Vec<&String> = groups.iter().map(|g| &keys[*g]).collect();
    assert_eq!(found, expected.iter().collect::<Vec<_>>());
}

#[test]
fn broken_promises_are_errors() {
    let not_null = |t| Arc::new(Field::new("k", t, false)) as FieldRef;
    let fields = [not_null(DataType::Int32), not_null(DataType::Int32)];
    let mut table = GroupKeys::try_new(&fields).unwrap();
    let null: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1)]));
    let columns = [Column::flat(Arc::clone(&null)), Column::flat(null)];
    assert!(table.intern(&columns, 2, &mut vec![]).is_err());
    let mut table = GroupKeys::try_new(&[field(&DataType::Decimal128(18, 0))]).unwrap();
    let wide: ArrayRef =
        Arc::new(Decimal128Array::from(vec![1i128 << 80]).with_precision_and_scale(38, 0).unwrap());
    let wide = make_array(
        wide.to_data().into_builder().data_type(DataType::Decimal128(18, 0)).build().unwrap(),
    );
    assert!(table.intern(&[Column::flat(wide)], 1, &mut vec![]).is_err());
}
