//! [`Groups`]: the group table and the accumulators of one partition.

use super::inputs::{AggregateInputs, EvaluatedInputs};
use super::keys::GroupKeys;
use arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{EmitTo, GroupsAccumulator};
use planish_batch::Column;
use planish_expr::udf::AggregateFunctionExpr;
use std::sync::Arc;

/// Groups with their accumulators.
pub(super) struct Groups {
    keys: GroupKeys,
    key_fields: Vec<FieldRef>,
    calls: Vec<Arc<AggregateFunctionExpr>>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// Scratch space: the group of each row of a batch.
    indices: Vec<usize>,
}

impl Groups {
    /// No groups yet.
    pub(super) fn try_new(
        key_fields: Vec<FieldRef>,
        calls: Vec<Arc<AggregateFunctionExpr>>,
    ) -> Result<Self> {
        Ok(Groups {
            keys: GroupKeys::try_new(&key_fields)?,
            accumulators: create(&calls)?,
            key_fields,
            calls,
            indices: vec![],
        })
    }

    /// Adds raw rows with the given key columns.
    pub(super) fn update(
        &mut self,
        keys: &[Column],
        rows: usize,
        inputs: &AggregateInputs,
        evaluated: &EvaluatedInputs,
    ) -> Result<()> {
        self.indices.clear();
        self.keys.intern(keys, rows, &mut self.indices)?;
        let total = self.keys.len();
        for (i, accumulator) in self.accumulators.iter_mut().enumerate() {
            let call = inputs.of_call(i, evaluated);
            accumulator.update_batch(&call.values, &self.indices, call.filter, total)?;
        }
        Ok(())
    }

    /// Adds the groups of `keys`, one row each, without any input rows.
    pub(super) fn add_empty(&mut self, keys: &[Column]) -> Result<()> {
        self.indices.clear();
        self.keys.intern(keys, 1, &mut self.indices)?;
        let total = self.keys.len();
        // A row that does not count: accumulators take it that a new group comes with a row.
        let filter = BooleanArray::from(vec![false]);
        for (accumulator, call) in self.accumulators.iter_mut().zip(&self.calls) {
            let values = call
                .accumulator_inputs()
                .iter()
                .map(|e| Ok(new_null_array(&e.data_type(&call.input_schema)?, 1)))
                .collect::<Result<Vec<_>>>()?;
            accumulator.update_batch(&values, &self.indices, Some(&filter), total)?;
        }
        Ok(())
    }

    /// Adds partial states: key columns and, per call, its state columns.
    pub(super) fn merge(
        &mut self,
        keys: &[Column],
        states: &[ArrayRef],
        rows: usize,
    ) -> Result<()> {
        self.indices.clear();
        self.keys.intern(keys, rows, &mut self.indices)?;
        let total = self.keys.len();
        let mut states = states;
        for (accumulator, call) in self.accumulators.iter_mut().zip(&self.calls) {
            let Some((own, rest)) = states.split_at_checked(call.state_fields().len()) else {
                return internal_err!("the state of {call} is incomplete");
            };
            accumulator.merge_batch(own, &self.indices, total)?;
            states = rest;
        }
        Ok(())
    }

    /// The states of raw rows, one group each; no group of the table is touched.
    pub(super) fn convert(
        &self,
        inputs: &AggregateInputs,
        evaluated: &EvaluatedInputs,
    ) -> Result<Vec<ArrayRef>> {
        let mut states = vec![];
        for (i, (accumulator, call)) in self.accumulators.iter().zip(&self.calls).enumerate() {
            let fed = inputs.of_call(i, evaluated);
            let own = accumulator.convert_to_state(&fed.values, fed.filter)?;
            states.extend(declared(own, call.state_fields())?);
        }
        Ok(states)
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.keys.size()
            + self.accumulators.iter().map(|a| a.size()).sum::<usize>()
            + self.indices.capacity() * size_of::<usize>()
    }

    /// Key and state columns of all groups, of which none is left; no columns without groups.
    pub(super) fn take_states(&mut self) -> Result<Vec<ArrayRef>> {
        if self.keys.len() == 0 {
            return Ok(vec![]);
        }
        let mut columns = self.keys.emit()?;
        for (accumulator, call) in self.accumulators.iter_mut().zip(&self.calls) {
            columns.extend(declared(accumulator.state(EmitTo::All)?, call.state_fields())?);
        }
        self.reset()?;
        Ok(columns)
    }

    /// As [`Self::take_states`], with results.
    pub(super) fn take_results(&mut self) -> Result<Vec<ArrayRef>> {
        if self.keys.len() == 0 {
            return Ok(vec![]);
        }
        let mut columns = self.keys.emit()?;
        for (accumulator, call) in self.accumulators.iter_mut().zip(&self.calls) {
            let result = accumulator.evaluate(EmitTo::All)?;
            columns.push(in_type(result, call.field().data_type())?);
        }
        self.reset()?;
        Ok(columns)
    }

    /// Fresh tables: the old ones may hold much memory.
    fn reset(&mut self) -> Result<()> {
        self.keys = GroupKeys::try_new(&self.key_fields)?;
        self.accumulators = create(&self.calls)?;
        Ok(())
    }
}

fn create(calls: &[Arc<AggregateFunctionExpr>]) -> Result<Vec<Box<dyn GroupsAccumulator>>> {
    calls.iter().map(|call| call.create_groups_accumulator()).collect()
}

/// State columns in their declared types (names of nested fields may differ).
pub(super) fn declared(columns: Vec<ArrayRef>, fields: &[FieldRef]) -> Result<Vec<ArrayRef>> {
    if columns.len() != fields.len() {
        return internal_err!("{} state columns for {} fields", columns.len(), fields.len());
    }
    columns.into_iter().zip(fields).map(|(c, f)| in_type(c, f.data_type())).collect()
}

pub(super) fn in_type(column: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type { Ok(column) } else { Ok(cast(&column, data_type)?) }
}
