//! Operators that work row by row, filters and projections, and scalar subqueries.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::datatypes::{DataType, Field};
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use planish_batch::{Batch, Form};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, ScalarSubqueryExpr, lit};
use planish_expr::projection::{ProjectionExpr, ProjectionExprs};
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::filter::FilterExec;
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::subplans::SubplansExec;
use planish_plan::operators::union::UnionExec;
use planish_plan::pushdown::{ChildPushdownResult, FilterPushdownPhase, OfferedFilter, PushedDown};
use planish_plan::{ExecutionPlan, PlanRef, node_id};
use planish_testkit::batches::{self, DISGUISES, Disguise};
use planish_testkit::plans::{Source, col, scan, sort_key};
use planish_testkit::{driving, rows};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn mixed_col(name: &str) -> PhysicalExprRef {
    col(name, &batches::mixed_schema())
}

fn binary(left: PhysicalExprRef, op: Operator, right: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(left, op, right))
}

fn filter(predicate: PhysicalExprRef, input: PlanRef) -> PlanRef {
    Arc::new(FilterExec::try_new(predicate, input).unwrap())
}

fn flat(plan: &PlanRef, batch_size: usize) -> Result<Vec<Batch>> {
    Ok(driving::collect(plan, batch_size, None)?.into_iter().flatten().collect())
}

fn project(indices: &[usize], input: &PlanRef) -> ProjectionExec {
    let exprs = ProjectionExprs::from_indices(indices, &input.schema());
    ProjectionExec::try_new(exprs, Arc::clone(input)).unwrap()
}

/// Predicates, each with what it says of a row of scalars.
type Case = (PhysicalExprRef, fn(&[ScalarValue]) -> bool);

fn cases() -> Vec<Case> {
    vec![
        (mixed_col("b"), |row| row[4] == ScalarValue::Boolean(Some(true))),
        (
            binary(mixed_col("i"), Operator::Gt, lit(2i32)),
            |row| matches!(row[1], ScalarValue::Int32(Some(i)) if i > 2),
        ),
        (
            binary(
                binary(mixed_col("i"), Operator::LtEq, lit(0i32)),
                Operator::And,
                binary(mixed_col("s"), Operator::Gt, lit("a")),
            ),
            |row| {
                matches!(row[1], ScalarValue::Int32(Some(i)) if i <= 0)
                    && matches!(&row[7], ScalarValue::Utf8(Some(s)) if s.as_str() > "a")
            },
        ),
        (lit(true), |_| true),
        (lit(false), |_| false),
        (lit(ScalarValue::Boolean(None)), |_| false),
    ]
}

#[test]
fn filters_keep_the_rows_for_which_the_predicate_is_true() {
    for data in [batches::mixed(200, 1), batches::mixed(0, 1), batches::all_null(20)] {
        let all = rows::scalars(&[Batch::from_record_batch(&data)]);
        for (predicate, holds) in cases() {
            let kept: Vec<_> = all.iter().filter(|row| holds(row)).cloned().collect();
            let expected = rows::of_scalars(&kept);
            for disguise in DISGUISES {
                for (partitions, batch_size) in [(1, 1), (2, 7), (8, 8192)] {
                    let source = Source::disguised(&data, partitions, 9, disguise);
                    let plan = filter(Arc::clone(&predicate), Arc::new(source));
                    let found = rows::of(&flat(&plan, batch_size).unwrap());
                    rows::assert_same(&found, &expected, &predicate.to_string());
                }
            }
            let make = || filter(Arc::clone(&predicate), scan(&data, 3));
            driving::assert_drives(make, &expected);
        }
    }
}

#[test]
fn filters_of_other_types_are_refused() {
    let data = batches::mixed(1, 1);
    let error = FilterExec::try_new(mixed_col("i"), scan(&data, 1)).unwrap_err();
    assert!(error.to_string().contains("must be boolean"), "{error}");
}

