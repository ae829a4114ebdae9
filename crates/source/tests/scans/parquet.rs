//! Parquet scans: projections, driving, statistics, schema differences, broken files.

use crate::common::*;
use datafusion_common::ScalarValue;
use datafusion_common::stats::Precision;
use planish_expr::expressions::Column;
use planish_expr::projection::{ProjectionExpr, ProjectionExprs};
use planish_plan::display::displayable;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::{ExecutionPlan, PlanRef, node_id};
use planish_source::DataSourceExec;
use std::sync::Arc;
use tempfile::tempdir;

fn whole(n: usize) -> Vec<String> {
    rows(&[planish_batch::Batch::from_record_batch(&sample(0, n))])
}

#[tokio::test]
async fn all_rows_come_out_in_file_order_with_any_batch_size_and_partitions() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let table = table(&path).await.unwrap();
    for partitions in [1, 2, 8] {
        for batch_size in [1, 7, 8192] {
            let options = options(partitions, batch_size);
            let plan = table.scan(None, &options).unwrap();
            assert_eq!(plan.partition_count(), partitions);
            let mut got = run(&plan, &options).await.unwrap();
            if partitions > 1 {
                got.sort_by_key(|row| row.split('|').next().unwrap().parse::<i64>().unwrap());
            }
            assert_eq!(got, whole(1000), "{partitions} partitions, batches of {batch_size}");
        }
    }
}

fn columns(indices: &[usize]) -> impl Fn(&String) -> String + '_ {
    |row| {
        let cells: Vec<&str> = row.split('|').collect();
        indices.iter().map(|&i| cells[i]).collect::<Vec<_>>().join("|")
    }
}

#[tokio::test]
async fn projections_are_emitted_as_asked() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 50)], 20);
    let table = table(&path).await.unwrap();
    let options = options(1, 8192);
    for indices in [&[3, 0][..], &[1, 1, 4], &[6], &[5, 4, 3, 2, 1, 0, 6, 0]] {
        let plan = table.scan(Some(indices), &options).unwrap();
        let names: Vec<_> = plan.schema().fields().iter().map(|f| f.name().clone()).collect();
        let wanted: Vec<_> =
            indices.iter().map(|&i| table.schema().field(i).name().clone()).collect();
        assert_eq!(names, wanted);
        let wanted: Vec<String> = whole(50).iter().map(columns(indices)).collect();
        assert_eq!(run(&plan, &options).await.unwrap(), wanted);
    }
    // Two virtual columns follow the seven stored ones.
    assert!(table.scan(Some(&[9]), &options).is_err());
}

#[tokio::test]
async fn counting_rows_decodes_nothing() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 300);
    let table = table(&path).await.unwrap();
    let options = options(2, 128);
    let plan = table.scan(Some(&[]), &options).unwrap();
    let ctx = ctx(&options);
    let batches = planish_plan::collect(&plan, &ctx).await.unwrap();
    assert_eq!(batches.iter().map(planish_batch::Batch::num_rows).sum::<usize>(), 1000);
    let counters = ctx.metrics().node(node_id(plan.as_ref())).counters();
    assert!(!counters.iter().any(|(name, _)| *name == "bytes_read"), "{counters:?}");
}

#[tokio::test]
async fn strings_come_as_views_and_plans_say_what_they_read() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 50)], 20);
    let table = table(&path).await.unwrap();
    assert_eq!(
        table.schema().field_with_name("s").unwrap().data_type(),
        &arrow::datatypes::DataType::Utf8View
    );
    let plan = table.scan(Some(&[3, 0]), &options(2, 8192)).unwrap();
    let limited = plan.with_fetch(Some(3)).unwrap();
    assert_eq!(
        displayable(&limited).to_string(),
        "DataSourceExec: file_groups={2 groups: [[t.parquet]]}, projection=[s@3, id@0], \
         file_type=parquet, fetch=3\n"
    );
}

fn project(plan: &PlanRef, exprs: Vec<(usize, &str)>) -> ProjectionExec {
    let exprs: ProjectionExprs = exprs
        .into_iter()
        .map(|(i, alias)| {
            let name = plan.schema().field(i).name().clone();
            ProjectionExpr::new(Arc::new(Column::new(&name, i)), alias)
        })
        .collect();
    ProjectionExec::try_new(exprs, Arc::clone(plan)).unwrap()
}

