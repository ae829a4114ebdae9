//! `AggregateExec` against an oracle of ordered maps, in all modes, batch sizes and partitions.

mod behaviour;
mod oracle;

use super::*;
use crate::execute::{collect, collect_partitioned};
use crate::operators::memory::MemoryScanExec;
use arrow::array::*;
use arrow::compute::SortOptions;
use arrow::datatypes::*;
use datafusion_common::config::ConfigOptions;
use oracle::{Call, expected, rows_of, table};
use planish_expr::PhysicalSortExpr;

fn udaf(name: &str) -> Arc<datafusion_expr::AggregateUDF> {
    let all = datafusion_functions_aggregate::all_default_aggregate_functions();
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn col(schema: &Schema, name: &str) -> PhysicalExprRef {
    Arc::new(Column::new_with_schema(name, schema).unwrap())
}

fn aggregate(schema: &SchemaRef, call: &Call) -> Arc<AggregateFunctionExpr> {
    let args = match call.arg {
        Some(arg) => vec![col(schema, arg)],
        None => vec![planish_expr::expressions::lit(1i64)],
    };
    let order_by = call
        .order_by
        .iter()
        .map(|name| {
            let options = SortOptions { descending: false, nulls_first: false };
            PhysicalSortExpr::new(col(schema, name), options)
        })
        .collect();
    let filter = call.filter.map(|name| col(schema, name));
    let expr = AggregateFunctionExpr::try_new(
        udaf(call.fun),
        args,
        Arc::clone(schema),
        call.name(),
        call.distinct,
        false,
        order_by,
        filter,
    );
    Arc::new(expr.unwrap())
}

fn group_by(schema: &Schema, keys: &[&str]) -> PhysicalGroupBy {
    PhysicalGroupBy::new_single(keys.iter().map(|k| (col(schema, k), (*k).to_owned())).collect())
}

fn grouping_sets(schema: &Schema, keys: &[&str], sets: &[&[&str]]) -> PhysicalGroupBy {
    let mut group_by = group_by(schema, keys);
    group_by.groups =
        sets.iter().map(|set| keys.iter().map(|k| !set.contains(k)).collect()).collect();
    group_by
}

fn ctx(batch_size: usize, set: &[(&str, &str)]) -> Arc<TaskContext> {
    TaskContext::for_testing(options(batch_size, set)).unwrap()
}

fn options(batch_size: usize, set: &[(&str, &str)]) -> ConfigOptions {
    let mut options = ConfigOptions::new();
    options.extensions.insert(crate::config::PlanishOptions::default());
    options.set("datafusion.execution.batch_size", &batch_size.to_string()).unwrap();
    for (key, value) in set {
        options.set(key, value).unwrap();
    }
    options
}

/// `batch` spread over so many partitions, in several batches each.
fn scan(batch: &RecordBatch, partitions: usize) -> PlanRef {
    let rows = batch.num_rows().div_ceil(partitions).max(1);
    let parts: Vec<Vec<RecordBatch>> = (0..partitions)
        .map(|p| {
            let start = (p * rows).min(batch.num_rows());
            let len = rows.min(batch.num_rows() - start);
            let half = len / 2;
            vec![batch.slice(start, half), batch.slice(start + half, len - half)]
        })
        .collect();
    Arc::new(MemoryScanExec::try_new(parts, batch.schema(), None).unwrap())
}

/// The output of `plan`, its rows spread by their first `keys` columns over so many partitions.
async fn exchange(
    plan: &PlanRef,
    keys: usize,
    partitions: usize,
    ctx: &Arc<TaskContext>,
) -> PlanRef {
    let mut parts: Vec<Vec<RecordBatch>> = vec![vec![]; partitions];
    for batch in collect(plan, ctx).await.unwrap() {
        let batch = batch.to_record_batch().unwrap();
        let state = datafusion_common::hash_utils::RandomState::with_seed(99);
        let mut hashes = vec![0; batch.num_rows()];
        if keys > 0 {
            let columns = &batch.columns()[..keys];
            datafusion_common::hash_utils::create_hashes(columns, &state, &mut hashes).unwrap();
        }
        for (p, part) in parts.iter_mut().enumerate() {
            let mask: BooleanArray =
                hashes.iter().map(|h| Some((*h >> 40) as usize % partitions == p)).collect();
            part.push(arrow::compute::filter_record_batch(&batch, &mask).unwrap());
        }
    }
    Arc::new(MemoryScanExec::try_new(parts, plan.schema(), None).unwrap())
}

/// Rows of `plan` as sorted text.
async fn run(plan: &PlanRef, ctx: &Arc<TaskContext>) -> Vec<String> {
    let batches = collect(plan, ctx).await.unwrap();
    for batch in &batches {
        assert!(batch.num_rows() <= ctx.batch_size().max(1));
    }
    let mut rows: Vec<String> = batches.iter().flat_map(rows_of).collect();
    rows.sort();
    rows
}

/// Partial aggregation of `batch` in so many partitions, then a final one in as many.
async fn two_phase(
    batch: &RecordBatch,
    group_by: &PhysicalGroupBy,
    calls: &[Arc<AggregateFunctionExpr>],
    partitions: usize,
    ctx: &Arc<TaskContext>,
) -> PlanRef {
    let schema = batch.schema();
    let partial: PlanRef = Arc::new(
        AggregateExec::try_new(
            AggregateMode::Partial,
            group_by.clone(),
            calls.to_vec(),
            scan(batch, partitions),
            Arc::clone(&schema),
        )
        .unwrap(),
    );
    let keys = group_by.num_output_keys();
    let (mode, partitions) = if keys == 0 {
        (AggregateMode::Final, 1)
    } else {
        (AggregateMode::FinalPartitioned, partitions)
    };
    let states = exchange(&partial, keys, partitions, ctx).await;
    Arc::new(
        AggregateExec::try_new(mode, group_by.clone(), calls.to_vec(), states, schema).unwrap(),
    )
}

fn single(
    batch: &RecordBatch,
    group_by: &PhysicalGroupBy,
    calls: &[Arc<AggregateFunctionExpr>],
) -> PlanRef {
    let mode = AggregateMode::Single;
    let schema = batch.schema();
    let input = scan(batch, 1);
    Arc::new(AggregateExec::try_new(mode, group_by.clone(), calls.to_vec(), input, schema).unwrap())
}

fn calls() -> Vec<Call> {
    let call = |fun, arg| Call { fun, arg, ..Call::default() };
    vec![
        call("count", None),
        call("count", Some("v")),
        call("sum", Some("v")),
        call("min", Some("s")),
        call("max", Some("v")),
        Call { distinct: true, ..call("count", Some("s")) },
        Call { distinct: true, ..call("sum", Some("v")) },
        Call { filter: Some("keep"), ..call("sum", Some("v")) },
        Call { filter: Some("keep"), distinct: true, ..call("count", Some("v")) },
        Call { order_by: vec!["n"], ..call("array_agg", Some("v")) },
        Call { order_by: vec!["n"], ..call("first_value", Some("s")) },
    ]
}

#[tokio::test]
async fn all_modes_agree_with_the_oracle() {
    let full = table(300);
    let keys: &[&[&str]] =
        &[&[], &["s"], &["d"], &["f"], &["k"], &["k", "s"], &["d", "f", "keep"], &["l"]];
    for batch in
        [full.clone(), full.slice(17, 90), full.slice(0, 0), nulled(&full, &["k", "s", "d", "f"])]
    {
        let schema = batch.schema();
        let calls = calls();
        let exprs: Vec<_> = calls.iter().map(|c| aggregate(&schema, c)).collect();
        for keys in keys {
            let expected = expected(&batch, &[keys], keys, &calls);
            let by = group_by(&schema, keys);
            for size in [1, 7, 8192] {
                let ctx = ctx(size, &[]);
                assert_eq!(run(&single(&batch, &by, &exprs), &ctx).await, expected, "{keys:?}");
                for partitions in [1, 2, 8] {
                    let plan = two_phase(&batch, &by, &exprs, partitions, &ctx).await;
                    assert_eq!(run(&plan, &ctx).await, expected, "{keys:?} in {partitions}");
                }
            }
        }
    }
}

/// `batch` with some columns all NULL.
fn nulled(batch: &RecordBatch, names: &[&str]) -> RecordBatch {
    let columns = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| {
            if names.contains(&field.name().as_str()) {
                new_null_array(field.data_type(), batch.num_rows())
            } else {
                Arc::clone(column)
            }
        })
        .collect();
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

#[tokio::test]
async fn grouping_sets_agree_with_the_oracle() {
    let full = table(200);
    let schema = full.schema();
    let cases: &[(&[&str], &[&[&str]])] = &[
        (&["k", "s"], &[&["k", "s"], &["k"], &[]]),
        (&["k", "s"], &[&["k"], &["s"], &["k"], &["k"]]),
        (&["k"], &[&[], &["k"], &[]]),
        (&["k", "s", "keep"], &[&["k", "s"], &["keep"], &["s", "keep"], &[], &["k"]]),
        (&["l", "k"], &[&["l"], &["k"], &[]]),
    ];
    let mut calls = calls();
    calls.truncate(9);
    let exprs: Vec<_> = calls.iter().map(|c| aggregate(&schema, c)).collect();
    for batch in [full.clone(), full.slice(0, 0)] {
        for (keys, sets) in cases {
            let expected = expected(&batch, sets, keys, &calls);
            let by = grouping_sets(&schema, keys, sets);
            for size in [7, 8192] {
                let ctx = ctx(size, &[]);
                assert_eq!(run(&single(&batch, &by, &exprs), &ctx).await, expected, "{sets:?}");
                for partitions in [1, 2, 8] {
                    let plan = two_phase(&batch, &by, &exprs, partitions, &ctx).await;
                    assert_eq!(run(&plan, &ctx).await, expected, "{sets:?} in {partitions}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_partial_aggregate_that_does_not_reduce_passes_rows_on() {
    let batch = table(500);
    let schema = batch.schema();
    let mut calls = calls();
    calls.retain(|c| !c.distinct && c.order_by.is_empty());
    let exprs: Vec<_> = calls.iter().map(|c| aggregate(&schema, c)).collect();
    for keys in [&["n"][..], &["f", "n"], &["s", "k"]] {
        let expected = expected(&batch, &[keys], keys, &calls);
        let by = group_by(&schema, keys);
        let ctx = ctx(10, &[("planish.execution.skip_partial_aggregation_rows", "40")]);
        for partitions in [1, 2] {
            let plan = two_phase(&batch, &by, &exprs, partitions, &ctx).await;
            assert_eq!(run(&plan, &ctx).await, expected, "{keys:?}");
        }
        // Metrics go by node address, which a dropped plan may have had before.
        let ctx = self::ctx(10, &[("planish.execution.skip_partial_aggregation_rows", "40")]);
        let partial: PlanRef = Arc::new(
            AggregateExec::try_new(
                AggregateMode::Partial,
                by,
                exprs.clone(),
                scan(&batch, 1),
                Arc::clone(&schema),
            )
            .unwrap(),
        );
        let rows: usize = collect_partitioned(&partial, &ctx).await.unwrap()[0]
            .iter()
            .map(|b| b.num_rows())
            .sum();
        let metrics = ctx.metrics().node(node_id(partial.as_ref()));
        let passed = metrics.counters().iter().find(|c| c.0 == "rows_passed_on").map(|c| c.1);
        if keys.contains(&"n") {
            assert_eq!((rows, passed), (500, Some(460)));
        }
    }
}
