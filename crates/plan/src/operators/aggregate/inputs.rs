//! The values that accumulators are fed with: every distinct expression evaluated once a batch.
//!
//! An argument that can fail, under a FILTER, is evaluated only on the rows that pass the filter
//! (`sum(100 / x) FILTER (WHERE x <> 0)`).

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use planish_expr::expressions::Literal;
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::sync::Arc;

/// What to evaluate, and which call takes what.
pub(super) struct AggregateInputs {
    values: Vec<Value>,
    filters: Vec<PhysicalExprRef>,
    calls: Vec<CallInputs>,
}

struct Value {
    expr: PhysicalExprRef,
    /// The filter on whose rows alone it is evaluated.
    under: Option<usize>,
    /// A literal's values, kept from batch to batch.
    repeated: Option<ArrayRef>,
}

struct CallInputs {
    values: Vec<usize>,
    filter: Option<usize>,
    guarded: bool,
}

/// The values of one batch.
pub(super) struct EvaluatedInputs {
    values: Vec<ArrayRef>,
    masks: Vec<BooleanArray>,
}

/// What one call is fed with.
pub(super) struct CallValues<'a> {
    /// Arguments, and sort keys where the function wants them.
    pub(super) values: Vec<ArrayRef>,
    /// The rows that count, where `values` has all rows of the batch.
    pub(super) filter: Option<&'a BooleanArray>,
    /// The rows of the batch that `values` has, where it has not all.
    pub(super) only: Option<&'a BooleanArray>,
}

impl AggregateInputs {
    /// The inputs of `calls`. With `filter_early`, calls with a FILTER get only the rows that
    /// pass it; otherwise all rows and a mask wherever possible.
    pub(super) fn new(
        calls: &[Arc<AggregateFunctionExpr>],
        schema: &SchemaRef,
        filter_early: bool,
    ) -> Self {
        let mut inputs = AggregateInputs { values: vec![], filters: vec![], calls: vec![] };
        for call in calls {
            let exprs = call.accumulator_inputs();
            let filter = call.filter.as_ref().map(|f| find_or_push(&mut inputs.filters, f));
            let guarded =
                filter.is_some() && (filter_early || exprs.iter().any(|e| can_fail(e, schema)));
            let under = filter.filter(|_| guarded);
            let values = exprs.iter().map(|e| inputs.value(e, under)).collect();
            inputs.calls.push(CallInputs { values, filter, guarded });
        }
        inputs
    }

    fn value(&mut self, expr: &PhysicalExprRef, under: Option<usize>) -> usize {
        let known = self
            .values
            .iter()
            .position(|v| v.under == under && v.expr.eq(expr) && !is_volatile(expr));
        known.unwrap_or_else(|| {
            self.values.push(Value { expr: Arc::clone(expr), under, repeated: None });
            self.values.len() - 1
        })
    }

    /// Whether some call is not fed with all rows.
    pub(super) fn any_guarded(&self) -> bool {
        self.calls.iter().any(|call| call.guarded)
    }

    /// Evaluates everything over `batch`.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(super) fn evaluate(&mut self, batch: &Batch) -> Result<EvaluatedInputs> {
        let masks =
            self.filters.iter().map(|f| mask(f, batch)).collect::<Result<Vec<BooleanArray>>>()?;
        let mut passed: Vec<Option<Batch>> = vec![None; masks.len()];
        let mut values = Vec::with_capacity(self.values.len());
        for value in &mut self.values {
            let rows = match value.under {
                None => batch,
                Some(f) => passed[f].get_or_insert_with(|| batch.filter(&masks[f])),
            };
            values.push(value.evaluate(rows)?);
        }
        Ok(EvaluatedInputs { values, masks })
    }

    /// What call `i` is fed with.
    pub(super) fn of_call<'a>(&self, i: usize, evaluated: &'a EvaluatedInputs) -> CallValues<'a> {
        let call = &self.calls[i];
        let mask = call.filter.map(|f| &evaluated.masks[f]);
        CallValues {
            values: call.values.iter().map(|&v| Arc::clone(&evaluated.values[v])).collect(),
            filter: mask.filter(|_| !call.guarded),
            only: mask.filter(|_| call.guarded),
        }
    }
}

impl Value {
    fn evaluate(&mut self, batch: &Batch) -> Result<ArrayRef> {
        let Some(literal) = self.expr.downcast_ref::<Literal>() else {
            return self.expr.evaluate_array(batch);
        };
        let rows = batch.num_rows();
        match &self.repeated {
            Some(array) if array.len() >= rows => Ok(array.slice(0, rows)),
            _ => {
                let array = literal.value().to_array_of_size(rows)?;
                self.repeated = Some(Arc::clone(&array));
                Ok(array)
            }
        }
    }
}

fn find_or_push(exprs: &mut Vec<PhysicalExprRef>, expr: &PhysicalExprRef) -> usize {
    exprs.iter().position(|e| e.eq(expr) && !is_volatile(expr)).unwrap_or_else(|| {
        exprs.push(Arc::clone(expr));
        exprs.len() - 1
    })
}

/// Where `filter` is true.
fn mask(filter: &PhysicalExprRef, batch: &Batch) -> Result<BooleanArray> {
    let rows = batch.num_rows();
    Ok(match filter.evaluate(batch)? {
        ColumnarValue::Array(array) => match array.as_boolean_opt() {
            Some(mask) if mask.null_count() == 0 => mask.clone(),
            Some(mask) => arrow::compute::prep_null_mask_filter(mask),
            None if array.data_type().is_null() => BooleanArray::from(vec![false; rows]),
            None => return internal_err!("FILTER {filter} is {}", array.data_type()),
        },
        ColumnarValue::Scalar(value) => {
            BooleanArray::from(vec![value == ScalarValue::Boolean(Some(true)); rows])
        }
    })
}
