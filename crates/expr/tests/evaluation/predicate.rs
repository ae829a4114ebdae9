//! Conjuncts one after the other.

use crate::common::{Expr, batch, bin, col, ints, strs};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use datafusion_expr::Operator::{Divide, Gt, Lt, Modulo, NotEq, RegexMatch};
use planish_batch::Batch;
use planish_expr::expressions::*;
use planish_expr::predicate::Predicate;
use planish_expr::utils::{conjunction, split_conjunction};
use std::sync::Arc;

fn numbers(rows: i64) -> Batch {
    let a: Vec<_> = (0..rows).map(|i| (i % 7 != 3).then_some(i)).collect();
    let b: Vec<_> = (0..rows).map(|i| Some(format!("{}", i * 37 % 101))).collect();
    let b: Vec<_> = b.iter().map(Option::as_deref).collect();
    batch(vec![("a", ints(&a)), ("b", strs(&b))])
}

/// The rows for which each conjunct alone is true.
fn expected(conjuncts: &[Expr], batch: &Batch) -> BooleanBuffer {
    let mut all = BooleanBuffer::new_set(batch.num_rows());
    for conjunct in conjuncts {
        let mut one = Predicate::new(conjunct, batch.schema());
        all = &all & &one.passing(batch).unwrap().into_bits(batch.num_rows());
    }
    all
}

#[test]
fn rows_for_which_all_are_true() {
    let conjuncts: Vec<Expr> = vec![
        bin(bin(col(0), Modulo, lit(3i64)), NotEq, lit(0i64)),
        bin(col(1), RegexMatch, lit("[5-9]$")),
        bin(col(0), Gt, lit(40i64)),
        bin(col(0), Lt, lit(900i64)),
    ];
    for rows in [0, 1, 7, 1000, 8192] {
        let batch = numbers(rows);
        for start in 0..conjuncts.len() {
            let mut rotated = conjuncts.clone();
            rotated.rotate_left(start);
            let mut predicate = Predicate::new(&conjunction(rotated), batch.schema());
            // The order that one batch teaches is used by the next.
            for _ in 0..3 {
                let passing = predicate.passing(&batch).unwrap();
                assert_eq!(
                    passing.clone().into_bits(batch.num_rows()),
                    expected(&conjuncts, &batch)
                );
                let kept = passing.filter(&batch);
                assert_eq!(kept.num_rows(), expected(&conjuncts, &batch).count_set_bits());
            }
        }
    }
}

#[test]
fn what_drops_much_goes_first() {
    let batch = numbers(8192);
    let keeps_all: Expr = bin(col(1), RegexMatch, lit("^[0-9]+.*[0-9]*$"));
    let keeps_few = bin(col(0), Lt, lit(10i64));
    let both = conjunction([Arc::clone(&keeps_all), Arc::clone(&keeps_few)]);
    let mut predicate = Predicate::new(&both, batch.schema());
    predicate.passing(&batch).unwrap();
    assert_eq!(predicate.expr().to_string(), conjunction([keeps_few, keeps_all]).to_string());
}

#[test]
fn guards_are_not_overtaken() {
    let b = batch(vec![
        ("a", ints(&[Some(0), Some(5), None, Some(20), Some(7)])),
        ("b", strs(&[Some("1"), Some("x"), Some("y"), Some("3"), None])),
    ]);
    let quotient = bin(bin(lit(100i64), Divide, col(0)), Gt, lit(4i64));
    let number: Expr = Arc::new(CastExpr::new(col(1), DataType::Int64));
    let tried: Expr = Arc::new(TryCastExpr::new(col(1), DataType::Int64));
    let dirty = bin(number, Gt, lit(0i64));
    let passing = |conjuncts: &[&Expr]| {
        let all = conjunction(conjuncts.iter().map(|c| Arc::clone(c)));
        assert_eq!(split_conjunction(&all).len(), conjuncts.len());
        let mut predicate = Predicate::new(&all, b.schema());
        let first = predicate.passing(&b);
        // What was learned changes nothing.
        assert_eq!(
            first.as_ref().ok().map(|p| p.clone().into_bits(5)),
            predicate.passing(&b).ok().map(|p| p.into_bits(5))
        );
        first.ok().map(|passing| passing.into_bits(5).iter().collect::<Vec<_>>())
    };
    let not_zero = bin(col(0), NotEq, lit(0i64));
    assert_eq!(passing(&[&not_zero, &quotient]), Some(vec![false, true, false, true, true]));
    assert_eq!(passing(&[&quotient, &not_zero]), None);
    // A guard that is NULL for a row guards it.
    let positive = bin(tried, Gt, lit(0i64));
    assert_eq!(passing(&[&positive, &dirty]), Some(vec![true, false, false, true, false]));
    // One that can fail is the guard of the next.
    assert_eq!(
        passing(&[&not_zero, &positive, &quotient, &dirty]),
        Some(vec![false, false, false, true, false])
    );
}
