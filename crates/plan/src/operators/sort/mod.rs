//! `SortExec`: rows in order, all of them or the first few.
//!
//! Each input partition's batches are kept as they come; their keys, encoded, are sorted into
//! runs of row references ([`runs`]). The runs of all partitions are merged range by range in
//! parallel ([`output`]) and the rows leave as selections over the kept batches: a payload value
//! moves once, when somebody reads it. With a small `fetch` only candidates are kept ([`top_k`]).
//!
//! All that is kept is charged to the memory pool. When it does not grow, sorted runs go to disk
//! and are merged from there, few enough at once that their batches fit ([`spilled`]).

pub(crate) mod keys;
mod merge;
mod output;
mod runs;
mod spilled;
mod top_k;

pub(crate) use merge::merge_sorted;

use crate::context::{TaskContext, node_id};
use crate::dynamic_filters::is_bounded_type;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::passing::{
    limit_statistics, local_limit_statistics, narrowed, offer_filters, project_ordering,
};
use crate::operators::projection::ProjectionExec;
use crate::properties::{EmissionType, PlanProperties};
use crate::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    Pushdown, PushedDown,
};
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use keys::{KeyEncoder, KeyForm, PairKeys, RowKeys, WordKeys};
use planish_expr::expressions::DynamicFilterExpr;
use planish_expr::sort_expr::display_ordering;
use planish_expr::{
    Distribution, LexOrdering, Partitioning, PhysicalExprRef, PhysicalSortExpr, is_volatile,
};
use runs::{Pressure, Settings};
use std::fmt;
use std::sync::Arc;

/// The input's rows, sorted: all together, or each partition by itself.
#[derive(Debug)]
pub struct SortExec {
    input: PlanRef,
    expr: LexOrdering,
    limit: Option<usize>,
    preserve_partitioning: bool,
    /// What drops rows below that are behind the first `limit`, where somebody does.
    dynamic_filter: Option<PhysicalExprRef>,
    properties: PlanProperties,
}

impl SortExec {
    /// All rows of `input` sorted by `expr`, in one partition.
    pub fn new(expr: LexOrdering, input: PlanRef) -> Self {
        Self::build(expr, input, None, false)
    }

