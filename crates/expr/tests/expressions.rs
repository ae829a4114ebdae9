//! Each kind of expression: values, NULLs, constants, slices, empty batches, guards, text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::{Batch, Column as BatchColumn, Selection};
use planish_expr::expressions::*;
use planish_expr::udf::ScalarFunctionExpr;
use planish_expr::{PhysicalExpr, PhysicalExprRef, can_fail};
use std::sync::Arc;

type Expr = PhysicalExprRef;

fn batch(columns: Vec<(&str, ArrayRef)>) -> Batch {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    Batch::from_record_batch(&batch)
}

fn col(i: usize) -> Expr {
    Arc::new(Column::new(["a", "b", "c", "d"][i], i))
}

fn bin(l: Expr, op: Operator, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, op, r))
}

fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn strs(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn bools(values: &[Option<bool>]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

fn floats(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn null(data_type: &DataType) -> Expr {
    lit(ScalarValue::try_from(data_type).unwrap())
}

/// The value of `expr`; checked to be the same over slices, over selections, over batches of one
/// row, and over constant columns; and no error over no rows.
fn eval(expr: &Expr, batch: &Batch) -> ArrayRef {
    let all = expr.evaluate_array(batch).unwrap_or_else(|e| panic!("{expr}: {e}"));
    let declared = expr.return_field(batch.schema()).unwrap();
    assert_eq!(all.data_type(), declared.data_type(), "{expr}");
    assert!(declared.is_nullable() || all.logical_null_count() == 0, "{expr} is not nullable");
    let n = batch.num_rows();
    for offset in 0..n {
        let sliced = expr.evaluate_array(&batch.slice(offset, n - offset)).unwrap();
        assert_eq!(&sliced, &all.slice(offset, n - offset), "{expr} from row {offset}");
        let one = batch.slice(offset, 1);
        assert_eq!(&expr.evaluate_array(&one).unwrap(), &all.slice(offset, 1), "{expr}");
        let columns = (0..batch.num_columns())
            .map(|i| {
                let value = ScalarValue::try_from_array(&batch.column(i).unwrap(), offset);
                BatchColumn::constant(value.unwrap(), 1)
            })
            .collect();
        let constant = Batch::try_new(Arc::clone(batch.schema()), columns, 1).unwrap();
        assert_eq!(&expr.evaluate_array(&constant).unwrap(), &all.slice(offset, 1), "{expr}");
    }
    let reversed: Vec<u32> = (0..n as u32).rev().collect();
    let selected = batch.select(&Arc::new(Selection::rows(reversed.clone())));
    let expected =
        arrow::compute::take(&all, &arrow::array::UInt32Array::from(reversed), None).unwrap();
    assert_eq!(&expr.evaluate_array(&selected).unwrap(), &expected, "{expr} reversed");
    let empty = expr.evaluate_array(&batch.slice(0, 0)).unwrap();
    assert_eq!((empty.len(), empty.data_type()), (0, declared.data_type()), "{expr} of no rows");
    all
}

fn check(expr: Expr, batch: &Batch, expected: ArrayRef) {
    assert_eq!(&eval(&expr, batch), &expected, "{expr}");
}

fn error_of(expr: &Expr, batch: &Batch) -> String {
    expr.evaluate(batch).unwrap_err().to_string()
}

fn scalar_of(expr: &Expr) -> ScalarValue {
    let none = Batch::try_new(Arc::new(Schema::empty()), vec![], 3).unwrap();
    match expr.evaluate(&none).unwrap() {
        ColumnarValue::Scalar(value) => value,
        ColumnarValue::Array(_) => panic!("{expr} of literals is an array"),
    }
}

#[test]
fn arithmetic() {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let b = batch(vec![
        ("a", ints(&[Some(7), None, Some(-7), Some(i64::MAX)])),
        ("b", ints(&[Some(2), Some(3), None, Some(1)])),
    ]);
    check(bin(col(0), Plus, col(1)), &b, ints(&[Some(9), None, None, Some(i64::MIN)]));
    check(bin(col(0), Minus, lit(1i64)), &b, ints(&[Some(6), None, Some(-8), Some(i64::MAX - 1)]));
    check(bin(lit(2i64), Multiply, col(1)), &b, ints(&[Some(4), Some(6), None, Some(2)]));
    check(bin(col(0), Divide, col(1)), &b, ints(&[Some(3), None, None, Some(i64::MAX)]));
    check(bin(col(0), Modulo, lit(4i64)), &b, ints(&[Some(3), None, Some(-3), Some(3)]));
    check(bin(col(0), Plus, null(&DataType::Int64)), &b, ints(&[None; 4]));
    let zero = bin(col(0), Divide, lit(0i64));
    assert!(error_of(&zero, &b).contains("Divide by zero"));
    let f = batch(vec![("a", floats(&[Some(1.0), Some(0.0), None]))]);
    let by_zero = eval(&bin(col(0), Divide, lit(0.0)), &f);
    assert!(by_zero.as_primitive::<arrow::datatypes::Float64Type>().value(0).is_infinite());
    assert!(by_zero.as_primitive::<arrow::datatypes::Float64Type>().value(1).is_nan());
    assert_eq!(scalar_of(&bin(lit(1i64), Plus, lit(2i64))), ScalarValue::from(3i64));
}

#[test]
fn decimals_agree_with_arrow() {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let decimal = |p, s, v: &[Option<i128>]| -> ArrayRef {
        Arc::new(Decimal128Array::from(v.to_vec()).with_precision_and_scale(p, s).unwrap())
    };
    let wide = [Some(123_456_789_012_345), None, Some(-5), Some(10)];
    for (p2, s2) in [(12, 2), (18, 4), (20, 2), (30, 10), (38, 2)] {
        let b = batch(vec![
            ("a", decimal(15, 2, &wide)),
            ("b", decimal(p2, s2, &[Some(7), Some(3), Some(100_000_000_000), None])),
        ]);
        type Kernel = fn(
            &dyn arrow::array::Datum,
            &dyn arrow::array::Datum,
        ) -> std::result::Result<ArrayRef, arrow::error::ArrowError>;
        let kernels: [(Operator, Kernel); 5] = [
            (Plus, arrow::compute::kernels::numeric::add),
            (Minus, arrow::compute::kernels::numeric::sub),
            (Multiply, arrow::compute::kernels::numeric::mul),
            (Divide, arrow::compute::kernels::numeric::div),
            (Modulo, arrow::compute::kernels::numeric::rem),
        ];
        for (op, kernel) in kernels {
            let expected = kernel(&b.column(0).unwrap(), &b.column(1).unwrap()).unwrap();
            check(bin(col(0), op, col(1)), &b, expected);
        }
    }
}

#[test]
fn dates_times_and_intervals() {
    use Operator::{Minus, Plus};
    let dates = |v: &[Option<i32>]| -> ArrayRef { Arc::new(Date32Array::from(v.to_vec())) };
    let b = batch(vec![
        ("a", dates(&[Some(10), None, Some(0)])),
        ("b", dates(&[Some(3), Some(1), Some(40)])),
    ]);
    check(bin(col(0), Minus, col(1)), &b, ints(&[Some(7), None, Some(-40)]));
    let month = ScalarValue::new_interval_mdn(1, 0, 0);
    check(bin(col(0), Plus, lit(month)), &b, dates(&[Some(41), None, Some(31)]));
    let hour = 3_600_000_000i64;
    let times: ArrayRef =
        Arc::new(arrow::array::Time64MicrosecondArray::from(vec![Some(23 * hour), None]));
    let b = batch(vec![("a", times)]);
    let two_hours = ScalarValue::new_interval_mdn(5, 5, 2 * 3_600_000_000_000);
    let later: ArrayRef =
        Arc::new(arrow::array::Time64MicrosecondArray::from(vec![Some(hour), None]));
    check(bin(col(0), Plus, lit(two_hours.clone())), &b, Arc::clone(&later));
    check(bin(lit(two_hours), Plus, col(0)), &b, later);
}

#[test]
fn comparisons_of_integers_and_strings() {
    let b = batch(vec![
        ("a", ints(&[Some(1), Some(2), None, None])),
        ("b", ints(&[Some(1), Some(3), Some(3), None])),
    ]);
    let (t, f) = (Some(true), Some(false));
    check(bin(col(0), Operator::Eq, col(1)), &b, bools(&[t, f, None, None]));
    check(bin(col(0), Operator::NotEq, col(1)), &b, bools(&[f, t, None, None]));
    check(bin(col(0), Operator::Lt, col(1)), &b, bools(&[f, t, None, None]));
    check(bin(lit(2i64), Operator::GtEq, col(1)), &b, bools(&[t, f, f, None]));
    check(bin(col(0), Operator::IsDistinctFrom, col(1)), &b, bools(&[f, t, t, f]));
    check(bin(col(0), Operator::IsNotDistinctFrom, col(1)), &b, bools(&[t, f, f, t]));
    check(bin(col(0), Operator::Eq, null(&DataType::Int64)), &b, bools(&[None; 4]));
    check(bin(col(0), Operator::Eq, lit(ScalarValue::Null)), &b, bools(&[None; 4]));
    check(
        bin(col(0), Operator::IsNotDistinctFrom, lit(ScalarValue::Null)),
        &b,
        bools(&[f, f, t, t]),
    );
    let s = batch(vec![("a", strs(&[Some("x"), None, Some("")]))]);
    check(bin(col(0), Operator::Gt, lit("a")), &s, bools(&[t, None, f]));
}

#[test]
fn floats_compare_as_sql_wants() {
    let nan = f64::NAN;
    let b = batch(vec![
        ("a", floats(&[Some(-0.0), Some(nan), Some(nan), Some(1.0), None, None])),
        ("b", floats(&[Some(0.0), Some(-nan), Some(f64::INFINITY), Some(nan), Some(1.0), None])),
    ]);
    let (t, f, n) = (Some(true), Some(false), None);
    check(bin(col(0), Operator::Eq, col(1)), &b, bools(&[t, t, f, f, n, n]));
    check(bin(col(0), Operator::NotEq, col(1)), &b, bools(&[f, f, t, t, n, n]));
    check(bin(col(0), Operator::Lt, col(1)), &b, bools(&[f, f, f, t, n, n]));
    check(bin(col(0), Operator::LtEq, col(1)), &b, bools(&[t, t, f, t, n, n]));
    check(bin(col(0), Operator::Gt, col(1)), &b, bools(&[f, f, t, f, n, n]));
    check(bin(col(0), Operator::GtEq, col(1)), &b, bools(&[t, t, t, f, n, n]));
    check(bin(col(0), Operator::IsDistinctFrom, col(1)), &b, bools(&[f, f, t, t, t, f]));
    check(bin(col(0), Operator::IsNotDistinctFrom, col(1)), &b, bools(&[t, t, f, f, f, t]));
    check(bin(col(0), Operator::Eq, lit(0.0)), &b, bools(&[t, f, f, f, n, n]));
    check(bin(col(0), Operator::IsDistinctFrom, lit(nan)), &b, bools(&[t, f, f, t, t, t]));
    let in_list = Arc::new(InListExpr::new(col(0), vec![lit(0.0), lit(nan)], false));
    check(in_list, &b, bools(&[t, t, t, f, n, n]));
}

#[test]
fn dictionaries_runs_and_narrowed_decimals_are_compared_as_they_are() {
    let (t, f, n) = (Some(true), Some(false), None);
    let codes: DictionaryArray<Int32Type> =
        vec![Some("x"), None, Some("y"), Some("x")].into_iter().collect();
    let field = |t: &DataType| Arc::new(Schema::new(vec![Field::new("a", t.clone(), true)]));
    let utf8 = DataType::Utf8;
    let encoded = BatchColumn::encoded(Arc::new(codes), &utf8);
    let b = Batch::try_new(field(&utf8), vec![encoded], 4).unwrap();
    let before = planish_batch::counters::gathered_bytes();
    let equal = bin(col(0), Operator::Eq, lit("x"));
    assert_eq!(&equal.evaluate_array(&b).unwrap(), &bools(&[t, n, f, t]));
    let like: Expr = Arc::new(LikeExpr::new(LikeKind::Like, false, col(0), lit("%y")));
    assert_eq!(&like.evaluate_array(&b).unwrap(), &bools(&[f, n, t, f]));
    let in_list: Expr = Arc::new(InListExpr::new(col(0), vec![lit("y"), lit("z")], true));
    assert_eq!(&in_list.evaluate_array(&b).unwrap(), &bools(&[t, n, f, t]));
    assert_eq!(planish_batch::counters::gathered_bytes(), before, "nothing was decoded");

    let decimal = DataType::Decimal128(15, 2);
    let narrowed = BatchColumn::encoded(ints(&[Some(100), None, Some(250)]), &decimal);
    let b = Batch::try_new(field(&decimal), vec![narrowed], 3).unwrap();
    let two = lit(ScalarValue::Decimal128(Some(200), 15, 2));
    let greater = bin(col(0), Operator::Gt, two);
    assert_eq!(&greater.evaluate_array(&b).unwrap(), &bools(&[f, n, t]));
    assert_eq!(planish_batch::counters::gathered_bytes(), before, "nothing was decoded");
}

#[test]
fn and_or_are_three_valued() {
    let (t, f, n) = (Some(true), Some(false), None);
    let (mut a, mut b) = (vec![], vec![]);
    for x in [t, f, n] {
        for y in [t, f, n] {
            a.push(x);
            b.push(y);
        }
    }
    let both = batch(vec![("a", bools(&a)), ("b", bools(&b))]);
    check(bin(col(0), Operator::And, col(1)), &both, bools(&[t, f, n, f, f, f, n, f, n]));
    check(bin(col(0), Operator::Or, col(1)), &both, bools(&[t, t, t, t, f, n, t, n, n]));
    for scalar in [t, f, n] {
        for op in [Operator::And, Operator::Or] {
            let right = Arc::new(BooleanArray::from(vec![scalar; 9]));
            let arrays = batch(vec![("a", bools(&a)), ("b", right)]);
            let expected = eval(&bin(col(0), op, col(1)), &arrays);
            let constant = lit(ScalarValue::Boolean(scalar));
            check(bin(col(0), op, Arc::clone(&constant)), &arrays, Arc::clone(&expected));
            check(bin(constant, op, col(0)), &arrays, expected);
        }
    }
}

#[test]
fn a_guard_is_evaluated_first() {
    use Operator::{And, Divide, Eq, Gt, NotEq, Or};
    let x = ints(&[Some(0), Some(5), None, Some(50), Some(0), Some(7)]);
    let b = batch(vec![("a", x)]);
    let quotient = || bin(lit(100i64), Divide, col(0));
    let (t, f, n) = (Some(true), Some(false), None);
    let and = bin(bin(col(0), NotEq, lit(0i64)), And, bin(quotient(), Gt, lit(3i64)));
    check(Arc::clone(&and), &b, bools(&[f, t, n, f, f, t]));
    let or = bin(bin(col(0), Eq, lit(0i64)), Or, bin(quotient(), Gt, lit(3i64)));
    check(or, &b, bools(&[t, t, n, f, t, t]));
    // A guard that is a constant, in front and behind.
    let never = bin(lit(false), And, bin(quotient(), Gt, lit(3i64)));
    check(never, &b, bools(&[f; 6]));
    // A guard far out in a chain.
    let chain = bin(and, And, bin(quotient(), NotEq, lit(20i64)));
    check(chain, &b, bools(&[f, f, n, f, f, t]));
    let case: Expr = Arc::new(
        CaseExpr::try_new(None, vec![(bin(col(0), NotEq, lit(0i64)), quotient())], None).unwrap(),
    );
    check(case, &b, ints(&[None, Some(20), None, Some(2), None, Some(14)]));
    let else_: Expr = Arc::new(
        CaseExpr::try_new(None, vec![(bin(col(0), Eq, lit(0i64)), lit(-1i64))], Some(quotient()))
            .unwrap(),
    );
    check(else_, &b, ints(&[Some(-1), Some(20), None, Some(2), Some(-1), Some(14)]));
    let zero_is_null: Expr = Arc::new(
        CaseExpr::try_new(
            Some(col(0)),
            vec![(lit(0i64), lit(0i64)), (lit(5i64), lit(1i64))],
            Some(quotient()),
        )
        .unwrap(),
    );
    check(zero_is_null, &b, ints(&[Some(0), Some(1), None, Some(2), Some(0), Some(14)]));
    let first =
        batch(vec![("a", ints(&[Some(1), None, None])), ("b", ints(&[Some(0), Some(4), None]))]);
    let coalesce: Expr = Arc::new(
        CoalesceExpr::try_new(vec![col(0), bin(lit(100i64), Divide, col(1)), lit(9i64)]).unwrap(),
    );
    check(coalesce, &first, ints(&[Some(1), Some(25), Some(9)]));
}

#[test]
fn a_cast_behind_a_guard_sees_no_dirt() {
    let b = batch(vec![("a", strs(&[Some("12"), Some("x1"), None, Some("7")]))]);
    let cast = || -> Expr { Arc::new(CastExpr::new(col(0), DataType::Int64)) };
    let message = error_of(&cast(), &b);
    assert!(message.contains("x1") && message.contains("Int64"), "{message}");
    let digits = || bin(col(0), Operator::RegexMatch, lit("^[0-9]+$"));
    let guarded = bin(digits(), Operator::And, bin(cast(), Operator::Gt, lit(10i64)));
    check(guarded, &b, bools(&[Some(true), Some(false), None, Some(false)]));
    let case: Expr = Arc::new(CaseExpr::try_new(None, vec![(digits(), cast())], None).unwrap());
    check(case, &b, ints(&[Some(12), None, None, Some(7)]));
    let tried: Expr = Arc::new(TryCastExpr::new(col(0), DataType::Int64));
    check(tried, &b, ints(&[Some(12), None, None, Some(7)]));
    // The dirt is in the dictionary, but in no row.
    let codes = arrow::array::Int32Array::from(vec![Some(0), None, Some(0)]);
    let dictionary = DictionaryArray::new(codes, strs(&[Some("12"), Some("x1")]));
    let b = batch(vec![("a", Arc::new(dictionary))]);
    check(cast(), &b, ints(&[Some(12), None, Some(12)]));
}

#[test]
fn case_forms() {
    let b = batch(vec![
        ("a", ints(&[Some(1), Some(2), None, Some(3)])),
        ("b", strs(&[Some("p"), Some("q"), Some("r"), None])),
    ]);
    let case = |operand, branches, otherwise| -> Expr {
        Arc::new(CaseExpr::try_new(operand, branches, otherwise).unwrap())
    };
    let is = |v: i64| bin(col(0), Operator::Eq, lit(v));
    check(
        case(None, vec![(is(1), lit("one")), (is(2), col(1))], Some(lit("many"))),
        &b,
        strs(&[Some("one"), Some("q"), Some("many"), Some("many")]),
    );
    check(
        case(None, vec![(is(1), lit("one")), (is(2), lit("two"))], None),
        &b,
        strs(&[Some("one"), Some("two"), None, None]),
    );
    check(case(None, vec![(lit(true), col(1))], Some(lit("z"))), &b, b.column(1).unwrap());
    check(
        case(Some(bin(col(0), Operator::Plus, lit(1i64))), vec![(lit(2i64), col(1))], None),
        &b,
        strs(&[Some("p"), None, None, None]),
    );
    check(
        case(Some(col(0)), vec![(null(&DataType::Int64), lit("null"))], Some(lit("other"))),
        &b,
        strs(&[Some("other"); 4]),
    );
    let literal = case(None, vec![(lit(false), lit(1i64))], Some(lit(2i64)));
    assert_eq!(scalar_of(&literal), ScalarValue::from(2i64));
}

#[test]
fn case_nullability_is_the_logical_plans() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, false),
    ]);
    let nullable = |branches, otherwise| {
        CaseExpr::try_new(None, branches, otherwise).unwrap().nullable(&schema).unwrap()
    };
    let not_null: Expr = Arc::new(IsNullExpr::is_not_null(col(0)));
    let positive = bin(col(0), Operator::Gt, lit(0i64));
    assert!(!nullable(vec![(Arc::clone(&not_null), col(0))], Some(col(1))));
    assert!(!nullable(vec![(positive, col(0))], Some(col(1))));
    assert!(nullable(vec![(bin(col(1), Operator::Gt, lit(0i64)), col(0))], Some(col(1))));
    assert!(nullable(vec![(not_null, col(0))], None));
}

