//! Sums of decimals whose result type has no digits to spare.
//!
//! A sum has ten digits more than its argument, up to 38 (or 76); below that no number of rows
//! overflows it, and the function library's accumulators serve. At the limit they would wrap
//! around, so these take their place: a sum that its type cannot hold is an error.

use crate::utils::check_precision;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeTypeOp, DataType, Decimal128Type, Decimal256Type, DecimalType};
use datafusion_common::{Result, ScalarValue, exec_err, not_impl_err};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::sync::Arc;
use std::{fmt, mem};

/// Whether a sum of this result type may not fit it.
pub(super) fn may_overflow(result: &DataType) -> bool {
    matches!(result, DataType::Decimal128(38, _) | DataType::Decimal256(76, _))
}

/// An accumulator for many groups; `result` is a type for which [`may_overflow`].
pub(super) fn groups_accumulator(result: &DataType) -> Result<Box<dyn GroupsAccumulator>> {
    match result {
        DataType::Decimal128(..) => Ok(Box::new(Sums::<Decimal128Type>::new(result))),
        DataType::Decimal256(..) => Ok(Box::new(Sums::<Decimal256Type>::new(result))),
        other => not_impl_err!("a decimal sum of type {other}"),
    }
}

/// An accumulator for one group, or for a frame that moves.
pub(super) fn accumulator(result: &DataType) -> Result<Box<dyn Accumulator>> {
    match result {
        DataType::Decimal128(..) => Ok(Box::new(Sum::<Decimal128Type>::new(result))),
        DataType::Decimal256(..) => Ok(Box::new(Sum::<Decimal256Type>::new(result))),
        other => not_impl_err!("a decimal sum of type {other}"),
    }
}

fn checked<N: ArrowNativeTypeOp>(sum: N, value: N, data_type: &DataType) -> Result<N> {
    match sum.add_checked(value) {
        Ok(sum) => Ok(sum),
        Err(_) => exec_err!("a sum of decimals overflows its type {data_type}; cast the argument"),
    }
}

/// The sums, NULL of groups without a value.
#[derive(Debug)]
struct Sums<T: DecimalType> {
    data_type: DataType,
    sums: Vec<T::Native>,
    seen: Vec<bool>,
}

impl<T: DecimalType> Sums<T> {
    fn new(data_type: &DataType) -> Self {
        Sums { data_type: data_type.clone(), sums: vec![], seen: vec![] }
    }
}

impl<T: DecimalType> GroupsAccumulator for Sums<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_num_groups, T::Native::default());
        self.seen.resize(total_num_groups, false);
        let values = values[0].as_primitive::<T>();
        for (row, &group) in group_indices.iter().enumerate() {
            let kept = opt_filter.is_none_or(|f| f.is_valid(row) && f.value(row));
            if kept && values.is_valid(row) {
                self.sums[group] = checked(self.sums[group], values.value(row), &self.data_type)?;
                self.seen[group] = true;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let seen = NullBuffer::from(emit_to.take_needed(&mut self.seen));
        let nulls = (seen.null_count() > 0).then_some(seen);
        let array = PrimitiveArray::<T>::new(sums.into(), nulls);
        let array: ArrayRef = Arc::new(array.with_data_type(self.data_type.clone()));
        check_precision(&array)?;
        Ok(array)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let kept = opt_filter.map(|filter| {
            let nulls = filter.nulls().map(NullBuffer::inner);
            NullBuffer::new(nulls.map_or(filter.values().clone(), |n| n & filter.values()))
        });
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        let array = PrimitiveArray::<T>::new(values.values().clone(), nulls);
        Ok(vec![Arc::new(array.with_data_type(self.data_type.clone()))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>() + self.seen.capacity()
    }
}

/// One sum over `rows` values.
#[derive(Debug)]
struct Sum<T: DecimalType> {
    data_type: DataType,
    sum: T::Native,
    rows: usize,
}

impl<T: DecimalType> Sum<T> {
    fn new(data_type: &DataType) -> Self {
        Sum { data_type: data_type.clone(), sum: T::Native::default(), rows: 0 }
    }
}

impl<T: DecimalType + fmt::Debug> Accumulator for Sum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<T>().iter().flatten() {
            self.sum = checked(self.sum, value, &self.data_type)?;
            self.rows += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = (self.rows > 0).then_some(self.sum);
        let array = PrimitiveArray::<T>::from_iter([value]);
        let array: ArrayRef = Arc::new(array.with_data_type(self.data_type.clone()));
        check_precision(&array)?;
        ScalarValue::try_from_array(&array, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<T>().iter().flatten() {
            self.sum = self.sum.sub_wrapping(value);
            self.rows -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn size(&self) -> usize {
        mem::size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Decimal128Array;

    const MAX: i128 = 10i128.pow(38) - 1;
    const RESULT: DataType = DataType::Decimal128(38, 2);

    fn decimals(values: Vec<Option<i128>>) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_data_type(RESULT))
    }

    #[test]
    fn sums_by_group_with_nulls_and_a_filter() {
        let mut sums = groups_accumulator(&RESULT).unwrap();
        let values = [decimals(vec![Some(1), None, Some(5), Some(7), Some(100)])];
        let filter =
            BooleanArray::from(vec![Some(true), Some(true), None, Some(true), Some(false)]);
        sums.update_batch(&values, &[0, 1, 0, 0, 0], Some(&filter), 3).unwrap();
        assert_eq!(&sums.evaluate(EmitTo::All).unwrap(), &decimals(vec![Some(8), None, None]));
        let state = sums.convert_to_state(&values, Some(&filter)).unwrap();
        assert_eq!(&state[0], &decimals(vec![Some(1), None, None, Some(7), None]));
    }

    #[test]
    fn more_digits_than_the_type_has_are_an_error() {
        for (values, fits) in [
            (vec![Some(MAX), Some(0)], true),
            (vec![Some(MAX), Some(1)], false),
            (vec![Some(-MAX), Some(-1)], false),
            (vec![Some(MAX), Some(MAX)], false),
            (vec![Some(MAX), Some(1), Some(-1)], true),
        ] {
            let groups = vec![0; values.len()];
            let values = [decimals(values)];
            let mut sums = groups_accumulator(&RESULT).unwrap();
            let result = sums
                .update_batch(&values, &groups, None, 1)
                .and_then(|()| sums.evaluate(EmitTo::All));
            assert_eq!(result.is_ok(), fits, "{values:?}");
            let mut sum = accumulator(&RESULT).unwrap();
            let result = sum.update_batch(&values).and_then(|()| sum.evaluate());
            assert_eq!(result.is_ok(), fits, "{values:?}");
        }
    }

    #[test]
    fn a_moving_sum_takes_rows_back() {
        let mut sum = accumulator(&RESULT).unwrap();
        sum.update_batch(&[decimals(vec![Some(3), None, Some(4)])]).unwrap();
        sum.retract_batch(&[decimals(vec![Some(3), None])]).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Decimal128(Some(4), 38, 2));
        sum.retract_batch(&[decimals(vec![Some(4)])]).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Decimal128(None, 38, 2));
    }
}
