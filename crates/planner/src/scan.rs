//! Table scans: asked of their tables before anything is lowered, since tables may do I/O.

use crate::planner::{Lowering, named_projection};
use crate::table::TableSourceAdapter;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DFSchema, Result, internal_err, plan_err};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{LogicalPlan, TableScan};
use planish_expr::projection::ProjectionExprs;
use planish_plan::PlanRef;
use planish_plan::operators::filter::FilterExec;
use std::collections::HashMap;
use std::sync::Arc;

/// The plans of all table scans of one logical plan, subqueries included.
#[derive(Default)]
pub(crate) struct ResolvedScans {
    /// By the address of the logical node, which the logical plan keeps in place.
    plans: HashMap<usize, PlanRef>,
}

/// A scan that its table has not been asked for yet.
struct PendingScan {
    key: usize,
    table: Arc<dyn crate::Table>,
    projection: Option<Vec<usize>>,
}

fn key(scan: &TableScan) -> usize {
    std::ptr::from_ref(scan) as usize
}

impl ResolvedScans {
    /// Asks each table once per scan.
    pub(crate) async fn resolve(plan: &LogicalPlan, options: &ConfigOptions) -> Result<Self> {
        let mut pending: Vec<PendingScan> = vec![];
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                let Some(source) = scan.source.downcast_ref::<TableSourceAdapter>() else {
                    return plan_err!(
                        "table {} does not implement planish's Table",
                        scan.table_name
                    );
                };
                // Filters that the front end left in a scan may read any column of the table.
                let width = scan.source.schema().fields().len();
                let projection = match &scan.projection {
                    Some(indices) if scan.filters.is_empty() => Some(indices.clone()),
                    _ if width == source.table().schema().fields().len() => None,
                    _ => Some((0..width).collect()),
                };
                let table = Arc::clone(source.table());
                pending.push(PendingScan { key: key(scan), table, projection });
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut plans = HashMap::with_capacity(pending.len());
        for PendingScan { key, table, projection } in pending {
            if let std::collections::hash_map::Entry::Vacant(entry) = plans.entry(key) {
                entry.insert(table.scan(projection.as_deref(), options).await?);
            }
        }
        Ok(ResolvedScans { plans })
    }
}

impl Lowering {
    pub(crate) fn lower_table_scan(&self, scan: &TableScan) -> Result<PlanRef> {
        let Some(plan) = self.scans.plans.get(&key(scan)) else {
            return internal_err!("the scan of {} was not resolved", scan.table_name);
        };
        let plan = Arc::clone(plan);
        let Some(predicate) = conjunction(scan.filters.iter().cloned()) else { return Ok(plan) };
        let table = scan.source.schema();
        let input = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table)?;
        let filter: PlanRef = Arc::new(FilterExec::try_new(self.expr(&predicate, &input)?, plan)?);
        match &scan.projection {
            None => Ok(filter),
            Some(indices) => {
                let exprs = ProjectionExprs::from_indices(indices, &table);
                let exprs = exprs.iter().cloned().collect();
                named_projection(exprs, filter, scan.projected_schema.inner())
            }
        }
    }
}
