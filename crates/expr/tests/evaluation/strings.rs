//! `LIKE`, regular expressions, concatenation.

use crate::common::{Expr, batch, bin, bools, check, col, error_of, null, scalar_of, strs};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_expr::expressions::*;
use std::sync::Arc;

#[test]
fn likes() {
    use LikeKind::{ILike, Like, SimilarTo};
    let b = batch(vec![
        ("a", strs(&[Some("green apple"), Some("Green%"), None, Some("a\\b")])),
        ("b", strs(&[Some("%apple"), Some("Green\\%"), Some("%"), None])),
    ]);
    let (t, f, n) = (Some(true), Some(false), None);
    let like = |kind, negated, pattern| -> Expr {
        Arc::new(LikeExpr::new(kind, negated, col(0), pattern))
    };
    check(like(Like, false, lit("%een%")), &b, bools(&[t, t, n, f]));
    check(like(Like, true, lit("green%")), &b, bools(&[f, t, n, t]));
    check(like(ILike, false, lit("GREEN%")), &b, bools(&[t, t, n, f]));
    check(like(Like, false, col(1)), &b, bools(&[t, t, n, n]));
    check(like(Like, false, lit("%\\%")), &b, bools(&[f, t, n, f]));
    check(like(Like, false, null(&DataType::Utf8)), &b, bools(&[n; 4]));
    let escaped = |pattern: &str| -> Expr {
        Arc::new(LikeExpr::new(Like, false, col(0), lit(pattern)).with_escape('!'))
    };
    check(escaped("%!%"), &b, bools(&[f, t, n, f]));
    check(escaped("_\\_"), &b, bools(&[f, f, n, t]));
    assert!(error_of(&escaped("x!"), &b).contains("escape"));
    check(like(SimilarTo, false, lit("(green|Green)%")), &b, bools(&[t, t, n, f]));
    check(like(SimilarTo, false, lit("green")), &b, bools(&[f, f, n, f]));
    check(like(SimilarTo, true, lit("[a-g]%[^l]e")), &b, bools(&[t, t, n, t]));
    check(like(SimilarTo, false, lit("_{6}")), &b, bools(&[f, t, n, f]));
    check(bin(col(0), Operator::RegexIMatch, lit("^GREEN")), &b, bools(&[t, t, n, f]));
    check(bin(col(0), Operator::RegexNotMatch, lit("e{2}n$")), &b, bools(&[t, t, n, t]));
    check(
        bin(col(0), Operator::RegexMatch, col(1)),
        &batch(vec![
            ("a", strs(&[Some("abc"), Some("abc"), None])),
            ("b", strs(&[Some("^a"), Some("^b"), Some("x")])),
        ]),
        bools(&[t, f, n]),
    );
}

#[test]
fn string_concatenation() {
    let b = batch(vec![
        ("a", strs(&[Some("x"), None, Some("")])),
        ("b", strs(&[Some("1"), Some("2"), None])),
    ]);
    let concat = |l, r| bin(l, Operator::StringConcat, r);
    check(concat(col(0), col(1)), &b, strs(&[Some("x1"), None, None]));
    check(concat(col(0), lit("-")), &b, strs(&[Some("x-"), None, Some("-")]));
    check(concat(lit("-"), col(1)), &b, strs(&[Some("-1"), Some("-2"), None]));
    check(concat(lit("-"), null(&DataType::Utf8)), &b, strs(&[None; 3]));
    assert_eq!(scalar_of(&concat(lit("a"), lit("b"))), ScalarValue::from("ab"));
}
