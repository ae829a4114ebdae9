//! `SortExec` and `SortPreservingMergeExec` against a naive sort.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use datafusion_common::DataFusionError;
use planish_batch::Batch;
use planish_expr::LexOrdering;
use planish_plan::display::displayable;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::{ExecutionPlan, PlanRef, collect, node_id};
use planish_testkit::batches::{self, DISGUISES, Disguise};
use planish_testkit::plans::{Source, scan, sort_key};
use planish_testkit::{driving, rows};
use std::sync::Arc;

/// Sort keys by name: `-s` descending, `!s` with the unusual place for NULLs.
fn keys(spec: &[&str]) -> (LexOrdering, Vec<(usize, SortOptions)>) {
    let schema = batches::mixed_schema();
    spec.iter()
        .map(|name| {
            let unusual = name.contains('!');
            let descending = name.contains('-');
            let name = name.trim_start_matches(['!', '-']);
            let nulls_first = descending != unusual;
            let key = sort_key(name, descending, nulls_first, &schema);
            let options = key.options;
            (key, (schema.index_of(name).unwrap(), options))
        })
        .unzip()
}

/// Key lists that take every form of encoded key: one word, two words, rows; one column of each
/// type; the same key twice.
const KEYS: [&[&str]; 16] = [
    &["id"],
    &["-id"],
    &["i"],
    &["!i", "-b"],
    &["-!i", "d"],
    &["l"],
    &["-l", "i"],
    &["-f"],
    &["!f", "!d"],
    &["n"],
    &["-!n"],
    &["s"],
    &["-s", "!v", "i"],
    &["!v"],
    &["d", "d", "-d"],
    &["b"],
];

fn assert_is_sorted_version(
    output: &[Batch],
    data: &RecordBatch,
    keys: &[(usize, SortOptions)],
    fetch: Option<usize>,
    what: &str,
) {
    rows::assert_sorted(output, keys);
    let expected = rows::of_record_batches(std::slice::from_ref(data));
    let found = rows::of(output);
    let Some(fetch) = fetch.filter(|fetch| *fetch < expected.len()) else {
        return rows::assert_same(&found, &expected, what);
    };
    assert_eq!(found.len(), fetch, "{what}");
    rows::assert_part_of(&found, &expected, what);
    // The keys of the first rows are determined, if not the rows.
    let columns: Vec<usize> = keys.iter().map(|(column, _)| *column).collect();
    let keys: Vec<_> = keys.iter().enumerate().map(|(i, (_, options))| (i, *options)).collect();
    let keys_of = |batch: &Batch| {
        let schema = Arc::new(data.schema().project(&columns).unwrap());
        rows::scalars(&[batch.project(&columns, schema).unwrap()])
    };
    let mut all = keys_of(&Batch::from_record_batch(data));
    all.sort_by(|a, b| rows::compare(a, b, &keys));
    for (a, b) in output.iter().flat_map(keys_of).zip(&all) {
        assert!(rows::compare(&a, b, &keys).is_eq(), "{what}: {a:?} instead of {b:?}");
    }
}

fn sort(input: PlanRef, keys: &LexOrdering, fetch: Option<usize>) -> PlanRef {
    Arc::new(SortExec::new(keys.clone(), input).with_limit(fetch))
}

fn flat(partitions: Vec<Vec<Batch>>) -> Vec<Batch> {
    partitions.into_iter().flatten().collect()
}

#[test]
fn sorts_by_any_keys() {
    let data = batches::mixed(300, 7);
    for spec in KEYS {
        let (keys, positions) = keys(spec);
        for partitions in [1, 2, 8] {
            for fetch in [None, Some(0), Some(1), Some(10), Some(299), Some(70_000)] {
                let plan = sort(scan(&data, partitions), &keys, fetch);
                let out = flat(driving::collect(&plan, 64, None).unwrap());
                let what = format!("{spec:?}, {partitions} partitions, fetch {fetch:?}");
                assert_is_sorted_version(&out, &data, &positions, fetch, &what);
            }
        }
    }
}

