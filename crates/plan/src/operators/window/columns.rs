//! The columns that windows read: evaluated once per batch.

use super::call::{WindowExpr, WindowFunction};
use super::evaluate::Reads;
use crate::floats::normalize_floats;
use crate::operators::aggregate::inputs::AggregateInputs;
use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use planish_batch::Batch;
use planish_expr::{LexOrdering, PhysicalExprRef};
use std::ops::Range;
use std::sync::Arc;

/// What to evaluate of each batch.
pub(super) struct Columns {
    aggregates: AggregateInputs,
    count: usize,
    of_udfs: Vec<PhysicalExprRef>,
    order_by: Vec<PhysicalExprRef>,
    partition_by: Vec<PhysicalExprRef>,
    /// For each function, where its columns are.
    pub(super) reads: Vec<Reads>,
    /// Where the ORDER BY keys are.
    pub(super) keys: Range<usize>,
}

/// The columns of one batch.
pub(super) struct Evaluated {
    /// What functions and frames read.
    pub(super) columns: Vec<ArrayRef>,
    /// The PARTITION BY keys.
    pub(super) partition: Vec<ArrayRef>,
}

impl Columns {
    /// The columns of `exprs` over rows of `schema`.
    ///
    /// # Errors
    /// When a function asks for something that is no argument.
    pub(super) fn try_new(
        exprs: &[WindowExpr],
        partition_by: &[PhysicalExprRef],
        order_by: &LexOrdering,
        schema: &SchemaRef,
    ) -> Result<Self> {
        let calls: Vec<_> = exprs
            .iter()
            .filter_map(|expr| match &expr.function {
                WindowFunction::Aggregate(call) => Some(Arc::clone(call)),
                WindowFunction::Udf(_) => None,
            })
            .collect();
        let mut of_udfs = vec![];
        let mut reads: Vec<Option<Reads>> = vec![];
        let mut next = 0;
        for expr in exprs {
            reads.push(match &expr.function {
                WindowFunction::Aggregate(call) => {
                    let values = next..next + call.accumulator_inputs().len();
                    let filter = call.filter.as_ref().map(|_| values.end);
                    next = values.end + usize::from(filter.is_some());
                    Some(Reads { values, filter })
                }
                WindowFunction::Udf(_) => None,
            });
        }
        for (expr, reads) in exprs.iter().zip(&mut reads) {
            if let WindowFunction::Udf(call) = &expr.function {
                let inputs = call.evaluator_inputs()?;
                *reads = Some(Reads { values: next..next + inputs.len(), filter: None });
                next += inputs.len();
                of_udfs.extend(inputs);
            }
        }
        let key_exprs: Vec<_> = order_by.iter().map(|key| Arc::clone(&key.expr)).collect();
        Ok(Columns {
            aggregates: AggregateInputs::new(&calls, schema, false),
            count: calls.len(),
            of_udfs,
            keys: next..next + key_exprs.len(),
            order_by: key_exprs,
            partition_by: partition_by.to_vec(),
            reads: reads.into_iter().flatten().collect(),
        })
    }

    /// The columns of `batch`.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(super) fn evaluate(&mut self, batch: &Batch) -> Result<Evaluated> {
        let evaluated = self.aggregates.evaluate(batch)?;
        let mut columns = vec![];
        for i in 0..self.count {
            let of_call = self.aggregates.of_call(i, &evaluated);
            columns.extend(of_call.values);
            if let Some(mask) = of_call.filter {
                columns.push(Arc::new(BooleanArray::clone(mask)) as ArrayRef);
            }
        }
        for expr in &self.of_udfs {
            columns.push(expr.evaluate_array(batch)?);
        }
        let keys = |exprs: &[PhysicalExprRef]| -> Result<Vec<ArrayRef>> {
            exprs.iter().map(|e| normalize_floats(&e.evaluate_array(batch)?)).collect()
        };
        columns.extend(keys(&self.order_by)?);
        Ok(Evaluated { columns, partition: keys(&self.partition_by)? })
    }
}
