//! `WindowAggExec` and `BoundedWindowAggExec` against the definition of frames, row by row.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::{AggregateUDF, WindowFrame, WindowFrameBound, WindowFrameUnits};
use planish_expr::expressions::{Column, IsNullExpr};
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{Partitioning, PhysicalExprRef, ProjectionExprs};
use planish_plan::PlanRef;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::window::{
    BoundedWindowAggExec, WindowAggExec, WindowExpr, WindowFunction, window_exec,
};
use planish_plan::pushdown::{FilterPushdownPhase, OfferedFilter};
use planish_testkit::batches::{DISGUISES, Disguise, Random};
use planish_testkit::plans::{Source, col, sort_key};
use planish_testkit::{driving, rows};
use std::sync::Arc;

use WindowFrameBound::{CurrentRow, Following, Preceding};

/// One row: id, partition key, order key, value.
type Row = (i64, Option<String>, Option<i64>, Option<i64>);

fn data(rows: usize, all_null: bool) -> Vec<Row> {
    let mut rng = Random::new(7);
    (0..rows)
        .map(|id| {
            let null = |rng: &mut Random| all_null || rng.one_in(5);
            let g = (!null(&mut rng)).then(|| format!("g{}", rng.below(4)));
            let k = (!null(&mut rng)).then(|| rng.below(9) as i64 - 3);
            let x = (!null(&mut rng)).then(|| rng.below(100) as i64 - 50);
            (id as i64, g, k, x)
        })
        .collect()
}