#[test]
fn in_lists() {
    let b = batch(vec![("a", ints(&[Some(1), Some(2), None]))]);
    let (t, f, n) = (Some(true), Some(false), None);
    let expr = |list: Vec<Expr>, negated| Arc::new(InListExpr::new(col(0), list, negated));
    let nothing = || null(&DataType::Int64);
    check(expr(vec![lit(1i64), lit(5i64)], false), &b, bools(&[t, f, n]));
    check(expr(vec![lit(1i64), lit(5i64)], true), &b, bools(&[f, t, n]));
    check(expr(vec![lit(1i64), nothing()], false), &b, bools(&[t, n, n]));
    check(expr(vec![lit(1i64), nothing()], true), &b, bools(&[f, n, n]));
    check(expr(vec![nothing()], false), &b, bools(&[n, n, n]));
    check(expr(vec![], false), &b, bools(&[f, f, f]));
    check(
        expr(vec![lit(1i64), bin(col(0), Operator::Plus, lit(0i64))], false),
        &b,
        bools(&[t, t, n]),
    );
    check(
        expr((0..100i64).filter(|i| i % 2 == 0).map(lit).collect(), false),
        &b,
        bools(&[f, t, n]),
    );
    let views: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("a string longer than twelve bytes"),
        Some("short"),
        None,
    ]));
    let v = batch(vec![("a", views)]);
    let view = |s: &str| lit(ScalarValue::Utf8View(Some(s.to_owned())));
    let many = (0..10).map(|i| view(&i.to_string())).chain([view("short")]).collect();
    check(Arc::new(InListExpr::new(col(0), many, false)), &v, bools(&[f, t, n]));
}

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

