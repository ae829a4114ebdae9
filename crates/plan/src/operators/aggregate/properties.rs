//! What an aggregation's output is known to be: schema, facts, partitioning, statistics.

use super::{AggregateExec, AggregateMode, PhysicalGroupBy};
use crate::execution_plan::PlanRef;
use crate::properties::{EmissionType, PlanProperties};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, Result, Statistics, internal_err, not_impl_err};
use datafusion_expr::logical_plan::Aggregate;
use planish_expr::analysis::distinct_count;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::expressions::Column;
use planish_expr::projection::{ProjectionExpr, ProjectionMapping};
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{LexOrdering, Partitioning, PhysicalExprRef, is_volatile};
use std::sync::Arc;

/// The order in which functions that do not sort by themselves want their rows.
pub(super) fn required_ordering(
    mode: AggregateMode,
    aggregates: &[Arc<AggregateFunctionExpr>],
) -> Result<Option<LexOrdering>> {
    let mut required: Option<&[planish_expr::PhysicalSortExpr]> = None;
    for call in aggregates.iter().filter(|_| mode.is_raw()) {
        let Some(wanted) = call.required_ordering() else { continue };
        required = match required {
            None => Some(wanted),
            // The longer of two orders of which one begins with the other serves both.
            Some(known) if known.starts_with(wanted) => Some(known),
            Some(known) if wanted.starts_with(known) => Some(wanted),
            Some(_) => {
                return not_impl_err!(
                    "aggregate functions that need their input in different orders ({call})"
                );
            }
        };
    }
    Ok(required.map(<[_]>::to_vec))
}

/// Key columns and the states of `aggregates`.
pub(super) fn state_schema(
    group_by: &PhysicalGroupBy,
    aggregates: &[Arc<AggregateFunctionExpr>],
    input: &PlanRef,
) -> Result<SchemaRef> {
    let schema = input.schema();
    let sets = group_by.has_grouping_id();
    let mut fields: Vec<FieldRef> = vec![];
    for (expr, name) in &group_by.exprs {
        let field = expr.return_field(&schema)?.as_ref().clone().with_name(name);
        let nullable = field.is_nullable() || sets;
        fields.push(Arc::new(field.with_nullable(nullable)));
    }
    if sets {
        let id = Field::new(Aggregate::INTERNAL_GROUPING_ID, group_by.grouping_id_type(), false);
        fields.push(Arc::new(id));
    }
    fields.extend(aggregates.iter().flat_map(|a| a.state_fields().iter().cloned()));
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

pub(super) fn properties(
    mode: AggregateMode,
    group_by: &PhysicalGroupBy,
    aggregates: &[Arc<AggregateFunctionExpr>],
    input: &PlanRef,
    state_schema: &SchemaRef,
) -> Result<PlanProperties> {
    let of_input = input.properties();
    if !mode.is_raw() {
        check_states(state_schema, input)?;
    }
    let schema = if mode == AggregateMode::Partial {
        Arc::clone(state_schema)
    } else {
        let keys = state_schema.fields().iter().take(group_by.num_output_keys()).cloned();
        let fields: Vec<FieldRef> =
            keys.chain(aggregates.iter().map(|a| Arc::clone(a.field()))).collect();
        Arc::new(Schema::new_with_metadata(fields, state_schema.metadata().clone()))
    };
    // A key that is NULL in some set is not the expression it is named after.
    let always: Vec<ProjectionExpr> = group_by
        .exprs
        .iter()
        .enumerate()
        .take_while(|(i, _)| group_by.groups.iter().all(|set| !set[*i]))
        .map(|(_, (expr, name))| ProjectionExpr::new(Arc::clone(expr), name.clone()))
        .collect();
    let mapping = ProjectionMapping::try_new(&always, &input.schema())?;
    let mut equivalences = of_input.equivalences.project(&mapping, Arc::clone(&schema));
    equivalences.clear_orderings();
    let n = of_input.partition_count();
    let one_row = group_by.is_empty() && group_by.is_single() && mode != AggregateMode::Partial;
    if one_row && n == 1 {
        add_all_constant(&mut equivalences, &schema);
    }
    let partitioning = match &of_input.partitioning {
        Partitioning::Hash(keys, n) => {
            let shown = keys.iter().map(|key| mapping.project(key)).collect::<Option<Vec<_>>>();
            shown.map_or(Partitioning::UnknownPartitioning(*n), |k| Partitioning::Hash(k, *n))
        }
        _ => Partitioning::UnknownPartitioning(n),
    };
    Ok(PlanProperties::new(equivalences, partitioning)
        .with_emission(EmissionType::Final)
        .with_boundedness(of_input.boundedness))
}

fn add_all_constant(equivalences: &mut EquivalenceProperties, schema: &SchemaRef) {
    for (i, field) in schema.fields().iter().enumerate() {
        equivalences.add_constant(Arc::new(Column::new(field.name(), i)) as PhysicalExprRef);
    }
}

/// The input of a final node must be what the partial node gives.
fn check_states(expected: &SchemaRef, input: &PlanRef) -> Result<()> {
    let schema = input.schema();
    let same = expected.fields().len() == schema.fields().len()
        && expected
            .fields()
            .iter()
            .zip(schema.fields())
            .all(|(a, b)| a.data_type() == b.data_type());
    if same {
        return Ok(());
    }
    internal_err!("a final aggregate expects states of {expected}, its input has {schema}")
}

pub(super) fn statistics(node: &AggregateExec, partition: Option<usize>) -> Result<Statistics> {
    let mut statistics = Statistics::new_unknown(node.properties.schema());
    if node.group_by.is_empty() && node.group_by.is_single() {
        // A partial node has a state per partition, and may hand one on early when memory is
        // short. Any other yields one row, even while a rule has still to merge its partitions.
        statistics.num_rows = if node.mode == AggregateMode::Partial {
            let partitions = node.properties.partition_count();
            Precision::Inexact(if partition.is_some() { 1 } else { partitions })
        } else {
            Precision::Exact(1)
        };
        return Ok(statistics);
    }
    let input = node.input.statistics(partition)?;
    let column = |expr: &PhysicalExprRef| -> Option<&ColumnStatistics> {
        let column = expr.downcast_ref::<Column>()?;
        input.column_statistics.get(column.index())
    };
    let sets = node.group_by.groups.len();
    if let Some(rows) = input.num_rows.get_value() {
        let per_set = |set: &Vec<bool>| {
            let keys = node.group_by.exprs.iter().zip(set).filter(|(_, nulled)| !**nulled);
            let mut distinct = keys.map(|((expr, _), _)| {
                distinct_count(expr, &input, &node.input.schema()).get_value().copied()
            });
            let groups = distinct
                .try_fold(1usize, |product, n| Some(product.saturating_mul(n?.saturating_add(1))));
            groups.map_or(*rows, |groups| groups.min(*rows))
        };
        let groups = node.group_by.groups.iter().map(per_set).fold(0, usize::saturating_add);
        statistics.num_rows = Precision::Inexact(groups);
    }
    if sets == 1 {
        for (i, (expr, _)) in node.group_by.exprs.iter().enumerate() {
            if is_volatile(expr) {
                continue;
            }
            let Some(own) = statistics.column_statistics.get_mut(i) else { continue };
            own.distinct_count = distinct_count(expr, &input, &node.input.schema());
            if let Some(of_input) = column(expr) {
                own.min_value = of_input.min_value.clone().to_inexact();
                own.max_value = of_input.max_value.clone().to_inexact();
            }
        }
    }
    Ok(statistics)
}
