//! The projection algebra over generated expressions, projections and rows: a rewrite keeps every
//! value, and where none exists the answer is `None`.
#![allow(clippy::unwrap_used, clippy::panic)]
// Helpers of tests count as tests.

mod generator;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_expr::Operator;
use generator::{Expressions, Random, input, rows};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, Literal};
use planish_expr::projection::{
    ProjectionExpr, ProjectionExprs, merge_repeats_work, narrow_expr, project_expr,
    reassign_expr_columns, unproject_expr, update_expr,
};
use planish_expr::utils::column_indices;
use std::collections::BTreeSet;
use std::sync::Arc;

type Expr = PhysicalExprRef;

const CASES: u64 = 400;

/// An expression none of whose nodes can fail.
fn any(r: &mut Random, schema: &Schema) -> Expr {
    Expressions { schema, failing: false }.any(r)
}

/// Permuted, partial or repeated columns; or those and computations among them.
fn projection(r: &mut Random, schema: &SchemaRef) -> ProjectionExprs {
    let width = schema.fields().len();
    let mut indices: Vec<usize> = (0..width).collect();
    for i in (1..width).rev() {
        indices.swap(i, r.below(i + 1));
    }
    indices.truncate(1 + r.below(width));
    let repeated = indices[0];
    if r.below(3) == 0 {
        indices.push(repeated);
    }
    let columns = ProjectionExprs::from_indices(&indices, schema);
    if r.below(2) == 0 {
        return columns;
    }
    let mut exprs: Vec<_> = columns.into_iter().collect();
    for n in 0..1 + r.below(3) {
        let at = r.below(exprs.len() + 1);
        exprs.insert(at, ProjectionExpr::new(any(r, schema), format!("e{n}")));
    }
    exprs.into()
}

struct Case {
    projection: ProjectionExprs,
    below: Batch,
    above: Batch,
}

fn case(r: &mut Random) -> Case {
    let projection = projection(r, &input());
    let below = rows(r);
    let output = Arc::new(projection.project_schema(&input()).unwrap());
    let above = projection.project_batch(&below, &output).unwrap();
    Case { projection, below, above }
}

fn values(expr: &Expr, batch: &Batch) -> ArrayRef {
    expr.evaluate_array(batch).unwrap()
}

/// The definition of "can be expressed above": it is projected itself, or all of its parts can.
fn expressible(expr: &Expr, projection: &ProjectionExprs) -> bool {
    let children = expr.children();
    projection.iter().any(|e| e.expr.eq(expr))
        || (!expr.is::<Column>() && children.into_iter().all(|c| expressible(c, projection)))
}

#[test]
fn unprojected_expressions_have_the_same_values_below() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let above = any(r, case.above.schema());
        let below = unproject_expr(&above, &case.projection).unwrap().unwrap();
        assert_eq!(
            &values(&above, &case.above),
            &values(&below, &case.below),
            "seed {seed}: {above} over [{}] became {below}",
            case.projection
        );
    }
}

#[test]
fn projected_expressions_have_the_same_values_above_or_do_not_exist() {
    let (mut found, mut none) = (0, 0);
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let below = any(r, &input());
        let above = project_expr(&below, &case.projection).unwrap();
        let shown = format!("seed {seed}: {below} under [{}]", case.projection);
        assert_eq!(above.is_some(), expressible(&below, &case.projection), "{shown}");
        let Some(above) = above else {
            none += 1;
            continue;
        };
        found += 1;
        let width = case.above.num_columns();
        assert!(column_indices(&above).into_iter().all(|i| i < width), "{shown} became {above}");
        assert_eq!(
            &values(&below, &case.below),
            &values(&above, &case.above),
            "{shown} became {above}"
        );
    }
    assert!(found > 50 && none > 50, "{found} rewrites, {none} refusals");
}

#[test]
fn what_went_down_comes_up_again() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let above = any(r, case.above.schema());
        let below = unproject_expr(&above, &case.projection).unwrap().unwrap();
        let again = project_expr(&below, &case.projection).unwrap();
        let again = again.unwrap_or_else(|| panic!("seed {seed}: {above} went down as {below}"));
        assert_eq!(&values(&above, &case.above), &values(&again, &case.above), "seed {seed}");
    }
}