#[test]
fn a_filter_moves_no_value_but_what_it_reads() {
    let data = batches::mixed(1000, 2);
    let source: PlanRef = Arc::new(Source::disguised(&data, 1, 1000, Disguise::Selected));
    let plan = filter(binary(mixed_col("id"), Operator::Lt, lit(10i64)), source);
    driving::run(1, "laziness", async move {
        let ctx = driving::context(8192, None);
        let out = planish_plan::collect(&plan, &ctx).await.unwrap();
        assert_eq!(out.iter().map(Batch::num_rows).sum::<usize>(), 10);
        assert!(matches!(out[0].columns()[7].form(), Form::Selected(..)));
        let gathered = ctx.metrics().node(node_id(plan.as_ref())).gathered_bytes();
        assert!((8_000..9_000).contains(&gathered), "{gathered} bytes: the column id");
    });
}

#[test]
fn filters_add_constants_and_equalities() {
    let data = batches::mixed(10, 1);
    let schema = data.schema();
    let ordered = Source::disguised(&data, 2, 5, Disguise::Flat)
        .with_ordering(["i", "d"].map(|n| sort_key(n, false, false, &schema)).to_vec());
    let equals = |a: PhysicalExprRef, b| binary(a, Operator::Eq, b);
    let predicate = binary(
        equals(mixed_col("i"), lit(3i32)),
        Operator::And,
        binary(
            equals(mixed_col("s"), mixed_col("v")),
            Operator::And,
            equals(mixed_col("f"), lit(0.0)),
        ),
    );
    let plan = filter(predicate, Arc::new(ordered));
    let facts = &plan.properties().equivalences;
    assert!(facts.is_constant(&mixed_col("i")));
    assert!(!facts.is_constant(&mixed_col("f")), "0.0 and -0.0 are equal and differ");
    assert!(facts.normalize_expr(&mixed_col("s")).eq(&facts.normalize_expr(&mixed_col("v"))));
    assert!(facts.ordering_satisfied(&[sort_key("d", false, false, &schema)]));
    assert_eq!(plan.maintains_input_order(), [true]);
    let statistics = plan.statistics(None).unwrap();
    assert!(matches!(statistics.num_rows, Precision::Inexact(n) if n > 0));
}

#[test]
fn projections_compute_rename_and_hand_columns_on() {
    for data in [batches::mixed(100, 3), batches::mixed(0, 3), batches::all_null(9)] {
        let exprs = || {
            let sum = binary(mixed_col("i"), Operator::Plus, lit(1i32));
            vec![
                ProjectionExpr::new(mixed_col("s"), "renamed"),
                ProjectionExpr::new(sum, "sum"),
                ProjectionExpr::new(lit("x"), "x"),
                ProjectionExpr::new(mixed_col("s"), "again"),
            ]
        };
        let computed: Vec<Vec<ScalarValue>> = rows::scalars(&[Batch::from_record_batch(&data)])
            .into_iter()
            .map(|row| {
                let ScalarValue::Int32(i) = row[1] else { panic!("i is {}", row[1]) };
                let sum = ScalarValue::Int32(i.map(|i| i + 1));
                vec![row[7].clone(), sum, ScalarValue::from("x"), row[7].clone()]
            })
            .collect();
        let expected = rows::of_scalars(&computed);
        let make =
            || -> PlanRef { Arc::new(ProjectionExec::try_new(exprs(), scan(&data, 3)).unwrap()) };
        driving::assert_drives(make, &expected);
        for disguise in DISGUISES {
            for batch_size in [1, 7, 8192] {
                let source = Source::disguised(&data, 2, 9, disguise);
                let plan: PlanRef =
                    Arc::new(ProjectionExec::try_new(exprs(), Arc::new(source)).unwrap());
                let found = rows::of(&flat(&plan, batch_size).unwrap());
                rows::assert_same(&found, &expected, &format!("{disguise:?}"));
            }
        }
    }
}