#[tokio::test]
async fn projections_of_columns_dissolve_twice_over() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 50)], 20);
    let table = table(&path).await.unwrap();
    let options = options(1, 8192);
    let scan = table.scan(Some(&[4, 3, 0]), &options).unwrap();
    let above = project(&scan, vec![(2, "x"), (0, "d"), (2, "id")]);
    let merged = scan.try_swapping_with_projection(&above).unwrap().unwrap();
    assert_eq!(merged.schema(), above.schema());
    let wanted: Vec<String> = whole(50).iter().map(columns(&[0, 4, 0])).collect();
    assert_eq!(run(&merged, &options).await.unwrap(), wanted);
    let above = project(&merged, vec![(1, "d"), (1, "again")]);
    let merged = merged.try_swapping_with_projection(&above).unwrap().unwrap();
    let wanted: Vec<String> = whole(50).iter().map(columns(&[4, 4])).collect();
    assert_eq!(run(&merged, &options).await.unwrap(), wanted);
    let scan = merged.downcast_ref::<DataSourceExec>().unwrap();
    assert_eq!(scan.config().projection().to_string(), "d@4, d@4 AS again");
}

#[tokio::test]
async fn a_projection_with_a_literal_dissolves_and_one_that_lies_about_nulls_stays() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 5)], 20);
    let table = table(&path).await.unwrap();
    let options = options(1, 8192);
    let scan = table.scan(Some(&[0]), &options).unwrap();
    let exprs = vec![
        ProjectionExpr::new(planish_expr::expressions::lit(7_i64), "seven"),
        ProjectionExpr::new(Arc::new(Column::new("id", 0)), "id"),
    ];
    let above = ProjectionExec::try_new(exprs.clone(), Arc::clone(&scan)).unwrap();
    let merged = scan.try_swapping_with_projection(&above).unwrap().unwrap();
    assert_eq!(run(&merged, &options).await.unwrap(), ["7|0", "7|1", "7|2", "7|3", "7|4"]);
    let loose = arrow::datatypes::Schema::new(
        above
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true))
            .collect::<Vec<_>>(),
    );
    let above =
        ProjectionExec::try_new_with_schema(exprs, Arc::clone(&scan), Arc::new(loose)).unwrap();
    assert!(scan.try_swapping_with_projection(&above).unwrap().is_none());
}

#[tokio::test]
async fn one_partition_may_do_all_the_work() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let table = table(&path).await.unwrap();
    let options = options(4, 64);
    let plan = table.scan(Some(&[0]), &options).unwrap();
    let all: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    for first in [0, 3] {
        let ctx = ctx(&options);
        assert_eq!(drain(&plan, first, &ctx).await, all);
        for other in (0..4).rev().filter(|&p| p != first) {
            assert!(drain(&plan, other, &ctx).await.is_empty());
        }
    }
    // A dropped partition keeps what it took; the others get the rest.
    let shared = ctx(&options);
    assert_eq!(first_batch(&plan, 1, &shared).await.len(), 64);
    assert_eq!(drain(&plan, 2, &shared).await, all[100..]);
    // Two executions at once do not share a queue.
    let (a, b) = (ctx(&options), ctx(&options));
    let (a, b) = futures::join!(drain(&plan, 0, &a), drain(&plan, 0, &b));
    assert_eq!((&a, &b), (&all, &all));
}

#[tokio::test]
async fn without_shared_state_each_partition_has_its_own_morsels() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let table = table(&path).await.unwrap();
    let mut options = options(4, 64);
    options.set("planish.execution.shared_state", "false").unwrap();
    let plan = table.scan(Some(&[0]), &options).unwrap();
    let ctx = ctx(&options);
    let mut got = vec![];
    for partition in [3, 1, 0, 2] {
        let part = drain(&plan, partition, &ctx).await;
        assert!(part.len() >= 200, "{}", part.len());
        got.extend(part.into_iter().map(|row| row.parse::<i64>().unwrap()));
    }
    got.sort_unstable();
    assert_eq!(got, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_fetch_stops_early() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let table = table(&path).await.unwrap();
    for (fetch, batch_size) in [(0, 10), (1, 10), (150, 64), (5000, 8192)] {
        let options = options(1, batch_size);
        let plan = table.scan(Some(&[0]), &options).unwrap().with_fetch(Some(fetch)).unwrap();
        let wanted = fetch.min(1000);
        assert_eq!(run(&plan, &options).await.unwrap().len(), wanted);
        assert_eq!(plan.statistics(None).unwrap().num_rows, Precision::Exact(wanted));
    }
    let options = options(4, 64);
    let plan = table.scan(Some(&[0]), &options).unwrap().with_fetch(Some(10)).unwrap();
    assert_eq!(plan.statistics(None).unwrap().num_rows, Precision::Inexact(40));
}

