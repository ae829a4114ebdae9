//! Operators that move rows between partitions or take some of them: coalesce, repartition,
//! union, limits.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion_common::stats::Precision;
use planish_batch::Batch;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{Distribution, Partitioning, PhysicalExprRef};
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::union::UnionExec;
use planish_plan::{PlanRef, TaskContext, execute_stream, node_id};
use planish_testkit::batches::{self, DISGUISES, Disguise};
use planish_testkit::plans::{Source, col, scan, sort_key};
use planish_testkit::{driving, rows};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn rows_of(data: &RecordBatch) -> Vec<String> {
    rows::of_record_batches(std::slice::from_ref(data))
}

fn flat(partitions: Vec<Vec<Batch>>) -> Vec<Batch> {
    partitions.into_iter().flatten().collect()
}

fn coalesce(input: PlanRef) -> PlanRef {
    Arc::new(CoalescePartitionsExec::new(input))
}

fn round_robin(input: PlanRef, n: usize) -> PlanRef {
    Arc::new(RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(n)).unwrap())
}

fn hash(input: PlanRef, names: &[&str], n: usize) -> PlanRef {
    let keys = names.iter().map(|name| col(name, &input.schema())).collect();
    Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(keys, n)).unwrap())
}

fn union(inputs: Vec<PlanRef>) -> PlanRef {
    Arc::new(UnionExec::try_new(inputs).unwrap())
}

fn counter(ctx: &TaskContext, plan: &PlanRef, name: &'static str) -> u64 {
    ctx.metrics().node(node_id(plan.as_ref())).counter(name).load(Ordering::Relaxed)
}

fn rows_estimate(plan: &PlanRef, partition: Option<usize>) -> Precision<usize> {
    plan.statistics(partition).unwrap().num_rows
}

#[test]
fn all_of_them_keep_every_row_however_they_are_driven() {
    for data in [batches::mixed(200, 1), batches::mixed(0, 1), batches::all_null(30)] {
        let once = rows_of(&data);
        let twice = [once.clone(), once.clone()].concat();
        for partitions in [1, 3] {
            let input = || scan(&data, partitions);
            driving::assert_drives(|| coalesce(input()), &once);
            for n in [1, 2, 5] {
                driving::assert_drives(|| round_robin(input(), n), &once);
                driving::assert_drives(|| hash(input(), &["s", "i"], n), &once);
            }
            driving::assert_drives(|| union(vec![input(), input()]), &twice);
            driving::assert_drives(|| coalesce(hash(round_robin(input(), 4), &["f"], 3)), &once);
        }
    }
}

#[test]
fn disguised_rows_of_all_batch_sizes_come_through() {
    let data = batches::mixed(100, 2);
    for disguise in DISGUISES {
        for batch_size in [1, 7, 8192] {
            let source: PlanRef = Arc::new(Source::disguised(&data, 3, 9, disguise));
            let plan = hash(source, &["v"], 4);
            let out = flat(driving::collect(&plan, batch_size, None).unwrap());
            rows::assert_same(&rows::of(&out), &rows_of(&data), &format!("{disguise:?}"));
        }
    }
}

/// Equal keys meet, whatever encoding they come in.
#[test]
fn equal_keys_share_a_partition() {
    let data = batches::mixed(400, 3);
    for (name, column) in [("i", 1), ("f", 3), ("n", 6), ("s", 7), ("v", 8)] {
        let parts: Vec<PlanRef> = DISGUISES
            .iter()
            .map(|d| Arc::new(Source::disguised(&data, 2, 33, *d)) as PlanRef)
            .collect();
        let plan = hash(union(parts), &[name], 5);
        let mut home: HashMap<String, usize> = HashMap::new();
        let mut seen = 0;
        for (partition, batches) in driving::collect(&plan, 64, None).unwrap().iter().enumerate() {
            for row in rows::scalars(batches) {
                let key = match row[column].to_string() {
                    zero if zero == "-0" => "0".to_owned(),
                    other => other,
                };
                assert_eq!(*home.entry(key.clone()).or_insert(partition), partition, "{key}");
                seen += 1;
            }
        }
        assert_eq!(seen, 1200);
    }
}

#[test]
fn exchanged_rows_are_counted() {
    let data = batches::mixed(100, 4);
    let plan = coalesce(hash(scan(&data, 2), &["id"], 3));
    driving::run(2, "counting", async move {
        let ctx = driving::context(16, None);
        planish_plan::collect(&plan, &ctx).await.unwrap();
        assert_eq!(counter(&ctx, &plan, "exchanged_rows"), 100);
        assert_eq!(counter(&ctx, plan.children()[0], "exchanged_rows"), 100);
    });
    let one = coalesce(scan(&data, 1));
    driving::run(2, "counting", async move {
        let ctx = driving::context(16, None);
        planish_plan::collect(&one, &ctx).await.unwrap();
        assert_eq!(counter(&ctx, &one, "exchanged_rows"), 0, "one partition passes through");
    });
}

