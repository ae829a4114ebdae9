//! What bounds say: where a comparison may be true and where it may be false.

use super::super::statistics::ColumnBounds;
use crate::adapt::{widen, widens};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{CastExpr, Column};
use std::sync::Arc;

/// Bounds of the row groups of one file, in the table's columns and types.
pub(crate) trait RowGroupBounds {
    /// The table's columns.
    fn schema(&self) -> &Schema;

    /// Rows of each row group.
    fn rows(&self) -> &[u64];

    /// The bounds of table column `column`.
    ///
    /// # Errors
    /// When they cannot be decoded.
    fn column(&self, column: usize) -> Result<Option<TableColumnBounds>>;
}

/// Bounds of a table column in each row group of a file.
pub(crate) enum TableColumnBounds {
    /// The column is in the file: bounds (in the table's type) and NULL counts.
    Known(ArrayRef, ArrayRef, Arc<ColumnBounds>),
    /// It is not: NULL everywhere.
    AllNull,
}

impl TableColumnBounds {
    /// The bounds of a column without NULL, whose least and greatest values are known.
    pub(crate) fn exact(min: ArrayRef, max: ArrayRef) -> Self {
        let groups = min.len();
        let stored = ColumnBounds {
            min: Arc::clone(&min),
            max: Arc::clone(&max),
            min_exact: vec![true; groups],
            max_exact: vec![true; groups],
            null_count: vec![Some(0); groups],
            bytes: vec![0; groups],
        };
        TableColumnBounds::Known(min, max, Arc::new(stored))
    }
}

/// What rows of each row group may make of an expression.
#[derive(Clone, Debug)]
pub(super) struct Possible {
    pub(super) r#true: BooleanBuffer,
    pub(super) r#false: BooleanBuffer,
}