#[test]
fn bits() {
    use Operator::{BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, BitwiseXor};
    let b = batch(vec![("a", ints(&[Some(6), None])), ("b", ints(&[Some(3), Some(1)]))]);
    check(bin(col(0), BitwiseAnd, col(1)), &b, ints(&[Some(2), None]));
    check(bin(col(0), BitwiseOr, lit(1i64)), &b, ints(&[Some(7), None]));
    check(bin(lit(1i64), BitwiseXor, col(1)), &b, ints(&[Some(2), Some(0)]));
    check(bin(col(0), BitwiseShiftLeft, lit(2i64)), &b, ints(&[Some(24), None]));
    check(bin(col(0), BitwiseShiftRight, lit(1i64)), &b, ints(&[Some(3), None]));
}

#[test]
fn tests_of_null_and_truth() {
    let (t, f) = (Some(true), Some(false));
    let b = batch(vec![("a", bools(&[t, f, None]))]);
    check(Arc::new(IsNullExpr::is_null(col(0))), &b, bools(&[f, f, t]));
    check(Arc::new(IsNullExpr::is_not_null(col(0))), &b, bools(&[t, t, f]));
    check(Arc::new(IsBoolExpr::new(col(0), true, false)), &b, bools(&[t, f, f]));
    check(Arc::new(IsBoolExpr::new(col(0), true, true)), &b, bools(&[f, t, t]));
    check(Arc::new(IsBoolExpr::new(col(0), false, false)), &b, bools(&[f, t, f]));
    check(Arc::new(IsBoolExpr::new(col(0), false, true)), &b, bools(&[t, f, t]));
    check(Arc::new(NotExpr::new(col(0))), &b, bools(&[f, t, None]));
    let n = batch(vec![("a", ints(&[Some(1), None, Some(i64::MIN)]))]);
    check(Arc::new(NegativeExpr::new(col(0))), &n, ints(&[Some(-1), None, Some(i64::MIN)]));
    let between = |negated| Arc::new(BetweenExpr::new(col(0), negated, lit(0i64), lit(5i64)));
    check(between(false), &n, bools(&[t, None, f]));
    check(between(true), &n, bools(&[f, None, t]));
}

