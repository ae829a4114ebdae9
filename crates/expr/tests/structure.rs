//! Equality, hashing and text through `dyn`, over all kinds of expressions.
#![allow(clippy::unwrap_used, clippy::panic)]
// Helpers of tests count as tests.

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{HashSet, ScalarValue};
use datafusion_expr::Operator;
use planish_expr::expressions::*;
use planish_expr::udf::ScalarFunctionExpr;
use planish_expr::{PhysicalExprRef, ProjectionExpr, ProjectionExprs, is_volatile};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

type Expr = PhysicalExprRef;

fn a() -> Expr {
    Arc::new(Column::new("a", 0))
}

fn b() -> Expr {
    Arc::new(Column::new("b", 1))
}

fn t() -> Expr {
    Arc::new(Column::new("t", 2))
}

fn bin(l: Expr, op: Operator, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, op, r))
}

fn case(operand: Option<Expr>, otherwise: Option<Expr>) -> Expr {
    Arc::new(CaseExpr::try_new(operand, vec![(a(), b())], otherwise).unwrap())
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    let strings = ["a", "b"].map(|n| Field::new(n, DataType::Utf8, true));
    let all = datafusion_functions::all_default_functions();
    let fun = all.into_iter().find(|f| f.name() == name).unwrap();
    let options = Arc::new(ConfigOptions::default());
    let schema = Schema::new(strings.to_vec());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, &schema, options).unwrap())
}