/// An endless input is read only as fast as somebody takes the rows.
#[test]
fn inputs_wait_for_readers() {
    let data = batches::mixed(64, 5);
    let endless = || Source::disguised(&data, 2, 8, Disguise::Flat).endless();
    for n in [1, 3] {
        let source = endless();
        let polled = source.polled();
        let plan = round_robin(Arc::new(source), n);
        driving::run(2, "back pressure", async move {
            use futures::StreamExt;
            let ctx = driving::context(8, None);
            let mut streams: Vec<_> =
                (0..n).map(|p| execute_stream(&plan, p, &ctx).unwrap()).collect();
            streams[0].next().await.unwrap().unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let read = polled.load(Ordering::Relaxed);
            assert!(read < 100, "{read} batches read, one taken");
            for stream in &mut streams {
                for _ in 0..20 {
                    stream.next().await.unwrap().unwrap();
                }
            }
            // The others are gone: their rows are not waited for.
            streams.truncate(1);
            for _ in 0..200 {
                streams[0].next().await.unwrap().unwrap();
            }
            streams.clear();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let read = polled.load(Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            assert_eq!(polled.load(Ordering::Relaxed), read, "dropping all stops the work");
        });
    }
}

#[test]
fn a_cancelled_repartition_stops_though_outputs_were_never_asked_for() {
    let data = batches::mixed(64, 5);
    let source = Source::disguised(&data, 2, 8, Disguise::Flat).endless();
    let polled = source.polled();
    let plan = round_robin(Arc::new(source), 3);
    driving::run(2, "cancelling", async move {
        use futures::StreamExt;
        let ctx = driving::context(8, None);
        let mut first = execute_stream(&plan, 0, &ctx).unwrap();
        for _ in 0..100 {
            first.next().await.unwrap().unwrap();
        }
        drop(first);
        ctx.cancel();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let read = polled.load(Ordering::Relaxed);
        assert!(read < 1000, "{read} batches read, of which a third was wanted: 300");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(polled.load(Ordering::Relaxed), read);
        assert_eq!(Arc::strong_count(&ctx), 1, "no task holds the context");
    });
}

#[test]
fn a_full_queue_ends_in_the_documented_error() {
    let data = batches::mixed(20_000, 6);
    let plan = hash(scan(&data, 2), &["id"], 2);
    let error = driving::run(2, "a full queue", async move {
        use futures::TryStreamExt;
        let ctx = driving::context(1000, Some(100_000));
        let first = execute_stream(&plan, 0, &ctx).unwrap();
        let _second = execute_stream(&plan, 1, &ctx).unwrap();
        first.try_collect::<Vec<_>>().await.unwrap_err()
    });
    assert!(error.to_string().contains("RepartitionExec needs"), "{error}");
    assert!(error.to_string().contains("datafusion.runtime.memory_limit"), "{error}");
}

#[test]
fn errors_and_panics_below_reach_every_reader() {
    let data = batches::mixed(60, 7);
    let source = || Source::disguised(&data, 2, 5, Disguise::Flat);
    for (source, text) in [
        (source().failing_after(2), "the source broke"),
        (source().panicking_after(2), "the source blew up"),
    ] {
        let source: PlanRef = Arc::new(source);
        for plan in [coalesce(Arc::clone(&source)), round_robin(source, 3)] {
            let partitions = plan.partition_count();
            let errors = driving::run(2, "errors", async move {
                use futures::TryStreamExt;
                let ctx = driving::context(8, None);
                let streams: Vec<_> =
                    (0..partitions).map(|p| execute_stream(&plan, p, &ctx).unwrap()).collect();
                let mut errors = vec![];
                for stream in streams {
                    errors.push(stream.try_collect::<Vec<_>>().await.unwrap_err().to_string());
                }
                errors
            });
            assert!(errors.iter().all(|e| e.contains(text)), "{errors:?}");
        }
    }
}

#[test]
fn limits_take_the_right_rows() {
    let data = batches::mixed(100, 8);
    let all = rows_of(&data);
    for batch_size in [1, 7, 8192] {
        for skip in [0, 1, 10, 99, 100, 1000] {
            for fetch in [None, Some(0), Some(1), Some(30), Some(1000)] {
                let plan: PlanRef = Arc::new(GlobalLimitExec::new(scan(&data, 1), skip, fetch));
                let out = rows::of(&flat(driving::collect(&plan, batch_size, None).unwrap()));
                let end = fetch.map_or(100, |n| (skip + n).min(100));
                assert_eq!(out, all[skip.min(100)..end.max(skip.min(100))]);
                assert_eq!(rows_estimate(&plan, None), Precision::Exact(out.len()));
            }
        }
        for fetch in [0, 1, 15, 50] {
            let plan: PlanRef = Arc::new(LocalLimitExec::new(scan(&data, 3), fetch));
            let out = driving::collect(&plan, batch_size, None).unwrap();
            let sizes: Vec<usize> =
                out.iter().map(|p| p.iter().map(Batch::num_rows).sum()).collect();
            assert_eq!(sizes, [40, 30, 30].map(|n: usize| n.min(fetch)));
            let total = sizes.iter().sum();
            assert_eq!(rows_estimate(&plan, None), Precision::Exact(total));
            assert_eq!(rows_estimate(&plan, Some(0)), Precision::Exact(sizes[0]));
        }
    }
}

#[test]
fn limits_stop_the_work_below() {
    let data = batches::mixed(64, 9);
    for fetch in [0, 20] {
        let source = Source::disguised(&data, 1, 8, Disguise::Flat).endless();
        let polled = source.polled();
        let plan: PlanRef = Arc::new(GlobalLimitExec::new(Arc::new(source), 0, Some(fetch)));
        let out = flat(driving::collect(&plan, 8, None).unwrap());
        assert_eq!(out.iter().map(Batch::num_rows).sum::<usize>(), fetch);
        assert_eq!(polled.load(Ordering::Relaxed), fetch.div_ceil(8));
        let source = Source::disguised(&data, 3, 8, Disguise::Flat).endless();
        let coalesced = CoalescePartitionsExec::new(Arc::new(source)).with_limit(Some(fetch));
        let out = flat(driving::collect(&(Arc::new(coalesced) as PlanRef), 8, None).unwrap());
        assert_eq!(out.iter().map(Batch::num_rows).sum::<usize>(), fetch);
    }
}

/// Limits over an estimate stay estimates, and a limit of an unknown number is one, too.
#[test]
fn estimates_stay_estimates() {
    let data = batches::mixed(100, 1);
    let unknown = hash(scan(&data, 2), &["id"], 2);
    assert_eq!(rows_estimate(&unknown, None), Precision::Exact(100));
    assert_eq!(rows_estimate(&unknown, Some(1)), Precision::Inexact(50));
    let local: PlanRef = Arc::new(LocalLimitExec::new(unknown, 70));
    assert_eq!(rows_estimate(&local, None), Precision::Inexact(100));
    let some: PlanRef = Arc::new(GlobalLimitExec::new(coalesce(Arc::clone(&local)), 10, Some(20)));
    assert_eq!(rows_estimate(&some, None), Precision::Inexact(20));
    let beyond: PlanRef = Arc::new(GlobalLimitExec::new(coalesce(local), 1000, None));
    assert_eq!(rows_estimate(&beyond, None), Precision::Inexact(0), "not an exact zero");
}

#[test]
fn exchanges_say_what_holds() {
    let data = batches::mixed(10, 1);
    let schema = data.schema();
    let by = |name: &str| vec![sort_key(name, false, false, &schema)];
    let (a, b) = (col("i", &schema), col("l", &schema));
    let source = |partitions| -> PlanRef {
        let mut facts = EquivalenceProperties::new(Arc::clone(&schema)).with_ordering(by("id"));
        facts.add_equal(&a, &b);
        facts.add_constant(col("b", &schema));
        Arc::new(Source::disguised(&data, partitions, 3, Disguise::Flat).with_equivalences(facts))
    };
    for (partitions, ordered) in [(1, true), (2, false)] {
        let input = || source(partitions);
        for plan in [coalesce(input()), round_robin(input(), 3), hash(input(), &["i"], 3)] {
            let facts = &plan.properties().equivalences;
            assert_eq!(facts.ordering_satisfied(&by("id")), ordered, "{}", plan.name());
            assert_eq!(plan.maintains_input_order(), [ordered], "{}", plan.name());
            assert!(facts.is_constant(&col("b", &schema)), "{}", plan.name());
            assert!(facts.normalize_expr(&a).eq(&facts.normalize_expr(&b)), "{}", plan.name());
        }
    }
    let plan = hash(source(2), &["i"], 3);
    let required = |name: &str| Distribution::HashPartitioned(vec![col(name, &schema)]);
    let satisfies = |name: &str| {
        let properties = plan.properties();
        properties.partitioning.satisfies(&required(name), &properties.equivalences)
    };
    assert!(satisfies("i") && satisfies("l") && !satisfies("id"));
    assert!(RepartitionExec::try_new(source(1), Partitioning::UnknownPartitioning(2)).is_err());
    assert!(RepartitionExec::try_new(source(1), Partitioning::RoundRobinBatch(0)).is_err());
    assert!(RepartitionExec::try_new(source(1), Partitioning::Hash(vec![], 2)).is_err());
}

#[test]
fn a_union_claims_what_all_inputs_have_in_common() {
    let data = batches::mixed(10, 1);
    let schema = data.schema();
    let key = |name: &str| sort_key(name, false, false, &schema);
    let source = |facts: EquivalenceProperties| -> PlanRef {
        Arc::new(Source::disguised(&data, 2, 3, Disguise::Flat).with_equivalences(facts))
    };
    let facts = || EquivalenceProperties::new(Arc::clone(&schema));
    let by = |names: &[&str]| names.iter().map(|name| key(name)).collect::<Vec<_>>();

    let mut left = facts().with_ordering(by(&["i", "l", "f"]));
    left.add_equal(&col("d", &schema), &col("n", &schema));
    left.add_constant(col("b", &schema));
    let mut right = facts().with_ordering(by(&["i", "l", "s"]));
    right.add_equal(&col("n", &schema), &col("d", &schema));
    right.add_constant(col("b", &schema));
    let plan = union(vec![source(left), source(right)]);
    let found = &plan.properties().equivalences;
    assert_eq!(plan.partition_count(), 4);
    assert!(found.ordering_satisfied(&by(&["i", "l"])));
    assert!(!found.ordering_satisfied(&by(&["i", "l", "f"])));
    assert!(found.normalize_expr(&col("d", &schema)).eq(&found.normalize_expr(&col("n", &schema))));
    assert!(!found.is_constant(&col("b", &schema)), "it may be another constant on each side");
    assert_eq!(rows_estimate(&plan, None), Precision::Exact(20));
    assert_eq!(rows_estimate(&plan, Some(3)), Precision::Exact(4));

    // Where `i` is constant, an order by `l` is one by `i, l`.
    let mut left = facts().with_ordering(by(&["l"]));
    left.add_constant(col("i", &schema));
    let right = facts().with_ordering(by(&["i", "l"]));
    let plan = union(vec![source(left), source(right)]);
    let found = &plan.properties().equivalences;
    assert!(found.ordering_satisfied(&by(&["i", "l"])));
    assert!(!found.ordering_satisfied(&by(&["l"])));
}

#[test]
fn a_union_is_nullable_where_any_input_is() {
    let table = |nullable| {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int32, nullable)]));
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        RecordBatch::try_new(schema, vec![column]).unwrap()
    };
    let plan = union(vec![scan(&table(false), 1), scan(&table(true), 1)]);
    assert!(plan.schema().field(0).is_nullable());
    let out = flat(driving::collect(&plan, 8, None).unwrap());
    assert!(out.iter().all(|b| b.schema().field(0).is_nullable()));
    let other = scan(&batches::mixed(1, 1), 1);
    let error = UnionExec::try_new(vec![scan(&table(true), 1), other]).unwrap_err();
    assert!(error.to_string().contains("a union of 1 and 9 columns"), "{error}");
    assert!(UnionExec::try_new(vec![]).is_err());
}