fn function(name: &str, args: Vec<Expr>, schema: &SchemaRef) -> Expr {
    let fun = datafusion_functions::all_default_functions()
        .into_iter()
        .find(|f| f.name() == name)
        .unwrap();
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, schema, options).unwrap())
}

#[test]
fn scalar_functions() {
    let b = batch(vec![("a", strs(&[Some("x"), None, Some("yz")]))]);
    let upper = function("upper", vec![col(0)], b.schema());
    check(Arc::clone(&upper), &b, strs(&[Some("X"), None, Some("YZ")]));
    assert!(!can_fail(&upper, b.schema()));
    assert_eq!(upper.to_string(), "upper(a@0)");
    let constant = function("upper", vec![lit("q")], b.schema());
    assert_eq!(scalar_of(&constant), ScalarValue::from("Q"));
    let random = function("random", vec![], b.schema());
    let values = random.evaluate_array(&b).unwrap();
    assert_eq!(values.len(), 3);
    assert_ne!(values.slice(0, 1).as_ref(), values.slice(1, 1).as_ref());
    assert!(random.is_volatile_node());
}

#[test]
fn an_error_of_no_row_is_no_error() {
    let b = batch(vec![("a", ints(&[Some(1)]))]);
    let fails = bin(lit(1i64), Operator::Divide, lit(0i64));
    assert!(fails.evaluate(&b).is_err());
    assert_eq!(fails.evaluate_array(&b.slice(0, 0)).unwrap().len(), 0);
}

