//! Small helpers for walking plans, used by more than one rule.

use datafusion_common::Result;
use planish_plan::PlanRef;
use std::sync::Arc;

/// Whether two handles are the same node.
pub(crate) fn same(a: &PlanRef, b: &PlanRef) -> bool {
    Arc::ptr_eq(a, b)
}

/// `plan` over `children`; `plan` itself when they are its own.
pub(crate) fn with_children(plan: &PlanRef, children: Vec<PlanRef>) -> Result<PlanRef> {
    let unchanged = plan.children().iter().zip(&children).all(|(old, new)| same(old, new));
    if unchanged { Ok(Arc::clone(plan)) } else { Arc::clone(plan).with_new_children(children) }
}

/// `plan` with `f` applied to each child.
pub(crate) fn map_children(
    plan: &PlanRef,
    mut f: impl FnMut(usize, &PlanRef) -> Result<PlanRef>,
) -> Result<PlanRef> {
    let children =
        plan.children().into_iter().enumerate().map(|(i, c)| f(i, c)).collect::<Result<_>>()?;
    with_children(plan, children)
}

/// `Some(new)` unless it is `old`: what a rule answers.
pub(crate) fn if_changed(old: &PlanRef, new: PlanRef) -> Option<PlanRef> {
    (!same(old, &new)).then_some(new)
}