impl Possible {
    pub(super) fn anything(groups: usize) -> Self {
        Possible { r#true: BooleanBuffer::new_set(groups), r#false: BooleanBuffer::new_set(groups) }
    }

    pub(super) fn constant(value: Option<bool>, groups: usize) -> Self {
        let all = |set: bool| {
            if set { BooleanBuffer::new_set(groups) } else { BooleanBuffer::new_unset(groups) }
        };
        Possible { r#true: all(value == Some(true)), r#false: all(value == Some(false)) }
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Possible { r#true: &self.r#true & &other.r#true, r#false: &self.r#false | &other.r#false }
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Possible { r#true: &self.r#true | &other.r#true, r#false: &self.r#false & &other.r#false }
    }

    pub(super) fn not(self) -> Self {
        Possible { r#true: self.r#false, r#false: self.r#true }
    }

    /// Where all rows are NULL, nothing is true or false.
    pub(super) fn unless_all_null(self, stored: &ColumnBounds, rows: &[u64]) -> Self {
        let some = BooleanBuffer::collect_bool(rows.len(), |group| {
            stored.null_count[group] != Some(rows[group])
        });
        Possible { r#true: &self.r#true & &some, r#false: &self.r#false & &some }
    }
}

/// A column, or a widening cast of one: an expression that bounds are known of.
pub(super) struct Operand<'a> {
    pub(super) column: usize,
    cast: Option<&'a DataType>,
}

impl<'a> Operand<'a> {
    pub(super) fn of(expr: &'a PhysicalExprRef, schema: &Schema) -> Option<Self> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Some(Operand { column: column.index(), cast: None });
        }
        let cast = expr.downcast_ref::<CastExpr>()?;
        let column = cast.expr().downcast_ref::<Column>()?.index();
        let from = schema.fields().get(column)?.data_type();
        let to = cast.cast_type();
        (from == to || widens(from, to)).then_some(Operand { column, cast: Some(to) })
    }

    pub(super) fn bounds(&self, bounds: &dyn RowGroupBounds) -> Result<Option<TableColumnBounds>> {
        let known = bounds.column(self.column)?;
        let Some(to) = self.cast else { return Ok(known) };
        Ok(match known {
            Some(TableColumnBounds::Known(min, max, stored)) => {
                match (widen(&min, to), widen(&max, to)) {
                    (Ok(min), Ok(max)) => Some(TableColumnBounds::Known(min, max, stored)),
                    _ => None,
                }
            }
            other => other,
        })
    }
}

/// By bounds alone; `None` when types do not fit.
pub(super) fn compare_bounds(
    min: &ArrayRef,
    max: &ArrayRef,
    op: Operator,
    value: &ScalarValue,
) -> Result<Option<Possible>> {
    if min.data_type().is_floating() {
        return Ok(compare_floats(min, max, op, value));
    }
    if value.data_type() != *min.data_type() || min.data_type().is_nested() {
        return Ok(None);
    }
    let value = Scalar::new(value.to_array_of_size(1)?);
    // An unknown bound excludes nothing.
    let may = |known: BooleanArray| {
        BooleanBuffer::collect_bool(known.len(), |i| known.is_null(i) || known.value(i))
    };
    Ok(Some(match op {
        Operator::Eq | Operator::NotEq => {
            let inside = &may(cmp::lt_eq(min, &value)?) & &may(cmp::gt_eq(max, &value)?);
            let other = &may(cmp::neq(min, &value)?) | &may(cmp::neq(max, &value)?);
            let equal = Possible { r#true: inside, r#false: other };
            if op == Operator::Eq { equal } else { equal.not() }
        }
        Operator::Lt => {
            Possible { r#true: may(cmp::lt(min, &value)?), r#false: may(cmp::gt_eq(max, &value)?) }
        }
        Operator::LtEq => {
            Possible { r#true: may(cmp::lt_eq(min, &value)?), r#false: may(cmp::gt(max, &value)?) }
        }
        Operator::Gt => {
            Possible { r#true: may(cmp::gt(max, &value)?), r#false: may(cmp::lt_eq(min, &value)?) }
        }
        Operator::GtEq => {
            Possible { r#true: may(cmp::gt_eq(max, &value)?), r#false: may(cmp::lt(min, &value)?) }
        }
        _ => return Ok(None),
    }))
}

/// Floats: bounds leave out NaNs, which are greater than everything, so only an upper limit
/// excludes by the least value. Compared so that -0.0 equals 0.0.
fn compare_floats(
    min: &ArrayRef,
    max: &ArrayRef,
    op: Operator,
    value: &ScalarValue,
) -> Option<Possible> {
    let value = match value {
        ScalarValue::Float16(Some(v)) => f64::from(*v),
        ScalarValue::Float32(Some(v)) => f64::from(*v),
        ScalarValue::Float64(Some(v)) => *v,
        _ => return None,
    };
    if value.is_nan() {
        return None;
    }
    let by = |test: &dyn Fn(Option<f64>, Option<f64>) -> bool| {
        BooleanBuffer::collect_bool(min.len(), |i| test(float_at(min, i), float_at(max, i)))
    };
    let all = BooleanBuffer::new_set(min.len());
    let below = by(&|min, _| min.is_none_or(|min| min < value));
    let up_to = by(&|min, _| min.is_none_or(|min| min <= value));
    let inside =
        by(&|min, max| min.is_none_or(|min| min <= value) && max.is_none_or(|max| max >= value));
    Some(match op {
        Operator::Eq => Possible { r#true: inside, r#false: all },
        Operator::NotEq => Possible { r#true: all, r#false: inside },
        Operator::Lt => Possible { r#true: below, r#false: all },
        Operator::LtEq => Possible { r#true: up_to, r#false: all },
        Operator::Gt => Possible { r#true: all, r#false: up_to },
        Operator::GtEq => Possible { r#true: all, r#false: below },
        _ => return None,
    })
}

fn float_at(array: &ArrayRef, i: usize) -> Option<f64> {
    if array.is_null(i) {
        return None;
    }
    match array.data_type() {
        DataType::Float16 => Some(f64::from(array.as_primitive::<Float16Type>().value(i))),
        DataType::Float32 => Some(f64::from(array.as_primitive::<Float32Type>().value(i))),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(i)),
        _ => None,
    }
}
