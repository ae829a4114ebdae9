//! `AggregateExec`: GROUP BY and aggregate functions.
//!
//! A hash aggregation in one node (`Single`) or two: `Partial` wherever the rows are, then
//! `Final` over the partial states. Output: the group columns, the grouping id when there are
//! grouping sets, then the aggregates (or, of `Partial`, their states). The output has no order.
//!
//! Memory: group table and accumulators are reserved as they grow. When they may not, `Partial`
//! hands on what it has and starts afresh; the others write their groups to disk by hash and
//! merge them part by part. A `Partial` that does not reduce its input stops aggregating and
//! turns each further row into a state.

mod grace;
mod groups;
pub(super) mod inputs;
mod keys;
mod properties;
mod pushdown;
mod source;
mod spill;
mod stream;

use crate::context::{TaskContext, node_id};
use crate::display::bracketed;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::{Result, ScalarValue, Statistics, internal_err, plan_err};
use datafusion_expr::logical_plan::Aggregate;
use planish_expr::expressions::Column;
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{Distribution, LexOrdering, PhysicalExprRef};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use stream::Aggregation;

/// Which part of an aggregation a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateMode {
    /// Rows to states, in each partition on its own.
    Partial,
    /// States to results, in one partition.
    Final,
    /// States to results, over input partitioned by the group columns.
    FinalPartitioned,
    /// Rows to results, in one partition.
    Single,
    /// Rows to results, over input partitioned by the group columns.
    SinglePartitioned,
}

impl AggregateMode {
    /// Whether the input is rows, not states.
    pub fn is_raw(self) -> bool {
        !matches!(self, AggregateMode::Final | AggregateMode::FinalPartitioned)
    }

    fn is_partitioned(self) -> bool {
        matches!(self, AggregateMode::FinalPartitioned | AggregateMode::SinglePartitioned)
    }
}

/// Group expressions; several `groups` are grouping sets.
#[derive(Clone, Debug, Default)]
pub struct PhysicalGroupBy {
    /// The expressions with the names of their output columns.
    pub exprs: Vec<(PhysicalExprRef, String)>,
    /// For each grouping set, for each expression, whether it is NULL in that set.
    pub groups: Vec<Vec<bool>>,
}

impl PhysicalGroupBy {
    /// Groups by all of `exprs`.
    pub fn new_single(exprs: Vec<(PhysicalExprRef, String)>) -> Self {
        let n = exprs.len();
        PhysicalGroupBy { exprs, groups: vec![vec![false; n]] }
    }

    /// Whether there are no group expressions.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// One set in which no expression is NULL.
    pub fn is_single(&self) -> bool {
        self.groups.len() == 1 && self.groups[0].iter().all(|n| !n)
    }

    /// Whether there is a grouping id column, after the group columns.
    pub fn has_grouping_id(&self) -> bool {
        !self.is_single()
    }

    /// Number of key columns in the output, the grouping id included.
    pub fn num_output_keys(&self) -> usize {
        self.exprs.len() + usize::from(self.has_grouping_id())
    }

    /// The grouping that a `Final` node does over the output of a `Partial` one with this
    /// grouping: by all key columns, the grouping id being one of them.
    #[must_use]
    pub fn as_final(&self) -> PhysicalGroupBy {
        let id = self.has_grouping_id().then_some(Aggregate::INTERNAL_GROUPING_ID);
        let names = self.exprs.iter().map(|(_, name)| name.as_str()).chain(id);
        PhysicalGroupBy::new_single(
            names
                .enumerate()
                .map(|(i, name)| {
                    (Arc::new(Column::new(name, i)) as PhysicalExprRef, name.to_owned())
                })
                .collect(),
        )
    }

    /// The type of the grouping id: bits for the expressions, then for the ordinal of repeats.
    fn grouping_id_type(&self) -> DataType {
        let max = self.ordinals().into_iter().max().unwrap_or(0);
        Aggregate::grouping_id_type(self.exprs.len(), max)
    }

    /// For each set, how often it came before.
    fn ordinals(&self) -> Vec<usize> {
        let mut seen: HashMap<&[bool], usize> = HashMap::new();
        self.groups
            .iter()
            .map(|set| {
                let count = seen.entry(set).or_default();
                *count += 1;
                *count - 1
            })
            .collect()
    }

    /// The grouping id of each set; none without grouping sets. The lowest bit is that of the
    /// last expression.
    fn grouping_ids(&self) -> Result<Vec<ScalarValue>> {
        if !self.has_grouping_id() {
            return Ok(vec![]);
        }
        let data_type = self.grouping_id_type();
        let id = |(set, ordinal): (&Vec<bool>, usize)| {
            let mask = set.iter().fold(0u64, |mask, nulled| (mask << 1) | u64::from(*nulled));
            let id = mask | (ordinal as u64) << set.len();
            ScalarValue::UInt64(Some(id)).cast_to(&data_type)
        };
        self.groups.iter().zip(self.ordinals()).map(id).collect()
    }
}

