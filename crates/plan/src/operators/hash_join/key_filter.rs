//! What the keys of a finished build side say of the probe rows that can match: bounds, and for
//! few rows the list of values.

use super::HashJoinExec;
use crate::dynamic_filters::is_bounded_type;
use crate::operators::hash_join::PartitionMode;
use arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, downcast_primitive_array, new_empty_array,
};
use arrow::compute::{concat, max, max_string_view, min, min_string_view};
use arrow::datatypes::DataType;
use datafusion_common::{JoinType, NullEquality, Result, ScalarValue};
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, DynamicFilterExpr, InListExpr, Literal, lit};
use planish_expr::utils::conjunction;
use std::sync::Arc;

/// Rows of a build side whose keys are listed, at most.
const MOST_LISTED: usize = 8 * 1024;

/// Rows of a build side whose keys are looked at again, at most.
const MOST_BOUNDED: usize = 4 * 1024 * 1024;

/// Whether probe rows without a match are of no use to a join of this type.
fn needs_matches_only(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    )
}

impl HashJoinExec {
    /// A new filter for the probe side, over its key expressions; `None` when there is nothing to
    /// filter by.
    pub(super) fn new_key_filter(&self) -> Option<PhysicalExprRef> {
        let one_table = matches!(self.mode, PartitionMode::CollectLeft | PartitionMode::Auto);
        if !one_table
            || self.null_aware
            || self.dynamic_filter.is_some()
            || self.null_equality != NullEquality::NullEqualsNothing
            || !needs_matches_only(self.join_type)
        {
            return None;
        }
        let (left, right) = (self.left.schema(), self.right.schema());
        let args: Vec<PhysicalExprRef> = self
            .on
            .iter()
            .map(|(l, r)| Some((l.data_type(&left).ok()?, r.data_type(&right).ok()?, r)))
            .map(|types| types.filter(|(l, r, _)| l == r && is_key_type(l)))
            .map(|found| found.map(|(_, _, key)| Arc::clone(key)))
            .collect::<Option<_>>()?;
        Some(Arc::new(DynamicFilterExpr::new(args)))
    }
}

/// Floats are left out: `-0.0` equals `0.0`, NaN equals NaN.
fn is_key_type(data_type: &DataType) -> bool {
    is_bounded_type(data_type)
        && !data_type.is_floating()
        && !matches!(data_type, DataType::Utf8 | DataType::LargeUtf8)
}

/// The predicate over the probe side's keys, by position, that the build rows' `keys` allow, and
/// whether it is but the bounds of many rows, which most probe rows may lie within.
pub(super) fn predicate(
    keys: &[PhysicalExprRef],
    batches: &[Batch],
) -> Result<Option<(PhysicalExprRef, bool)>> {
    let rows: usize = batches.iter().map(Batch::num_rows).sum();
    if rows == 0 {
        return Ok(Some((lit(false), false)));
    }
    if rows > MOST_BOUNDED {
        return Ok(None);
    }
    let mut conjuncts = vec![];
    for (position, key) in keys.iter().enumerate() {
        let arg = || Arc::new(Column::new("", position)) as PhysicalExprRef;
        let mut parts = vec![];
        for batch in batches {
            parts.push(key.evaluate_array(batch)?);
        }
        let Some((least, greatest)) = bounds(&parts)? else {
            return Ok(Some((lit(false), false)));
        };
        let value = |value: ScalarValue| Arc::new(Literal::new(value)) as PhysicalExprRef;
        if least == greatest {
            conjuncts.push(compare(arg(), Operator::Eq, value(least)));
            continue;
        }
        conjuncts.push(compare(arg(), Operator::GtEq, value(least)));
        conjuncts.push(compare(arg(), Operator::LtEq, value(greatest)));
        if rows <= MOST_LISTED {
            let list = listed(&parts)?.into_iter().map(value).collect();
            conjuncts.push(Arc::new(InListExpr::new(arg(), list, false)));
        }
    }
    Ok(Some((conjunction(conjuncts), rows > MOST_LISTED)))
}

fn compare(l: PhysicalExprRef, op: Operator, r: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(l, op, r))
}