#[test]
fn what_can_fail() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Float64, true),
        Field::new("d", DataType::Decimal128(30, 2), true),
    ]);
    let fails = |expr: Expr| can_fail(&expr, &schema);
    let cast = |e, t| -> Expr { Arc::new(CastExpr::new(e, t)) };
    assert!(fails(bin(lit(1i64), Operator::Divide, col(0))));
    assert!(!fails(bin(col(0), Operator::Divide, lit(2i64))));
    assert!(fails(bin(col(0), Operator::Divide, lit(-1i64))));
    assert!(!fails(bin(col(0), Operator::Modulo, lit(-1i64))));
    assert!(!fails(bin(col(0), Operator::Plus, col(0))));
    assert!(!fails(bin(col(2), Operator::Divide, col(2))));
    assert!(fails(bin(col(3), Operator::Multiply, col(3))));
    assert!(!fails(bin(col(3), Operator::Plus, col(3))));
    assert!(!fails(bin(col(0), Operator::Lt, lit(1i64))));
    assert!(fails(cast(col(1), DataType::Int64)));
    assert!(fails(cast(col(0), DataType::Int32)));
    assert!(!fails(cast(col(0), DataType::Utf8)));
    assert!(!fails(cast(col(0), DataType::Decimal128(20, 0))));
    assert!(!fails(Arc::new(TryCastExpr::new(col(1), DataType::Int64))));
    assert!(!fails(bin(col(1), Operator::RegexMatch, lit("^a"))));
    assert!(fails(bin(col(1), Operator::RegexMatch, lit("("))));
}