/// Groups its input and computes aggregate functions per group.
#[derive(Debug)]
pub struct AggregateExec {
    pub(crate) mode: AggregateMode,
    pub(crate) group_by: PhysicalGroupBy,
    pub(crate) aggregates: Vec<Arc<AggregateFunctionExpr>>,
    pub(crate) input: PlanRef,
    input_schema: SchemaRef,
    state_schema: SchemaRef,
    required_ordering: Option<LexOrdering>,
    properties: PlanProperties,
}

impl AggregateExec {
    /// An aggregation of `input`. `input_schema` is that of the rows that are aggregated: the
    /// input's own or, in the final modes, that of the partial node's input. In the final modes
    /// keys are always the input's first columns, so `group_by` may be the partial node's.
    ///
    /// # Errors
    /// A plan error when the parts do not fit; when two functions need their rows in different
    /// orders.
    pub fn try_new(
        mode: AggregateMode,
        group_by: PhysicalGroupBy,
        aggregates: Vec<Arc<AggregateFunctionExpr>>,
        input: PlanRef,
        input_schema: SchemaRef,
    ) -> Result<Self> {
        let group_by = if mode.is_raw() { group_by } else { group_by.as_final() };
        if group_by.groups.iter().any(|set| set.len() != group_by.exprs.len()) {
            return internal_err!("a grouping set of another length than the group expressions");
        }
        if group_by.exprs.len() >= 64 && group_by.has_grouping_id() {
            return plan_err!("grouping sets over more than 63 expressions");
        }
        if mode == AggregateMode::SinglePartitioned && group_by.has_grouping_id() {
            return internal_err!("grouping sets over partitioned input need two steps");
        }
        let required_ordering = properties::required_ordering(mode, &aggregates)?;
        let state_schema = properties::state_schema(&group_by, &aggregates, &input)?;
        let properties =
            properties::properties(mode, &group_by, &aggregates, &input, &state_schema)?;
        Ok(AggregateExec {
            mode,
            group_by,
            aggregates,
            input,
            input_schema,
            state_schema,
            required_ordering,
            properties,
        })
    }

    /// Which part of the aggregation this node does.
    pub fn mode(&self) -> AggregateMode {
        self.mode
    }

    /// The grouping, over the input.
    pub fn group_by(&self) -> &PhysicalGroupBy {
        &self.group_by
    }

    /// The aggregate functions, over the rows that are aggregated.
    pub fn aggregates(&self) -> &[Arc<AggregateFunctionExpr>] {
        &self.aggregates
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// The schema of the rows that are aggregated.
    pub fn input_schema(&self) -> &SchemaRef {
        &self.input_schema
    }
}

impl ExecutionPlan for AggregateExec {
    fn name(&self) -> &'static str {
        "AggregateExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(AggregateExec::try_new(
            self.mode,
            self.group_by.clone(),
            self.aggregates.clone(),
            Arc::clone(&children[0]),
            Arc::clone(&self.input_schema),
        )?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregates = bracketed(self.aggregates.iter().map(|a| a.name.as_str()));
        write!(f, "mode={:?}, gby={}, aggr={aggregates}", self.mode, self.group_by)
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let keys = self.group_by.exprs.iter().map(|(e, _)| Arc::clone(e));
        if self.mode.is_raw() {
            return keys.chain(self.aggregates.iter().flat_map(|a| a.expressions())).collect();
        }
        let schema = self.input.schema();
        let states = schema.fields().iter().enumerate().skip(self.group_by.exprs.len());
        let states = states.map(|(i, f)| Arc::new(Column::new(f.name(), i)) as PhysicalExprRef);
        keys.chain(states).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![match self.mode {
            AggregateMode::Partial => Distribution::UnspecifiedDistribution,
            mode if mode.is_partitioned() && !self.group_by.is_empty() => {
                let keys = self.group_by.exprs.iter().map(|(e, _)| Arc::clone(e)).collect();
                Distribution::HashPartitioned(keys)
            }
            _ => Distribution::SinglePartition,
        }]
    }

    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        vec![self.required_ordering.clone()]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let input = execute_stream(&self.input, partition, ctx)?;
        let aggregation = Aggregation {
            mode: self.mode,
            group_by: self.group_by.clone(),
            calls: self.aggregates.clone(),
            input_schema: Arc::clone(&self.input_schema),
            schema: self.schema(),
            state_schema: Arc::clone(&self.state_schema),
            keys: self.group_by.num_output_keys(),
            metrics: ctx.metrics().node(node_id(self)),
        };
        Ok(aggregation.run(input, Arc::clone(ctx)))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        properties::statistics(self, partition)
    }
}

impl fmt::Display for PhysicalGroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |(expr, name): &(PhysicalExprRef, String)| {
            let shown = expr.to_string();
            if shown == *name { shown } else { format!("{shown} as {name}") }
        };
        if self.is_single() {
            return f.write_str(&bracketed(self.exprs.iter().map(show)));
        }
        let sets = self.groups.iter().map(|set| {
            let keys = self.exprs.iter().zip(set).map(|(key, nulled)| {
                if *nulled { format!("NULL as {}", key.1) } else { show(key) }
            });
            format!("({})", keys.collect::<Vec<_>>().join(", "))
        });
        f.write_str(&bracketed(sets))
    }
}

#[cfg(test)]
mod tests;
