//! `FilterExec`: the rows for which a predicate is true.
//!
//! Emits selections over its input's batches: no value moves. Small results are coalesced (by
//! index) so that operators above see batches of a useful size.

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::emitted::Emitted;
use crate::operators::projection::ProjectionExec;
use crate::properties::PlanProperties;
use crate::pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation, OfferedFilter, Pushdown, PushedDown,
};
use arrow::datatypes::DataType;
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics, plan_err};
use datafusion_expr::Operator;
use futures::StreamExt;
use planish_batch::BatchCoalescer;
use planish_expr::analysis::selectivity;
use planish_expr::expressions::{BinaryExpr, Literal};
use planish_expr::predicate::Predicate;
use planish_expr::projection::project_expr;
use planish_expr::utils::{column_indices, conjunction, is_true, split_conjunction};
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::fmt;
use std::sync::Arc;

/// The rows of the input for which `predicate` is true.
#[derive(Debug)]
pub struct FilterExec {
    predicate: PhysicalExprRef,
    input: PlanRef,
    emitted: Emitted,
    properties: PlanProperties,
}

impl FilterExec {
    /// A filter of `input` by a boolean `predicate` over its output.
    ///
    /// # Errors
    /// A plan error when the predicate is not boolean.
    pub fn try_new(predicate: PhysicalExprRef, input: PlanRef) -> Result<Self> {
        match predicate.data_type(&input.schema())? {
            DataType::Boolean | DataType::Null => {}
            other => return plan_err!("a filter must be boolean, {predicate} is {other}"),
        }
        let mut properties = input.properties().clone();
        for conjunct in split_conjunction(&predicate) {
            add_equality(&conjunct, &mut properties);
        }
        let emitted = Emitted::all(input.schema());
        Ok(FilterExec { predicate, input, emitted, properties })
    }

    /// The same filter, of whose input's columns only those at `indices` come out; `None`: all.
    fn emitting(self, indices: Option<Arc<[usize]>>) -> Result<Self> {
        let emitted = Emitted::only(self.input.schema(), indices);
        let properties = emitted.properties(self.properties)?;
        Ok(FilterExec { emitted, properties, ..self })
    }

    /// The predicate, over the input's output.
    pub fn predicate(&self) -> &PhysicalExprRef {
        &self.predicate
    }

    /// The input.
    pub fn input(&self) -> &PlanRef {
        &self.input
    }

    /// Which of the columns it makes this node hands on, and in which order; `None`: all. Only its
    /// output has these coordinates: its expressions are over its inputs.
    pub fn projection(&self) -> Option<&[usize]> {
        self.emitted.as_slice()
    }

    /// The conjuncts of the predicate, each with whether it may be offered below: a volatile one
    /// may not, nor one that can fail and has others before it, its guards.
    fn conjuncts(&self) -> impl Iterator<Item = (PhysicalExprRef, bool)> {
        let schema = self.input.schema();
        split_conjunction(&self.predicate).into_iter().enumerate().map(move |(i, conjunct)| {
            let guarded = i > 0 && can_fail(&conjunct, &schema);
            let offered = !is_volatile(&conjunct) && !guarded;
            (conjunct, offered)
        })
    }
}

/// `a = b` makes equals, `a = literal` a constant.
fn add_equality(conjunct: &PhysicalExprRef, properties: &mut PlanProperties) {
    let Some(binary) = conjunct.downcast_ref::<BinaryExpr>() else { return };
    if *binary.op() != Operator::Eq || is_volatile(conjunct) {
        return;
    }
    // -0.0 = 0.0 holds, yet the two sort and hash apart.
    let float =
        |e: &PhysicalExprRef| e.data_type(properties.schema()).map_or(true, |t| t.is_floating());
    if float(binary.left()) || float(binary.right()) {
        return;
    }
    let equivalences = &mut properties.equivalences;
    for (side, other) in [(binary.left(), binary.right()), (binary.right(), binary.left())] {
        if other.is::<Literal>() {
            equivalences.add_constant(Arc::clone(side));
            return;
        }
    }
    equivalences.add_equal(binary.left(), binary.right());
}

impl ExecutionPlan for FilterExec {
    fn name(&self) -> &'static str {
        "FilterExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let new = FilterExec::try_new(Arc::clone(&self.predicate), Arc::clone(&children[0]))?;
        Ok(Arc::new(new.emitting(self.emitted.indices())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.predicate)?;
        self.emitted.fmt(f, ", ")
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        vec![Arc::clone(&self.predicate)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let mut input = execute_stream(&self.input, partition, ctx)?;
        let predicate = Arc::clone(&self.predicate);
        let ctx = Arc::clone(ctx);
        let (emitted, schema) = (self.emitted.clone(), self.schema());
        let input_schema = self.input.schema();
        Ok(Box::pin(try_stream! {
            let predicate = ctx.bind(&predicate).await?;
            let mut predicate = Predicate::new(&predicate, &input_schema);
            let mut coalescer = BatchCoalescer::new(Arc::clone(&schema), ctx.batch_size());
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let kept = predicate.passing(&batch)?.filter(&batch);
                let kept = emitted.batch(kept, &schema)?;
                if let Some(full) = coalescer.push(kept)? {
                    yield full;
                }
            }
            if let Some(rest) = coalescer.finish()? {
                yield rest;
            }
        }))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let input = self.input.statistics(partition)?;
        let share = selectivity(&self.predicate, &input, self.emitted.made());
        self.emitted.statistics(kept_share(input, share))
    }
}

