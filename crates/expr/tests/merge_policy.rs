//! Where expressions may go: placement, volatility, what can fail, and when projections merge.
#![allow(clippy::unwrap_used, clippy::panic)]
// Helpers of tests count as tests.

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use planish_batch::Batch;
use planish_expr::expressions::*;
use planish_expr::projection::merge_repeats_work;
use planish_expr::udf::ScalarFunctionExpr;
use planish_expr::{
    ExpressionPlacement, PhysicalExprRef, ProjectionExpr, ProjectionExprs, can_fail, is_volatile,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Expr = PhysicalExprRef;

fn schema() -> SchemaRef {
    let inner = Fields::from(vec![Field::new("x", DataType::Int64, true)]);
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, true),
        Field::new("s", DataType::Struct(inner), true),
        Field::new("u", DataType::Utf8, true),
    ]))
}

fn col(i: usize) -> Expr {
    Arc::new(Column::new(schema().field(i).name(), i))
}

fn bin(l: Expr, op: Operator, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, op, r))
}

fn call(fun: Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, &schema(), options).unwrap())
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    let all = datafusion_functions::all_default_functions();
    call(all.into_iter().find(|f| f.name() == name).unwrap(), args)
}

fn field_of_struct() -> Expr {
    function("get_field", vec![col(2), lit("x")])
}

/// A function that counts the rows it is called for.
#[derive(Debug)]
struct Counting {
    signature: Signature,
    rows: Arc<AtomicUsize>,
}

impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows)
    }
}

impl Eq for Counting {}

impl std::hash::Hash for Counting {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.rows).hash(state);
    }
}

impl ScalarUDFImpl for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.rows.fetch_add(args.number_rows, Ordering::Relaxed);
        Ok(args.args[0].clone())
    }
}

fn counting(volatility: Volatility) -> (Arc<ScalarUDF>, Arc<AtomicUsize>) {
    let rows = Arc::new(AtomicUsize::new(0));
    let signature = Signature::any(1, volatility);
    let fun = Counting { signature, rows: Arc::clone(&rows) };
    (Arc::new(ScalarUDF::new_from_impl(fun)), rows)
}

fn projection(exprs: Vec<Expr>) -> ProjectionExprs {
    exprs.into_iter().enumerate().map(|(i, e)| ProjectionExpr::new(e, format!("e{i}"))).collect()
}

#[test]
fn placement_is_what_the_kind_or_the_function_says() {
    use ExpressionPlacement as P;
    let placed = |expr: Expr, placement| assert_eq!(expr.placement(), placement, "{expr}");
    placed(lit(1i64), P::Literal);
    placed(col(0), P::Column);
    placed(field_of_struct(), P::MoveTowardsLeafNodes);
    // A field of something that is computed is not at the leaves.
    let computed = CoalesceExpr::try_new(vec![col(2), col(2)]).unwrap();
    let of_computed = function("get_field", vec![Arc::new(computed), lit("x")]);
    placed(of_computed, P::KeepInPlace);
    placed(function("upper", vec![col(3)]), P::KeepInPlace);
    placed(function("random", vec![]), P::KeepInPlace);
    placed(bin(col(0), Operator::Plus, col(1)), P::KeepInPlace);
    placed(Arc::new(CastExpr::new(col(0), DataType::Float64)), P::KeepInPlace);
}

#[test]
fn volatility_shows_through_everything_around_it() {
    let random = || function("random", vec![]);
    assert!(is_volatile(&random()));
    assert!(is_volatile(&bin(random(), Operator::Lt, lit(0.5f64))));
    let branch = vec![(lit(true), random())];
    assert!(is_volatile(&(Arc::new(CaseExpr::try_new(None, branch, None).unwrap()) as Expr)));
    assert!(!is_volatile(&function("now", vec![])), "one value per query");
    assert!(!is_volatile(&field_of_struct()));
    let (fun, _) = counting(Volatility::Volatile);
    assert!(is_volatile(&call(fun, vec![col(0)])));
}

#[test]
fn what_can_fail_shows_through_everything_around_it() {
    let fails = |e: &Expr| can_fail(e, &schema());
    let quotient = || bin(lit(100i64), Operator::Divide, col(0));
    assert!(fails(&quotient()));
    let guard = bin(col(0), Operator::NotEq, lit(0i64));
    let third = bin(quotient(), Operator::Gt, lit(3i64));
    assert!(fails(&bin(guard, Operator::And, third)), "guarded or not, it may not move");
    assert!(!fails(&bin(col(0), Operator::Plus, col(1))), "integers wrap around");
    assert!(!fails(&bin(col(0), Operator::Divide, lit(7i64))));
    assert!(!fails(&function("upper", vec![col(3)])));
    let (fun, _) = counting(Volatility::Immutable);
    assert!(fails(&call(fun, vec![col(0)])), "nothing is known of a user's function");
    let wrapped = Arc::new(CoalesceExpr::try_new(vec![col(0), quotient()]).unwrap()) as Expr;
    assert!(fails(&wrapped));
}