#[test]
fn a_column_that_is_not_there_makes_the_whole_rewrite_none() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let width = case.above.num_columns();
        let missing: Expr = Arc::new(Column::new("missing", width));
        let schema = case.above.schema();
        let known = Expressions { schema, failing: false }.of(r, &DataType::Int64, 2);
        let (left, right) = if r.below(2) == 0 { (known, missing) } else { (missing, known) };
        let sum: Expr = Arc::new(BinaryExpr::new(left, Operator::Plus, right));
        assert!(unproject_expr(&sum, &case.projection).unwrap().is_none(), "seed {seed}");
        let top = ProjectionExprs::new([ProjectionExpr::new(sum, "x")]);
        assert!(case.projection.try_merge(&top).is_err(), "seed {seed}");
    }
}

#[test]
fn merged_projections_yield_what_the_two_yield() {
    let mut wise = 0;
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let top = projection(r, case.above.schema());
        let output = Arc::new(top.project_schema(case.above.schema()).unwrap());
        let expected = top.project_batch(&case.above, &output).unwrap();
        let merged = case.projection.try_merge(&top).unwrap();
        let at_once = merged.project_batch(&case.below, &output).unwrap();
        let shown = format!("seed {seed}: [{top}] over [{}]", case.projection);
        assert_eq!(
            expected.to_record_batch().unwrap(),
            at_once.to_record_batch().unwrap(),
            "{shown}"
        );
        if !merge_repeats_work(&case.projection, &top) {
            wise += 1;
            let apart = computations(&case.projection) + computations(&top);
            assert!(computations(&merged) <= apart, "{shown} computes more as [{merged}]");
        }
    }
    assert!(wise > 50, "{wise} merges");
}

/// How many nodes are evaluated that are neither columns nor literals.
fn computations(projection: &ProjectionExprs) -> usize {
    fn count(expr: &Expr) -> usize {
        let leaf = expr.is::<Column>() || expr.is::<Literal>();
        usize::from(!leaf) + expr.children().into_iter().map(count).sum::<usize>()
    }
    projection.iter().map(|e| count(&e.expr)).sum()
}

#[test]
fn a_mapping_agrees_with_the_rewrite() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let mapping = case.projection.projection_mapping(&input()).unwrap();
        let below = any(r, &input());
        let mapped = mapping.project(&below);
        let rewritten = update_expr(&below, case.projection.as_ref(), false).unwrap();
        assert_eq!(mapped, rewritten, "seed {seed}: {below} under [{}]", case.projection);
        for (source, targets) in mapping.iter() {
            assert!(!targets.is_empty());
            for target in targets {
                let shown: Expr = Arc::new(target.clone());
                assert_eq!(&values(source, &case.below), &values(&shown, &case.above));
            }
        }
    }
}

#[test]
fn column_indices_are_all_that_is_read() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let case = case(r);
        let kept = case.projection.column_indices();
        assert!(kept.is_sorted_by(|a, b| a < b), "ascending, once each: {kept:?}");
        let expected: BTreeSet<usize> =
            case.projection.expr_iter().flat_map(|e| column_indices(&e)).collect();
        assert_eq!(kept, expected.into_iter().collect::<Vec<_>>());
        let schema = Arc::new(input().project(&kept).unwrap());
        let narrow = case.below.project(&kept, schema).unwrap();
        for e in &case.projection {
            let moved = narrow_expr(&e.expr, &kept).unwrap().unwrap();
            assert_eq!(&values(&e.expr, &case.below), &values(&moved, &narrow), "seed {seed}");
        }
        for (i, name) in ["a", "b", "c", "d", "e", "f", "t"].into_iter().enumerate() {
            let column: Expr = Arc::new(Column::new(name, i));
            let moved = narrow_expr(&column, &kept).unwrap();
            assert_eq!(moved.is_some(), kept.contains(&i), "seed {seed}");
        }
    }
}

#[test]
fn reassigned_expressions_have_the_same_values_in_another_order_of_columns() {
    for seed in 0..CASES {
        let r = &mut Random::new(seed);
        let batch = rows(r);
        let mut order: Vec<usize> = (0..7).collect();
        (1..7).rev().for_each(|i| order.swap(i, r.below(i + 1)));
        let schema = Arc::new(input().project(&order).unwrap());
        let moved = batch.project(&order, Arc::clone(&schema)).unwrap();
        let expr = any(r, &input());
        let reassigned = reassign_expr_columns(&expr, &schema).unwrap();
        assert_eq!(&values(&expr, &batch), &values(&reassigned, &moved), "seed {seed}: {expr}");
    }
}
