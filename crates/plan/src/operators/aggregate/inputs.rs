//! The values that accumulators are fed with: every distinct expression evaluated once a batch.
//!
//! An argument that can fail, under a FILTER, is evaluated only on the rows that pass the filter
//! (`sum(100 / x) FILTER (WHERE x <> 0)`).

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use planish_expr::expressions::Literal;
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::sync::Arc;

/// What to evaluate, and which call takes what.
pub(in crate::operators) struct AggregateInputs {
    values: Vec<Value>,
    filters: Vec<PhysicalExprRef>,
    calls: Vec<CallInputs>,
    /// Whether calls with a FILTER get the rows that pass it and no others.
    filter_early: bool,
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
}

/// The values of one batch.
pub(in crate::operators) struct EvaluatedInputs {
    values: Vec<ArrayRef>,
    masks: Vec<BooleanArray>,
}

/// What one call is fed with.
pub(in crate::operators) struct CallValues<'a> {
    /// Arguments, and sort keys where the function wants them.
    pub(in crate::operators) values: Vec<ArrayRef>,
    /// The rows that count, if not all.
    pub(in crate::operators) filter: Option<&'a BooleanArray>,
}

impl AggregateInputs {
    /// The inputs of `calls`. With `filter_early`, calls with a FILTER get only the rows that
    /// pass it; otherwise all rows and a mask wherever possible.
    pub(in crate::operators) fn new(
        calls: &[Arc<AggregateFunctionExpr>],
        schema: &SchemaRef,
        filter_early: bool,
    ) -> Self {
        let mut inputs =
            AggregateInputs { values: vec![], filters: vec![], calls: vec![], filter_early };
        for call in calls {
            let exprs = call.accumulator_inputs();
            let filter = call.filter.as_ref().map(|f| find_or_push(&mut inputs.filters, f));
            let guarded = filter_early || exprs.iter().any(|e| can_fail(e, schema));
            let under = filter.filter(|_| guarded);
            let values = exprs.iter().map(|e| inputs.value(e, under)).collect();
            inputs.calls.push(CallInputs { values, filter });
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

    /// Evaluates everything over `batch`.
    ///
    /// # Errors
    /// Those of the expressions.
    pub(in crate::operators) fn evaluate(&mut self, batch: &Batch) -> Result<EvaluatedInputs> {
        let masks =
            self.filters.iter().map(|f| mask(f, batch)).collect::<Result<Vec<BooleanArray>>>()?;
        let mut passed: Vec<Option<Batch>> = vec![None; masks.len()];
        let mut values = Vec::with_capacity(self.values.len());
        for value in &mut self.values {
            let Some(f) = value.under else {
                values.push(value.evaluate(batch)?);
                continue;
            };
            let rows = passed[f].get_or_insert_with(|| batch.filter(&masks[f]));
            let of_passed = value.evaluate(rows)?;
            values.push(if self.filter_early {
                of_passed
            } else {
                scatter(&of_passed, &masks[f])?
            });
        }
        Ok(EvaluatedInputs { values, masks })
    }

    /// What call `i` is fed with.
    pub(in crate::operators) fn of_call<'a>(
        &self,
        i: usize,
        evaluated: &'a EvaluatedInputs,
    ) -> CallValues<'a> {
        let call = &self.calls[i];
        let mask = call.filter.map(|f| &evaluated.masks[f]);
        CallValues {
            values: call.values.iter().map(|&v| Arc::clone(&evaluated.values[v])).collect(),
            filter: mask.filter(|_| !self.filter_early),
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

/// The values of the rows in `mask` at their places, NULL elsewhere.
fn scatter(values: &ArrayRef, mask: &BooleanArray) -> Result<ArrayRef> {
    if values.len() == mask.len() {
        return Ok(Arc::clone(values));
    }
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), mask.len()));
    }
    let mut next = 0;
    let places: UInt32Array = mask
        .values()
        .iter()
        .map(|kept| {
            next += u32::from(kept);
            kept.then(|| next - 1)
        })
        .collect();
    Ok(take(values.as_ref(), &places, None)?)
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