#[tokio::test]
async fn footers_give_exact_statistics() {
    let dir = tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &[sample(10, 100)], 30);
    write_parquet(&dir.path().join("b.parquet"), &[sample(500, 50)], 30);
    let table = table(dir.path()).await.unwrap();
    let plan = table.scan(Some(&[1, 0, 3, 2, 0]), &options(1, 8192)).unwrap();
    let statistics = plan.statistics(None).unwrap();
    assert_eq!(statistics.num_rows, Precision::Exact(150));
    let id = &statistics.column_statistics[1];
    assert_eq!(id.min_value, Precision::Exact(ScalarValue::Int64(Some(10))));
    assert_eq!(id.max_value, Precision::Exact(ScalarValue::Int64(Some(549))));
    assert_eq!(id.null_count, Precision::Exact(0));
    assert_eq!(statistics.column_statistics[4], *id);
    let i = &statistics.column_statistics[0];
    assert_eq!(i.min_value, Precision::Exact(ScalarValue::Int32(Some(0))));
    let nulls = (10..110).chain(500..550).filter(|i| i % 7 == 0).count();
    assert_eq!(i.null_count, Precision::Exact(nulls));
    let f = &statistics.column_statistics[3];
    assert_eq!(f.max_value.is_exact(), Some(false), "a NaN may be greater");
    assert!(statistics.total_byte_size.get_value().is_some_and(|&b| b > 0));
}

#[tokio::test]
async fn cut_off_files_are_named() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let bytes = std::fs::read(&path).unwrap();
    for keep in [3, 11, bytes.len() / 2, bytes.len() - 1] {
        let broken = dir.path().join("broken.parquet");
        std::fs::write(&broken, &bytes[..keep]).unwrap();
        let error = table(&broken).await.unwrap_err().to_string();
        assert!(error.contains("broken.parquet"), "{error}");
    }
    // A hole in the data, behind an intact footer.
    let mut holed = bytes.clone();
    holed[4..400].fill(0xFF);
    let broken = dir.path().join("holed.parquet");
    std::fs::write(&broken, &holed).unwrap();
    let options = options(1, 8192);
    let plan = table(&broken).await.unwrap().scan(None, &options).unwrap();
    let error = run(&plan, &options).await.unwrap_err().to_string();
    assert!(error.contains("holed.parquet"), "{error}");
}

#[tokio::test]
async fn a_replaced_file_is_read_as_it_is_now() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 10)], 100);
    let table = table(&path).await.unwrap();
    let options = options(1, 8192);
    let plan = table.scan(Some(&[0]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap().len(), 10);
    write_parquet(&path, &[sample(0, 20)], 100);
    let plan = table.scan(Some(&[0]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap().len(), 20);
    std::fs::remove_file(&path).unwrap();
    let error = table.scan(Some(&[0]), &options).unwrap_err().to_string();
    assert!(error.contains("t.parquet"), "{error}");
}

#[tokio::test]
async fn damaged_files_give_rows_or_an_error_that_names_them() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 200)], 100);
    let bytes = std::fs::read(&path).unwrap();
    let options = options(1, 64);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut failed = 0;
    for round in 0..150 {
        let mut broken = bytes.clone();
        for _ in 0..=round % 4 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Half of the damage is done to the footer, which is most of the trouble.
            let from = if state.is_multiple_of(2) { 0 } else { bytes.len() - 4000 };
            let at = from + (state >> 8) as usize % (bytes.len() - from);
            broken[at] ^= (state >> 40) as u8 | 1;
        }
        let path = dir.path().join("broken.parquet");
        std::fs::write(&path, &broken).unwrap();
        let result = async {
            let plan = table(&path).await?.scan(None, &options)?;
            run(&plan, &options).await
        };
        if let Err(error) = result.await {
            failed += 1;
            assert!(error.to_string().contains("broken.parquet"), "{error}");
        }
    }
    assert!(failed > 25, "{failed} of 150 failed");
}
