//! Text, children, structure, fields.

use crate::common::{Expr, bin, col};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::Result;
use datafusion_expr::Operator;
use planish_expr::PhysicalExpr;
use planish_expr::expressions::*;
use std::sync::Arc;

#[test]
fn text() {
    use Operator::{And, Divide, Eq, Minus, Multiply, Or, Plus};
    let shows = |expr: Expr, text: &str| assert_eq!(expr.to_string(), text);
    let (a, b) = (|| col(0), || col(1));
    shows(bin(a(), Plus, b()), "a@0 + b@1");
    shows(bin(bin(a(), Plus, b()), Multiply, a()), "(a@0 + b@1) * a@0");
    shows(bin(a(), Minus, bin(b(), Minus, a())), "a@0 - (b@1 - a@0)");
    shows(bin(bin(a(), Minus, b()), Minus, a()), "a@0 - b@1 - a@0");
    shows(bin(a(), Divide, bin(b(), Multiply, a())), "a@0 / (b@1 * a@0)");
    let equal = || bin(a(), Eq, b());
    shows(bin(equal(), And, bin(equal(), Or, equal())), "a@0 = b@1 AND (a@0 = b@1 OR a@0 = b@1)");
    shows(bin(equal(), And, bin(equal(), And, equal())), "a@0 = b@1 AND a@0 = b@1 AND a@0 = b@1");
    shows(Arc::new(CastExpr::new(a(), DataType::Int64)), "CAST(a@0 AS Int64)");
    shows(Arc::new(IsNullExpr::is_null(a())), "a@0 IS NULL");
    shows(Arc::new(IsNullExpr::is_not_null(equal())), "(a@0 = b@1) IS NOT NULL");
    shows(Arc::new(NotExpr::new(a())), "NOT a@0");
    shows(Arc::new(NotExpr::new(equal())), "NOT (a@0 = b@1)");
    shows(Arc::new(InListExpr::new(a(), vec![lit(1i64), lit(2i64)], false)), "a@0 IN (1, 2)");
    shows(Arc::new(LikeExpr::new(LikeKind::Like, false, a(), lit("%x"))), "a@0 LIKE %x");
    shows(Arc::new(NegativeExpr::new(bin(a(), Plus, b()))), "- (a@0 + b@1)");
    let case = CaseExpr::try_new(None, vec![(a(), b())], Some(a())).unwrap();
    shows(Arc::new(case), "CASE WHEN a@0 THEN b@1 ELSE a@0 END");
    let between = BetweenExpr::new(a(), true, lit(1i64), lit(2i64));
    shows(Arc::new(between), "a@0 NOT BETWEEN 1 AND 2");
}

#[test]
fn every_kind_rebuilds_over_new_children_and_compares_by_structure() -> Result<()> {
    let kinds: Vec<Expr> = vec![
        bin(col(0), Operator::Plus, col(1)),
        Arc::new(BetweenExpr::new(col(0), true, col(1), lit(2i64))),
        Arc::new(CaseExpr::try_new(Some(col(0)), vec![(col(1), lit(1i64))], Some(col(1)))?),
        Arc::new(CaseExpr::try_new(None, vec![(col(1), lit(1i64)), (col(0), col(1))], None)?),
        Arc::new(CastExpr::new(col(0), DataType::Int8)),
        Arc::new(TryCastExpr::new(col(0), DataType::Int8)),
        Arc::new(CoalesceExpr::try_new(vec![col(0), col(1)])?),
        Arc::new(InListExpr::new(col(0), vec![lit(1i64)], true)),
        Arc::new(InListExpr::new(col(0), vec![col(1)], true)),
        Arc::new(IsBoolExpr::new(col(0), true, true)),
        Arc::new(IsNullExpr::is_not_null(col(0))),
        Arc::new(LikeExpr::new(LikeKind::ILike, true, col(0), lit("x")).with_escape('!')),
        Arc::new(NegativeExpr::new(col(0))),
        Arc::new(NotExpr::new(col(0))),
    ];
    for (i, kind) in kinds.iter().enumerate() {
        let children: Vec<Expr> = kind.children().into_iter().cloned().collect();
        let same = Arc::clone(kind).with_new_children(children.clone())?;
        assert!(same.eq(kind), "{kind}");
        assert!(kind.conditional_children().iter().all(|c| *c < children.len()));
        let mut other = children;
        other[0] = col(3);
        assert!(!Arc::clone(kind).with_new_children(other)?.eq(kind), "{kind}");
        let fewer = vec![];
        if !kind.is::<CoalesceExpr>() {
            assert!(Arc::clone(kind).with_new_children(fewer).is_err(), "{kind}");
        }
        assert!(kinds.iter().enumerate().all(|(j, k)| (i == j) == k.eq(kind)), "{kind}");
    }
    Ok(())
}

#[test]
fn fields_keep_metadata_where_the_logical_plan_does() {
    let field = Field::new("a", DataType::Int32, false)
        .with_metadata([("unit".to_owned(), "km".to_owned())].into());
    let schema = Schema::new(vec![field]);
    let cast = CastExpr::new(col(0), DataType::Int64).return_field(&schema).unwrap();
    assert_eq!((cast.metadata().len(), cast.is_nullable()), (1, false));
    let tried = TryCastExpr::new(col(0), DataType::Int64).return_field(&schema).unwrap();
    assert_eq!((tried.metadata().len(), tried.is_nullable()), (1, true));
    let negative = NegativeExpr::new(col(0)).return_field(&schema).unwrap();
    assert_eq!(negative.metadata().len(), 1);
    let sum = bin(col(0), Operator::Plus, col(0)).return_field(&schema).unwrap();
    assert_eq!(sum.metadata().len(), 0);
    let target = Arc::new(Field::new("x", DataType::Int64, true));
    let named = CastExpr::new_with_field(col(0), &target).return_field(&schema).unwrap();
    assert_eq!(named.metadata().len(), 0);
}