#[test]
fn a_projection_of_columns_gathers_nothing() {
    let data = batches::mixed(100, 3);
    let source: PlanRef = Arc::new(Source::disguised(&data, 1, 100, Disguise::Selected));
    let plan: PlanRef = Arc::new(project(&[8, 0, 8], &source));
    driving::run(1, "laziness", async move {
        let ctx = driving::context(8192, None);
        let out = planish_plan::collect(&plan, &ctx).await.unwrap();
        assert!(matches!(out[0].columns()[0].form(), Form::Selected(..)));
        assert_eq!(ctx.metrics().node(node_id(plan.as_ref())).gathered_bytes(), 0);
    });
}

#[test]
fn errors_of_expressions_come_out() {
    let data = batches::mixed(50, 4);
    let quotient = binary(lit(1i32), Operator::Divide, mixed_col("i"));
    let predicate = binary(quotient, Operator::Gt, lit(0i32));
    let error = flat(&filter(predicate, scan(&data, 2)), 8).unwrap_err();
    assert!(error.to_string().to_lowercase().contains("divide by zero"), "{error}");
}

fn subquery(id: usize, data_type: DataType) -> PhysicalExprRef {
    Arc::new(ScalarSubqueryExpr::new(id, &Arc::new(Field::new("q", data_type, true))))
}

/// The rows with `id` below the one value of subquery 0, which is column `id` of `inner`.
fn below_subquery(data: &arrow::array::RecordBatch, inner: PlanRef) -> PlanRef {
    let predicate = binary(mixed_col("id"), Operator::Lt, subquery(0, DataType::Int64));
    let plan = filter(predicate, scan(data, 3));
    Arc::new(SubplansExec::new(plan, [(0, inner)]))
}

#[test]
fn scalar_subqueries_run_once_and_only_when_needed() {
    let data = batches::mixed(60, 5);
    let one_row = batches::mixed(40, 5).slice(25, 1);
    let expected = rows::of_record_batches(&[data.slice(0, 25)]);
    let inner = || -> PlanRef {
        let source: PlanRef = Arc::new(Source::disguised(&one_row, 2, 1, Disguise::Flat));
        Arc::new(project(&[0], &source))
    };
    driving::assert_drives(|| below_subquery(&data, inner()), &expected);

    let source = Source::disguised(&one_row, 1, 1, Disguise::Flat);
    let polled = source.polled();
    let source: PlanRef = Arc::new(source);
    let inner: PlanRef = Arc::new(project(&[0], &source));
    let plan = below_subquery(&data, Arc::clone(&inner));
    flat(&plan, 8).unwrap();
    assert_eq!(polled.load(Ordering::Relaxed), 1, "three partitions, one run");
    let unused: PlanRef = Arc::new(SubplansExec::new(scan(&data, 2), [(0, inner)]));
    flat(&unused, 8).unwrap();
    assert_eq!(polled.load(Ordering::Relaxed), 1, "nobody asked");
}

#[test]
fn scalar_subqueries_without_a_row_are_null_and_two_rows_are_an_error() {
    let data = batches::mixed(60, 5);
    let inner =
        |rows: usize| -> PlanRef { Arc::new(project(&[0], &scan(&data.slice(0, rows), 2))) };
    assert_eq!(flat(&below_subquery(&data, inner(0)), 8).unwrap().len(), 0);
    let error = flat(&below_subquery(&data, inner(2)), 8).unwrap_err();
    assert!(error.to_string().contains("more than one row"), "{error}");
}

#[test]
fn subqueries_may_be_nested_in_sort_keys_and_values() {
    let data = batches::mixed(30, 6);
    let schema = data.schema();
    let inner: PlanRef = Arc::new(project(&[0], &scan(&data.slice(3, 1), 1)));
    // Sorted by the distance from row 3: the key refers to the subquery.
    let distance = binary(mixed_col("id"), Operator::Minus, subquery(0, DataType::Int64));
    let square = binary(Arc::clone(&distance), Operator::Multiply, distance);
    let key = planish_expr::PhysicalSortExpr::new(square, Default::default());
    let tie = sort_key("id", false, false, &schema);
    let sort = SortExec::new(vec![key, tie], scan(&data, 2)).with_limit(Some(3));
    let plan: PlanRef = Arc::new(SubplansExec::new(Arc::new(sort), [(0, inner)]));
    let ids: Vec<ScalarValue> =
        rows::scalars(&flat(&plan, 8).unwrap()).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(ids, [3i64, 2, 4].map(ScalarValue::from));
}

