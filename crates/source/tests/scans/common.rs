//! Files and scans for tests.
#![allow(dead_code, reason = "each test crate uses its share")]

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use futures::{StreamExt, TryStreamExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use planish_batch::Batch;
use planish_plan::config::PlanishOptions;
use planish_plan::{PlanRef, TaskContext, collect, execute_stream};
use planish_source::{FileFormatOptions, FileTable, MetadataCache};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn options(partitions: usize, batch_size: usize) -> ConfigOptions {
    let mut options = ConfigOptions::new();
    options.execution.target_partitions = partitions;
    options.set("datafusion.execution.batch_size", &batch_size.to_string()).unwrap();
    options.extensions.insert(PlanishOptions::default());
    options
}

pub(crate) fn ctx(options: &ConfigOptions) -> Arc<TaskContext> {
    TaskContext::for_testing(options.clone()).unwrap()
}

/// Writes `batches` with `rows` rows per row group.
pub(crate) fn write_parquet(path: &Path, batches: &[RecordBatch], rows: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
    write_parquet_with(path, batches, properties);
}

pub(crate) fn write_parquet_with(
    path: &Path,
    batches: &[RecordBatch],
    properties: WriterProperties,
) {
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}

pub(crate) fn cached() -> FileFormatOptions {
    FileFormatOptions {
        metadata_cache: Some(Arc::new(MetadataCache::default())),
        ..FileFormatOptions::default()
    }
}

pub(crate) async fn table(path: &Path) -> Result<FileTable> {
    FileTable::try_new(vec![path.display().to_string()], cached()).await
}

/// All rows as text, in the order they came in.
pub(crate) fn rows(batches: &[Batch]) -> Vec<String> {
    let mut out = vec![];
    for batch in batches {
        let batch = batch.to_record_batch().unwrap();
        let columns: Vec<ArrayRef> = batch.columns().to_vec();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|c| {
                if c.is_null(row) {
                    "NULL".to_owned()
                } else {
                    arrow::util::display::array_value_to_string(c, row).unwrap()
                }
            });
            out.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    out
}

pub(crate) async fn run(plan: &PlanRef, options: &ConfigOptions) -> Result<Vec<String>> {
    let collected = tokio::time::timeout(LIMIT, collect(plan, &ctx(options))).await;
    Ok(rows(&collected.expect("in time")?))
}

pub(crate) async fn drain(plan: &PlanRef, partition: usize, ctx: &Arc<TaskContext>) -> Vec<String> {
    let stream = execute_stream(plan, partition, ctx).unwrap();
    let collected = tokio::time::timeout(LIMIT, stream.try_collect::<Vec<Batch>>()).await;
    rows(&collected.expect("in time").unwrap())
}

pub(crate) async fn first_batch(
    plan: &PlanRef,
    partition: usize,
    ctx: &Arc<TaskContext>,
) -> Vec<String> {
    let mut stream = execute_stream(plan, partition, ctx).unwrap();
    match stream.next().await {
        Some(batch) => rows(&[batch.unwrap()]),
        None => vec![],
    }
}

/// `n` rows of many types; NULLs in all nullable columns.
pub(crate) fn sample(start: i64, n: usize) -> RecordBatch {
    let numbers: Vec<i64> = (start..start + n as i64).collect();
    let every = |k: i64, f: &dyn Fn(i64) -> String| -> Vec<Option<String>> {
        numbers.iter().map(|&i| (i % k != 0).then(|| f(i))).collect()
    };
    let columns: Vec<(Field, ArrayRef)> = vec![
        (Field::new("id", DataType::Int64, false), Arc::new(Int64Array::from(numbers.clone()))),
        (
            Field::new("i", DataType::Int32, true),
            Arc::new(Int32Array::from_iter(
                numbers.iter().map(|&i| (i % 7 != 0).then_some((i % 13) as i32)),
            )),
        ),
        (
            Field::new("f", DataType::Float64, true),
            Arc::new(Float64Array::from_iter(numbers.iter().map(|&i| match i % 11 {
                0 => None,
                1 => Some(f64::NAN),
                2 => Some(-0.0),
                3 => Some(0.0),
                _ => Some(i as f64 / 4.0),
            }))),
        ),
        (
            Field::new("s", DataType::Utf8, true),
            Arc::new(StringArray::from(every(5, &|i| format!("text number {i:05} of many")))),
        ),
        (
            Field::new("d", DataType::Decimal128(15, 2), true),
            Arc::new(
                Decimal128Array::from_iter(
                    numbers.iter().map(|&i| (i % 6 != 0).then_some(i128::from(i) * 25 - 1000)),
                )
                .with_precision_and_scale(15, 2)
                .unwrap(),
            ),
        ),
        (
            Field::new("day", DataType::Date32, true),
            Arc::new(Date32Array::from_iter(
                numbers.iter().map(|&i| (i % 9 != 0).then_some(10_000 + (i / 3) as i32)),
            )),
        ),
        (
            Field::new("b", DataType::Boolean, true),
            Arc::new(BooleanArray::from_iter(
                numbers.iter().map(|&i| (i % 4 != 0).then_some(i % 3 == 0)),
            )),
        ),
    ];
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, arrays).unwrap()
}
