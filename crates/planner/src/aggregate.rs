//! `Aggregate` becomes one `AggregateExec`, or a partial and a final one when there are several
//! partitions to aggregate at once.

use crate::expr::create_sort_expr;
use crate::planner::{Lowering, named_projection};
use datafusion_common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion_expr::expr::{AggregateFunction, NullTreatment};
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Aggregate, Expr, GroupingSet};
use itertools::Itertools;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{Column, Literal};
use planish_expr::projection::ProjectionExpr;
use planish_expr::udf::AggregateFunctionExpr;
use planish_plan::PlanRef;
use planish_plan::operators::aggregate::{AggregateExec, AggregateMode, PhysicalGroupBy};
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_aggregate(&self, node: &Aggregate) -> Result<PlanRef> {
        let input = self.lower(&node.input)?;
        let keys = grouping_set_to_exprlist(&node.group_expr)?;
        let has_id = matches!(node.group_expr.as_slice(), [Expr::GroupingSet(_)]);
        let group_by = self.group_by(node, &keys)?;
        let first_aggregate = keys.len() + usize::from(has_id);
        let aggregates = node
            .aggr_expr
            .iter()
            .zip(node.schema.fields().iter().skip(first_aggregate))
            .map(|(expr, field)| self.aggregate_function(expr, field.name(), &node.input))
            .collect::<Result<Vec<_>>>()?;

        // One set in which no key is NULL is a plain GROUP BY, whose operator yields no id.
        let yields_id = has_id && !group_by.is_single();
        let plan = self.aggregate_stages(group_by, aggregates, input)?;
        if yields_id == has_id { Ok(plan) } else { insert_grouping_id(plan, node, keys.len()) }
    }

    fn group_by(&self, node: &Aggregate, keys: &[&Expr]) -> Result<PhysicalGroupBy> {
        let exprs = keys
            .iter()
            .zip(node.schema.fields())
            .map(|(key, field)| Ok((self.expr(key, node.input.schema())?, field.name().to_owned())))
            .collect::<Result<Vec<_>>>()?;
        Ok(match node.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => PhysicalGroupBy { exprs, groups: null_masks(sets, keys) },
            _ => PhysicalGroupBy::new_single(exprs),
        })
    }

    fn aggregate_function(
        &self,
        expr: &Expr,
        name: &str,
        input: &datafusion_expr::LogicalPlan,
    ) -> Result<Arc<AggregateFunctionExpr>> {
        let (function, schema) = (strip_alias(expr), input.schema());
        let Expr::AggregateFunction(AggregateFunction { func, params }) = function else {
            return internal_err!("{function} is no aggregate function");
        };
        let context = self.expr_context();
        let order_by = params
            .order_by
            .iter()
            .map(|key| create_sort_expr(key, schema, &context))
            .collect::<Result<Vec<_>>>()?;
        let filter = match &params.filter {
            Some(filter) => Some(self.expr(filter, schema)?),
            None => None,
        };
        Ok(Arc::new(AggregateFunctionExpr::try_new(
            Arc::clone(func),
            self.exprs(&params.args, schema)?,
            Arc::clone(schema.inner()),
            name.to_owned(),
            params.distinct,
            params.null_treatment == Some(NullTreatment::IgnoreNulls),
            order_by,
            filter,
        )?))
    }

    /// The operators that group and aggregate `input`.
    fn aggregate_stages(
        &self,
        group_by: PhysicalGroupBy,
        aggregates: Vec<Arc<AggregateFunctionExpr>>,
        input: PlanRef,
    ) -> Result<PlanRef> {
        let schema = input.schema();
        // The states of an ordered aggregate do not merge: its groups are seen by one operator.
        let ordered = aggregates.iter().any(|a| !a.order_by.is_empty());
        let by_key = !group_by.is_empty() && self.options.optimizer.repartition_aggregations;
        if self.options.execution.target_partitions <= 1 || ordered {
            let mode = if ordered && by_key && group_by.is_single() {
                AggregateMode::SinglePartitioned
            } else {
                AggregateMode::Single
            };
            let single = AggregateExec::try_new(mode, group_by, aggregates, input, schema)?;
            return Ok(Arc::new(single));
        }
        let key_count = group_by.exprs.len() + usize::from(!group_by.is_single());
        let partial: PlanRef = Arc::new(AggregateExec::try_new(
            AggregateMode::Partial,
            group_by,
            aggregates.clone(),
            input,
            Arc::clone(&schema),
        )?);
        let states = partial.schema();
        let keys = states
            .fields()
            .iter()
            .take(key_count)
            .enumerate()
            .map(|(i, field)| {
                let column: PhysicalExprRef = Arc::new(Column::new(field.name(), i));
                (column, field.name().to_owned())
            })
            .collect();
        let mode = if by_key { AggregateMode::FinalPartitioned } else { AggregateMode::Final };
        let keys = PhysicalGroupBy::new_single(keys);
        Ok(Arc::new(AggregateExec::try_new(mode, keys, aggregates, partial, schema)?))
    }
}

fn strip_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => strip_alias(&alias.expr),
        other => other,
    }
}

/// For each grouping set, which of `keys` are NULL in it.
fn null_masks(sets: &GroupingSet, keys: &[&Expr]) -> Vec<Vec<bool>> {
    match sets {
        GroupingSet::Rollup(_) => {
            (0..=keys.len()).map(|kept| (0..keys.len()).map(|i| i >= kept).collect()).collect()
        }
        GroupingSet::Cube(_) => (0..keys.len())
            .powerset()
            .map(|kept| (0..keys.len()).map(|i| !kept.contains(&i)).collect())
            .collect(),
        GroupingSet::GroupingSets(sets) => {
            sets.iter().map(|set| keys.iter().map(|key| !set.contains(key)).collect()).collect()
        }
    }
}

/// `plan` with the grouping id of a set without NULL keys, behind its `keys` group columns.
fn insert_grouping_id(plan: PlanRef, node: &Aggregate, keys: usize) -> Result<PlanRef> {
    let schema: &DFSchema = &node.schema;
    let zero = ScalarValue::new_zero(schema.field(keys).data_type())?;
    let own = plan.schema();
    let exprs = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, field)| {
            let expr: PhysicalExprRef = match i.cmp(&keys) {
                std::cmp::Ordering::Less => Arc::new(Column::new(own.field(i).name(), i)),
                std::cmp::Ordering::Equal => Arc::new(Literal::new(zero.clone())),
                std::cmp::Ordering::Greater => {
                    Arc::new(Column::new(own.field(i - 1).name(), i - 1))
                }
            };
            ProjectionExpr::new(expr, field.name())
        })
        .collect();
    named_projection(exprs, plan, schema.inner())
}
