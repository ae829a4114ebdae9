//! Moves filters to where they keep most rows from being touched: into scans, if they can.
//!
//! Work per row, the predicate itself and all that is done with rows that fail it, moves below
//! the operators in between, and at a scan becomes a question to statistics.
//!
//! # Before
//! ```text
//! FilterExec: a@1 > 1
//!   ProjectionExec: expr=[b@1, a@0]
//!     MemoryScanExec: partitions=1, batches=1
//! ```
//! # After
//! ```text
//! ProjectionExec: expr=[b@1, a@0]
//!   FilterExec: a@0 > 1
//!     MemoryScanExec: partitions=1, batches=1
//! ```
//! It is a negotiation, of which this rule only keeps the minutes: a node says which of its
//! parents' filters, and which of its own, may be offered to each child, and in which
//! coordinates; the children answer; the node deals with what is left over. A scan may use a
//! filter for pruning and still answer `No`: then the filter also stays. A `FilterExec` left
//! without a predicate disappears.
//!
//! **Declines** for volatile filters, and past an operator with a fetch: they stay where they are.
//! **Knob**: `planish.optimizer.disable = 'FilterPushdown'`.

use crate::rule::PhysicalOptimizerRule;
use crate::tree::{if_changed, with_children};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, internal_err};
use planish_expr::{PhysicalExprRef, is_volatile};
use planish_plan::PlanRef;
use planish_plan::operators::filter::FilterExec;
use planish_plan::pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
    FilteredVec, OfferedFilter, PushedDown,
};
use std::sync::Arc;

/// Negotiates filters down the plan.
#[derive(Debug)]
pub struct FilterPushdown {
    phase: FilterPushdownPhase,
}

impl Default for FilterPushdown {
    fn default() -> Self {
        Self::new()
    }
}

impl FilterPushdown {
    /// The run for static filters.
    pub fn new() -> Self {
        FilterPushdown { phase: FilterPushdownPhase::Pre }
    }
}

impl PhysicalOptimizerRule for FilterPushdown {
    fn name(&self) -> &'static str {
        "FilterPushdown"
    }

    fn optimize(&self, plan: PlanRef, options: &ConfigOptions) -> Result<Option<PlanRef>> {
        let negotiation = Negotiation { phase: self.phase, options };
        let root = negotiation.push(&plan, vec![])?;
        Ok(if_changed(&plan, root.node))
    }
}

struct Negotiation<'a> {
    phase: FilterPushdownPhase,
    options: &'a ConfigOptions,
}

impl Negotiation<'_> {
    /// Offers `filters`, over its output, to `plan`. The answers are in the order of `filters`.
    fn push(
        &self,
        plan: &PlanRef,
        filters: Vec<PhysicalExprRef>,
    ) -> Result<FilterPushdownPropagation> {
        // Fewer rows below a fetch are other rows above it.
        let passes = plan.fetch().is_none();
        let offered = FilteredVec::new(filters).filter(|f| passes && !is_volatile(f));
        let children = plan.children();
        let description = plan.gather_filters_for_pushdown(
            self.phase,
            offered.items(),
            children.len(),
            self.options,
        )?;
        if description.children.len() != children.len() {
            return internal_err!("{} spoke of other children than it has", plan.name());
        }

        let mut new_children = Vec::with_capacity(children.len());
        let mut of_parent = vec![vec![]; offered.items().len()];
        let mut of_self = Vec::with_capacity(children.len());
        for (child, description) in children.into_iter().zip(description.children) {
            let answer = self.push_into_child(plan, child, &offered, description)?;
            for (answers, one) in of_parent.iter_mut().zip(answer.parent_filters) {
                answers.push(one);
            }
            of_self.push(answer.self_filters);
            new_children.push(answer.node);
        }

        let result = ChildPushdownResult {
            parent_filters: offered.items().iter().cloned().zip(of_parent).collect(),
            self_filters: of_self,
            node: with_children(plan, new_children)?,
        };
        let answer = plan.handle_child_pushdown_result(self.phase, result, self.options)?;
        Ok(FilterPushdownPropagation {
            filters: offered.answers(answer.filters, PushedDown::No)?,
            node: unless_rebuilt(plan, answer.node),
        })
    }

    fn push_into_child(
        &self,
        plan: &PlanRef,
        child: &PlanRef,
        offered: &FilteredVec<PhysicalExprRef>,
        description: ChildFilterDescription,
    ) -> Result<ChildAnswer> {
        if description.parent_filters.len() != offered.items().len() {
            return internal_err!("{} did not speak of every filter", plan.name());
        }
        let for_child = FilteredVec::new(description.parent_filters).filter_map(|f| match f {
            OfferedFilter::Supported(filter) => Some(filter),
            OfferedFilter::Unsupported => None,
        });
        let from_parents = for_child.items().len();
        let all = for_child.items().iter().cloned().chain(description.self_filters).collect();
        let mut answer = self.push(child, all)?;
        let self_filters = answer.filters.split_off(from_parents);
        Ok(ChildAnswer {
            parent_filters: for_child.answers(answer.filters, PushedDown::No)?,
            self_filters,
            node: answer.node,
        })
    }
}

/// What one child answered, in the order of the node's parent filters and own filters.
struct ChildAnswer {
    parent_filters: Vec<PushedDown>,
    self_filters: Vec<PushedDown>,
    node: PlanRef,
}

/// `old` where `new` is a `FilterExec` like it.
fn unless_rebuilt(old: &PlanRef, new: PlanRef) -> PlanRef {
    let equal = match (old.downcast_ref::<FilterExec>(), new.downcast_ref::<FilterExec>()) {
        (Some(a), Some(b)) => Arc::ptr_eq(a.input(), b.input()) && a.predicate() == b.predicate(),
        _ => false,
    };
    if equal { Arc::clone(old) } else { new }
}
