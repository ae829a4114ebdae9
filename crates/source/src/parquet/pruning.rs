//! Which row groups can a predicate be true in?
//!
//! A small sound analysis: for every boolean expression and row group, whether some row *may*
//! make it true and whether some row *may* make it false. What is not understood may be both. A
//! row group is left out when no row may make the predicate true. NULL is neither, so a column
//! of NULLs makes a comparison neither true nor false.
//!
//! Nothing here is evaluated on rows, so a predicate that can fail cannot fail here.

use super::statistics::ColumnBounds;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use planish_batch::Batch;
use planish_expr::expressions::{BinaryExpr, Column, Literal};
use planish_expr::utils::column_indices;
use planish_expr::{PhysicalExprRef, is_volatile};
use std::sync::Arc;

/// Bounds of the row groups of one file, in the table's columns and types.
pub(crate) trait RowGroupBounds {
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

/// Row groups that may hold a row for which all of `filters` are true.
pub(crate) fn row_groups_to_read(
    filters: &[PhysicalExprRef],
    bounds: &dyn RowGroupBounds,
) -> Result<BooleanBuffer> {
    let mut kept = BooleanBuffer::new_set(bounds.rows().len());
    for filter in filters {
        kept = &kept & &possible(filter, bounds)?.r#true;
    }
    let nonempty = BooleanBuffer::collect_bool(kept.len(), |group| bounds.rows()[group] > 0);
    Ok(&kept & &nonempty)
}

/// Whether the analysis can make anything of `filter`.
pub(crate) fn is_useful(filter: &PhysicalExprRef, schema: &Schema) -> bool {
    if is_volatile(filter) {
        return false;
    }
    if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::And => [binary.left(), binary.right()].iter().any(|e| is_useful(e, schema)),
            Operator::Or => [binary.left(), binary.right()].iter().all(|e| is_useful(e, schema)),
            op if is_comparison(*op) => column_and_value(binary).is_some_and(|(column, ..)| {
                schema.fields().get(column).is_some_and(|f| !f.data_type().is_nested())
            }),
            _ => false,
        };
    }
    false
}

/// What rows of each row group may make of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Possible {
    r#true: BooleanBuffer,
    r#false: BooleanBuffer,
}