#[test]
fn sorts_disguised_empty_and_null_rows_in_batches_of_any_size() {
    let tables = [batches::mixed(0, 1), batches::mixed(100, 2), batches::all_null(40)];
    for data in &tables {
        for disguise in DISGUISES {
            for (spec, fetch) in [(KEYS[2], None), (KEYS[12], None), (KEYS[12], Some(7))] {
                let (keys, positions) = keys(spec);
                for batch_size in [1, 7, 8192] {
                    let source = Source::disguised(data, 3, 9, disguise);
                    let plan = sort(Arc::new(source), &keys, fetch);
                    let out = flat(driving::collect(&plan, batch_size, None).unwrap());
                    assert!(out.iter().all(|b| b.num_rows() <= batch_size && b.num_rows() > 0));
                    let what = format!("{spec:?}, {disguise:?}, {batch_size} rows per batch");
                    assert_is_sorted_version(&out, data, &positions, fetch, &what);
                }
            }
        }
    }
}

#[test]
fn many_rows_are_merged_range_by_range() {
    let data = batches::mixed(300_000, 11);
    for (spec, fetch) in [(&["l"][..], None), (&["i"], None), (&["s", "id"], Some(270_000))] {
        let (keys, _) = keys(spec);
        let parts = batches::deal(&data, 2, 8192);
        let input = Arc::new(
            planish_plan::operators::memory::MemoryScanExec::try_new(parts, data.schema(), None)
                .unwrap(),
        );
        let plan = sort(input, &keys, fetch);
        let out = flat(driving::collect(&plan, 8192, None).unwrap());
        let total: usize = out.iter().map(Batch::num_rows).sum();
        assert_eq!(total, fetch.unwrap_or(300_000));
        // Compared by the encoding of another crate: a scalar per value would take minutes.
        let fields: Vec<_> = keys
            .iter()
            .map(|key| {
                let data_type = key.expr.data_type(&data.schema()).unwrap();
                arrow::row::SortField::new_with_options(data_type, key.options)
            })
            .collect();
        let converter = arrow::row::RowConverter::new(fields).unwrap();
        let encode = |batch: &Batch| {
            let columns: Vec<_> =
                keys.iter().map(|key| key.expr.evaluate_array(batch).unwrap()).collect();
            converter.convert_columns(&columns).unwrap()
        };
        let all = encode(&Batch::from_record_batch(&data));
        let mut expected: Vec<_> = all.iter().collect();
        expected.sort_unstable();
        let mut expected = expected.into_iter();
        for batch in &out {
            for row in &encode(batch) {
                assert_eq!(Some(row), expected.next(), "{spec:?}");
            }
        }
        let mut seen: Vec<i64> = out
            .iter()
            .flat_map(|b| {
                let ids = b.column(0).unwrap();
                arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&ids)
                    .values()
                    .to_vec()
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), total, "each row once");
    }
}

#[test]
fn spills_when_memory_is_short() {
    let data = batches::mixed(10_000, 3);
    for spec in [KEYS[5], KEYS[6], KEYS[12]] {
        let (keys, positions) = keys(spec);
        for partitions in [1, 3] {
            let plan = sort(scan(&data, partitions), &keys, None);
            let run_plan = Arc::clone(&plan);
            let (out, spilled) = driving::run(2, "a spilling sort", async move {
                let ctx = driving::context(1000, Some(800_000));
                let out = collect(&run_plan, &ctx).await.unwrap();
                let metrics = ctx.metrics().node(node_id(run_plan.as_ref()));
                let spilled = metrics.counter("spilled_bytes");
                (out, spilled.load(std::sync::atomic::Ordering::Relaxed))
            });
            assert!(spilled > 0, "{spec:?}, {partitions} partitions");
            assert_is_sorted_version(&out, &data, &positions, None, &format!("{spec:?}"));
        }
    }
}

/// A sort that works with some memory works with any larger amount.
#[test]
fn more_memory_never_hurts() {
    let data = batches::mixed(5_000, 4);
    let (keys, positions) = keys(&["-v", "id"]);
    let mut worked = false;
    for kilobytes in [1, 10, 100, 300, 400, 600, 800, 1_000, 1_500, 2_500, 5_000, 50_000] {
        let plan = sort(scan(&data, 2), &keys, None);
        match driving::collect(&plan, 500, Some(kilobytes * 1024)) {
            Ok(out) => {
                worked = true;
                assert_is_sorted_version(&flat(out), &data, &positions, None, "limited");
            }
            Err(error) => {
                assert!(!worked, "fails with {kilobytes} kB: {error}");
                let text = error.to_string();
                assert!(text.contains("SortExec needs"), "{text}");
                assert!(text.contains("datafusion.runtime.memory_limit"), "{text}");
            }
        }
    }
    assert!(worked);
}

