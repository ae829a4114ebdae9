//! Rows split over the branches of a conditional expression, each evaluated only on its rows.

use super::Literal;
use crate::PhysicalExprRef;
use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;
use planish_batch::{Batch, Selection};
use std::sync::Arc;

/// Which rows are still open, and the values of those that are not.
pub(super) struct Branches {
    rows: usize,
    /// The rows that no branch has answered yet.
    open: Batch,
    /// Where those are among all rows; `None`: all rows are open.
    positions: Option<Vec<u32>>,
    answers: Vec<Answer>,
}

struct Answer {
    /// The rows answered; `None`: all.
    positions: Option<Vec<u32>>,
    values: ColumnarValue,
}

impl Branches {
    /// All rows of `batch` open.
    pub(super) fn new(batch: &Batch) -> Self {
        Branches { rows: batch.num_rows(), open: batch.clone(), positions: None, answers: vec![] }
    }

    /// The open rows.
    pub(super) fn open(&self) -> &Batch {
        &self.open
    }

    /// Whether every row has its answer.
    pub(super) fn is_complete(&self) -> bool {
        self.open.num_rows() == 0
    }

    /// Answers the open rows for which `mask` is true (NULL counts as false) with `value`.
    pub(super) fn answer_where(
        &mut self,
        mask: &BooleanArray,
        value: &PhysicalExprRef,
    ) -> Result<()> {
        let bits = true_bits(mask);
        match bits.count_set_bits() {
            0 => Ok(()),
            all if all == bits.len() => self.answer_rest(value),
            _ => {
                let values = if value.is::<Literal>() {
                    value.evaluate(&self.open)?
                } else {
                    value.evaluate(&self.select(&positions_of(&bits)))?
                };
                self.close(&bits, values);
                Ok(())
            }
        }
    }

    /// Answers the open rows for which `bits` are set with `values`, one per such row.
    pub(super) fn close(&mut self, bits: &BooleanBuffer, values: ColumnarValue) {
        let chosen = positions_of(bits);
        let left = positions_of(&!bits);
        let absolute = |relative: &[u32]| match &self.positions {
            Some(positions) => relative.iter().map(|&i| positions[i as usize]).collect(),
            None => relative.to_vec(),
        };
        self.answers.push(Answer { positions: Some(absolute(&chosen)), values });
        let positions = absolute(&left);
        self.open = self.select(&left);
        self.positions = Some(positions);
    }

    /// Answers all open rows with `value`.
    pub(super) fn answer_rest(&mut self, value: &PhysicalExprRef) -> Result<()> {
        let values = value.evaluate(&self.open)?;
        self.close_rest(values);
        Ok(())
    }

    /// Answers all open rows with `values`.
    pub(super) fn close_rest(&mut self, values: ColumnarValue) {
        self.answers.push(Answer { positions: self.positions.take(), values });
        self.open = self.open.slice(0, 0);
        self.positions = Some(vec![]);
    }

    fn select(&self, rows: &[u32]) -> Batch {
        self.open.select(&Arc::new(Selection::rows(rows.to_vec())))
    }

    /// The answers of all rows, in the rows' order.
    pub(super) fn finish(mut self, data_type: &DataType) -> Result<ColumnarValue> {
        if self.rows == 0 && self.answers.is_empty() {
            return Ok(ColumnarValue::Array(new_empty_array(data_type)));
        }
        if let [Answer { positions: None, .. }] = self.answers.as_slice()
            && let Some(only) = self.answers.pop()
        {
            return Ok(only.values);
        }
        let scalars = self.answers.iter().all(|a| matches!(a.values, ColumnarValue::Scalar(_)));
        let values = self
            .answers
            .iter()
            .map(|a| match &a.values {
                ColumnarValue::Array(array) => Ok(Arc::clone(array)),
                ColumnarValue::Scalar(value) => value.to_array_of_size(1),
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        if scalars {
            let mut branch = vec![0u32; self.rows];
            for (b, answer) in self.answers.iter().enumerate() {
                answer.for_each(self.rows, |row, _| branch[row] = b as u32);
            }
            let branch = UInt32Array::from(branch);
            return Ok(ColumnarValue::Array(take(&concat(&values)?, &branch, None)?));
        }
        let mut source = vec![(0, 0); self.rows];
        for (b, answer) in self.answers.iter().enumerate() {
            let scalar = matches!(answer.values, ColumnarValue::Scalar(_));
            answer.for_each(self.rows, |row, i| source[row] = (b, if scalar { 0 } else { i }));
        }
        Ok(ColumnarValue::Array(interleave(&values, &source)?))
    }
}

impl Answer {
    /// Calls `f` with each row answered and its number among them.
    fn for_each(&self, rows: usize, mut f: impl FnMut(usize, usize)) {
        match &self.positions {
            Some(positions) => {
                positions.iter().enumerate().for_each(|(i, &row)| f(row as usize, i));
            }
            None => (0..rows).for_each(|row| f(row, row)),
        }
    }
}

/// The bits of `mask` that are true, not NULL.
pub(super) fn true_bits(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) => mask.values() & nulls.inner(),
        None => mask.values().clone(),
    }
}

fn positions_of(bits: &BooleanBuffer) -> Vec<u32> {
    bits.set_indices_u32().collect()
}