/// Inexact statistics of a share of the rows; of one row at least, if there are any: an estimate
/// of none is no reason to expect none.
fn kept_share(input: Statistics, share: f64) -> Statistics {
    let scale = |p: Precision<usize>| match p.get_value() {
        Some(&n) => Precision::Inexact(((n as f64 * share).ceil() as usize).max(n.min(1))),
        None => Precision::Absent,
    };
    let mut statistics = input.to_inexact();
    statistics.num_rows = scale(statistics.num_rows);
    statistics.total_byte_size = scale(statistics.total_byte_size);
    let rows = statistics.num_rows.get_value().copied().unwrap_or(usize::MAX);
    let at_most_rows = |p: Precision<usize>| match p.get_value() {
        Some(&n) => Precision::Inexact(n.min(rows)),
        None => Precision::Absent,
    };
    for column in &mut statistics.column_statistics {
        column.byte_size = scale(column.byte_size);
        column.null_count = at_most_rows(column.null_count);
        column.distinct_count = at_most_rows(column.distinct_count);
        column.sum_value = Precision::Absent;
    }
    statistics
}

impl Pushdown for FilterExec {
    /// The projection goes below when it keeps what the predicate needs and drops something.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let Some(below) = self.emitted.projection_of_made(projection, &self.input)? else {
            return Ok(None);
        };
        if below.schema().fields().len() >= self.input.schema().fields().len() {
            return Ok(None);
        }
        let Some(predicate) = project_expr(&self.predicate, below.exprs())? else {
            return Ok(None);
        };
        Ok(Some(Arc::new(FilterExec::try_new(predicate, Arc::new(below))?)))
    }

    fn with_output_columns(&self, indices: &[usize]) -> Result<Option<PlanRef>> {
        let made = self.emitted.made_indices(indices);
        let filter = FilterExec::try_new(Arc::clone(&self.predicate), Arc::clone(&self.input))?;
        Ok(Some(Arc::new(filter.emitting(Some(made))?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let static_filters = phase == FilterPushdownPhase::Pre;
        let own = self.conjuncts().filter(|(_, offered)| *offered).map(|(conjunct, _)| conjunct);
        let child = ChildFilterDescription {
            parent_filters: parent_filters
                .iter()
                .map(|filter| Ok(offer_past_guard(&self.emitted.output_to_made(filter)?, self)))
                .collect::<Result<_>>()?,
            self_filters: if static_filters { own.collect() } else { vec![] },
        };
        Ok(FilterDescription { children: vec![child] })
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        // A dynamic filter drops rows for whoever it comes from, where that is cheap: in a scan.
        if phase == FilterPushdownPhase::Post {
            return Ok(FilterPushdownPropagation::if_all(&result));
        }
        let input = Arc::clone(result.node.children()[0]);
        let mut answers = result.self_filters[0].iter();
        let mut leftovers = vec![];
        for (conjunct, offered) in self.conjuncts() {
            let pushed =
                offered && answers.next().is_some_and(|(_, answer)| *answer == PushedDown::Yes);
            if !pushed {
                leftovers.push(conjunct);
            }
        }
        // Parent filters nobody below took are applied here, after this node's own.
        for (filter, answers) in &result.parent_filters {
            if answers[0] != PushedDown::Yes {
                leftovers.push(self.emitted.output_to_made(filter)?);
            }
        }
        let predicate = conjunction(leftovers);
        let node = if is_true(&predicate) {
            self.emitted.over(input)?
        } else if predicate.eq(&self.predicate) {
            Arc::clone(&result.node)
        } else {
            Arc::new(FilterExec::try_new(predicate, input)?.emitting(self.emitted.indices())?)
        };
        Ok(FilterPushdownPropagation {
            filters: vec![PushedDown::Yes; result.parent_filters.len()],
            node,
        })
    }
}

/// A parent filter that can fail must not overtake this node's predicate, its guard.
fn offer_past_guard(filter: &PhysicalExprRef, node: &FilterExec) -> OfferedFilter {
    if is_volatile(filter) || is_volatile(&node.predicate) || can_fail(filter, &node.input.schema())
    {
        return OfferedFilter::Unsupported;
    }
    debug_assert!(
        column_indices(filter).into_iter().all(|i| i < node.input.schema().fields().len())
    );
    OfferedFilter::Supported(Arc::clone(filter))
}