/// Every kind, and every attribute of it changed once; with what it reads as.
fn kinds() -> Vec<(Expr, &'static str)> {
    use Operator as O;
    let utf8 = || lit("x%");
    let like = |kind, negated| LikeExpr::new(kind, negated, a(), utf8());
    let zoned = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
    let subquery = Field::new("s", DataType::Int64, true);
    let subquery = |id| ScalarSubqueryExpr::new(id, &Arc::new(subquery.clone()));
    vec![
        (a(), "a@0"),
        (b(), "b@1"),
        (lit(1i64), "1"),
        (lit(2i64), "2"),
        (lit("x"), "x"),
        (lit(ScalarValue::Int64(None)), "NULL"),
        (lit(true), "true"),
        (bin(a(), O::Plus, b()), "a@0 + b@1"),
        (bin(a(), O::Minus, b()), "a@0 - b@1"),
        (bin(b(), O::Plus, a()), "b@1 + a@0"),
        (bin(a(), O::Multiply, b()), "a@0 * b@1"),
        (bin(a(), O::Divide, b()), "a@0 / b@1"),
        (bin(a(), O::Modulo, b()), "a@0 % b@1"),
        (bin(a(), O::Eq, b()), "a@0 = b@1"),
        (bin(a(), O::NotEq, b()), "a@0 != b@1"),
        (bin(a(), O::Lt, b()), "a@0 < b@1"),
        (bin(a(), O::LtEq, b()), "a@0 <= b@1"),
        (bin(a(), O::Gt, b()), "a@0 > b@1"),
        (bin(a(), O::GtEq, b()), "a@0 >= b@1"),
        (bin(a(), O::IsDistinctFrom, b()), "a@0 IS DISTINCT FROM b@1"),
        (bin(a(), O::IsNotDistinctFrom, b()), "a@0 IS NOT DISTINCT FROM b@1"),
        (bin(t(), O::And, t()), "t@2 AND t@2"),
        (bin(t(), O::Or, t()), "t@2 OR t@2"),
        (bin(a(), O::BitwiseAnd, b()), "a@0 & b@1"),
        (bin(a(), O::BitwiseOr, b()), "a@0 | b@1"),
        (bin(a(), O::BitwiseShiftLeft, b()), "a@0 << b@1"),
        (bin(a(), O::BitwiseShiftRight, b()), "a@0 >> b@1"),
        (bin(a(), O::StringConcat, b()), "a@0 || b@1"),
        (bin(a(), O::RegexMatch, utf8()), "a@0 ~ x%"),
        (bin(a(), O::RegexIMatch, utf8()), "a@0 ~* x%"),
        (bin(a(), O::RegexNotMatch, utf8()), "a@0 !~ x%"),
        (bin(a(), O::RegexNotIMatch, utf8()), "a@0 !~* x%"),
        (case(None, None), "CASE WHEN a@0 THEN b@1 END"),
        (case(None, Some(a())), "CASE WHEN a@0 THEN b@1 ELSE a@0 END"),
        (case(Some(b()), None), "CASE b@1 WHEN a@0 THEN b@1 END"),
        (Arc::new(CastExpr::new(a(), DataType::Int64)), "CAST(a@0 AS Int64)"),
        (Arc::new(CastExpr::new(a(), DataType::Int32)), "CAST(a@0 AS Int32)"),
        (Arc::new(CastExpr::new(a(), zoned)), "CAST(a@0 AS Timestamp(s, \"UTC\"))"),
        (Arc::new(TryCastExpr::new(a(), DataType::Int64)), "TRY_CAST(a@0 AS Int64)"),
        (Arc::new(CoalesceExpr::try_new(vec![a(), b()]).unwrap()), "coalesce(a@0, b@1)"),
        (Arc::new(InListExpr::new(a(), vec![lit(1i64), b()], false)), "a@0 IN (1, b@1)"),
        (Arc::new(InListExpr::new(a(), vec![lit(1i64), b()], true)), "a@0 NOT IN (1, b@1)"),
        (Arc::new(InListExpr::new(a(), vec![b(), lit(1i64)], false)), "a@0 IN (b@1, 1)"),
        (Arc::new(IsBoolExpr::new(t(), true, false)), "t@2 IS TRUE"),
        (Arc::new(IsBoolExpr::new(t(), false, false)), "t@2 IS FALSE"),
        (Arc::new(IsBoolExpr::new(t(), true, true)), "t@2 IS NOT TRUE"),
        (Arc::new(IsNullExpr::is_null(a())), "a@0 IS NULL"),
        (Arc::new(IsNullExpr::is_not_null(a())), "a@0 IS NOT NULL"),
        (Arc::new(like(LikeKind::Like, false)), "a@0 LIKE x%"),
        (Arc::new(like(LikeKind::Like, true)), "a@0 NOT LIKE x%"),
        (Arc::new(like(LikeKind::ILike, false)), "a@0 ILIKE x%"),
        (Arc::new(like(LikeKind::SimilarTo, false)), "a@0 SIMILAR TO x%"),
        (Arc::new(like(LikeKind::Like, false).with_escape('!')), "a@0 LIKE x% ESCAPE !"),
        (Arc::new(NegativeExpr::new(a())), "- a@0"),
        (Arc::new(NotExpr::new(t())), "NOT t@2"),
        (Arc::new(BetweenExpr::new(a(), false, b(), lit(3i64))), "a@0 BETWEEN b@1 AND 3"),
        (Arc::new(BetweenExpr::new(a(), true, b(), lit(3i64))), "a@0 NOT BETWEEN b@1 AND 3"),
        (Arc::new(subquery(0)), "subquery(0)"),
        (Arc::new(subquery(1)), "subquery(1)"),
        (function("upper", vec![a()]), "upper(a@0)"),
        (function("lower", vec![a()]), "lower(a@0)"),
        (function("concat", vec![a(), b()]), "concat(a@0, b@1)"),
        (function("random", vec![]), "random()"),
    ]
}

fn hash(expr: &Expr) -> u64 {
    thread_local!(static STATE: RandomState = RandomState::new());
    STATE.with(|state| state.hash_one(expr.as_ref()))
}

#[test]
fn every_kind_reads_as_specified() {
    for (expr, text) in kinds() {
        assert_eq!(expr.to_string(), text);
    }
}

#[test]
fn what_is_built_alike_is_equal_and_nothing_else() {
    let (one, other) = (kinds(), kinds());
    for (i, (x, _)) in one.iter().enumerate() {
        for (j, (y, _)) in other.iter().enumerate() {
            assert_eq!(x.eq(y), i == j, "{x} and {y}");
            assert!(i != j || hash(x) == hash(y), "{x}");
        }
    }
}