#[test]
fn top_k_keeps_few_rows() {
    let data = batches::mixed(20_000, 5);
    for spec in [KEYS[0], KEYS[1], KEYS[11]] {
        let (keys, positions) = keys(spec);
        let plan = sort(scan(&data, 2), &keys, Some(20));
        // Far less than the 4 MB and more that all rows take.
        let out = flat(driving::collect(&plan, 1000, Some(1_200_000)).unwrap());
        assert_is_sorted_version(&out, &data, &positions, Some(20), &format!("{spec:?}"));
    }
}

/// The set of candidates is rewritten many times; ties are decided beyond the first bytes.
#[test]
fn top_k_survives_rewrites() {
    for seed in 0..3 {
        let data = batches::mixed(8_000, 100 + seed);
        let (keys, positions) = keys(&["-s", "-id"]);
        for k in [50, 700] {
            let plan = sort(scan(&data, 1), &keys, Some(k));
            let out = flat(driving::collect(&plan, 100, Some(1_000_000)).unwrap());
            assert_is_sorted_version(&out, &data, &positions, Some(k), &format!("seed {seed}"));
        }
    }
}

/// A fetch whose rows alone do not fit in memory.
#[test]
fn a_large_top_k_goes_to_disk() {
    let data = batches::mixed(10_000, 12);
    for spec in [KEYS[5], KEYS[12]] {
        let (keys, positions) = keys(spec);
        for (partitions, limit) in [(1, 420_000), (1, 700_000), (2, 700_000)] {
            let plan = sort(scan(&data, partitions), &keys, Some(6_000));
            let out = flat(driving::collect(&plan, 500, Some(limit)).unwrap());
            assert_is_sorted_version(&out, &data, &positions, Some(6_000), &format!("{spec:?}"));
        }
    }
}

#[test]
fn drives_in_any_way() {
    let data = batches::mixed(300, 6);
    let expected = rows::of_record_batches(std::slice::from_ref(&data));
    let (keys, _) = keys(&["s", "-f"]);
    driving::assert_drives(|| sort(scan(&data, 3), &keys, None), &expected);
    let preserving = || -> PlanRef {
        let sort = SortExec::new(keys.clone(), scan(&data, 3));
        Arc::new(sort.with_preserve_partitioning(true))
    };
    driving::assert_drives(preserving, &expected);
    let merge =
        || -> PlanRef { Arc::new(SortPreservingMergeExec::new(keys.clone(), preserving())) };
    driving::assert_drives(merge, &expected);
}

#[test]
fn merges_sorted_partitions() {
    let data = batches::mixed(250, 8);
    for spec in KEYS {
        let (keys, positions) = keys(spec);
        for partitions in [1, 2, 8] {
            for fetch in [None, Some(0), Some(13)] {
                for batch_size in [1, 50] {
                    let sorted = SortExec::new(keys.clone(), scan(&data, partitions))
                        .with_preserve_partitioning(true);
                    let merge = SortPreservingMergeExec::new(keys.clone(), Arc::new(sorted));
                    let plan: PlanRef = Arc::new(merge.with_limit(fetch));
                    let out = flat(driving::collect(&plan, batch_size, None).unwrap());
                    let what = format!("{spec:?}, {partitions} partitions, fetch {fetch:?}");
                    assert_is_sorted_version(&out, &data, &positions, fetch, &what);
                }
            }
        }
    }
}

#[test]
fn a_batch_below_all_others_is_handed_on_as_it_is() {
    let data = batches::mixed(400, 9);
    let (keys, positions) = keys(&["id"]);
    let parts = [(0, 100), (100, 100), (200, 200)]
        .map(|(at, n)| vec![batches::disguised(&data.slice(at, n), Disguise::Flat)]);
    let source = Source::new(data.schema(), parts.to_vec()).with_ordering(keys.clone());
    let plan: PlanRef = Arc::new(SortPreservingMergeExec::new(keys, Arc::new(source)));
    let out = flat(driving::collect(&plan, 100, None).unwrap());
    assert_is_sorted_version(&out, &data, &positions, None, "disjoint");
    let sizes: Vec<usize> = out.iter().map(Batch::num_rows).collect();
    assert_eq!(sizes, [100, 100, 200]);
    assert!(matches!(out[0].columns()[8].form(), planish_batch::Form::Flat(_)));
}