/// The operators that hand rows on, with whether filters and column projections pass them.
fn passing(input: &PlanRef) -> Vec<(PlanRef, bool)> {
    let key = || vec![sort_key("i", false, false, &input.schema())];
    let input = || Arc::clone(input);
    let hash = planish_expr::Partitioning::Hash(vec![mixed_col("i")], 3);
    vec![
        (filter(binary(mixed_col("i"), Operator::Gt, lit(0i32)), input()), true),
        (Arc::new(SortExec::new(key(), input())), true),
        (Arc::new(SortExec::new(key(), input()).with_limit(Some(9))), false),
        (Arc::new(SortPreservingMergeExec::new(key(), input())), true),
        (Arc::new(SortPreservingMergeExec::new(key(), input()).with_limit(Some(9))), false),
        (Arc::new(CoalescePartitionsExec::new(input())), true),
        (Arc::new(CoalescePartitionsExec::new(input()).with_limit(Some(9))), false),
        (Arc::new(RepartitionExec::try_new(input(), hash).unwrap()), true),
        (Arc::new(UnionExec::try_new(vec![input(), input()]).unwrap()), true),
        (Arc::new(LocalLimitExec::new(input(), 4)), false),
        (Arc::new(GlobalLimitExec::new(input(), 2, Some(4))), false),
    ]
}

fn one_sorted_partition() -> PlanRef {
    let data = batches::mixed(50, 7);
    let key = vec![sort_key("i", false, false, &data.schema())];
    Arc::new(SortExec::new(key, scan(&data, 1)))
}

#[test]
fn projections_that_narrow_pass_with_their_keys_rewritten() {
    let input = one_sorted_partition();
    for (plan, _) in passing(&input) {
        // `i` is there, at another place and under another name.
        let columns = [(7, "s"), (1, "renamed"), (0, "id")];
        let exprs: Vec<_> = columns
            .iter()
            .map(|(i, name)| ProjectionExpr::new(Arc::new(Column::new(name, *i)), *name))
            .collect();
        let projection = ProjectionExec::try_new(exprs, Arc::clone(&plan)).unwrap();
        let below = plan.try_swapping_with_projection(&projection).unwrap().unwrap();
        assert_eq!(below.name(), plan.name());
        assert_eq!(below.schema(), projection.schema(), "{}", plan.name());
        assert_eq!(below.fetch(), plan.fetch(), "{}", plan.name());
        assert_eq!(below.partition_count(), plan.partition_count(), "{}", plan.name());
        let ordering = projection_ordering(&projection);
        assert!(
            below.properties().equivalences.ordering_satisfied(&ordering),
            "{} lost an order",
            plan.name()
        );
        let above: PlanRef = Arc::new(projection);
        let (a, b) = (flat(&above, 16).unwrap(), flat(&below, 16).unwrap());
        rows::assert_same(&rows::of(&b), &rows::of(&a), plan.name());

        let keyless = project(&[7, 0], &plan);
        let needs_key = !plan.expressions().is_empty();
        let swapped = plan.try_swapping_with_projection(&keyless).unwrap();
        assert_eq!(swapped.is_none(), needs_key, "{}", plan.name());

        let computes = binary(mixed_col("i"), Operator::Plus, lit(1i32));
        let computed =
            vec![ProjectionExpr::new(computes, "c"), ProjectionExpr::new(mixed_col("i"), "i")];
        let computed = ProjectionExec::try_new(computed, Arc::clone(&plan)).unwrap();
        assert!(plan.try_swapping_with_projection(&computed).unwrap().is_none());
        let permuted: Vec<usize> = (0..9).rev().collect();
        let permuted = project(&permuted, &plan);
        assert!(plan.try_swapping_with_projection(&permuted).unwrap().is_none(), "narrows nothing");
    }
}

