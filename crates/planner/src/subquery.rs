//! Uncorrelated scalar subqueries: each becomes a child of the `SubplansExec` at the root.

use crate::expr::SubqueryPlanner;
use crate::planner::Lowering;
use arrow::datatypes::FieldRef;
use datafusion_common::{Result, not_impl_err, plan_err};
use datafusion_expr::Subquery;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::ScalarSubqueryExpr;
use planish_plan::PlanRef;
use planish_plan::operators::subplans::SubplansExec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The subqueries met so far.
#[derive(Default)]
pub(crate) struct Subplans {
    met: Mutex<Met>,
}

#[derive(Default)]
struct Met {
    /// Ids by the address of the subquery's plan: copies of one expression share it, and run once.
    ids: HashMap<usize, (usize, FieldRef)>,
    plans: Vec<(usize, PlanRef)>,
    next: usize,
}

impl Subplans {
    fn met(&self) -> MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `root` with the subqueries beside it, if there are any.
    pub(crate) fn wrap(&self, root: PlanRef) -> PlanRef {
        let mut plans = std::mem::take(&mut self.met().plans);
        if plans.is_empty() {
            return root;
        }
        plans.sort_by_key(|(id, _)| *id);
        Arc::new(SubplansExec::new(root, plans))
    }
}

impl SubqueryPlanner for Lowering {
    fn scalar_subquery(&self, subquery: &Subquery) -> Result<PhysicalExprRef> {
        if !subquery.outer_ref_columns.is_empty() {
            return not_impl_err!(
                "scalar subqueries that cannot be decorrelated are not supported yet: {}",
                subquery.subquery.display_indent()
            );
        }
        let schema = subquery.subquery.schema();
        let [field] = schema.fields().iter().as_slice() else {
            return plan_err!(
                "a scalar subquery must have one column, this one has {}",
                schema.fields().len()
            );
        };
        let address = Arc::as_ptr(&subquery.subquery) as usize;
        if let Some((id, field)) = self.subplans.met().ids.get(&address) {
            return Ok(Arc::new(ScalarSubqueryExpr::new(*id, field)));
        }
        let plan = self.lower(&subquery.subquery)?;
        let mut met = self.subplans.met();
        let id = met.next;
        met.next += 1;
        met.ids.insert(address, (id, Arc::clone(field)));
        met.plans.push((id, plan));
        Ok(Arc::new(ScalarSubqueryExpr::new(id, field)))
    }
}
