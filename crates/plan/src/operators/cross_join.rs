//! `CrossJoinExec`: every pair of rows.
//!
//! The left input is collected from all of its partitions at once and shared; every partition of
//! the right input is paired with it, probe row by probe row, in blocks of at most a batch.
//! Output batches are selections over both sides; a left side of one row becomes constants.
//! Probe rows keep their order.
//!
//! Memory: the left side is reserved, and not spilled.

use crate::context::{TaskContext, node_id};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::emitted::Emitted;
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::{deferred, empty, probe_stream};
use crate::operators::join_product::{ProductProbe, collect_build};
use crate::operators::join_pushdown::{Narrowed, offer_filters, restore_columns};
use crate::operators::join_schema::{join_properties, join_schema, join_statistics};
use crate::operators::join_state::{BuildRows, Collector};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    Pushdown,
};
use crate::shared::{SharedGuard, SharedTask};
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinType, Result, ScalarValue, Statistics, internal_err};
use futures::StreamExt;
use planish_batch::{Batch, Column};
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Every row of the left input beside every row of the right one.
#[derive(Debug)]
pub struct CrossJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    emitted: Emitted,
    properties: PlanProperties,
}

impl CrossJoinExec {
    /// Every row of `left` (collected) beside every row of `right` (streamed).
    pub fn new(left: PlanRef, right: PlanRef) -> Self {
        let inner = JoinType::Inner;
        // Facts that cannot be moved are not claimed; column references always can be.
        let properties = join_properties(&left, &right, &[], inner, false).unwrap_or_else(|_| {
            let schema = join_schema(&left.schema(), &right.schema(), inner);
            let partitions = Partitioning::UnknownPartitioning(right.partition_count());
            PlanProperties::new(EquivalenceProperties::new(schema), partitions)
        });
        let emitted = Emitted::all(Arc::clone(properties.schema()));
        CrossJoinExec { left, right, emitted, properties }
    }

    /// The same join, of whose columns only those at `indices` come out; `None`: all.
    fn emitting(self, indices: Option<Arc<[usize]>>) -> Result<Self> {
        let emitted = Emitted::only(Arc::clone(self.emitted.made()), indices);
        let properties = emitted.properties(self.properties)?;
        Ok(CrossJoinExec { emitted, properties, ..self })
    }

    /// The collected side.
    pub fn left(&self) -> &PlanRef {
        &self.left
    }

    /// The streamed side.
    pub fn right(&self) -> &PlanRef {
        &self.right
    }

    /// Which of the columns it makes this node hands on, and in which order; `None`: all. Only its
    /// output has these coordinates: its expressions are over its inputs.
    pub fn projection(&self) -> Option<&[usize]> {
        self.emitted.as_slice()
    }

    /// The same rows and columns with the inputs in each other's place.
    ///
    /// # Errors
    /// When the restoring projection cannot be made.
    pub fn swap_inputs(&self) -> Result<PlanRef> {
        let swapped = CrossJoinExec::new(Arc::clone(&self.right), Arc::clone(&self.left));
        let left_len = self.left.schema().fields().len();
        match self.emitted.swapped(left_len, JoinType::Inner) {
            Some(indices) => Ok(Arc::new(swapped.emitting(Some(indices))?)),
            None => restore_columns(Arc::new(swapped), &self.schema(), left_len, JoinType::Inner),
        }
    }
}

impl ExecutionPlan for CrossJoinExec {
    fn name(&self) -> &'static str {
        "CrossJoinExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let [left, right] = children.as_slice() else {
            return internal_err!("a join of {} inputs", children.len());
        };
        let new = CrossJoinExec::new(Arc::clone(left), Arc::clone(right));
        Ok(Arc::new(new.emitting(self.emitted.indices())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.emitted.fmt(f, "")
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, true]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let right = execute_stream(&self.right, partition, ctx)?;
        let (schema, right_schema) = (Arc::clone(self.emitted.made()), self.right.schema());
        let node = node_id(self);
        let probes = self.right.partition_count();
        let state = ctx.state(node, || SharedBuild(Arc::new(SharedTask::new(probes))));
        let guard = state.0.guard();
        let collector = Collector::new(&self.left, node, self.name(), ctx);
        let ctx = Arc::clone(ctx);
        let setup = async move {
            let inner = JoinType::Inner;
            let build = state.0.get(|| {
                let work = collect_build(collector, inner, probes, vec![], Arc::clone(&ctx));
                Ok(ctx.spawn_for(node, work))
            });
            let build = build.await?;
            match build.len() {
                0 => Ok(empty()),
                1 => beside_one_row(&build.rows, right, schema, guard),
                _ => {
                    let rows = Arc::clone(&build);
                    let out = JoinOutput::new(inner, schema, right_schema, rows, ctx.batch_size());
                    Ok(probe_stream(right, ProductProbe::new(build, None), out, guard))
                }
            }
        };
        Ok(self.emitted.stream(deferred(setup), self.schema()))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.emitted.statistics(join_statistics(
            &self.left.statistics(None)?,
            &self.right.statistics(partition)?,
            &[],
            JoinType::Inner,
            false,
            self.emitted.made(),
        ))
    }
}

/// The right input's batches beside the values of `row` as constants.
fn beside_one_row(
    row: &Batch,
    mut right: BatchStream,
    schema: SchemaRef,
    guard: SharedGuard<BuildRows>,
) -> Result<BatchStream> {
    let values = (0..row.num_columns())
        .map(|i| ScalarValue::try_from_array(&row.column(i)?, 0))
        .collect::<Result<Vec<_>>>()?;
    let left_schema = Arc::clone(row.schema());
    Ok(Box::pin(try_stream! {
        let _guard = guard;
        while let Some(batch) = right.next().await {
            let batch = batch?;
            let rows = batch.num_rows();
            let columns = values.iter().map(|v| Column::constant(v.clone(), rows)).collect();
            let left = Batch::try_new(Arc::clone(&left_schema), columns, rows)?;
            yield left.zip(&batch, Arc::clone(&schema))?;
        }
    }))
}

/// The build that all partitions of one execution share.
struct SharedBuild(Arc<SharedTask<BuildRows>>);

impl Pushdown for CrossJoinExec {
    /// A projection of columns narrows both inputs; what is left of it stays above.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let none = BTreeSet::new();
        let (left, right) = (&self.left, &self.right);
        let narrowed = Narrowed::try_new(
            projection,
            &self.emitted,
            [left, right],
            JoinType::Inner,
            [none.clone(), none],
        )?;
        let Some(narrowed) = narrowed else { return Ok(None) };
        let join = CrossJoinExec::new(Arc::clone(&narrowed.left), Arc::clone(&narrowed.right));
        narrowed.finish(Arc::new(join)).map(Some)
    }

    fn with_output_columns(&self, indices: &[usize]) -> Result<Option<PlanRef>> {
        let all = CrossJoinExec::new(Arc::clone(&self.left), Arc::clone(&self.right));
        Ok(Some(Arc::new(all.emitting(Some(self.emitted.made_indices(indices)))?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let filters = self.emitted.filters_to_made(parent_filters)?;
        offer_filters(&filters, &self.left, &self.right, JoinType::Inner, &[])
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        Ok(FilterPushdownPropagation::if_any(&result))
    }
}