fn projection_ordering(projection: &ProjectionExec) -> planish_expr::LexOrdering {
    projection.properties().output_ordering().cloned().unwrap_or_default()
}

#[test]
fn filters_pass_what_neither_drops_nor_cuts_rows() {
    let input = one_sorted_partition();
    let options = ConfigOptions::default();
    let wanted = binary(mixed_col("id"), Operator::Lt, lit(40i64));
    for (plan, passes) in passing(&input) {
        let parents = [Arc::clone(&wanted)];
        let children = plan.children().len();
        let description = plan
            .gather_filters_for_pushdown(FilterPushdownPhase::Pre, &parents, children, &options)
            .unwrap();
        assert_eq!(description.children.len(), children);
        for child in &description.children {
            match &child.parent_filters[0] {
                OfferedFilter::Supported(filter) => {
                    assert!(passes, "{}", plan.name());
                    assert!(filter.eq(&wanted));
                }
                OfferedFilter::Unsupported => assert!(!passes, "{}", plan.name()),
            }
        }
        let own = &description.children[0].self_filters;
        let answer = |answer: PushedDown| ChildPushdownResult {
            parent_filters: vec![(Arc::clone(&wanted), vec![answer; children])],
            self_filters: vec![
                own.iter().map(|f| (Arc::clone(f), PushedDown::No)).collect();
                children
            ],
            node: Arc::clone(&plan),
        };
        for told in [PushedDown::Yes, PushedDown::Used, PushedDown::No] {
            let result = plan
                .handle_child_pushdown_result(FilterPushdownPhase::Pre, answer(told), &options)
                .unwrap();
            let is_filter = plan.is::<FilterExec>();
            let expected = if is_filter { PushedDown::Yes } else { told };
            assert_eq!(result.filters, [expected], "{}", plan.name());
        }
    }
}

/// A filter takes in what its children refuse, and goes when they take everything.
#[test]
fn a_filter_keeps_what_is_refused_below() {
    let input = one_sorted_partition();
    let own = binary(
        binary(mixed_col("i"), Operator::Gt, lit(0i32)),
        Operator::And,
        binary(mixed_col("l"), Operator::Gt, lit(0i64)),
    );
    let parent = binary(mixed_col("id"), Operator::Lt, lit(40i64));
    let plan = filter(own, Arc::clone(&input));
    let decide = |answers: [PushedDown; 2], of_parent| {
        let result = ChildPushdownResult {
            parent_filters: vec![(Arc::clone(&parent), vec![of_parent])],
            self_filters: vec![answers.map(|answer| (Arc::clone(&parent), answer)).to_vec()],
            node: Arc::clone(&plan),
        };
        let options = ConfigOptions::default();
        plan.handle_child_pushdown_result(FilterPushdownPhase::Pre, result, &options).unwrap().node
    };
    let predicate =
        |plan: &PlanRef| plan.downcast_ref::<FilterExec>().map(|f| f.predicate().to_string());
    use PushedDown::{No, Used, Yes};
    assert_eq!(predicate(&decide([Yes, Yes], Yes)), None);
    assert_eq!(predicate(&decide([Yes, Used], Used)).as_deref(), Some("l@2 > 0 AND id@0 < 40"));
    assert_eq!(predicate(&decide([Yes, No], Yes)).as_deref(), Some("l@2 > 0"));
    assert_eq!(predicate(&decide([Yes, Yes], No)).as_deref(), Some("id@0 < 40"));
    assert_eq!(predicate(&decide([No, Yes], No)).as_deref(), Some("i@1 > 0 AND id@0 < 40"));
}
