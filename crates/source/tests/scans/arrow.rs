//! Arrow IPC: files and streams, dictionaries, several files, damage.

use crate::common::{options, run, sample, table};
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, Schema};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

/// As `sample`, with a dictionary column.
fn batches(sizes: &[usize]) -> Vec<RecordBatch> {
    // A file has one dictionary per column.
    let values: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let mut start = 0;
    let mut out = vec![];
    for &n in sizes {
        let batch = sample(start, n);
        let codes: Int32Array = (0..n as i32).map(|i| (i % 5 != 0).then_some(i % 3)).collect();
        let text = DictionaryArray::<Int32Type>::new(codes, Arc::clone(&values));
        let mut columns = batch.columns().to_vec();
        let mut fields = batch.schema().fields().to_vec();
        fields.push(Arc::new(arrow::datatypes::Field::new_dictionary(
            "dict",
            arrow::datatypes::DataType::Int32,
            arrow::datatypes::DataType::Utf8,
            true,
        )));
        columns.push(Arc::new(text) as ArrayRef);
        out.push(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap());
        start += n as i64;
    }
    out
}

fn text_of(batches: &[RecordBatch]) -> Vec<String> {
    let batches: Vec<_> = batches.iter().map(planish_batch::Batch::from_record_batch).collect();
    crate::common::rows(&batches)
}

fn write_file(path: &Path, batches: &[RecordBatch]) {
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

fn write_stream(path: &Path, batches: &[RecordBatch]) {
    let file = fs::File::create(path).unwrap();
    let mut writer = StreamWriter::try_new(file, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

#[tokio::test]
async fn files_and_streams_are_told_apart_by_their_bytes() {
    let dir = tempdir().unwrap();
    let batches = batches(&[50, 0, 3, 120]);
    let expected = text_of(&batches);
    for (name, is_file) in
        [("f.arrow", true), ("s.arrows", false), ("t.feather", true), ("u.ipc", false)]
    {
        let path = dir.path().join(name);
        if is_file {
            write_file(&path, &batches)
        } else {
            write_stream(&path, &batches)
        }
        let table = table(&path).await.unwrap();
        for (partitions, batch_size) in [(1, 8192), (1, 1), (4, 7)] {
            let options = options(partitions, batch_size);
            let mut found = run(&table.scan(None, &options).unwrap(), &options).await.unwrap();
            let mut expected = expected.clone();
            if partitions > 1 {
                found.sort();
                expected.sort();
            }
            assert_eq!(found, expected, "{name} {partitions} {batch_size}");
        }
        // Reordered, repeated and virtual columns.
        let options = options(1, 16);
        let width = table.schema().fields().len();
        let scan = table.scan(Some(&[width - 1, width, 0, 0]), &options).unwrap();
        let found = run(&scan, &options).await.unwrap();
        let wanted = expected.iter().enumerate().map(|(i, row)| {
            let cells: Vec<&str> = row.split('|').collect();
            format!("{}|{i}|{}|{}", cells[width - 1], cells[0], cells[0])
        });
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{name}");
        assert_eq!(
            run(&table.scan(Some(&[]), &options).unwrap(), &options).await.unwrap().len(),
            173
        );
    }
}

#[tokio::test]
async fn rows_are_counted_from_the_headers() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("f.arrow");
    write_file(&path, &batches(&[50, 0, 3]));
    let scan = table(&path).await.unwrap().scan(None, &options(1, 8192)).unwrap();
    let rows = scan.statistics(None).unwrap().num_rows;
    assert_eq!(rows, datafusion_common::stats::Precision::Exact(53));
}

#[tokio::test]
async fn files_with_other_columns_are_one_table() {
    let dir = tempdir().unwrap();
    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter([(name, array)]).unwrap();
    write_file(&dir.path().join("a.arrow"), &[one("a", Arc::new(Int64Array::from(vec![1])))]);
    let narrow = Arc::new(arrow::array::Int32Array::from(vec![2]));
    write_stream(&dir.path().join("b.arrow"), &[one("a", narrow)]);
    write_file(&dir.path().join("c.arrow"), &[one("z", Arc::new(Int64Array::from(vec![3])))]);
    let options = options(1, 8192);
    let table = table(dir.path()).await.unwrap();
    let found = run(&table.scan(None, &options).unwrap(), &options).await.unwrap();
    assert_eq!(found, ["1|NULL", "2|NULL", "NULL|3"]);
}

#[tokio::test]
async fn damaged_files_give_rows_or_an_error_that_names_them() {
    let dir = tempdir().unwrap();
    let options = options(1, 64);
    let path = dir.path().join("broken.arrow");
    let mut failed = 0;
    for is_file in [true, false] {
        let whole = dir.path().join("whole.arrow");
        let batches = batches(&[40, 30]);
        if is_file {
            write_file(&whole, &batches)
        } else {
            write_stream(&whole, &batches)
        }
        let bytes = fs::read(&whole).unwrap();
        let cuts = (1..bytes.len()).step_by(bytes.len() / 60).map(|at| bytes[..at].to_vec());
        let flips = (0..bytes.len()).step_by(bytes.len() / 200).map(|at| {
            let mut broken = bytes.clone();
            broken[at] ^= 0x5A;
            broken
        });
        for broken in cuts.chain(flips) {
            fs::write(&path, &broken).unwrap();
            let result = async {
                let plan = table(&path).await?.scan(None, &options)?;
                run(&plan, &options).await
            };
            if let Err(error) = result.await {
                failed += 1;
                assert!(error.to_string().contains("broken.arrow"), "{error}");
            }
        }
    }
    assert!(failed > 100, "{failed} failed");
}
