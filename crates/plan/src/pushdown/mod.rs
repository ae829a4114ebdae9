//! The optional abilities of an operator: letting a projection, filters or a fetch pass.
//!
//! Filters are *negotiated*. A rule asks a node, with the filters its parents would like to see
//! applied below ([`Pushdown::gather_filters_for_pushdown`]), which of them, and of its own, may
//! be offered to each child, in the child's coordinates. It recurses, then tells the node what
//! the children answered ([`Pushdown::handle_child_pushdown_result`]); the node deals with the
//! leftovers and answers for each parent filter whether it is taken care of.

mod filtered_vec;

pub use filtered_vec::FilteredVec;

use crate::execution_plan::PlanRef;
use crate::operators::projection::ProjectionExec;
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_expr::PhysicalExprRef;

/// The conversations an operator may take part in. Every default declines.
pub trait Pushdown {
    /// The number of rows after which this node stops by itself.
    fn fetch(&self) -> Option<usize> {
        None
    }

    /// The same node stopping after `fetch` rows (each partition of it), if it can.
    fn with_fetch(&self, _fetch: Option<usize>) -> Option<PlanRef> {
        None
    }

    /// Whether a limit on the output may also be applied to each input: one row out per row in,
    /// in the same order.
    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    /// This node above `projection`, which stands above it now: `Some(plan)` replaces both.
    ///
    /// # Errors
    /// When expressions do not fit.
    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExec,
    ) -> Result<Option<PlanRef>> {
        Ok(None)
    }

    /// The same node handing on only the columns of its output at `indices`, in that order, if it
    /// can.
    ///
    /// # Errors
    /// When the node cannot be rebuilt.
    fn with_output_columns(&self, _indices: &[usize]) -> Result<Option<PlanRef>> {
        Ok(None)
    }

    /// Which of `parent_filters` (over this node's output) and of its own filters may be offered
    /// to each child. The default offers nothing.
    ///
    /// # Errors
    /// When expressions do not fit.
    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(FilterDescription::all_unsupported(parent_filters, children))
    }

    /// What became of the filters. The default: a parent filter is taken care of when every
    /// child says so.
    ///
    /// # Errors
    /// When the node cannot be rebuilt.
    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        Ok(FilterPushdownPropagation::if_all(&result))
    }
}

/// Before or after the plan's shape is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPushdownPhase {
    /// Static filters.
    Pre,
    /// Dynamic filters; afterwards the plan may not change.
    Post,
}

/// Whether a filter is taken care of below: if not, whoever offered it applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushedDown {
    /// No row that fails the filter comes out.
    Yes,
    /// Rows that fail may still come out, but something below makes use of the filter.
    Used,
    /// Rows that fail may still come out.
    No,
}

/// What a node says of one parent filter, for one child.
#[derive(Clone, Debug)]
pub enum OfferedFilter {
    /// It may be offered, as this expression over the child's output.
    Supported(PhysicalExprRef),
    /// It may not.
    Unsupported,
}

/// What a node offers to one child.
#[derive(Clone, Debug, Default)]
pub struct ChildFilterDescription {
    /// For each parent filter, in order.
    pub parent_filters: Vec<OfferedFilter>,
    /// The node's own filters for this child, over the child's output.
    pub self_filters: Vec<PhysicalExprRef>,
}

/// What a node offers to its children.
#[derive(Clone, Debug, Default)]
pub struct FilterDescription {
    /// For each child, in order.
    pub children: Vec<ChildFilterDescription>,
}

impl FilterDescription {
    /// Nothing for any child.
    pub fn all_unsupported(parent_filters: &[PhysicalExprRef], children: usize) -> Self {
        let none = ChildFilterDescription {
            parent_filters: vec![OfferedFilter::Unsupported; parent_filters.len()],
            self_filters: vec![],
        };
        FilterDescription { children: vec![none; children] }
    }

    /// All parent filters, unchanged, for every child: for nodes whose output columns are those
    /// of each child and which neither drop nor combine rows.
    pub fn all_supported(parent_filters: &[PhysicalExprRef], children: usize) -> Self {
        let all = ChildFilterDescription {
            parent_filters: parent_filters.iter().cloned().map(OfferedFilter::Supported).collect(),
            self_filters: vec![],
        };
        FilterDescription { children: vec![all; children] }
    }
}

/// What the children answered.
#[derive(Clone, Debug)]
pub struct ChildPushdownResult {
    /// The parent filters, over this node's output, each with every child's answer.
    pub parent_filters: Vec<(PhysicalExprRef, Vec<PushedDown>)>,
    /// For each child, the node's own filters for it, each with its answer.
    pub self_filters: Vec<Vec<(PhysicalExprRef, PushedDown)>>,
    /// The node itself over its (perhaps new) children.
    pub node: PlanRef,
}

/// A node's answer to its parent.
#[derive(Clone, Debug)]
pub struct FilterPushdownPropagation {
    /// For each parent filter, in order.
    pub filters: Vec<PushedDown>,
    /// What now stands in the node's place.
    pub node: PlanRef,
}

impl FilterPushdownPropagation {
    /// A parent filter is taken care of when all children (at least one) say so.
    pub fn if_all(result: &ChildPushdownResult) -> Self {
        let filters = result
            .parent_filters
            .iter()
            .map(|(_, answers)| {
                let all = !answers.is_empty() && answers.iter().all(|a| *a == PushedDown::Yes);
                if all { PushedDown::Yes } else { used(answers) }
            })
            .collect();
        FilterPushdownPropagation { filters, node: std::sync::Arc::clone(&result.node) }
    }

    /// A parent filter is taken care of when any child says so: joins, where a filter goes to
    /// the one side whose columns it reads.
    pub fn if_any(result: &ChildPushdownResult) -> Self {
        let filters =
            result
                .parent_filters
                .iter()
                .map(|(_, answers)| {
                    if answers.contains(&PushedDown::Yes) { PushedDown::Yes } else { used(answers) }
                })
                .collect();
        FilterPushdownPropagation { filters, node: std::sync::Arc::clone(&result.node) }
    }
}

/// Whether any child makes use of a filter that is not taken care of.
fn used(answers: &[PushedDown]) -> PushedDown {
    if answers.iter().all(|answer| *answer == PushedDown::No) {
        PushedDown::No
    } else {
        PushedDown::Used
    }
}
