//! How many distinct values an expression has, at most and by estimate.

use super::bounds::{ValueBounds, compare, value_bounds};
use crate::expressions::Column;
use crate::utils::column_indices;
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::stats::Precision;
use datafusion_common::{ScalarValue, Statistics};
use std::cmp::Ordering;

/// An upper estimate of the distinct values (NULL aside) of `expr` over rows of `stats`, never
/// exact: what statistics say of a column; else the number of integers, dates or truth values
/// between its bounds; the product over the columns read; in any case no more than there are
/// rows.
pub fn distinct_count(
    expr: &PhysicalExprRef,
    stats: &Statistics,
    schema: &Schema,
) -> Precision<usize> {
    let rows = stats.num_rows.get_value().copied();
    let least = distinct_values(expr, stats, schema).into_iter().chain(rows).min();
    least.map_or(Precision::Absent, Precision::Inexact)
}

/// As [`distinct_count`], whatever the number of rows; `None` when nothing is known.
pub fn distinct_values(
    expr: &PhysicalExprRef,
    stats: &Statistics,
    schema: &Schema,
) -> Option<usize> {
    if is_volatile(expr) {
        return None;
    }
    let of_column = |i: usize| {
        let known = stats.column_statistics.get(i).and_then(|c| c.distinct_count.get_value());
        known.copied().or_else(|| {
            let data_type = schema.fields().get(i)?.data_type();
            range(&ValueBounds::estimate(stats, schema, i), data_type)
        })
    };
    if let Some(column) = expr.downcast_ref::<Column>() {
        return of_column(column.index());
    }
    let columns = |i: usize| ValueBounds::estimate(stats, schema, i);
    let data_type = expr.data_type(schema).ok()?;
    let of_values = range(&value_bounds(expr, schema, &columns), &data_type);
    // NULL is one more value to combine with the others.
    let of_inputs = column_indices(expr).into_iter().try_fold(1usize, |combinations, i| {
        Some(combinations.saturating_mul(of_column(i)?.saturating_add(1)))
    });
    of_values.into_iter().chain(of_inputs).min()
}

/// How many values a type whose values can be counted has between two bounds.
fn range(bounds: &ValueBounds, data_type: &DataType) -> Option<usize> {
    if *data_type == DataType::Boolean {
        return Some(2);
    }
    if !data_type.is_integer() && !matches!(data_type, DataType::Date32) {
        return None;
    }
    let (lower, upper) = (bounds.lower.as_ref()?, bounds.upper.as_ref()?);
    if compare(lower, upper)? == Ordering::Greater {
        return None;
    }
    days_or_distance(lower, upper)?.checked_add(1)
}

fn days_or_distance(lower: &ScalarValue, upper: &ScalarValue) -> Option<usize> {
    match (lower, upper) {
        (ScalarValue::Date32(Some(a)), ScalarValue::Date32(Some(b))) => {
            usize::try_from(i64::from(*b) - i64::from(*a)).ok()
        }
        _ => lower.distance(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{BinaryExpr, CastExpr, lit};
    use arrow::datatypes::Field;
    use datafusion_common::ColumnStatistics;
    use datafusion_expr::Operator;
    use std::sync::Arc;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Utf8, true),
            Field::new("c", DataType::Boolean, true),
            Field::new("d", DataType::Date32, true),
        ])
    }

    fn stats(rows: Precision<usize>) -> Statistics {
        let between = |low: ScalarValue, high: ScalarValue| {
            ColumnStatistics::new_unknown()
                .with_min_value(Precision::Exact(low))
                .with_max_value(Precision::Exact(high))
        };
        Statistics {
            num_rows: rows,
            total_byte_size: Precision::Absent,
            column_statistics: vec![
                between(ScalarValue::from(-3i64), ScalarValue::from(6i64)),
                ColumnStatistics::new_unknown().with_distinct_count(Precision::Exact(7)),
                ColumnStatistics::new_unknown(),
                between(ScalarValue::Date32(Some(-1)), ScalarValue::Date32(Some(363))),
            ],
        }
    }

    fn col(i: usize) -> PhysicalExprRef {
        Arc::new(Column::new(schema().field(i).name(), i))
    }

    #[test]
    fn columns_by_statistics_or_range() {
        let of = |i| distinct_count(&col(i), &stats(Precision::Exact(1000)), &schema());
        assert_eq!(of(0), Precision::Inexact(10));
        assert_eq!(of(1), Precision::Inexact(7), "never exact: the front end may filter");
        assert_eq!(of(2), Precision::Inexact(2));
        assert_eq!(of(3), Precision::Inexact(365));
    }

    #[test]
    fn no_more_than_there_are_rows() {
        let of = |rows| distinct_count(&col(3), &stats(rows), &schema());
        assert_eq!(of(Precision::Exact(9)), Precision::Inexact(9));
        assert_eq!(of(Precision::Inexact(9)), Precision::Inexact(9));
        assert_eq!(of(Precision::Absent), Precision::Inexact(365));
        let unknown = Statistics::new_unknown(&schema());
        assert_eq!(distinct_count(&col(1), &unknown, &schema()), Precision::Absent);
    }

    #[test]
    fn computations_have_no_more_values_than_their_inputs_combine() {
        let of =
            |e: PhysicalExprRef| distinct_count(&e, &stats(Precision::Exact(1_000_000)), &schema());
        let plus = |l, r| Arc::new(BinaryExpr::new(l, Operator::Plus, r)) as PhysicalExprRef;
        assert_eq!(of(lit(5i64)), Precision::Inexact(1));
        assert_eq!(of(plus(col(0), lit(1i64))), Precision::Inexact(10));
        // 7 texts and NULL, with 10 numbers and NULL.
        let text = Arc::new(CastExpr::new(col(0), DataType::Utf8));
        let concat = Arc::new(BinaryExpr::new(text, Operator::StringConcat, col(1)));
        assert_eq!(of(concat), Precision::Inexact(88));
        // A condition is true or false.
        let less = Arc::new(BinaryExpr::new(col(0), Operator::Lt, lit(3i64)));
        assert_eq!(of(less), Precision::Inexact(2));
    }
}
