//! The kinds of expressions, one file each.

mod between;
mod binary;
mod branches;
mod case;
mod cast;
mod cast_safety;
mod coalesce;
mod column;
mod display;
mod dynamic_filter;
mod in_list;
mod in_list_set;
mod is_bool;
mod is_null;
pub(crate) mod kernels;
mod lambda;
mod like;
mod literal;
mod logical;
mod negative;
mod not;
mod scalar_subquery;
mod zoned;

pub use between::BetweenExpr;
pub use binary::BinaryExpr;
pub use case::CaseExpr;
pub use cast::{CastExpr, TryCastExpr};
pub use coalesce::CoalesceExpr;
pub use column::Column;
pub use dynamic_filter::DynamicFilterExpr;
pub use in_list::InListExpr;
pub use is_bool::IsBoolExpr;
pub use is_null::IsNullExpr;
pub use lambda::{LambdaExpr, LambdaVariable};
pub use like::{LikeExpr, LikeKind, similar_to_regex};
pub use literal::{Literal, lit};
pub use negative::NegativeExpr;
pub use not::NotExpr;
pub use scalar_subquery::ScalarSubqueryExpr;

pub(crate) use display::list as display_list;

use crate::{PhysicalExpr, PhysicalExprRef};
use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use planish_batch::{Batch, Form};
use std::sync::Arc;

/// `result`, or no value when evaluation failed on a batch of no rows, where nothing went wrong.
pub(crate) fn or_empty(
    result: Result<ColumnarValue>,
    expr: &dyn PhysicalExpr,
    batch: &Batch,
) -> Result<ColumnarValue> {
    match result {
        Err(_) if batch.num_rows() == 0 => {
            let data_type = expr.data_type(batch.schema())?;
            Ok(ColumnarValue::Array(new_empty_array(&data_type)))
        }
        result => result,
    }
}

/// `children` as an array of the length that a node needs.
pub(crate) fn exactly<const N: usize>(
    children: Vec<PhysicalExprRef>,
) -> Result<[PhysicalExprRef; N]> {
    let given = children.len();
    children.try_into().or_else(|_| internal_err!("{given} children for an expression with {N}"))
}

/// The value of `expr` for a kernel that reads dictionaries and runs as they are.
fn encoded_operand(expr: &PhysicalExprRef, batch: &Batch) -> Result<ColumnarValue> {
    match encoded(expr, batch) {
        Some(array)
            if matches!(
                array.data_type(),
                DataType::Dictionary(..) | DataType::RunEndEncoded(..)
            ) =>
        {
            Ok(ColumnarValue::Array(Arc::clone(array)))
        }
        _ => expr.evaluate(batch),
    }
}

/// The two sides of a comparison, in encoded form where the kernels can take it.
fn encoded_operands(
    left: &PhysicalExprRef,
    right: &PhysicalExprRef,
    batch: &Batch,
) -> Result<(ColumnarValue, ColumnarValue)> {
    if let Some(array) = encoded(left, batch)
        && let Some(value) = narrowed_literal(array, left, right, batch)
    {
        return Ok((ColumnarValue::Array(Arc::clone(array)), ColumnarValue::Scalar(value)));
    }
    Ok((encoded_operand(left, batch)?, encoded_operand(right, batch)?))
}

/// The array of a column reference whose column is encoded.
fn encoded<'a>(expr: &PhysicalExprRef, batch: &'a Batch) -> Option<&'a ArrayRef> {
    let column = expr.downcast_ref::<Column>()?;
    match batch.columns().get(column.index())?.form() {
        Form::Encoded(array) => Some(array),
        _ => None,
    }
}

/// The literal `right` as a 64-bit integer, to be compared with a decimal column narrowed to such.
fn narrowed_literal(
    array: &ArrayRef,
    left: &PhysicalExprRef,
    right: &PhysicalExprRef,
    batch: &Batch,
) -> Option<ScalarValue> {
    let ScalarValue::Decimal128(Some(value), _, scale) = right.downcast_ref::<Literal>()?.value()
    else {
        return None;
    };
    let column = left.data_type(batch.schema()).ok()?;
    match (array.data_type(), column) {
        (DataType::Int64, DataType::Decimal128(_, of_column)) if of_column == *scale => {
            i64::try_from(*value).ok().map(|value| ScalarValue::Int64(Some(value)))
        }
        _ => None,
    }
}