/// Every cast that is said to be safe is tried with the extremes of its source.
#[test]
fn casts_said_to_be_safe_are() {
    let sources: Vec<ArrayRef> = vec![
        Arc::new(arrow::array::Int8Array::from(vec![i8::MIN, i8::MAX])),
        Arc::new(arrow::array::UInt8Array::from(vec![u8::MAX])),
        Arc::new(Int32Array::from(vec![i32::MIN, i32::MAX])),
        ints(&[Some(i64::MIN), Some(i64::MAX)]),
        Arc::new(arrow::array::UInt64Array::from(vec![u64::MAX])),
        floats(&[Some(f64::MAX), Some(f64::NAN), Some(f64::NEG_INFINITY)]),
        bools(&[Some(true), Some(false)]),
        strs(&[Some("zz")]),
        Arc::new(Date32Array::from(vec![i32::MIN / 2, i32::MAX / 2])),
        Arc::new(
            Decimal128Array::from(vec![99_995, -99_995]).with_precision_and_scale(5, 2).unwrap(),
        ),
        Arc::new(arrow::array::TimestampSecondArray::from(vec![i64::MAX / 2])),
        Arc::new(arrow::array::TimestampNanosecondArray::from(vec![i64::MAX])),
    ];
    let mut targets: Vec<DataType> = sources.iter().map(|s| s.data_type().clone()).collect();
    targets.extend([
        DataType::Decimal128(20, 0),
        DataType::Decimal128(4, 1),
        DataType::Decimal128(5, 1),
        DataType::Decimal128(38, 30),
        DataType::Utf8View,
        DataType::Float32,
        DataType::Int16,
    ]);
    for source in &sources {
        for target in &targets {
            let b = batch(vec![("a", Arc::clone(source))]);
            let cast: Expr = Arc::new(CastExpr::new(col(0), target.clone()));
            if !can_fail(&cast, b.schema()) {
                let value = cast.evaluate_array(&b);
                assert!(value.is_ok(), "{} to {target}: {value:?}", source.data_type());
            }
        }
    }
}

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

