//! Tests of the adapter: fields, states, groups with and without a vectorized accumulator.

use super::*;
use crate::expressions::lit;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::SortOptions;
use datafusion_common::ScalarValue;
use datafusion_expr::EmitTo;
use datafusion_functions_aggregate::all_default_aggregate_functions;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]))
}

fn udaf(name: &str) -> Arc<AggregateUDF> {
    let all = all_default_aggregate_functions();
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn col(i: usize) -> PhysicalExprRef {
    Arc::new(Column::new(["a", "s"][i], i))
}

fn call(
    name: &str,
    args: Vec<PhysicalExprRef>,
    distinct: bool,
    order: &[(usize, bool)],
) -> Result<AggregateFunctionExpr> {
    let order = order
        .iter()
        .map(|&(i, descending)| {
            PhysicalSortExpr::new(col(i), SortOptions { descending, nulls_first: descending })
        })
        .collect();
    AggregateFunctionExpr::try_new(udaf(name), args, schema(), "x", distinct, false, order, None)
}

fn values() -> (ArrayRef, ArrayRef) {
    (
        Arc::new(Int64Array::from(vec![Some(3), Some(1), None, Some(2), Some(1), Some(5)])),
        Arc::new(StringArray::from(vec![
            Some("c"),
            Some("a"),
            Some("n"),
            None,
            Some("a"),
            Some("e"),
        ])),
    )
}

const GROUPS: [usize; 6] = [0, 1, 0, 1, 1, 0];

/// Evaluates over two batches in two accumulators whose states are merged.
fn two_phase(call: &AggregateFunctionExpr, inputs: &[ArrayRef]) -> ArrayRef {
    let mut total = call.create_groups_accumulator().unwrap();
    for part in [0..4, 4..6] {
        let mut partial = call.create_groups_accumulator().unwrap();
        let sliced: Vec<ArrayRef> =
            inputs.iter().map(|v| v.slice(part.start, part.len())).collect();
        partial.update_batch(&sliced, &GROUPS[part], None, 2).unwrap();
        let states = partial.state(EmitTo::All).unwrap();
        for (state, field) in states.iter().zip(call.state_fields()) {
            assert_eq!(state.data_type(), field.data_type());
        }
        total.merge_batch(&states, &[0, 1], 2).unwrap();
    }
    let result = total.evaluate(EmitTo::All).unwrap();
    assert_eq!(result.data_type(), call.field().data_type());
    result
}

#[test]
fn a_sum_has_one_state_column_and_its_name() {
    let sum = call("sum", vec![col(0)], false, &[]).unwrap();
    assert!(sum.groups_accumulator_supported());
    assert_eq!(sum.field().name(), "x");
    assert_eq!(sum.state_fields().len(), 1);
    let (a, _) = values();
    let result = two_phase(&sum, &[a]);
    assert_eq!(result.as_primitive::<arrow::datatypes::Int64Type>().values(), &[8, 4]);
}

#[test]
fn distinct_calls_keep_one_accumulator_per_group() {
    let (a, s) = values();
    let sum = call("sum", vec![col(0)], true, &[]).unwrap();
    assert!(!sum.groups_accumulator_supported());
    let result = two_phase(&sum, &[a]);
    assert_eq!(result.as_primitive::<arrow::datatypes::Int64Type>().values(), &[8, 3]);
    let count = call("count", vec![col(1)], true, &[]).unwrap();
    let result = two_phase(&count, &[s]);
    assert_eq!(result.as_primitive::<arrow::datatypes::Int64Type>().values(), &[3, 1]);
}

#[test]
fn ordered_calls_see_their_sort_keys() {
    let (a, s) = values();
    let first = call("first_value", vec![col(1)], false, &[(0, true)]).unwrap();
    assert_eq!(first.accumulator_inputs().len(), 2);
    assert!(first.required_ordering().is_none());
    let agg = call("string_agg", vec![col(1), lit(",")], false, &[(0, true)]).unwrap();
    assert!(agg.required_ordering().is_none());
    let comma: ArrayRef = Arc::new(StringArray::from(vec![","; 6]));
    let result = two_phase(&agg, &[Arc::clone(&s), comma, Arc::clone(&a)]);
    assert_eq!(result.as_string::<i64>().value(0), "n,e,c");
    assert_eq!(result.as_string::<i64>().value(1), "a,a");
    let result = two_phase(&first, &[s, a]);
    assert_eq!(result.as_string::<i32>().value(0), "n");
    let nth = call("nth_value", vec![col(0), lit(1i64)], false, &[(0, false)]).unwrap();
    assert_eq!(nth.required_ordering().unwrap().len(), 1);
}

#[test]
fn computed_arguments_become_columns_and_literals_stay() {
    let p = call("approx_percentile_cont", vec![lit(2.0), lit(0.5)], false, &[]).unwrap();
    assert_eq!(p.accumulator_inputs().len(), 2);
    assert!(call("approx_percentile_cont", vec![lit(2.0), lit(1.5)], false, &[]).is_err());
    assert!(call("array_agg", vec![col(0)], true, &[(1, false)]).is_err(), "key not an argument");
    assert!(call("array_agg", vec![col(0)], true, &[(0, false), (0, true)]).is_ok());
}

#[test]
fn a_filter_must_be_boolean() {
    let filter = |expr| {
        AggregateFunctionExpr::try_new(
            udaf("sum"),
            vec![col(0)],
            schema(),
            "x",
            false,
            false,
            vec![],
            Some(expr),
        )
    };
    assert!(filter(col(0)).is_err());
    let call = filter(lit(true)).unwrap();
    let same = call.with_expressions(call.expressions(), schema()).unwrap();
    assert!(call == same);
}

#[test]
fn the_adapter_filters_emits_a_prefix_and_counts_its_size() {
    let (_, s) = values();
    let count = call("count", vec![col(1)], true, &[]).unwrap();
    let mut groups = count.create_groups_accumulator().unwrap();
    let keep =
        BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true), Some(true)]);
    groups.update_batch(&[s], &GROUPS, Some(&keep), 3).unwrap();
    assert!(groups.size() > 0);
    let first = groups.evaluate(EmitTo::First(1)).unwrap();
    assert_eq!(ScalarValue::try_from_array(&first, 0).unwrap(), ScalarValue::Int64(Some(2)));
    let rest = groups.evaluate(EmitTo::All).unwrap();
    assert_eq!(rest.as_primitive::<arrow::datatypes::Int64Type>().values(), &[1, 0]);
    assert_eq!(groups.evaluate(EmitTo::All).unwrap().len(), 0);
}
