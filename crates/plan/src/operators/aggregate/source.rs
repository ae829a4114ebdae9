//! [`RowSource`]: what a node does with a batch of its input, rows or states; and whether rows
//! are worth grouping at all.

use super::groups::Groups;
use super::inputs::AggregateInputs;
use super::keys::{has_floats, normalize_floats};
use super::stream::Aggregation;
use crate::context::TaskContext;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, ScalarValue};
use planish_batch::{Batch, Column};
use planish_expr::PhysicalExprRef;
use planish_expr::udf::AggregateFunctionExpr;
use std::sync::Arc;

/// Where key columns and values come from.
pub(super) enum RowSource {
    Raw(Box<RawRows>),
    /// Partial states, after so many key columns.
    States(usize),
}

/// Rows, to be grouped by each of the sets.
pub(super) struct RawRows {
    keys: Vec<PhysicalExprRef>,
    sets: Vec<Vec<bool>>,
    /// The grouping id of each set, when there are grouping sets.
    ids: Vec<ScalarValue>,
    nulls: Vec<ScalarValue>,
    inputs: AggregateInputs,
}

impl RowSource {
    pub(super) async fn try_new(
        node: &Aggregation,
        calls: &[Arc<AggregateFunctionExpr>],
        ctx: &Arc<TaskContext>,
    ) -> Result<Self> {
        if !node.mode.is_raw() {
            return Ok(RowSource::States(node.keys));
        }
        let mut keys = vec![];
        for (expr, _) in &node.group_by.exprs {
            keys.push(ctx.bind(expr).await?);
        }
        let nulls = keys
            .iter()
            .map(|e| ScalarValue::try_new_null(&e.data_type(&node.input_schema)?))
            .collect::<Result<Vec<_>>>()?;
        Ok(RowSource::Raw(Box::new(RawRows {
            keys,
            sets: node.group_by.groups.clone(),
            ids: node.group_by.grouping_ids()?,
            nulls,
            inputs: AggregateInputs::new(calls, &node.input_schema, false),
        })))
    }

    pub(super) fn can_skip(&self, calls: &[Arc<AggregateFunctionExpr>]) -> bool {
        match self {
            RowSource::Raw(raw) => {
                raw.ids.is_empty() && calls.iter().all(|c| c.groups_accumulator_supported())
            }
            RowSource::States(_) => false,
        }
    }

    /// A grand total has a row even when there are no input rows.
    pub(super) fn add_empty_sets(&self, groups: &mut Groups) -> Result<()> {
        let RowSource::Raw(raw) = self else { return Ok(()) };
        for (set, nulled) in raw.sets.iter().enumerate() {
            if !raw.ids.is_empty() && nulled.iter().all(|n| *n) {
                groups.add_empty(&raw.key_columns(&[], set, 1))?;
            }
        }
        Ok(())
    }

    pub(super) fn consume(&mut self, batch: &Batch, groups: &mut Groups) -> Result<()> {
        let raw = match self {
            RowSource::States(keys) => return merge_states(batch, *keys, groups),
            RowSource::Raw(raw) => raw,
        };
        let evaluated = raw.inputs.evaluate(batch)?;
        let columns = raw.evaluate_keys(batch)?;
        for set in 0..raw.sets.len() {
            let keys = raw.key_columns(&columns, set, batch.num_rows());
            groups.update(&keys, batch.num_rows(), &raw.inputs, &evaluated)?;
        }
        Ok(())
    }

    /// Rows as groups of one row each.
    pub(super) fn pass_on(
        &mut self,
        batch: &Batch,
        groups: &Groups,
        schema: &SchemaRef,
    ) -> Result<Batch> {
        let RowSource::Raw(raw) = self else { return Ok(batch.clone()) };
        let evaluated = raw.inputs.evaluate(batch)?;
        let mut columns = raw.evaluate_keys(batch)?;
        for column in &mut columns {
            if has_floats(&column.data_type()) {
                *column = Column::flat(normalize_floats(&column.values()?)?);
            }
        }
        let states = groups.convert(&raw.inputs, &evaluated)?;
        columns.extend(states.into_iter().map(Column::flat));
        Batch::try_new(Arc::clone(schema), columns, batch.num_rows())
    }
}

impl RawRows {
    fn evaluate_keys(&self, batch: &Batch) -> Result<Vec<Column>> {
        self.keys.iter().map(|e| e.evaluate_column(batch)).collect()
    }

    fn key_columns(&self, columns: &[Column], set: usize, rows: usize) -> Vec<Column> {
        let keys = self.sets[set].iter().zip(&self.nulls).enumerate().map(|(i, (nulled, null))| {
            if *nulled { Column::constant(null.clone(), rows) } else { columns[i].clone() }
        });
        let id = self.ids.get(set).map(|id| Column::constant(id.clone(), rows));
        keys.chain(id).collect()
    }
}

/// Whether a partial aggregate reduces its input enough to go on.
pub(super) struct SkipDecision {
    open: bool,
    /// The decision, once made: rows are passed on.
    pub(super) skipping: bool,
    rows: usize,
    after_rows: usize,
    ratio: f64,
}

impl SkipDecision {
    pub(super) fn new(ctx: &TaskContext, open: bool) -> Self {
        let options = ctx.planish_options();
        SkipDecision {
            open,
            skipping: false,
            rows: 0,
            after_rows: options.skip_partial_aggregation_rows,
            ratio: options.skip_partial_aggregation_ratio,
        }
    }

    /// Counts a batch; true when aggregating should stop.
    pub(super) fn after(&mut self, rows: usize, groups: usize) -> bool {
        self.rows += rows;
        if self.open && self.rows >= self.after_rows {
            self.open = false;
            self.skipping = groups as f64 > self.ratio * self.rows as f64;
        }
        self.skipping
    }
}

pub(super) fn merge_states(batch: &Batch, keys: usize, groups: &mut Groups) -> Result<()> {
    let states =
        (keys..batch.num_columns()).map(|i| batch.column(i)).collect::<Result<Vec<_>>>()?;
    groups.merge(&batch.columns()[..keys], &states, batch.num_rows())
}
