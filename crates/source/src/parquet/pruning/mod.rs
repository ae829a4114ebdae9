//! Which row groups can a predicate be true in?
//!
//! A small sound analysis: for every boolean expression and row group, whether some row *may*
//! make it true and whether some row *may* make it false. What is not understood may be both. A
//! row group is left out when no row may make the predicate true. NULL is neither, so a column
//! of NULLs makes a comparison neither true nor false.
//!
//! Nothing here is evaluated on rows, so a predicate that can fail cannot fail here.

mod bounds;
mod intervals;

pub(crate) use bounds::{RowGroupBounds, TableColumnBounds};

use arrow::array::{Array, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bounds::{Operand, Possible, compare_bounds};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use intervals::{by_intervals, is_bounded};
use planish_batch::Batch;
use planish_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsBoolExpr, IsNullExpr, LikeExpr, LikeKind, Literal, NotExpr,
};
use planish_expr::utils::column_indices;
use planish_expr::{PhysicalExprRef, is_volatile};
use std::sync::Arc;

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

/// Longer `IN` lists are not looked at.
const LONGEST_LIST: usize = 256;

/// Whether the analysis can make anything of `filter`.
pub(crate) fn is_useful(filter: &PhysicalExprRef, schema: &Schema) -> bool {
    let flat = |operand: &PhysicalExprRef| {
        Operand::of(operand, schema).is_some_and(|o| {
            schema.fields().get(o.column).is_some_and(|f| !f.data_type().is_nested())
        })
    };
    if is_volatile(filter) {
        return false;
    }
    if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => is_useful(left, schema) || is_useful(right, schema),
            Operator::Or => is_useful(left, schema) && is_useful(right, schema),
            op => match operand_and_value(binary) {
                Some((operand, ..)) => flat(operand) || is_bounded(operand, schema),
                None => is_comparison(*op) && is_bounded(left, schema) && is_bounded(right, schema),
            },
        };
    }
    if let Some(not) = filter.downcast_ref::<NotExpr>() {
        return is_useful(not.expr(), schema);
    }
    if let Some(test) = filter.downcast_ref::<IsBoolExpr>() {
        return is_useful(test.expr(), schema);
    }
    if let Some(test) = filter.downcast_ref::<IsNullExpr>() {
        return flat(test.expr());
    }
    if let Some(list) = filter.downcast_ref::<InListExpr>() {
        return flat(list.expr()) && list.list().len() <= LONGEST_LIST;
    }
    if let Some(like) = filter.downcast_ref::<LikeExpr>() {
        return flat(like.expr()) && prefix_of(like).is_some();
    }
    filter.is::<Column>() || filter.is::<Literal>()
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
    if expr.is::<Column>() {
        return compare_value(expr, Operator::Eq, &ScalarValue::Boolean(Some(true)), bounds);
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => Ok(possible(left, bounds)?.and(&possible(right, bounds)?)),
            Operator::Or => Ok(possible(left, bounds)?.or(&possible(right, bounds)?)),
            op => match operand_and_value(binary) {
                Some((operand, op, value)) if Operand::of(operand, bounds.schema()).is_some() => {
                    compare(operand, op, value, bounds)
                }
                _ if is_comparison(*op) => by_intervals(expr, bounds),
                _ => Ok(Possible::anything(groups)),
            },
        };
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return Ok(possible(not.expr(), bounds)?.not());
    }
    if let Some(test) = expr.downcast_ref::<IsBoolExpr>() {
        let operand = possible(test.expr(), bounds)?;
        let holds = if test.value() { operand.r#true } else { operand.r#false };
        let is = Possible { r#true: holds, r#false: BooleanBuffer::new_set(groups) };
        return Ok(if test.negated() { is.not() } else { is });
    }
    if let Some(test) = expr.downcast_ref::<IsNullExpr>() {
        let is = is_null(test.expr(), bounds)?;
        return Ok(if test.negated() { is.not() } else { is });
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        if list.list().len() > LONGEST_LIST {
            return Ok(Possible::anything(groups));
        }
        let mut found = Possible::constant(Some(false), groups);
        for value in list.list() {
            found = found.or(&compare(list.expr(), Operator::Eq, value, bounds)?);
        }
        return Ok(if list.negated() { found.not() } else { found });
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        return starts_with(like, bounds);
    }
    Ok(Possible::anything(groups))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// A comparison of something with an expression that reads no column, which is on the right.
fn operand_and_value(
    binary: &BinaryExpr,
) -> Option<(&PhysicalExprRef, Operator, &PhysicalExprRef)> {
    if !is_comparison(*binary.op()) {
        return None;
    }
    let (left, right) = (binary.left(), binary.right());
    if column_indices(right).is_empty() {
        return Some((left, *binary.op(), right));
    }
    column_indices(left).is_empty().then_some((right, binary.op().swap()?, left))
}

/// The value of an expression without columns; `None` when it has none that is the same for all
/// rows.
fn constant_value(expr: &PhysicalExprRef) -> Option<ScalarValue> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Some(literal.value().clone());
    }
    let schema: SchemaRef = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
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

/// `operand op value` in each row group.
fn compare(
    operand: &PhysicalExprRef,
    op: Operator,
    value: &PhysicalExprRef,
    bounds: &dyn RowGroupBounds,
) -> Result<Possible> {
    match constant_value(value) {
        Some(value) => compare_value(operand, op, &value, bounds),
        None => Ok(Possible::anything(bounds.rows().len())),
    }
}

fn compare_value(
    operand: &PhysicalExprRef,
    op: Operator,
    value: &ScalarValue,
    bounds: &dyn RowGroupBounds,
) -> Result<Possible> {
    let groups = bounds.rows().len();
    if value.is_null() {
        return Ok(Possible::constant(None, groups));
    }
    let Some(operand) = Operand::of(operand, bounds.schema()) else {
        return Ok(Possible::anything(groups));
    };
    let (min, max, stored) = match operand.bounds(bounds)? {
        Some(TableColumnBounds::Known(min, max, stored)) => (min, max, stored),
        Some(TableColumnBounds::AllNull) => return Ok(Possible::constant(None, groups)),
        None => return Ok(Possible::anything(groups)),
    };
    let out = match compare_bounds(&min, &max, op, value)? {
        Some(possible) => possible,
        None => Possible::anything(groups),
    };
    Ok(out.unless_all_null(&stored, bounds.rows()))
}

/// `operand IS NULL` in each row group.
fn is_null(operand: &PhysicalExprRef, bounds: &dyn RowGroupBounds) -> Result<Possible> {
    let rows = bounds.rows();
    let Some(operand) = Operand::of(operand, bounds.schema()) else {
        return Ok(Possible::anything(rows.len()));
    };
    Ok(match bounds.column(operand.column)? {
        None => Possible::anything(rows.len()),
        Some(TableColumnBounds::AllNull) => Possible::constant(Some(true), rows.len()),
        Some(TableColumnBounds::Known(_, _, stored)) => Possible {
            r#true: BooleanBuffer::collect_bool(rows.len(), |g| stored.null_count[g] != Some(0)),
            r#false: BooleanBuffer::collect_bool(rows.len(), |g| {
                stored.null_count[g] != Some(rows[g])
            }),
        },
    })
}

