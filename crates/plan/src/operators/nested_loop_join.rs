//! `NestedLoopJoinExec`: a join on any condition, or none.
//!
//! The left input is the build side, collected from all of its partitions at once and shared;
//! every partition of the right input is paired with it in blocks of at most a batch. Conditions
//! read the columns they name, of the pairs at hand; output batches are selections over both
//! sides. Probe rows keep their order, unless build rows follow (Left, Full, LeftSemi, LeftAnti,
//! LeftMark), which come from the last probe partition to finish.
//!
//! Memory: the build side is reserved, and not spilled.

use crate::context::{TaskContext, node_id};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::emitted::Emitted;
use crate::operators::join_filter::{JoinFilter, Residual};
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::{deferred, empty, probe_stream};
use crate::operators::join_product::{ProductProbe, collect_build};
use crate::operators::join_pushdown::{Narrowed, offer_filters, restore_columns};
use crate::operators::join_schema::{emits_build_rows, join_properties, join_statistics};
use crate::operators::join_state::{BuildRows, Collector};
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    Pushdown,
};
use crate::shared::SharedTask;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinSide, JoinType, Result, Statistics, internal_err};
use planish_expr::PhysicalExprRef;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A join of every pair of rows for which a condition is true.
#[derive(Debug)]
pub struct NestedLoopJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) join_type: JoinType,
    emitted: Emitted,
    properties: PlanProperties,
}

impl NestedLoopJoinExec {
    /// A join of `left` (collected) and `right` (streamed) on `filter`; without one, every pair
    /// matches.
    ///
    /// # Errors
    /// A plan error when the condition does not fit the inputs.
    pub fn try_new(
        left: PlanRef,
        right: PlanRef,
        filter: Option<JoinFilter>,
        join_type: JoinType,
    ) -> Result<Self> {
        if let Some(filter) = &filter {
            filter.check(&left.schema(), &right.schema())?;
        }
        let properties = join_properties(&left, &right, &[], join_type, false)?;
        let emitted = Emitted::all(Arc::clone(properties.schema()));
        Ok(NestedLoopJoinExec { left, right, filter, join_type, emitted, properties })
    }

    /// The same join, of whose columns only those at `indices` come out; `None`: all.
    fn emitting(self, indices: Option<Arc<[usize]>>) -> Result<Self> {
        let emitted = Emitted::only(Arc::clone(self.emitted.made()), indices);
        let properties = emitted.properties(self.properties)?;
        Ok(NestedLoopJoinExec { emitted, properties, ..self })
    }

    /// The collected side.
    pub fn left(&self) -> &PlanRef {
        &self.left
    }

    /// The streamed side.
    pub fn right(&self) -> &PlanRef {
        &self.right
    }

    /// The condition.
    pub fn filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }

    /// The join type.
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }

    /// Which of the columns it makes this node hands on, and in which order; `None`: all. Only its
    /// output has these coordinates: its expressions are over its inputs.
    pub fn projection(&self) -> Option<&[usize]> {
        self.emitted.as_slice()
    }

    /// The same rows and columns with the inputs in each other's place.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub fn swap_inputs(&self) -> Result<PlanRef> {
        let swapped = NestedLoopJoinExec::try_new(
            Arc::clone(&self.right),
            Arc::clone(&self.left),
            self.filter.as_ref().map(JoinFilter::swap),
            self.join_type.swap(),
        )?;
        let left_len = self.left.schema().fields().len();
        match self.emitted.swapped(left_len, self.join_type) {
            Some(indices) => Ok(Arc::new(swapped.emitting(Some(indices))?)),
            None => restore_columns(Arc::new(swapped), &self.schema(), left_len, self.join_type),
        }
    }
}

impl ExecutionPlan for NestedLoopJoinExec {
    fn name(&self) -> &'static str {
        "NestedLoopJoinExec"
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
        let (left, right) = (Arc::clone(left), Arc::clone(right));
        let new = Self::try_new(left, right, self.filter.clone(), self.join_type)?;
        Ok(Arc::new(new.emitting(self.emitted.indices())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "join_type={}", self.join_type)?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter}")?;
        }
        self.emitted.fmt(f, ", ")
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.filter.iter().map(|f| Arc::clone(f.expression())).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, !emits_build_rows(self.join_type)]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let right = execute_stream(&self.right, partition, ctx)?;
        let (join_type, filter) = (self.join_type, self.filter.clone());
        let (schema, right_schema) = (Arc::clone(self.emitted.made()), self.right.schema());
        let node = node_id(self);
        let probes = self.right.partition_count();
        let state = ctx.state(node, || SharedBuild(Arc::new(SharedTask::new(probes))));
        let guard = state.0.guard();
        let collector = Collector::new(&self.left, node, self.name(), ctx);
        let ctx = Arc::clone(ctx);
        let setup = async move {
            let build = state.0.get(|| {
                let read = filter.iter().flat_map(|f| f.columns_of(JoinSide::Left)).collect();
                let work = collect_build(collector, join_type, probes, read, Arc::clone(&ctx));
                Ok(ctx.spawn_for(node, work))
            });
            let build = build.await?;
            if build.len() == 0 && join_type.empty_build_side_produces_empty_result() {
                return Ok(empty());
            }
            let residual = match &filter {
                Some(filter) => Some(Residual::bind(filter, &build.rows, &ctx).await?),
                None => None,
            };
            let shared = Arc::clone(&build);
            let out = JoinOutput::new(join_type, schema, right_schema, shared, ctx.batch_size());
            Ok(probe_stream(right, ProductProbe::new(build, residual), out, guard))
        };
        Ok(self.emitted.stream(deferred(setup), self.schema()))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.emitted.statistics(join_statistics(
            &self.left.statistics(None)?,
            &self.right.statistics(partition)?,
            &[],
            self.join_type,
            self.filter.is_some(),
            self.emitted.made(),
        ))
    }
}

/// The build that all partitions of one execution share.
struct SharedBuild(Arc<SharedTask<BuildRows>>);

impl Pushdown for NestedLoopJoinExec {
    /// A projection of columns narrows both inputs to what it and the condition read; what is
    /// left of it stays above.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let needed = |side| -> BTreeSet<usize> {
            self.filter.iter().flat_map(|f| f.columns_of(side)).collect()
        };
        let Some(narrowed) = Narrowed::try_new(
            projection,
            &self.emitted,
            [&self.left, &self.right],
            self.join_type,
            [needed(JoinSide::Left), needed(JoinSide::Right)],
        )?
        else {
            return Ok(None);
        };
        let Some(filter) = narrowed.filter(self.filter.as_ref()) else { return Ok(None) };
        let (left, right) = (Arc::clone(&narrowed.left), Arc::clone(&narrowed.right));
        let join = NestedLoopJoinExec::try_new(left, right, filter, self.join_type)?;
        narrowed.finish(Arc::new(join)).map(Some)
    }

    fn with_output_columns(&self, indices: &[usize]) -> Result<Option<PlanRef>> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let all = Self::try_new(left, right, self.filter.clone(), self.join_type)?;
        Ok(Some(Arc::new(all.emitting(Some(self.emitted.made_indices(indices)))?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let own = self.expressions();
        let filters = self.emitted.filters_to_made(parent_filters)?;
        offer_filters(&filters, &self.left, &self.right, self.join_type, &own)
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

#[cfg(test)]
#[path = "nested_loop_join_tests.rs"]
mod tests;
