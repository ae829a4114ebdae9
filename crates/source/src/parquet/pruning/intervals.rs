//! Comparisons of computed values: by interval analysis, row group by row group.

use super::bounds::{Possible, RowGroupBounds, TableColumnBounds};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Schema;
use datafusion_common::{Result, ScalarValue};
use planish_expr::PhysicalExprRef;
use planish_expr::analysis::{Truth, ValueBounds, possible_truth};
use planish_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, CoalesceExpr, Column, NegativeExpr, TryCastExpr,
};
use planish_expr::utils::column_indices;
use std::collections::BTreeMap;

/// Whether something may be known of the value of `operand`: it is a number made of columns that
/// have bounds.
pub(super) fn is_bounded(operand: &PhysicalExprRef, schema: &Schema) -> bool {
    let computed = operand.is::<Column>()
        || operand.is::<BinaryExpr>()
        || operand.is::<NegativeExpr>()
        || operand.is::<CastExpr>()
        || operand.is::<TryCastExpr>()
        || operand.is::<CaseExpr>()
        || operand.is::<CoalesceExpr>();
    let flat = |i: usize| schema.fields().get(i).is_some_and(|f| !f.data_type().is_nested());
    computed && column_indices(operand).into_iter().all(flat)
}

/// What rows of each row group may make of `condition`.
pub(super) fn by_intervals(
    condition: &PhysicalExprRef,
    bounds: &dyn RowGroupBounds,
) -> Result<Possible> {
    let mut columns = BTreeMap::new();
    for i in column_indices(condition) {
        columns.insert(i, bounds.column(i)?);
    }
    let rows = bounds.rows();
    let truths: Vec<Truth> = (0..rows.len())
        .map(|group| {
            let facts = |i: usize| match columns.get(&i) {
                Some(Some(known)) => of_group(known, group, rows[group]),
                _ => ValueBounds::unknown(),
            };
            possible_truth(condition, bounds.schema(), &facts)
        })
        .collect();
    let collect = |test: &dyn Fn(&Truth) -> bool| {
        BooleanBuffer::collect_bool(truths.len(), |group| test(&truths[group]))
    };
    Ok(Possible {
        r#true: collect(&|truth| truth.may_be_true),
        r#false: collect(&|truth| truth.may_be_false),
    })
}

fn of_group(known: &TableColumnBounds, group: usize, rows: u64) -> ValueBounds {
    let (min, max, stored) = match known {
        TableColumnBounds::AllNull => return ValueBounds::of_value(&ScalarValue::Null),
        TableColumnBounds::Known(min, max, stored) => (min, max, stored),
    };
    let nulls = stored.null_count[group];
    if nulls == Some(rows) {
        return ValueBounds::of_value(&ScalarValue::Null);
    }
    let end = |array: &ArrayRef| {
        let value = ScalarValue::try_from_array(array, group);
        value.ok().filter(|value| !value.is_null())
    };
    ValueBounds {
        lower: end(min),
        upper: end(max),
        // Statistics leave NaN out.
        may_be_nan: min.data_type().is_floating(),
        may_be_null: nulls != Some(0),
        all_null: false,
    }
}