/// What every text that matches a `LIKE` starts with, if anything.
fn prefix_of(like: &LikeExpr) -> Option<String> {
    if like.kind() != LikeKind::Like {
        return None;
    }
    let pattern = constant_value(like.pattern())?;
    let text = pattern.try_as_str()??;
    let mut prefix = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => break,
            c if c == like.escape() => prefix.push(chars.next()?),
            c => prefix.push(c),
        }
    }
    (!prefix.is_empty()).then_some(prefix)
}

/// `operand LIKE 'prefix%'`: texts with a prefix lie together.
fn starts_with(like: &LikeExpr, bounds: &dyn RowGroupBounds) -> Result<Possible> {
    let groups = bounds.rows().len();
    let operand = Operand::of(like.expr(), bounds.schema());
    let (Some(operand), Some(prefix)) = (operand, prefix_of(like)) else {
        return Ok(Possible::anything(groups));
    };
    let (min, max, stored) = match operand.bounds(bounds)? {
        Some(TableColumnBounds::Known(min, max, stored)) => (min, max, stored),
        Some(TableColumnBounds::AllNull) => return Ok(Possible::constant(None, groups)),
        None => return Ok(Possible::anything(groups)),
    };
    let (Some(min), Some(max)) = (min.as_string_view_opt(), max.as_string_view_opt()) else {
        return Ok(Possible::anything(groups));
    };
    let prefix = prefix.as_bytes();
    let r#true = BooleanBuffer::collect_bool(groups, |group| {
        let start = |text: &str| text.as_bytes()[..text.len().min(prefix.len())].to_vec();
        (min.is_null(group) || start(min.value(group)).as_slice() <= prefix)
            && (max.is_null(group) || max.value(group).as_bytes() >= prefix)
    });
    let matches = Possible { r#true, r#false: BooleanBuffer::new_set(groups) };
    let out = if like.negated() { matches.not() } else { matches };
    Ok(out.unless_all_null(&stored, bounds.rows()))
}
