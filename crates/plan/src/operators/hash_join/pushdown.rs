//! What a hash join lets pass.

use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::hash_join::HashJoinExec;
use crate::operators::join_pushdown::{Narrowed, offer_filters};
use crate::operators::projection::ProjectionExec;
use crate::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    Pushdown, PushedDown,
};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinSide, Result};
use planish_expr::PhysicalExprRef;
use planish_expr::utils::collect_column_indices;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Pushdown for HashJoinExec {
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
        let join = HashJoinExec::try_new(
            Arc::clone(&narrowed.left),
            Arc::clone(&narrowed.right),
            on,
            filter,
            self.join_type,
            self.mode,
            self.null_equality,
            self.null_aware,
        )?;
        narrowed.finish(Arc::new(join)).map(Some)
    }

    fn with_output_columns(&self, indices: &[usize]) -> Result<Option<PlanRef>> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let all = self.emitting_all(left, right, self.mode)?;
        Ok(Some(Arc::new(all.emitting(Some(self.emitted.made_indices(indices)))?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let own = self.expressions();
        let filters = self.emitted.filters_to_made(parent_filters)?;
        let mut description =
            offer_filters(&filters, &self.left, &self.right, self.join_type, &own)?;
        let wanted = phase == FilterPushdownPhase::Post
            && options.optimizer.enable_join_dynamic_filter_pushdown;
        if wanted && let Some(filter) = self.new_key_filter() {
            description.children[1].self_filters.push(filter);
        }
        Ok(description)
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        let mut answer = FilterPushdownPropagation::if_any(&result);
        let taken = result.self_filters.iter().flatten().find(|(_, a)| *a != PushedDown::No);
        if let (Some((filter, _)), Some(join)) = (taken, answer.node.downcast_ref::<HashJoinExec>())
        {
            let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            let mut join = self.emitting_all(left, right, self.mode)?;
            join.dynamic_filter = Some(Arc::clone(filter));
            answer.node = Arc::new(join.emitting(self.emitted.indices())?);
        }
        Ok(answer)
    }
}
