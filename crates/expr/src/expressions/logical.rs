//! `AND` and `OR` over batches.

use super::kernels::{Bools, and_kleene, or_kleene, scatter};
use crate::{PhysicalExprRef, can_fail};
use arrow::array::{Array, BooleanArray};
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;

/// A right side that cannot fail is evaluated on a subset of the rows only when that subset is
/// smaller than one row in this many: below, gathering a subset costs less than the work saved.
const SPARSE: usize = 8;

/// `left AND right`, or `left OR right`.
///
/// The right side sees only rows that the left side leaves open when it can fail on others, or
/// when those are few.
pub(super) fn evaluate(
    left: &PhysicalExprRef,
    and: bool,
    right: &PhysicalExprRef,
    batch: &Batch,
) -> Result<ColumnarValue> {
    let combine = if and { and_kleene } else { or_kleene };
    let left = match Bools::new(&left.evaluate(batch)?)? {
        Bools::Scalar(Some(value)) if value != and => {
            return Ok(Bools::Scalar(Some(value)).into_value());
        }
        scalar @ Bools::Scalar(_) => {
            let right = Bools::new(&right.evaluate(batch)?)?;
            return Ok(combine(scalar, right)?.into_value());
        }
        Bools::Array(array) => array,
    };
    let deciding = if and { !left.values() } else { left.values().clone() };
    let decided = match left.nulls() {
        Some(nulls) => &deciding & nulls.inner(),
        None => deciding,
    };
    let open = left.len() - decided.count_set_bits();
    if open == 0 {
        return Ok(Bools::Array(left).into_value());
    }
    let subset = open < left.len()
        && (open * SPARSE < left.len() || can_fail(right, batch.schema().as_ref()));
    if !subset {
        let right = Bools::new(&right.evaluate(batch)?)?;
        return Ok(combine(Bools::Array(left), right)?.into_value());
    }
    let open_rows = BooleanArray::new(!&decided, None);
    let right = match Bools::new(&right.evaluate(&batch.filter(&open_rows))?)? {
        Bools::Array(values) => Bools::Array(scatter(open_rows.values(), &values, and)),
        scalar @ Bools::Scalar(_) => scalar,
    };
    Ok(combine(Bools::Array(left), right)?.into_value())
}
