//! Batches, expressions over them, and the check that their form does not matter.

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Column as BatchColumn;
use planish_batch::{Batch, Selection};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::*;
use planish_expr::udf::ScalarFunctionExpr;
use std::sync::Arc;

pub(crate) type Expr = PhysicalExprRef;

pub(crate) fn batch(columns: Vec<(&str, ArrayRef)>) -> Batch {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    Batch::from_record_batch(&batch)
}

pub(crate) fn col(i: usize) -> Expr {
    Arc::new(Column::new(["a", "b", "c", "d"][i], i))
}

pub(crate) fn bin(l: Expr, op: Operator, r: Expr) -> Expr {
    Arc::new(BinaryExpr::new(l, op, r))
}

pub(crate) fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(crate) fn strs(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

pub(crate) fn bools(values: &[Option<bool>]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

pub(crate) fn floats(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

pub(crate) fn null(data_type: &DataType) -> Expr {
    lit(ScalarValue::try_from(data_type).unwrap())
}

/// The value of `expr`; checked to be the same over slices, over selections, over batches of one
/// row, and over constant columns; and no error over no rows.
pub(crate) fn eval(expr: &Expr, batch: &Batch) -> ArrayRef {
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

pub(crate) fn check(expr: Expr, batch: &Batch, expected: ArrayRef) {
    assert_eq!(&eval(&expr, batch), &expected, "{expr}");
}

pub(crate) fn error_of(expr: &Expr, batch: &Batch) -> String {
    expr.evaluate(batch).unwrap_err().to_string()
}

pub(crate) fn scalar_of(expr: &Expr) -> ScalarValue {
    let none = Batch::try_new(Arc::new(Schema::empty()), vec![], 3).unwrap();
    match expr.evaluate(&none).unwrap() {
        ColumnarValue::Scalar(value) => value,
        ColumnarValue::Array(_) => panic!("{expr} of literals is an array"),
    }
}

pub(crate) fn function(name: &str, args: Vec<Expr>, schema: &SchemaRef) -> Expr {
    let fun = datafusion_functions::all_default_functions()
        .into_iter()
        .find(|f| f.name() == name)
        .unwrap();
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(fun, args, schema, options).unwrap())
}
