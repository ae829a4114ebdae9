//! Files of one table that differ, and orders over them.

use crate::common::*;
use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch,
    StringArray, TimestampNanosecondArray,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Int32Type};
use planish_expr::PhysicalSortExpr;
use planish_expr::expressions::Column;
use planish_source::{FileFormatOptions, FileTable};
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    write_parquet(path, &[RecordBatch::try_from_iter(columns).unwrap()], 10);
}

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[tokio::test]
async fn columns_in_another_order_missing_added_or_wider() {
    let dir = tempdir().unwrap();
    write(&dir.path().join("1.parquet"), vec![("a", ints(&[1])), ("b", texts(&["x"]))]);
    write(&dir.path().join("2.parquet"), vec![("b", texts(&["y"])), ("a", longs(&[1 << 40]))]);
    write(&dir.path().join("3.parquet"), vec![("a", ints(&[3])), ("c", texts(&["new"]))]);
    let table = table(dir.path()).await.unwrap();
    assert_eq!(table.schema().field(0).data_type(), &DataType::Int64);
    assert!(!table.schema().field(0).is_nullable());
    assert!(table.schema().field(1).is_nullable());
    let options = options(1, 8192);
    let plan = table.scan(None, &options).unwrap();
    assert_eq!(
        run(&plan, &options).await.unwrap(),
        ["1|x|NULL", "1099511627776|y|NULL", "3|NULL|new"]
    );
    let plan = table.scan(Some(&[2, 0]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["NULL|1", "NULL|1099511627776", "new|3"]);
    let statistics = plan.statistics(None).unwrap();
    let a = &statistics.column_statistics[1];
    assert_eq!(a.max_value.to_string(), "Exact(Int64(1099511627776))");
    assert_eq!(statistics.column_statistics[0].null_count.to_string(), "Exact(2)");
}

#[tokio::test]
async fn types_that_do_not_fit_are_named_with_file_and_column() {
    let dir = tempdir().unwrap();
    write(&dir.path().join("1.parquet"), vec![("a", ints(&[1]))]);
    write(&dir.path().join("2.parquet"), vec![("a", texts(&["x"]))]);
    let error = table(dir.path()).await.unwrap_err().to_string();
    for part in ["2.parquet", "column a", "Utf8View", "Int32"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn dictionaries_large_strings_and_nested_columns() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let dictionary: DictionaryArray<Int32Type> = vec!["p", "q", "p"].into_iter().collect();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    write(
        &path,
        vec![
            ("d", Arc::new(dictionary)),
            ("l", Arc::new(LargeStringArray::from(vec!["x", "y", "z"]))),
            ("n", Arc::new(list)),
            ("i", ints(&[7, 8, 9])),
        ],
    );
    let table = table(&path).await.unwrap();
    assert_eq!(table.schema().field(0).data_type(), &DataType::Utf8View);
    assert_eq!(table.schema().field(1).data_type(), &DataType::Utf8View);
    let options = options(1, 2);
    let plan = table.scan(None, &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["p|x|[1, ]|7", "q|y|NULL|8", "p|z|[]|9"]);
    let plan = table.scan(Some(&[3, 2]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["7|[1, ]", "8|NULL", "9|[]"]);
    assert!(plan.statistics(None).unwrap().column_statistics[1].min_value.get_value().is_none());
}

#[tokio::test]
async fn timestamps_keep_their_zone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let times = TimestampNanosecondArray::from(vec![0]).with_timezone("Europe/Berlin");
    write(&path, vec![("t", Arc::new(times))]);
    let options = options(1, 2);
    let plan = table(&path).await.unwrap().scan(None, &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["1970-01-01T01:00:00+01:00"]);
}

#[tokio::test]
async fn an_order_over_files_is_claimed_only_when_the_files_follow_each_other() {
    let dir = tempdir().unwrap();
    let write = |name: &str, values: &[i32]| {
        let path = dir.path().join(name);
        write(&path, vec![("k", ints(values)), ("v", ints(values))]);
        path.display().to_string()
    };
    let (a, b, c) =
        (write("a.parquet", &[1, 2, 3]), write("b.parquet", &[4, 5]), write("c.parquet", &[3, 4]));
    let key = |i: usize, descending: bool| {
        PhysicalSortExpr::new(
            Arc::new(Column::new(["k", "v"][i], i)),
            SortOptions { descending, nulls_first: false },
        )
    };
    let ordered = async |paths: &[&String], ordering: Vec<PhysicalSortExpr>| {
        let paths = paths.iter().map(|p| (*p).clone()).collect();
        let options =
            FileFormatOptions { orderings: vec![ordering], ..FileFormatOptions::default() };
        let table = FileTable::try_new(paths, options).await.unwrap();
        let plan = table.scan(Some(&[1, 0]), &crate::common::options(2, 10)).unwrap();
        plan.properties().output_ordering().map(|o| planish_expr::sort_expr::display_ordering(o))
    };
    let asc = vec![key(0, false)];
    let two = vec![key(0, false), key(1, false)];
    assert_eq!(ordered(&[&a], asc.clone()).await.unwrap(), "[k@1 ASC]");
    assert_eq!(ordered(&[&a, &b], asc.clone()).await.unwrap(), "[k@1 ASC]");
    assert_eq!(ordered(&[&b, &a], asc.clone()).await, None);
    assert_eq!(ordered(&[&a, &c], asc).await.unwrap(), "[k@1 ASC]", "equal keys may meet");
    assert_eq!(ordered(&[&a, &c], two.clone()).await, None, "unless more keys follow");
    assert_eq!(ordered(&[&a, &b], two).await.unwrap(), "[k@1 ASC, v@0 ASC]");
    assert_eq!(ordered(&[&b, &a], vec![key(0, true)]).await.unwrap(), "[k@1 DESC NULLS LAST]");
}

#[tokio::test]
async fn short_decimals_stay_64_bits_wide_until_they_are_read() {
    use arrow::array::Decimal128Array;
    use planish_batch::Form;
    let dir = tempdir().unwrap();
    for (precision, narrow) in [(9, true), (15, true), (18, true), (19, false), (38, false)] {
        let path = dir.path().join(format!("{precision}.parquet"));
        let values = Decimal128Array::from(vec![Some(-12345), None, Some(7)])
            .with_precision_and_scale(precision, 2)
            .unwrap();
        write(&path, vec![("d", Arc::new(values))]);
        let options = options(1, 10);
        let table = table(&path).await.unwrap();
        assert_eq!(table.schema().field(0).data_type(), &DataType::Decimal128(precision, 2));
        let plan = table.scan(None, &options).unwrap();
        let batches = planish_plan::collect(&plan, &ctx(&options)).await.unwrap();
        let encoded = matches!(batches[0].columns()[0].form(), Form::Encoded(_));
        assert_eq!(encoded, narrow, "precision {precision}");
        assert_eq!(rows(&batches), ["-123.45", "NULL", "0.07"]);
        let max = plan.statistics(None).unwrap().column_statistics[0].max_value.to_string();
        assert!(max.contains("7") && max.starts_with("Exact"), "{max}");
    }
}

#[tokio::test]
async fn int96_timestamps_are_read_and_their_bounds_are_not_believed() {
    use parquet::data_type::{Int96, Int96Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let schema = Arc::new(parse_message_type("message m { required int96 t; }").unwrap());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    // The julian day of 1970-01-01, and the day before it.
    let values = [2_440_588, 2_440_587].map(|day| {
        let mut value = Int96::new();
        value.set_data(0, 0, day);
        value
    });
    column.typed::<Int96Type>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let options = options(1, 10);
    let plan = table(&path).await.unwrap().scan(None, &options).unwrap();
    let got = run(&plan, &options).await.unwrap();
    assert_eq!(got, ["1970-01-01T00:00:00", "1969-12-31T00:00:00"]);
    let t = &plan.statistics(None).unwrap().column_statistics[0];
    assert_eq!(t.min_value.get_value(), None);
    assert_eq!(t.null_count.to_string(), "Exact(0)");
}
