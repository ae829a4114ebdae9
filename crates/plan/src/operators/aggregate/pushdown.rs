//! Which filters may pass an aggregation: those that read group columns alone.

use super::AggregateExec;
use super::keys::has_floats;
use crate::pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase, OfferedFilter, Pushdown,
};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use planish_expr::utils::{column_indices, map_columns};
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::sync::Arc;

impl Pushdown for AggregateExec {
    /// A filter on group columns that are in all grouping sets drops whole groups, so it may
    /// drop their rows. Where a set is empty (or there is no GROUP BY), its row comes out even
    /// of no rows, and no column is in all sets.
    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let offered = parent_filters
            .iter()
            .map(|f| {
                Ok(self.below(f)?.map_or(OfferedFilter::Unsupported, OfferedFilter::Supported))
            })
            .collect::<Result<Vec<_>>>()?;
        let child = ChildFilterDescription { parent_filters: offered, self_filters: vec![] };
        Ok(FilterDescription { children: vec![child] })
    }
}

impl AggregateExec {
    /// `filter`, over the output, as a filter of the input.
    fn below(&self, filter: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        let schema = self.input.schema();
        let in_all_sets =
            |i: usize| self.group_by.groups.iter().all(|set| set.get(i) == Some(&false));
        let passes = |i: usize| {
            // Groups of floats show one of several equal values (-0.0 and 0.0).
            in_all_sets(i)
                && self.group_by.exprs.get(i).is_some_and(|(expr, _)| {
                    !is_volatile(expr) && expr.data_type(&schema).is_ok_and(|t| !has_floats(&t))
                })
        };
        let columns = column_indices(filter);
        let some_set_empty = self.group_by.groups.iter().any(|set| set.iter().all(|n| *n));
        if some_set_empty || is_volatile(filter) || !columns.into_iter().all(passes) {
            return Ok(None);
        }
        let below = map_columns(filter, &|column| {
            self.group_by.exprs.get(column.index()).map(|(expr, _)| Arc::clone(expr))
        })?;
        Ok(below.filter(|expr| !can_fail(expr, &schema)))
    }
}