#[test]
fn an_expensive_expression_moves_and_does_not_multiply() {
    let sum = bin(col(0), Operator::Plus, col(1));
    let inner = projection(vec![sum, col(0)]);
    let e0 = || Arc::new(Column::new("e0", 0)) as Expr;
    let e1 = || Arc::new(Column::new("e1", 1)) as Expr;
    let once = projection(vec![bin(e0(), Operator::Plus, e1())]);
    let in_one = projection(vec![bin(e0(), Operator::Plus, e0())]);
    let in_two = projection(vec![e0(), bin(e0(), Operator::Plus, e1())]);
    let shown_twice = projection(vec![e0(), e0()]);
    let columns = projection(vec![bin(e1(), Operator::Plus, e1()), e1()]);
    assert!(!merge_repeats_work(&inner, &once));
    assert!(merge_repeats_work(&inner, &in_one));
    assert!(merge_repeats_work(&inner, &in_two));
    assert!(merge_repeats_work(&inner, &shown_twice));
    assert!(!merge_repeats_work(&inner, &columns));
    assert!(!merge_repeats_work(&inner, &projection(vec![lit(1i64)])), "used not at all");
}

#[test]
fn what_is_cheap_may_multiply() {
    let inner = projection(vec![col(0), field_of_struct(), lit(7i64)]);
    for i in 0..3 {
        let e = || Arc::new(Column::new("e", i)) as Expr;
        let twice = projection(vec![bin(e(), Operator::Plus, e()), e()]);
        assert!(!merge_repeats_work(&inner, &twice), "{i}");
    }
}

#[test]
fn a_volatile_expression_does_not_move_at_all() {
    for volatile in [
        function("random", vec![]),
        bin(function("random", vec![]), Operator::Plus, lit(1f64)),
        call(counting(Volatility::Volatile).0, vec![col(0)]),
    ] {
        let inner = projection(vec![volatile, col(0)]);
        let e0 = || Arc::new(Column::new("e0", 0)) as Expr;
        let when = vec![(bin(col(1), Operator::Gt, lit(0i64)), e0())];
        let conditional = Arc::new(CaseExpr::try_new(None, when, None).unwrap());
        for outer in [vec![e0()], vec![e0(), e0()], vec![conditional], vec![col(1)]] {
            assert!(merge_repeats_work(&inner, &projection(outer)));
        }
    }
}

/// The law itself, by counting: whatever merges, no function is called for more rows than before.
#[test]
fn a_merge_never_calls_a_function_for_more_rows() {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let only_a = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let batch = Batch::from_arrays(Arc::clone(&only_a), vec![a], 3).unwrap();
    let e = |i: usize| Arc::new(Column::new("e", i)) as Expr;
    let case = |when: Expr, then: Expr| {
        Arc::new(CaseExpr::try_new(None, vec![(when, then)], None).unwrap()) as Expr
    };
    let mut merged = 0;
    for volatility in [Volatility::Immutable, Volatility::Stable, Volatility::Volatile] {
        let (fun, rows) = counting(volatility);
        let inner = projection(vec![call(fun, vec![col(0)]), col(0)]);
        for outer in [
            vec![e(0)],
            vec![e(1), e(1)],
            vec![e(0), e(0)],
            vec![bin(e(0), Operator::Plus, e(0))],
            vec![bin(e(0), Operator::Plus, e(1))],
            vec![case(Arc::new(IsNullExpr::is_null(e(1))), e(0))],
            vec![case(bin(e(0), Operator::Gt, lit(1i64)), e(0))],
        ] {
            let outer = projection(outer);
            if merge_repeats_work(&inner, &outer) {
                continue;
            }
            merged += 1;
            let run = |p: &ProjectionExprs, over: &Batch| {
                let schema = Arc::new(p.project_schema(over.schema()).unwrap());
                p.project_batch(over, &schema).unwrap()
            };
            rows.store(0, Ordering::Relaxed);
            let apart = run(&outer, &run(&inner, &batch));
            let before = rows.swap(0, Ordering::Relaxed);
            let at_once = run(&inner.try_merge(&outer).unwrap(), &batch);
            let after = rows.load(Ordering::Relaxed);
            assert!(after <= before, "[{outer}] over [{inner}]: {before} rows, then {after}");
            assert_eq!(apart.to_record_batch().unwrap(), at_once.to_record_batch().unwrap());
        }
    }
    assert_eq!(merged, 8, "four shapes, for each function that is not volatile");
}