    fn build(expr: LexOrdering, input: PlanRef, limit: Option<usize>, preserve: bool) -> Self {
        let mut properties = input.properties().clone().with_emission(EmissionType::Final);
        properties.equivalences.clear_orderings();
        properties.equivalences.add_ordering(expr.clone());
        if !preserve {
            properties.partitioning = Partitioning::UnknownPartitioning(1);
        }
        SortExec {
            input,
            expr,
            limit,
            preserve_partitioning: preserve,
            dynamic_filter: None,
            properties,
        }
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// The sort keys.
    pub fn expr(&self) -> &LexOrdering {
        &self.expr
    }

    /// Whether each partition is sorted by itself.
    pub fn preserve_partitioning(&self) -> bool {
        self.preserve_partitioning
    }

    /// The same sort of each partition by itself (`true`) or of all together.
    #[must_use]
    pub fn with_preserve_partitioning(self, preserve: bool) -> Self {
        Self::build(self.expr, self.input, self.limit, preserve)
    }

    /// A filter on the first key for a sort that keeps the first few rows; `None` when it can
    /// have none, or has one.
    fn new_threshold(&self) -> Result<Option<PhysicalExprRef>> {
        let few = self.limit.is_some_and(|limit| limit <= runs::TOP_K_MAX);
        let Some(first) = self.expr.first().filter(|_| few && self.dynamic_filter.is_none()) else {
            return Ok(None);
        };
        let usable = !is_volatile(&first.expr)
            && is_bounded_type(&first.expr.data_type(&self.input.schema())?);
        let filter = || DynamicFilterExpr::new(vec![Arc::clone(&first.expr)]);
        Ok(usable.then(|| Arc::new(filter()) as PhysicalExprRef))
    }

    /// As [`Pushdown::with_fetch`], on an owned node.
    #[must_use]
    pub fn with_limit(mut self, fetch: Option<usize>) -> Self {
        self.limit = fetch;
        self
    }
}

/// `keys` with their scalar subqueries replaced by values.
pub(crate) async fn bind_keys(
    keys: &[PhysicalSortExpr],
    ctx: &Arc<TaskContext>,
) -> Result<Vec<PhysicalSortExpr>> {
    let exprs: Vec<PhysicalExprRef> = keys.iter().map(|key| Arc::clone(&key.expr)).collect();
    let exprs = ctx.bind_all(&exprs).await?;
    let options = keys.iter().map(|key| key.options);
    Ok(exprs.into_iter().zip(options).map(|(e, o)| PhysicalSortExpr::new(e, o)).collect())
}

impl ExecutionPlan for SortExec {
    fn name(&self) -> &'static str {
        "SortExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let input = Arc::clone(&children[0]);
        let (limit, preserve) = (self.limit, self.preserve_partitioning);
        let mut sort = Self::build(self.expr.clone(), input, limit, preserve);
        sort.dynamic_filter = self.dynamic_filter.clone();
        Ok(Arc::new(sort))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expr={}", display_ordering(&self.expr))?;
        if let Some(limit) = self.limit {
            write!(f, ", fetch={limit}")?;
        }
        if self.preserve_partitioning {
            f.write_str(", preserve_partitioning=true")?;
        }
        if let Some(filter) = &self.dynamic_filter {
            write!(f, ", dynamic_filter={filter}")?;
        }
        Ok(())
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.expr.iter().map(|key| Arc::clone(&key.expr)).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![match self.preserve_partitioning {
            true => Distribution::UnspecifiedDistribution,
            false => Distribution::SinglePartition,
        }]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        if partition >= self.properties.partition_count() {
            return internal_err!("SortExec has no partition {partition}");
        }
        let partitions = match self.preserve_partitioning {
            true => partition..partition + 1,
            false => 0..self.input.partition_count(),
        };
        let inputs = partitions
            .map(|partition| execute_stream(&self.input, partition, ctx))
            .collect::<Result<Vec<_>>>()?;
        let node = node_id(self);
        let pressure = ctx.state(node, Pressure::default);
        let (expr, schema, ctx) = (self.expr.clone(), self.schema(), Arc::clone(ctx));
        let fetch = self.limit.unwrap_or(usize::MAX);
        let dynamic =
            self.dynamic_filter.as_ref().and_then(|f| f.downcast_ref::<DynamicFilterExpr>());
        let dynamic = dynamic.map(|filter| ctx.dynamic_filter(filter.id()));
        Ok(Box::pin(try_stream! {
            if fetch == 0 {
                return;
            }
            let keys = bind_keys(&expr, &ctx).await?;
            let (encoder, form) = KeyEncoder::try_new(&keys, &schema)?;
            let settings =
                Arc::new(Settings { keys, encoder, schema, fetch, node, pressure, ctx, dynamic });
            let mut sorted = match form {
                KeyForm::Word => output::sorted::<WordKeys>(inputs, settings),
                KeyForm::Pair => output::sorted::<PairKeys>(inputs, settings),
                KeyForm::Rows => output::sorted::<RowKeys>(inputs, settings),
            };
            while let Some(batch) = sorted.next().await {
                yield batch?;
            }
        }))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        match (self.preserve_partitioning, self.limit) {
            (true, Some(limit)) => local_limit_statistics(&self.input, partition, limit),
            (true, None) => self.input.statistics(partition),
            (false, limit) => Ok(limit_statistics(self.input.statistics(None)?, 0, limit)),
        }
    }
}

impl Pushdown for SortExec {
    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        let (expr, input) = (self.expr.clone(), Arc::clone(&self.input));
        Some(Arc::new(Self::build(expr, input, fetch, self.preserve_partitioning)))
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let Some(expr) = project_ordering(&self.expr, projection)? else { return Ok(None) };
        let below = narrowed(projection, &self.input)?;
        Ok(below.map(|below| {
            Arc::new(Self::build(expr, below, self.limit, self.preserve_partitioning)) as PlanRef
        }))
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let mut description = match self.limit {
            Some(_) => FilterDescription::all_unsupported(parent_filters, children),
            None => offer_filters(parent_filters, children),
        };
        let wanted = phase == FilterPushdownPhase::Post
            && options.optimizer.enable_topk_dynamic_filter_pushdown;
        if wanted && let Some(filter) = self.new_threshold()? {
            description.children[0].self_filters.push(filter);
        }
        Ok(description)
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        let mut answer = FilterPushdownPropagation::if_all(&result);
        let taken = result.self_filters.iter().flatten().find(|(_, a)| *a != PushedDown::No);
        if let (Some((filter, _)), Some(sort)) = (taken, answer.node.downcast_ref::<SortExec>()) {
            let input = Arc::clone(&sort.input);
            let mut sort =
                Self::build(self.expr.clone(), input, self.limit, self.preserve_partitioning);
            sort.dynamic_filter = Some(Arc::clone(filter));
            answer.node = Arc::new(sort);
        }
        Ok(answer)
    }
}
