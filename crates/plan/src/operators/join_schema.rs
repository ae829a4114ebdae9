//! What a join says about its output: schema, properties, statistics.
//!
//! Common to the hash, nested-loop and cross joins. The left input is the build side, the right
//! one is probed; partitions of the output are those of the right input.

use crate::execution_plan::PlanRef;
use crate::properties::{Boundedness, EmissionType, PlanProperties};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, JoinType, Result, Statistics};
use planish_expr::analysis::distinct_values;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::expressions::Column;
use planish_expr::utils::shift_columns;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::sync::Arc;

/// Pairs of expressions, one over each input, that are equal in rows that match.
pub(crate) type JoinOn = [(PhysicalExprRef, PhysicalExprRef)];

/// Whether the left input's columns are part of the output.
pub fn shows_left(join_type: JoinType) -> bool {
    !matches!(join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

/// Whether the right input's columns are part of the output.
pub fn shows_right(join_type: JoinType) -> bool {
    !matches!(join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark)
}

/// Whether some rows come from the build side after all of the probe side was seen.
pub(crate) fn emits_build_rows(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::Left
            | JoinType::Full
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
    )
}

/// Whether the left input's columns may be NULL because a right row found no match.
fn left_null_extended(join_type: JoinType) -> bool {
    matches!(join_type, JoinType::Right | JoinType::Full)
}

/// Whether the right input's columns may be NULL because a left row found no match.
fn right_null_extended(join_type: JoinType) -> bool {
    matches!(join_type, JoinType::Left | JoinType::Full)
}

/// The output's schema: left columns, right columns, or one side's columns, then the mark.
pub(crate) fn join_schema(left: &Schema, right: &Schema, join_type: JoinType) -> SchemaRef {
    let mut fields: Vec<FieldRef> = vec![];
    if shows_left(join_type) {
        extend(&mut fields, left, left_null_extended(join_type));
    }
    if shows_right(join_type) {
        extend(&mut fields, right, right_null_extended(join_type));
    }
    if matches!(join_type, JoinType::LeftMark | JoinType::RightMark) {
        fields.push(Arc::new(Field::new("mark", DataType::Boolean, false)));
    }
    // The front end lets the preserved side's metadata win.
    let right_wins =
        left_null_extended(join_type) && !right_null_extended(join_type) || !shows_left(join_type);
    let (base, winner) = if right_wins { (left, right) } else { (right, left) };
    let mut metadata = base.metadata().clone();
    metadata.extend(winner.metadata().clone());
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn extend(fields: &mut Vec<FieldRef>, side: &Schema, null_extended: bool) {
    fields.extend(side.fields().iter().map(|field| {
        if null_extended && !field.is_nullable() {
            Arc::new(field.as_ref().clone().with_nullable(true))
        } else {
            Arc::clone(field)
        }
    }));
}

/// The properties of a join of `left` and `right` whose partitions are those of `right`.
///
/// `co_partitioned`: partition `i` of the output joins partition `i` of both sides; otherwise
/// all of the left input is joined with partition `i` of the right.
pub(crate) fn join_properties(
    left: &PlanRef,
    right: &PlanRef,
    on: &JoinOn,
    join_type: JoinType,
    co_partitioned: bool,
) -> Result<PlanProperties> {
    let schema = join_schema(&left.schema(), &right.schema(), join_type);
    let equivalences = join_equivalences(left, right, on, join_type, &schema)?;
    let partitioning = join_partitioning(left, right, join_type, co_partitioned)?;
    let emission = match join_type {
        JoinType::Left | JoinType::Full => EmissionType::Both,
        other if emits_build_rows(other) => EmissionType::Final,
        _ => EmissionType::Incremental,
    };
    let unbounded =
        [left, right].iter().any(|side| side.properties().boundedness == Boundedness::Unbounded);
    let boundedness = if unbounded { Boundedness::Unbounded } else { Boundedness::Bounded };
    Ok(PlanProperties::new(equivalences, partitioning)
        .with_emission(emission)
        .with_boundedness(boundedness))
}

/// The properties of a merge of `left` and `right`, co-partitioned and sorted by their keys, in
/// which the rows of one input go by in their order: those of the left one if
/// `streamed_is_left`. A full join has rows of both inputs alone, so its keys are in no order.
pub(crate) fn merge_join_properties(
    left: &PlanRef,
    right: &PlanRef,
    on: &JoinOn,
    join_type: JoinType,
    streamed_is_left: bool,
) -> Result<PlanProperties> {
    let mut properties =
        join_properties(left, right, on, join_type, true)?.with_emission(EmissionType::Incremental);
    properties.equivalences.clear_orderings();
    if join_type != JoinType::Full {
        let (streamed, offset) = match streamed_is_left {
            true => (left, 0),
            false => (right, right_offset(left, join_type)),
        };
        let schema = Arc::clone(properties.schema());
        let of_streamed = streamed.properties().equivalences.shifted(offset, schema)?;
        for ordering in of_streamed.orderings() {
            properties.equivalences.add_ordering(ordering.clone());
        }
    }
    Ok(properties)
}

/// Probe rows keep their order unless build rows come after them. Facts about a side hold for
/// the output as far as that side is not null-extended.
fn join_equivalences(
    left: &PlanRef,
    right: &PlanRef,
    on: &JoinOn,
    join_type: JoinType,
    schema: &SchemaRef,
) -> Result<EquivalenceProperties> {
    let offset = right_offset(left, join_type);
    let of_right = || right.properties().equivalences.shifted(offset, Arc::clone(schema));
    let mut facts = if emits_build_rows(join_type) {
        EquivalenceProperties::new(Arc::clone(schema))
    } else {
        of_right()?
    };
    if emits_build_rows(join_type) && shows_right(join_type) {
        let right = of_right()?;
        if right_null_extended(join_type) {
            add_column_equalities(&mut facts, &right);
        } else {
            facts.extend_equalities(&right);
        }
    }
    if shows_left(join_type) {
        let left = left.properties().equivalences.shifted(0, Arc::clone(schema))?;
        if left_null_extended(join_type) {
            add_column_equalities(&mut facts, &left);
        } else {
            facts.extend_equalities(&left);
        }
    }
    if join_type == JoinType::Inner {
        let (left_schema, right_schema) = (left.schema(), right.schema());
        for (l, r) in on {
            let left_type = l.data_type(&left_schema)?;
            // -0.0 = 0.0 holds, yet the two sort and hash apart.
            if left_type == r.data_type(&right_schema)? && !left_type.is_floating() {
                facts.add_equal(l, &shift_columns(r, offset as isize)?);
            }
        }
    }
    Ok(facts)
}

/// Equal columns stay equal when all of them become NULL together; expressions need not.
fn add_column_equalities(facts: &mut EquivalenceProperties, side: &EquivalenceProperties) {
    for class in side.classes() {
        let columns: Vec<_> = class.iter().filter(|e| e.is::<Column>()).collect();
        for pair in columns.windows(2) {
            facts.add_equal(pair[0], pair[1]);
        }
    }
}

fn right_offset(left: &PlanRef, join_type: JoinType) -> usize {
    if shows_left(join_type) { left.schema().fields().len() } else { 0 }
}

/// Build rows come from whichever partition finishes last, so a shared build says nothing about
/// where they are.
fn join_partitioning(
    left: &PlanRef,
    right: &PlanRef,
    join_type: JoinType,
    co_partitioned: bool,
) -> Result<Partitioning> {
    let of_left = &left.properties().partitioning;
    let of_right = &right.properties().partitioning;
    let unknown = Partitioning::UnknownPartitioning(of_right.partition_count());
    if co_partitioned {
        return match join_type {
            JoinType::Full => Ok(unknown),
            other if left_null_extended(other) || !shows_left(other) => {
                shifted_partitioning(of_right, right_offset(left, join_type))
            }
            _ if matches!(of_left, Partitioning::Hash(..)) => Ok(of_left.clone()),
            _ => Ok(unknown),
        };
    }
    if emits_build_rows(join_type) {
        return Ok(unknown);
    }
    shifted_partitioning(of_right, right_offset(left, join_type))
}

fn shifted_partitioning(partitioning: &Partitioning, offset: usize) -> Result<Partitioning> {
    Ok(match partitioning {
        Partitioning::Hash(keys, n) => {
            let keys = keys
                .iter()
                .map(|key| shift_columns(key, offset as isize))
                .collect::<Result<_>>()?;
            Partitioning::Hash(keys, *n)
        }
        // How batches were dealt out does not describe what is left of them.
        other => Partitioning::UnknownPartitioning(other.partition_count()),
    })
}

/// How many distinct values a pair of keys has on the left and on the right, by estimate.
pub(crate) type KeyValues = (Option<f64>, Option<f64>);

/// The numbers of distinct values of all pairs of keys.
pub(crate) fn key_values(
    on: &JoinOn,
    (left, left_schema): (&Statistics, &Schema),
    (right, right_schema): (&Statistics, &Schema),
) -> Vec<KeyValues> {
    let of = |key: &PhysicalExprRef, side: &Statistics, schema: &Schema| {
        let values = distinct_values(key, side, schema)?;
        let rows = side.num_rows.get_value().copied().unwrap_or(usize::MAX);
        Some(values.min(rows) as f64)
    };
    on.iter().map(|(l, r)| (of(l, left, left_schema), of(r, right, right_schema))).collect()
}

/// Statistics of a join of inputs with these statistics. `on` may be empty. The number of rows
/// is an estimate, except where every row of one side comes out exactly once.
pub(crate) fn join_statistics(
    left: &Statistics,
    right: &Statistics,
    on: &[KeyValues],
    join_type: JoinType,
    filtered: bool,
    schema: &SchemaRef,
) -> Statistics {
    let rows = |s: &Statistics| s.num_rows.get_value().copied();
    let estimate = |n: Option<f64>| match n {
        // At least one row: an estimate must not look like a proof of emptiness.
        Some(n) => Precision::Inexact((n.ceil() as usize).max(1)),
        None => Precision::Absent,
    };
    let (l, r) = (rows(left), rows(right));
    let inner = match (l, r) {
        (Some(l), Some(r)) => Some(inner_rows(l as f64, r as f64, on, filtered)),
        _ => None,
    };
    let at_least = |side: Option<usize>| match (inner, side) {
        (Some(inner), Some(side)) => Some(inner.max(side as f64)),
        _ => None,
    };
    let of_left = || on.iter().copied();
    let of_right = || on.iter().map(|&(left, right)| (right, left));
    let num_rows = match join_type {
        JoinType::Inner if on.is_empty() && !filtered => left.num_rows.multiply(&right.num_rows),
        JoinType::Inner => estimate(inner),
        JoinType::Left => estimate(at_least(l)),
        JoinType::Right => estimate(at_least(r)),
        JoinType::Full => estimate(at_least(l.max(r))),
        JoinType::LeftMark => left.num_rows,
        JoinType::RightMark => right.num_rows,
        JoinType::LeftSemi => estimate(l.map(|n| n as f64 * kept(of_left()))),
        JoinType::RightSemi => estimate(r.map(|n| n as f64 * kept(of_right()))),
        JoinType::LeftAnti => estimate(l.map(|n| n as f64 * not_kept(of_left()))),
        JoinType::RightAnti => estimate(r.map(|n| n as f64 * not_kept(of_right()))),
    };
    let mut columns: Vec<ColumnStatistics> = vec![];
    if shows_left(join_type) {
        columns.extend(left.column_statistics.iter().cloned());
    }
    if shows_right(join_type) {
        columns.extend(right.column_statistics.iter().cloned());
    }
    let exact = matches!(join_type, JoinType::LeftMark | JoinType::RightMark);
    let mut columns: Vec<ColumnStatistics> =
        columns.into_iter().map(|c| if exact { c } else { c.to_inexact() }).collect();
    columns.resize(schema.fields().len(), ColumnStatistics::new_unknown());
    if !exact {
        for column in &mut columns {
            column.sum_value = Precision::Absent;
            column.byte_size = Precision::Absent;
        }
    }
    Statistics {
        num_rows,
        total_byte_size: joined_bytes(left, right, join_type, num_rows),
        column_statistics: columns,
    }
}

/// Rows of the inner join: each key divides the product by the larger number of distinct
/// values; the most selective key decides. Without such numbers, one side is taken to be unique.
fn inner_rows(l: f64, r: f64, on: &[KeyValues], filtered: bool) -> f64 {
    let distinct =
        on.iter().filter_map(|&(of_left, of_right)| Some(of_left?.max(of_right?))).reduce(f64::max);
    let rows = match distinct {
        Some(distinct) => l * r / distinct.max(1.0),
        None if on.is_empty() => l * r,
        None => l.max(r),
    };
    // Of a residual condition nothing is known.
    if filtered { rows * 0.5 } else { rows }
}

/// The share of the rows of one side that find a match; `on` says how many values that side has,
/// and the other one.
fn kept(on: impl Iterator<Item = KeyValues>) -> f64 {
    on.filter_map(|(own, others)| Some((others? / own?.max(1.0)).min(1.0)))
        .reduce(f64::min)
        .unwrap_or(1.0)
}

fn not_kept(on: impl Iterator<Item = KeyValues>) -> f64 {
    let kept = kept(on);
    if kept < 1.0 { 1.0 - kept } else { 0.5 }
}

/// Bytes of the output by the average row width of the sides it shows.
fn joined_bytes(
    left: &Statistics,
    right: &Statistics,
    join_type: JoinType,
    num_rows: Precision<usize>,
) -> Precision<usize> {
    let width = |side: &Statistics, shown: bool| {
        if !shown {
            return Some(0.0);
        }
        let rows = (*side.num_rows.get_value()?).max(1);
        Some(*side.total_byte_size.get_value()? as f64 / rows as f64)
    };
    let (l, r) = (width(left, shows_left(join_type)), width(right, shows_right(join_type)));
    match (l, r, num_rows.get_value()) {
        (Some(l), Some(r), Some(&rows)) => Precision::Inexact(((l + r) * rows as f64) as usize),
        _ => Precision::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_common::ScalarValue;

    fn schema(name: &str) -> Schema {
        Schema::new(vec![Field::new(name, DataType::Int64, false)])
    }

    /// `rows` rows of keys from 1 to `keys`.
    fn side(rows: usize, keys: i64) -> Statistics {
        let column = ColumnStatistics::new_unknown()
            .with_min_value(Precision::Exact(ScalarValue::from(1i64)))
            .with_max_value(Precision::Exact(ScalarValue::from(keys)));
        Statistics {
            num_rows: Precision::Inexact(rows),
            total_byte_size: Precision::Absent,
            column_statistics: vec![column],
        }
    }

    fn rows(left: &Statistics, right: &Statistics, join_type: JoinType) -> Precision<usize> {
        let key = |name| -> PhysicalExprRef { Arc::new(Column::new(name, 0)) };
        let (l, r) = (schema("l"), schema("r"));
        let on = key_values(&[(key("l"), key("r"))], (left, &l), (right, &r));
        let output = join_schema(&l, &r, join_type);
        join_statistics(left, right, &on, join_type, false, &output).num_rows
    }

    #[test]
    fn a_few_keys_of_many_keep_their_share_of_the_rows() {
        let (few, many) = (side(800, 200_000), side(800_000, 200_000));
        assert_eq!(rows(&few, &many, JoinType::Inner), Precision::Inexact(3200));
        assert_eq!(rows(&many, &few, JoinType::Inner), Precision::Inexact(3200));
        assert_eq!(rows(&few, &many, JoinType::LeftSemi), Precision::Inexact(800));
        assert_eq!(rows(&many, &few, JoinType::LeftSemi), Precision::Inexact(3200));
        assert_eq!(rows(&few, &many, JoinType::Right), Precision::Inexact(800_000));
    }

    #[test]
    fn without_bounds_one_side_is_taken_to_be_unique() {
        let unknown = |rows| Statistics {
            num_rows: Precision::Inexact(rows),
            ..Statistics::new_unknown(&schema("l"))
        };
        assert_eq!(rows(&unknown(800), &unknown(5000), JoinType::Inner), Precision::Inexact(5000));
        assert_eq!(
            rows(&unknown(800), &unknown(5000), JoinType::LeftSemi),
            Precision::Inexact(800)
        );
    }
}