#[test]
fn errors_and_panics_below_come_out() {
    let data = batches::mixed(50, 10);
    let (keys, _) = keys(&["s"]);
    for fetch in [None, Some(3)] {
        let source = || Source::disguised(&data, 3, 5, Disguise::Flat);
        let plan = sort(Arc::new(source().failing_after(2)), &keys, fetch);
        let error = driving::collect(&plan, 8, None).unwrap_err();
        assert!(error.to_string().contains("the source broke"), "{error}");
        let plan = sort(Arc::new(source().panicking_after(1)), &keys, fetch);
        let error = driving::collect(&plan, 8, None).unwrap_err();
        assert!(error.to_string().contains("the source blew up"), "{error}");
        let merge =
            SortPreservingMergeExec::new(keys.clone(), Arc::new(source().panicking_after(1)));
        let plan: PlanRef = Arc::new(merge.with_limit(fetch.map(|_| 40)));
        let error = driving::collect(&plan, 8, None).unwrap_err();
        assert!(error.to_string().contains("the source blew up"), "{error}");
    }
}

#[test]
fn an_endless_input_can_be_cancelled() {
    let data = batches::mixed(50, 10);
    let (keys, _) = keys(&["i"]);
    let source = Source::disguised(&data, 2, 25, Disguise::Flat).endless();
    let polled = source.polled();
    let plan = sort(Arc::new(source), &keys, Some(5));
    driving::run(1, "a cancelled sort", async move {
        let ctx = driving::context(100, None);
        let run = collect(&plan, &ctx);
        let stopped = tokio::time::timeout(std::time::Duration::from_millis(200), run).await;
        assert!(stopped.is_err());
    });
    let count = polled.load(std::sync::atomic::Ordering::Relaxed);
    assert!(count > 0);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(polled.load(std::sync::atomic::Ordering::Relaxed), count, "nobody reads on");
}

#[test]
fn says_what_holds() {
    let data = batches::mixed(100, 1);
    let (by_s, _) = keys(&["s", "i"]);
    let (by_id, _) = keys(&["id"]);
    let source = Source::disguised(&data, 4, 10, Disguise::Flat).with_ordering(by_id.clone());
    let source: PlanRef = Arc::new(source);
    let whole = SortExec::new(by_s.clone(), Arc::clone(&source));
    assert_eq!(whole.properties().partition_count(), 1);
    assert!(whole.properties().equivalences.ordering_satisfied(&by_s));
    assert!(!whole.properties().equivalences.ordering_satisfied(&by_id));
    let parts: PlanRef = Arc::new(
        SortExec::new(by_s.clone(), Arc::clone(&source))
            .with_preserve_partitioning(true)
            .with_limit(Some(7)),
    );
    assert_eq!(parts.partition_count(), 4);
    assert_eq!(parts.fetch(), Some(7));
    let rows = |p: Option<usize>| parts.statistics(p).unwrap().num_rows.get_value().copied();
    assert_eq!((rows(Some(0)), rows(None)), (Some(7), Some(28)));
    let merged = SortPreservingMergeExec::new(by_s.clone(), Arc::clone(&parts)).with_limit(Some(3));
    assert!(merged.properties().equivalences.ordering_satisfied(&by_s));
    assert_eq!(merged.statistics(None).unwrap().num_rows.get_value(), Some(&3));
    let merged: PlanRef = Arc::new(merged);
    let text = displayable(&merged).to_string();
    let expected = "SortPreservingMergeExec: [s@7 ASC, i@1 ASC], fetch=3\n  \
        SortExec: expr=[s@7 ASC, i@1 ASC], fetch=7, preserve_partitioning=true\n    \
        Source: partitions=4\n";
    assert_eq!(text, expected);
}

#[test]
fn unsupported_keys_are_named() {
    use arrow::datatypes::{DataType, Field, Schema};
    let entries = Field::new(
        "e",
        DataType::Struct(
            vec![Field::new("k", DataType::Utf8, false), Field::new("v", DataType::Utf8, true)]
                .into(),
        ),
        false,
    );
    let map = DataType::Map(Arc::new(entries), false);
    let schema = Arc::new(Schema::new(vec![Field::new("m", map, true)]));
    let source = Source::new(Arc::clone(&schema), vec![vec![]]);
    let keys = vec![sort_key("m", false, false, &schema)];
    let result = driving::collect(&sort(Arc::new(source), &keys, None), 8, None);
    if let Err(error) = result {
        assert!(matches!(error, DataFusionError::NotImplemented(_)), "{error}");
    }
}
