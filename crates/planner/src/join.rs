//! `Join` becomes a hash join when it has equi keys, a cross join when it has no condition, else
//! a nested-loop join.

use crate::planner::Lowering;
use arrow::datatypes::Schema;
use datafusion_common::{
    Column, DFSchema, JoinSide, JoinType, NullEquality, Result, not_impl_err, plan_err,
};
use datafusion_expr::type_coercion::binary::comparison_coercion;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, ExprSchemable, Join};
use planish_expr::expressions::CaseExpr;
use planish_expr::utils::{conjunction, guards_first};
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use planish_plan::PlanRef;
use planish_plan::operators::cross_join::CrossJoinExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::join_filter::{ColumnIndex, JoinFilter};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use std::collections::HashMap;
use std::sync::Arc;

impl Lowering {
    pub(crate) fn lower_join(&self, node: &Join) -> Result<PlanRef> {
        let (left, right) = (self.lower(&node.left)?, self.lower(&node.right)?);
        let filter = match &node.filter {
            Some(filter) => Some(self.join_filter(filter, node)?),
            None => None,
        };
        let guards = self.key_guards(node)?;
        let on = node
            .on
            .iter()
            .map(|(l, r)| {
                let (l, r) = self.join_key(l, r, node)?;
                let (left, right) = (node.left.schema().inner(), node.right.schema().inner());
                Ok((guarded(l, &guards[0], left)?, guarded(r, &guards[1], right)?))
            })
            .collect::<Result<Vec<_>>>()?;
        if !on.is_empty() {
            return Ok(Arc::new(HashJoinExec::try_new(
                left,
                right,
                on,
                filter,
                node.join_type,
                PartitionMode::Auto,
                node.null_equality,
                node.null_aware,
            )?));
        }
        if node.null_aware {
            return not_impl_err!(
                "NOT IN (subquery) over a value of an outer query, or of one side only, is not \
                 supported yet"
            );
        }
        if filter.is_none() && node.join_type == JoinType::Inner {
            return Ok(Arc::new(CrossJoinExec::new(left, right)));
        }
        Ok(Arc::new(NestedLoopJoinExec::try_new(left, right, filter, node.join_type)?))
    }

    /// The two sides of an equality, in one type.
    fn join_key(
        &self,
        left: &Expr,
        right: &Expr,
        node: &Join,
    ) -> Result<(PhysicalExprRef, PhysicalExprRef)> {
        let (left_schema, right_schema) = (node.left.schema(), node.right.schema());
        let (l, r) = (left.get_type(left_schema)?, right.get_type(right_schema)?);
        if l == r {
            return Ok((self.expr(left, left_schema)?, self.expr(right, right_schema)?));
        }
        let Some(common) = comparison_coercion(&l, &r) else {
            return plan_err!("cannot join {left} ({l}) with {right} ({r}): no common type");
        };
        let left = left.clone().cast_to(&common, left_schema)?;
        let right = right.clone().cast_to(&common, right_schema)?;
        Ok((self.expr(&left, left_schema)?, self.expr(&right, right_schema)?))
    }

    /// For either side, the conjuncts of the residual condition that read that side alone and
    /// cannot fail: a key is evaluated for whole rows, before the condition sees a pair of them.
    fn key_guards(&self, node: &Join) -> Result<[Vec<PhysicalExprRef>; 2]> {
        let mut guards = [vec![], vec![]];
        // Where NULLs match, or count, a key may not become NULL.
        if node.null_aware || node.null_equality != NullEquality::NullEqualsNothing {
            return Ok(guards);
        }
        for conjunct in node.filter.iter().flat_map(split_conjunction) {
            for (side, input) in [&node.left, &node.right].into_iter().enumerate() {
                let columns = conjunct.column_refs();
                if columns.is_empty() || !columns.iter().all(|c| input.schema().has_column(c)) {
                    continue;
                }
                let guard = self.expr(conjunct, input.schema())?;
                if !can_fail(&guard, input.schema().inner()) && !is_volatile(&guard) {
                    guards[side].push(guard);
                }
            }
        }
        Ok(guards)
    }

    /// The residual condition, over the columns that it reads.
    fn join_filter(&self, filter: &Expr, node: &Join) -> Result<JoinFilter> {
        let (left, right) = (node.left.schema(), node.right.schema());
        let mut columns: Vec<ColumnIndex> = vec![];
        for column in filter.column_refs() {
            let index = side_of(column, left, right)?;
            if !columns.contains(&index) {
                columns.push(index);
            }
        }
        columns.sort_by_key(|c| (c.side == JoinSide::Right, c.index));
        let fields = columns
            .iter()
            .map(|c| {
                let side = if c.side == JoinSide::Right { right } else { left };
                let (qualifier, field) = side.qualified_field(c.index);
                (qualifier.cloned(), Arc::clone(field))
            })
            .collect();
        let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
        let expression = guards_first(&self.expr(filter, &schema)?, schema.inner());
        Ok(JoinFilter::new(expression, columns, Arc::clone(schema.inner())))
    }
}

/// `CASE WHEN guards THEN key END` for a key that can fail: a row that the guards exclude matches
/// nothing, nor does NULL.
fn guarded(
    key: PhysicalExprRef,
    guards: &[PhysicalExprRef],
    schema: &Schema,
) -> Result<PhysicalExprRef> {
    if guards.is_empty() || !can_fail(&key, schema) {
        return Ok(key);
    }
    let guard = conjunction(guards.iter().map(Arc::clone));
    Ok(Arc::new(CaseExpr::try_new(None, vec![(guard, key)], None)?))
}

fn side_of(column: &Column, left: &DFSchema, right: &DFSchema) -> Result<ColumnIndex> {
    if let Some(index) = left.maybe_index_of_column(column) {
        return Ok(ColumnIndex { index, side: JoinSide::Left });
    }
    Ok(ColumnIndex { index: right.index_of_column(column)?, side: JoinSide::Right })
}