/// Random three-valued chains, with and without the short cut, give equal rows.
#[test]
fn sparse_and_dense_right_sides_agree() {
    let rows = 100;
    for step in [1, 2, 7, 50] {
        let a = ints(&(0..rows).map(|i| (i % 11 != 3).then_some(i % step)).collect::<Vec<_>>());
        let b = ints(&(0..rows).map(|i| (i % 13 != 5).then_some(i)).collect::<Vec<_>>());
        let batch = batch(vec![("a", a), ("b", b)]);
        for op in [Operator::And, Operator::Or] {
            let left = bin(col(0), Operator::Eq, lit(0i64));
            let right = bin(col(1), Operator::Lt, lit(60i64));
            let whole = |e: &Expr| e.evaluate_array(&batch).unwrap().as_boolean().clone();
            let expected = match op {
                Operator::And => arrow::compute::and_kleene(&whole(&left), &whole(&right)),
                _ => arrow::compute::or_kleene(&whole(&left), &whole(&right)),
            };
            let expected: ArrayRef = Arc::new(expected.unwrap());
            check(bin(Arc::clone(&left), op, Arc::clone(&right)), &batch, Arc::clone(&expected));
            // The same with a right side that can fail, hence is never evaluated densely.
            let one = bin(lit(1i64), Operator::Divide, bin(col(1), Operator::Plus, lit(1i64)));
            let risky = bin(one, Operator::GtEq, lit(0i64));
            let risky = bin(right, Operator::And, risky);
            check(bin(left, op, risky), &batch, expected);
        }
    }
}