#[test]
fn equal_expressions_are_found_in_a_set() {
    let known: HashSet<Expr> = kinds().into_iter().map(|(expr, _)| expr).collect();
    assert_eq!(known.len(), kinds().len());
    assert!(kinds().iter().all(|(expr, _)| known.contains(expr)));
    let nested = bin(bin(a(), Operator::Plus, b()), Operator::Plus, lit(1i64));
    assert!(!known.contains(&nested));
}

#[test]
fn equality_goes_down_to_the_leaves() {
    let of = |leaf: Expr| {
        let negative: Expr = Arc::new(NegativeExpr::new(leaf));
        let branches = vec![(t(), bin(negative, Operator::Plus, b()))];
        Arc::new(CaseExpr::try_new(None, branches, None).unwrap()) as Expr
    };
    assert!(of(a()).eq(&of(a())));
    assert_eq!(hash(&of(a())), hash(&of(a())));
    assert!(!of(a()).eq(&of(b())));
    // Built over new children that are the old ones, it is still the same.
    let children: Vec<Expr> = of(a()).children().into_iter().cloned().collect();
    assert!(of(a()).with_new_children(children).unwrap().eq(&of(a())));
}

#[test]
fn an_index_names_a_column_and_a_name_does_not() {
    let renamed: Expr = Arc::new(Column::new("z", 0));
    assert!(renamed.eq(&a()));
    assert_eq!(hash(&renamed), hash(&a()));
    assert_eq!(renamed.to_string(), "z@0");
}

#[test]
fn literals_differ_in_value_type_and_metadata() {
    let same = |x: Expr, y: Expr| {
        assert!(!x.eq(&y) || hash(&x) == hash(&y));
        x.eq(&y)
    };
    assert!(!same(lit(1i64), lit(1i32)));
    assert!(!same(lit(0.0f64), lit(-0.0f64)), "1 / x tells them apart");
    assert!(same(lit(f64::NAN), lit(f64::NAN)));
    assert!(!same(lit(ScalarValue::Int64(None)), lit(ScalarValue::Int32(None))));
    let unit = |v: &str| {
        let metadata = FieldMetadata::from(
            [("unit".to_owned(), v.to_owned())]
                .into_iter()
                .collect::<std::collections::HashMap<_, _>>(),
        );
        let value = ScalarValue::from(1i64);
        Arc::new(Literal::new_with_metadata(value, Some(metadata))) as Expr
    };
    assert!(same(unit("km"), unit("km")));
    assert!(!same(unit("km"), unit("mi")) && !same(unit("km"), lit(1i64)));
}

#[test]
fn a_volatile_call_equals_itself_as_text_yet_is_volatile() {
    let (x, y) = (function("random", vec![]), function("random", vec![]));
    assert!(x.eq(&y) && is_volatile(&x));
    let nested = bin(lit(1i64), Operator::Plus, x);
    assert!(is_volatile(&nested) && !is_volatile(&bin(a(), Operator::Plus, b())));
}

#[test]
fn projections_read_as_specified() {
    let named = |expr: Expr, alias: &str| ProjectionExpr::new(expr, alias);
    let shows = |e: ProjectionExpr, text: &str| assert_eq!(e.to_string(), text);
    shows(named(a(), "a"), "a@0");
    shows(named(Arc::new(Column::new("c", 2)), "x"), "c@2 AS x");
    shows(named(Arc::new(CastExpr::new(a(), DataType::Int64)), "a"), "CAST(a@0 AS Int64) AS a");
    let all = ProjectionExprs::new([named(b(), "b"), named(bin(a(), Operator::Plus, b()), "s")]);
    assert_eq!(all.to_string(), "b@1, a@0 + b@1 AS s");
    assert_eq!(ProjectionExprs::new([]).to_string(), "");
}
