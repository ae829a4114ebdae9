//! The ten hottest shapes of expressions: how many rows of each are evaluated per second, on one
//! thread, over batches of 8192 rows of which one value in sixteen is NULL.
//!
//! `cargo bench --workspace --bench expressions`; a number after `--` is the milliseconds that
//! each shape runs for (default 500). The best of five rounds counts.
#![allow(clippy::unwrap_used, clippy::panic)] // A benchmark counts as a test.
#![allow(clippy::print_stdout, reason = "its output is a table")]

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, StringViewArray,
};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::*;
use planish_expr::udf::ScalarFunctionExpr;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 8192;
const ROUNDS: u32 = 5;

fn main() {
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let per_round = Duration::from_millis(given.unwrap_or(500)) / ROUNDS;
    let batch = batch();
    println!("| shape | million rows/s |\n| --- | --- |");
    for (shape, expr) in shapes(batch.schema()) {
        let rate = (0..ROUNDS).map(|_| round(&expr, &batch, per_round)).fold(0.0, f64::max);
        println!("| {shape} | {:.0} |", rate / 1e6);
    }
}

/// Rows per second of one round.
fn round(expr: &PhysicalExprRef, batch: &Batch, at_least: Duration) -> f64 {
    let start = Instant::now();
    let mut rows = 0;
    loop {
        black_box(expr.evaluate(black_box(batch)).unwrap());
        rows += batch.num_rows();
        let elapsed = start.elapsed();
        if elapsed >= at_least {
            return rows as f64 / elapsed.as_secs_f64();
        }
    }
}

fn batch() -> Batch {
    let row = |i: usize, n: u64| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) % n;
    let valid = |i: usize| !i.is_multiple_of(16);
    let ints = |n: u64| -> ArrayRef {
        Arc::new((0..ROWS).map(|i| valid(i).then(|| row(i, n) as i64)).collect::<Int64Array>())
    };
    let decimals = |n: u64| -> ArrayRef {
        let values = (0..ROWS).map(|i| valid(i).then(|| i128::from(row(i, n))));
        let array = Decimal128Array::from_iter(values);
        Arc::new(array.with_precision_and_scale(15, 2).unwrap())
    };
    let floats = (0..ROWS).map(|i| valid(i).then(|| row(i, 1000) as f64 / 8.0));
    let days = (0..ROWS).map(|i| valid(i).then(|| 8000 + row(i, 2500) as i32));
    let words = ["AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "REG AIR", "a longer text, not inlined"];
    let text = (0..ROWS).map(|i| valid(i).then(|| words[row(i, 7) as usize]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", ints(1000)),
        ("b", ints(50)),
        ("price", decimals(10_000_000)),
        ("discount", decimals(10)),
        ("f", Arc::new(floats.collect::<Float64Array>())),
        ("day", Arc::new(days.collect::<Date32Array>())),
        ("mode", Arc::new(text.collect::<StringViewArray>())),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Batch::from_arrays(Arc::new(Schema::new(fields)), arrays, ROWS).unwrap()
}

fn shapes(schema: &SchemaRef) -> Vec<(&'static str, PhysicalExprRef)> {
    use Operator::{And, Eq, Gt, GtEq, Lt, Minus, Multiply, Plus};
    let col = |name: &str| -> PhysicalExprRef {
        Arc::new(Column::new_with_schema(name, schema).unwrap())
    };
    let bin = |l, op, r| -> PhysicalExprRef { Arc::new(BinaryExpr::new(l, op, r)) };
    let day = |n| lit(ScalarValue::Date32(Some(n)));
    let text = |s: &str| lit(ScalarValue::Utf8View(Some(s.to_owned())));
    let one = lit(ScalarValue::Decimal128(Some(100), 15, 2));
    let air = bin(col("mode"), Eq, text("AIR"));
    let case =
        CaseExpr::try_new(None, vec![(Arc::clone(&air), col("a"))], Some(lit(0i64))).unwrap();
    let like = LikeExpr::new(LikeKind::Like, false, col("mode"), text("%AIR%"));
    let list = ["AIR", "MAIL", "SHIP"].map(text).to_vec();
    vec![
        ("a > 500", bin(col("a"), Gt, lit(500i64))),
        ("a + b", bin(col("a"), Plus, col("b"))),
        ("f * 2.5", bin(col("f"), Multiply, lit(2.5f64))),
        (
            "price * (1 - discount), decimals",
            bin(col("price"), Multiply, bin(one, Minus, col("discount"))),
        ),
        (
            "day >= DATE AND day < DATE",
            bin(bin(col("day"), GtEq, day(9000)), And, bin(col("day"), Lt, day(9365))),
        ),
        ("mode = 'AIR'", air),
        ("mode LIKE '%AIR%'", Arc::new(like)),
        ("mode IN ('AIR', 'MAIL', 'SHIP')", Arc::new(InListExpr::new(col("mode"), list, false))),
        ("CASE WHEN mode = 'AIR' THEN a ELSE 0 END", Arc::new(case)),
        ("date_part('year', day)", function("date_part", vec![text("year"), col("day")], schema)),
    ]
}

fn function(name: &str, args: Vec<PhysicalExprRef>, schema: &SchemaRef) -> PhysicalExprRef {
    let all = datafusion_functions::all_default_functions();
    let fun = all.into_iter().find(|f| f.name() == name).unwrap();
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, schema, options).unwrap())
}