impl Possible {
    fn anything(groups: usize) -> Self {
        Possible { r#true: BooleanBuffer::new_set(groups), r#false: BooleanBuffer::new_set(groups) }
    }

    fn constant(value: Option<bool>, groups: usize) -> Self {
        let all = |set: bool| {
            if set { BooleanBuffer::new_set(groups) } else { BooleanBuffer::new_unset(groups) }
        };
        Possible { r#true: all(value == Some(true)), r#false: all(value == Some(false)) }
    }

    fn and(&self, other: &Self) -> Self {
        Possible { r#true: &self.r#true & &other.r#true, r#false: &self.r#false | &other.r#false }
    }

    fn or(&self, other: &Self) -> Self {
        Possible { r#true: &self.r#true | &other.r#true, r#false: &self.r#false & &other.r#false }
    }

    fn not(self) -> Self {
        Possible { r#true: self.r#false, r#false: self.r#true }
    }
}

fn possible(expr: &PhysicalExprRef, bounds: &dyn RowGroupBounds) -> Result<Possible> {
    let groups = bounds.rows().len();
    if is_volatile(expr) {
        return Ok(Possible::anything(groups));
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Ok(match literal.value() {
            ScalarValue::Boolean(value) => Possible::constant(*value, groups),
            value if value.is_null() => Possible::constant(None, groups),
            _ => Possible::anything(groups),
        });
    }
    if let Some(column) = expr.downcast_ref::<Column>() {
        let truth: PhysicalExprRef = planish_expr::expressions::lit(true);
        return compare(column.index(), Operator::Eq, &truth, bounds);
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::And => {
                Ok(possible(binary.left(), bounds)?.and(&possible(binary.right(), bounds)?))
            }
            Operator::Or => {
                Ok(possible(binary.left(), bounds)?.or(&possible(binary.right(), bounds)?))
            }
            _ => match column_and_value(binary) {
                Some((column, op, value)) => compare(column, op, value, bounds),
                None => Ok(Possible::anything(groups)),
            },
        };
    }
    Ok(Possible::anything(groups))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// A comparison of a column with something that reads no column, the column on the left.
fn column_and_value(binary: &BinaryExpr) -> Option<(usize, Operator, &PhysicalExprRef)> {
    if !is_comparison(*binary.op()) {
        return None;
    }
    let (left, right) = (binary.left(), binary.right());
    if let Some(column) = left.downcast_ref::<Column>()
        && column_indices(right).is_empty()
    {
        return Some((column.index(), *binary.op(), right));
    }
    let column = right.downcast_ref::<Column>()?;
    let swapped = binary.op().swap()?;
    column_indices(left).is_empty().then_some((column.index(), swapped, left))
}

/// The value of an expression without columns; `None` when it has none that is the same for all
/// rows.
fn constant_value(expr: &PhysicalExprRef) -> Option<ScalarValue> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Some(literal.value().clone());
    }
    let schema: SchemaRef = Arc::new(Schema::empty());
    let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(1));
    let one_row = RecordBatch::try_new_with_options(schema, vec![], &options).ok()?;
    // An error here is left to the rows, if any ever reach the expression.
    match expr.evaluate(&Batch::from_record_batch(&one_row)).ok()? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(array) if array.len() == 1 => {
            ScalarValue::try_from_array(&array, 0).ok()
        }
        ColumnarValue::Array(_) => None,
    }
}

/// `column op value` in each row group.
fn compare(
    column: usize,
    op: Operator,
    value: &PhysicalExprRef,
    bounds: &dyn RowGroupBounds,
) -> Result<Possible> {
    let Some(value) = constant_value(value) else {
        return Ok(Possible::anything(bounds.rows().len()));
    };
    compare_value(column, op, &value, bounds)
}

fn compare_value(
    column: usize,
    op: Operator,
    value: &ScalarValue,
    bounds: &dyn RowGroupBounds,
) -> Result<Possible> {
    let groups = bounds.rows().len();
    if value.is_null() {
        return Ok(Possible::constant(None, groups));
    }
    let (min, max, stored) = match bounds.column(column)? {
        Some(TableColumnBounds::Known(min, max, stored)) => (min, max, stored),
        Some(TableColumnBounds::AllNull) => return Ok(Possible::constant(None, groups)),
        None => return Ok(Possible::anything(groups)),
    };
    let mut out = match compare_bounds(&min, &max, op, value)? {
        Some(possible) => possible,
        None => Possible::anything(groups),
    };
    // Where all rows are NULL, nothing is true or false.
    let some_value = BooleanBuffer::collect_bool(groups, |group| {
        stored.null_count[group] != Some(bounds.rows()[group])
    });
    out.r#true = &out.r#true & &some_value;
    out.r#false = &out.r#false & &some_value;
    Ok(out)
}

/// By bounds alone; `None` when types do not fit.
fn compare_bounds(
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

/// Floats: bounds leave out NaNs, of either sign, and a NaN is greater or less than everything.
/// So only equality with a number can be excluded, compared so that -0.0 equals 0.0.
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
    if value.is_nan() || !matches!(op, Operator::Eq | Operator::NotEq) {
        return None;
    }
    let inside = BooleanBuffer::collect_bool(min.len(), |i| {
        float_at(min, i).is_none_or(|min| min <= value)
            && float_at(max, i).is_none_or(|max| max >= value)
    });
    let all = BooleanBuffer::new_set(min.len());
    Some(match op {
        Operator::Eq => Possible { r#true: inside, r#false: all },
        _ => Possible { r#true: all, r#false: inside },
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