#[test]
fn one_input_keeps_its_order_through_a_repartition() {
    let data = batches::mixed(200, 10);
    for plan in [round_robin(scan(&data, 1), 3), hash(scan(&data, 1), &["i"], 3)] {
        for part in driving::collect(&plan, 16, None).unwrap() {
            let ids: Vec<i64> = part
                .iter()
                .flat_map(|b| b.column(0).unwrap().as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert!(ids.is_sorted(), "{ids:?}");
        }
    }
}

/// No value of a payload column moves in a hash repartition: only the key is read.
#[test]
fn a_repartition_gathers_nothing_but_its_key() {
    let data = batches::mixed(1000, 11);
    let source: PlanRef = Arc::new(Source::disguised(&data, 2, 500, Disguise::Selected));
    let keys: Vec<PhysicalExprRef> = vec![col("id", &data.schema())];
    let plan: PlanRef =
        Arc::new(RepartitionExec::try_new(source, Partitioning::Hash(keys, 3)).unwrap());
    driving::run(2, "laziness", async move {
        let ctx = driving::context(8192, None);
        let out = planish_plan::collect(&plan, &ctx).await.unwrap();
        assert_eq!(out.iter().map(Batch::num_rows).sum::<usize>(), 1000);
        let gathered = ctx.metrics().node(node_id(plan.as_ref())).gathered_bytes();
        assert!((8_000..10_000).contains(&gathered), "{gathered} bytes");
    });
}
