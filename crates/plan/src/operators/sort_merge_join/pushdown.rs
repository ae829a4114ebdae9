//! What a sort-merge join lets pass.

use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::join_pushdown::{Narrowed, offer_filters};
use crate::operators::projection::ProjectionExec;
use crate::operators::sort_merge_join::SortMergeJoinExec;
use crate::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    Pushdown,
};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinSide, Result};
use planish_expr::PhysicalExprRef;
use planish_expr::utils::collect_column_indices;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Pushdown for SortMergeJoinExec {
    /// A projection of columns narrows both inputs to what it and the join read; what is left of
    /// it (order, names, keys to drop) stays above.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let (mut of_left, mut of_right) = (BTreeSet::new(), BTreeSet::new());
        for (l, r) in &self.on {
            collect_column_indices(l, &mut of_left);
            collect_column_indices(r, &mut of_right);
        }
        if let Some(filter) = &self.filter {
            of_left.extend(filter.columns_of(JoinSide::Left));
            of_right.extend(filter.columns_of(JoinSide::Right));
        }
        let (left, right) = (&self.left, &self.right);
        let Some(narrowed) = Narrowed::try_new(
            projection,
            &self.emitted,
            [left, right],
            self.join_type,
            [of_left, of_right],
        )?
        else {
            return Ok(None);
        };
        let mut on = Vec::with_capacity(self.on.len());
        for (l, r) in &self.on {
            match (narrowed.left_expr(l)?, narrowed.right_expr(r)?) {
                (Some(l), Some(r)) => on.push((l, r)),
                _ => return Ok(None),
            }
        }
        let Some(filter) = narrowed.filter(self.filter.as_ref()) else { return Ok(None) };
        let join = SortMergeJoinExec::try_new(
            Arc::clone(&narrowed.left),
            Arc::clone(&narrowed.right),
            on,
            filter,
            self.join_type,
            self.sort_options.clone(),
            self.null_equality,
        )?;
        narrowed.finish(Arc::new(join)).map(Some)
    }

    fn with_output_columns(&self, indices: &[usize]) -> Result<Option<PlanRef>> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let all = self.emitting_all(left, right)?;
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