/// The values of `parts`, NULLs aside.
fn listed(parts: &[ArrayRef]) -> Result<Vec<ScalarValue>> {
    let refs: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let all = concat(&refs)?;
    (0..all.len())
        .filter(|&i| all.is_valid(i))
        .map(|i| ScalarValue::try_from_array(&all, i))
        .collect()
}

/// The least and the greatest value; `None` when all are NULL.
fn bounds(parts: &[ArrayRef]) -> Result<Option<(ScalarValue, ScalarValue)>> {
    let mut found: Option<(ScalarValue, ScalarValue)> = None;
    for part in parts {
        let Some((least, greatest)) = bounds_of(part)? else { continue };
        found = Some(match found {
            None => (least, greatest),
            Some((known_least, known_greatest)) => (
                if least < known_least { least } else { known_least },
                if greatest > known_greatest { greatest } else { known_greatest },
            ),
        });
    }
    Ok(found)
}

fn bounds_of(array: &ArrayRef) -> Result<Option<(ScalarValue, ScalarValue)>> {
    if array.null_count() == array.len() {
        return Ok(None);
    }
    let array = array.as_ref();
    let pair = match array.data_type() {
        DataType::Utf8View => {
            let strings = array.as_string_view();
            let scalar = |text: Option<&str>| ScalarValue::Utf8View(text.map(str::to_owned));
            return Ok(Some((scalar(min_string_view(strings)), scalar(max_string_view(strings)))));
        }
        _ => downcast_primitive_array!(
            array => {
                let data_type = array.data_type().clone();
                extremes(array).with_data_type_of(data_type)
            }
            other => new_empty_array(other)
        ),
    };
    if pair.len() < 2 {
        return Ok(None);
    }
    let (least, greatest) =
        (ScalarValue::try_from_array(&pair, 0)?, ScalarValue::try_from_array(&pair, 1)?);
    Ok(Some((least, greatest)))
}

fn extremes<T: arrow::array::ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> PrimitiveArray<T>
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    PrimitiveArray::<T>::from_iter([min(array), max(array)])
}

trait WithDataType {
    fn with_data_type_of(self, data_type: DataType) -> ArrayRef;
}

impl<T: arrow::array::ArrowPrimitiveType> WithDataType for PrimitiveArray<T> {
    fn with_data_type_of(self, data_type: DataType) -> ArrayRef {
        Arc::new(self.with_data_type(data_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Int64Array, RecordBatch, StringViewArray};

    fn text(column: ArrayRef) -> String {
        let batch = RecordBatch::try_from_iter([("k", column)]).unwrap();
        let batch = Batch::from_record_batch(&batch);
        let key: PhysicalExprRef = Arc::new(Column::new("k", 0));
        let half = batch.num_rows() / 2;
        let batches = [batch.slice(0, half), batch.slice(half, batch.num_rows() - half)];
        predicate(&[key], &batches).unwrap().unwrap().0.to_string()
    }

    #[test]
    fn keys_become_bounds_and_a_list() {
        let found = text(Arc::new(Int64Array::from(vec![Some(5), None, Some(2), Some(9)])));
        assert_eq!(found, "@0 >= 2 AND @0 <= 9 AND @0 IN (5, 2, 9)");
        assert_eq!(text(Arc::new(Int64Array::from(vec![Some(5), None]))), "@0 = 5");
        assert_eq!(text(Arc::new(Int64Array::from(vec![None, None]))), "false");
        assert_eq!(text(Arc::new(Int64Array::from(Vec::<i64>::new()))), "false");
        let many = text(Arc::new(Int64Array::from_iter_values(0..10_000)));
        assert_eq!(many, "@0 >= 0 AND @0 <= 9999");
        let decimals = Decimal128Array::from(vec![150, -25]).with_precision_and_scale(5, 2);
        let found = text(Arc::new(decimals.unwrap()));
        assert!(found.starts_with("@0 >= -0.25") && found.contains("@0 <= 1.50"), "{found}");
        let found = text(Arc::new(StringViewArray::from(vec!["b", "a", "ä"])));
        assert!(found.starts_with("@0 >= a AND @0 <= ä AND @0 IN"), "{found}");
    }
}