fn schema() -> SchemaRef {
    let int = |name: &str| Field::new(name, DataType::Int64, true);
    let g = Field::new("g", DataType::Utf8, true);
    Arc::new(Schema::new(vec![int("id"), g, int("k"), int("x")]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let ints = |of: fn(&Row) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let g: StringArray = rows.iter().map(|row| row.1.clone()).collect();
    let columns = vec![ints(|r| Some(r.0)), Arc::new(g), ints(|r| r.2), ints(|r| r.3)];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn aggregate(fun: Arc<AggregateUDF>, frame: &WindowFrame) -> WindowExpr {
    let name = fun.name().to_owned();
    let args = vec![col("x", &schema())];
    let call =
        AggregateFunctionExpr::try_new(fun, args, schema(), name, false, false, vec![], None);
    WindowExpr {
        function: WindowFunction::Aggregate(Arc::new(call.unwrap())),
        frame: Arc::new(frame.clone()),
    }
}

fn exprs(frame: &WindowFrame) -> Vec<WindowExpr> {
    use datafusion_functions_aggregate::{count::count_udaf, min_max, sum::sum_udaf};
    [count_udaf(), sum_udaf(), min_max::min_udaf(), min_max::max_udaf()]
        .map(|fun| aggregate(fun, frame))
        .to_vec()
}

/// How rows are ordered within a partition.
#[derive(Clone, Copy, Debug)]
struct Order {
    descending: bool,
    nulls_first: bool,
    /// Whether `id` breaks ties.
    unique: bool,
}

fn plan(source: PlanRef, frame: &WindowFrame, order: Order, whole: bool) -> PlanRef {
    let schema = schema();
    let mut order_by = vec![sort_key("k", order.descending, order.nulls_first, &schema)];
    if order.unique {
        order_by.push(sort_key("id", false, false, &schema));
    }
    let partition_by = vec![col("g", &schema)];
    let mut keys = vec![sort_key("g", false, false, &schema)];
    keys.extend(order_by.clone());
    let n = source.partition_count();
    let spread = match n {
        1 => source,
        n => {
            let by = Partitioning::Hash(partition_by.clone(), n);
            Arc::new(RepartitionExec::try_new(source, by).unwrap())
        }
    };
    let sorted = Arc::new(SortExec::new(keys, spread).with_preserve_partitioning(true));
    if whole {
        let node = WindowAggExec::try_new(exprs(frame), partition_by, order_by, sorted);
        return Arc::new(node.unwrap());
    }
    window_exec(exprs(frame), partition_by, order_by, sorted).unwrap()
}

/// The frame of row `i` of a sorted partition, by its definition.
fn frame_of(part: &[Row], i: usize, frame: &WindowFrame, order: Order) -> Vec<usize> {
    let peers = |a: usize, b: usize| match order.unique {
        true => a == b,
        false => part[a].2 == part[b].2,
    };
    let mut group = vec![0; part.len()];
    for j in 1..part.len() {
        group[j] = group[j - 1] + i64::from(!peers(j - 1, j));
    }
    // How far row j is behind row i, where frames count in numbers.
    let distance = |j: usize| -> Option<i64> {
        match frame.units {
            WindowFrameUnits::Rows => Some(j as i64 - i as i64),
            WindowFrameUnits::Groups => Some(group[j] - group[i]),
            WindowFrameUnits::Range => {
                let (a, b) = (part[i].2?, part[j].2?);
                Some(if order.descending { a - b } else { b - a })
            }
        }
    };
    let number = |v: &ScalarValue| match v {
        ScalarValue::UInt64(Some(n)) => *n as i64,
        ScalarValue::Int64(Some(n)) => *n,
        other => panic!("{other:?}"),
    };
    // Whether j is at or behind (`start`), or at or before (`!start`), the bound.
    let within = |j: usize, bound: &WindowFrameBound, start: bool| -> bool {
        let limit = match bound {
            Preceding(v) | Following(v) if v.is_null() => return true,
            CurrentRow => match frame.units {
                WindowFrameUnits::Rows => return if start { j >= i } else { j <= i },
                _ => return peers(i, j) || (j > i) == start,
            },
            Preceding(v) => -number(v),
            Following(v) => number(v),
        };
        match distance(j) {
            Some(d) => {
                if start {
                    d >= limit
                } else {
                    d <= limit
                }
            }
            // NULL keys are peers, and beyond every number on their side.
            None => peers(i, j) || (j > i) == start,
        }
    };
    (0..part.len())
        .filter(|&j| within(j, &frame.start_bound, true) && within(j, &frame.end_bound, false))
        .collect()
}

fn expected(rows: &[Row], frame: &WindowFrame, order: Order) -> Vec<String> {
    let mut parts: Vec<(Option<String>, Vec<Row>)> = vec![];
    for row in rows {
        match parts.iter_mut().find(|(g, _)| *g == row.1) {
            Some((_, part)) => part.push(row.clone()),
            None => parts.push((row.1.clone(), vec![row.clone()])),
        }
    }
    let int = |v: Option<i64>| ScalarValue::Int64(v);
    let mut out = vec![];
    for (_, mut part) in parts {
        part.sort_by_key(|row| {
            let key = row.2.map(|k| if order.descending { -k } else { k });
            (row.2.is_none() != order.nulls_first, key, row.0)
        });
        for i in 0..part.len() {
            let frame = frame_of(&part, i, frame, order);
            let values: Vec<i64> = frame.into_iter().filter_map(|j| part[j].3).collect();
            let (id, g, k, x) = part[i].clone();
            out.push(vec![
                int(Some(id)),
                ScalarValue::Utf8(g),
                int(k),
                int(x),
                int(Some(values.len() as i64)),
                int((!values.is_empty()).then(|| values.iter().sum())),
                int(values.iter().min().copied()),
                int(values.iter().max().copied()),
            ]);
        }
    }
    rows::of_scalars(&out)
}

fn frames(units: WindowFrameUnits) -> Vec<WindowFrame> {
    let offset = |n: u64| match units {
        WindowFrameUnits::Range => ScalarValue::Int64(Some(n as i64)),
        _ => ScalarValue::UInt64(Some(n)),
    };
    let unbounded = ScalarValue::UInt64(None);
    let starts = [
        Preceding(unbounded.clone()),
        Preceding(offset(3)),
        Preceding(offset(1)),
        CurrentRow,
        Following(offset(1)),
        Following(offset(2)),
    ];
    let ends = [
        Preceding(offset(2)),
        Preceding(offset(1)),
        CurrentRow,
        Following(offset(1)),
        Following(offset(4)),
        Following(unbounded),
    ];
    let new = |s: &WindowFrameBound, e: &WindowFrameBound| {
        WindowFrame::new_bounds(units, s.clone(), e.clone())
    };
    starts.iter().flat_map(|s| ends.iter().map(move |e| new(s, e))).collect()
}

const ORDERS: [Order; 3] = [
    Order { descending: false, nulls_first: false, unique: false },
    Order { descending: true, nulls_first: false, unique: false },
    Order { descending: false, nulls_first: true, unique: false },
];

fn check(units: WindowFrameUnits) {
    let unique = units == WindowFrameUnits::Rows;
    for (size, all_null) in [(0, false), (60, false), (12, true)] {
        let rows = data(size, all_null);
        let data = batch(&rows);
        for (f, frame) in frames(units).iter().enumerate() {
            let order = Order { unique, ..ORDERS[f % ORDERS.len()] };
            let expected = expected(&rows, frame, order);
            for (partitions, size, disguise) in
                [(1, 1, DISGUISES[1]), (2, 7, DISGUISES[2]), (8, 8192, DISGUISES[0])]
            {
                for whole in [false, true] {
                    let source = Source::disguised(&data, partitions, 10, disguise);
                    let plan = plan(Arc::new(source), frame, order, whole);
                    let out = driving::collect(&plan, size, None).unwrap();
                    let out = rows::of(&out.into_iter().flatten().collect::<Vec<_>>());
                    rows::assert_same(&out, &expected, &format!("{frame} {order:?} {whole}"));
                }
            }
        }
    }
}

#[test]
fn rows_frames_are_as_defined() {
    check(WindowFrameUnits::Rows);
}

#[test]
fn range_frames_are_as_defined() {
    check(WindowFrameUnits::Range);
}

#[test]
fn groups_frames_are_as_defined() {
    check(WindowFrameUnits::Groups);
}

fn moving() -> WindowFrame {
    let n = |n| ScalarValue::UInt64(Some(n));
    WindowFrame::new_bounds(WindowFrameUnits::Rows, Preceding(n(2)), Following(n(1)))
}

const UNIQUE: Order = Order { descending: false, nulls_first: false, unique: true };

#[test]
fn both_keep_the_laws_of_execution() {
    let rows = data(120, false);
    let data = batch(&rows);
    let expected = expected(&rows, &moving(), UNIQUE);
    for whole in [false, true] {
        let make = || {
            let source = Source::disguised(&data, 4, 10, Disguise::Selected);
            plan(Arc::new(source), &moving(), UNIQUE, whole)
        };
        driving::assert_drives(make, &expected);
    }
}

/// `batches` batches of 1,000 rows in order of `id`, all in one partition of the window.
fn long(batches: usize, whole: bool) -> PlanRef {
    let rows: Vec<Vec<Row>> = (0..batches)
        .map(|b| (0..1000).map(|i| ((b * 1000 + i) as i64, None, None, Some(1))).collect())
        .collect();
    let schema = schema();
    let order_by = vec![sort_key("id", false, false, &schema)];
    let batches = rows.iter().map(|r| planish_batch::Batch::from_record_batch(&batch(r)));
    let source = Source::new(Arc::clone(&schema), vec![batches.collect()]);
    let source: PlanRef = Arc::new(source.with_ordering(order_by.clone()));
    match whole {
        true => {
            Arc::new(WindowAggExec::try_new(exprs(&moving()), vec![], order_by, source).unwrap())
        }
        false => Arc::new(
            BoundedWindowAggExec::try_new(exprs(&moving()), vec![], order_by, source).unwrap(),
        ),
    }
}

#[test]
fn a_running_window_holds_little_and_a_whole_one_says_what_it_lacks() {
    let limit = Some(512 * 1024);
    let out = driving::collect(&long(50, false), 1000, limit).unwrap();
    assert_eq!(out[0].iter().map(|b| b.num_rows()).sum::<usize>(), 50_000);
    let error = driving::collect(&long(50, true), 1000, limit).unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("WindowAggExec cannot spill") && text.contains("--memory-limit"),
        "{text}"
    );
}

#[test]
fn columns_that_pass_are_not_copied() {
    let plan = long(3, false);
    let out = driving::collect(&plan, 1000, None).unwrap();
    let input = driving::collect(plan.children()[0], 1000, None).unwrap();
    for (out, input) in out[0].iter().zip(&input[0]) {
        let (a, b) = (out.column(0).unwrap(), input.column(0).unwrap());
        assert_eq!(a.to_data().buffers()[0].as_ptr(), b.to_data().buffers()[0].as_ptr());
    }
}

#[test]
fn a_failing_input_fails_the_window() {
    let data = batch(&data(60, false));
    let source = Source::disguised(&data, 1, 10, Disguise::Flat).failing_after(2);
    let plan = plan(Arc::new(source), &moving(), UNIQUE, false);
    let error = driving::collect(&plan, 7, None).unwrap_err().to_string();
    assert!(error.contains("the source broke"), "{error}");
}

#[test]
fn only_filters_of_partition_keys_pass() {
    let data = batch(&data(10, false));
    for whole in [false, true] {
        let source = Arc::new(Source::disguised(&data, 1, 10, Disguise::Flat));
        let node = plan(source, &moving(), UNIQUE, whole);
        let not_null = |i: usize| -> PhysicalExprRef {
            let column = Arc::new(Column::new(node.schema().field(i).name(), i));
            Arc::new(IsNullExpr::is_not_null(column))
        };
        let filters: Vec<_> = [0, 1, 2, 3, 4].map(not_null).to_vec();
        let options = ConfigOptions::default();
        let offered = node
            .gather_filters_for_pushdown(FilterPushdownPhase::Pre, &filters, 1, &options)
            .unwrap()
            .children;
        let passes: Vec<bool> = offered[0]
            .parent_filters
            .iter()
            .map(|f| matches!(f, OfferedFilter::Supported(_)))
            .collect();
        assert_eq!(passes, [false, true, false, false, false]);
        assert!(!node.supports_limit_pushdown());
    }
}

#[test]
fn a_projection_narrows_the_input_to_what_it_and_the_window_read() {
    let data = batch(&data(40, false));
    let by_key = Order { unique: false, ..UNIQUE };
    let range = WindowFrame::new(Some(false));
    for whole in [false, true] {
        let source = Arc::new(Source::disguised(&data, 1, 10, Disguise::Flat));
        let node = plan(source, &range, by_key, whole);
        let pick = |indices: &[usize]| {
            let exprs = ProjectionExprs::from_indices(indices, &node.schema());
            ProjectionExec::try_new(exprs, Arc::clone(&node)).unwrap()
        };
        // `id` is read by nobody.
        let projection = pick(&[5, 2]);
        let swapped = node.try_swapping_with_projection(&projection).unwrap().unwrap();
        assert_eq!(swapped.children()[0].children()[0].schema().fields().len(), 3);
        let plain: PlanRef = Arc::new(projection);
        assert_eq!(swapped.schema(), plain.schema());
        let run = |plan: &PlanRef| {
            rows::of(
                &driving::collect(plan, 7, None).unwrap().into_iter().flatten().collect::<Vec<_>>(),
            )
        };
        assert_eq!(run(&swapped), run(&plain));
        assert!(node.try_swapping_with_projection(&pick(&[0, 4])).unwrap().is_none());
    }
}

#[test]
fn functions_that_see_ahead_without_end_do_not_stream() {
    let n = |n| ScalarValue::UInt64(n);
    let frame = |end| WindowFrame::new_bounds(WindowFrameUnits::Rows, Preceding(n(None)), end);
    let streams = |end| exprs(&frame(end))[0].can_stream().unwrap();
    assert!(streams(CurrentRow) && streams(Following(n(Some(3)))));
    assert!(!streams(Following(n(None))));
}
