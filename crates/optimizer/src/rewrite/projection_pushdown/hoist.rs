//! Computations that leave the filter of a nested-loop join.
//!
//! The filter is evaluated for every pair of rows. What it computes of one side alone becomes a
//! column of that side, computed once per row of it; the filter keeps a reference.

use crate::tree::map_children;
use arrow::datatypes::Schema;
use datafusion_common::stats::Precision;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{JoinSide, Result, internal_err};
use planish_expr::expressions::Column;
use planish_expr::utils::{column_indices, map_columns};
use planish_expr::{PhysicalExprRef, ProjectionExpr, ProjectionExprs, can_fail, is_volatile};
use planish_plan::PlanRef;
use planish_plan::operators::join_filter::{ColumnIndex, JoinFilter};
use planish_plan::operators::join_schema::{shows_left, shows_right};
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::projection::ProjectionExec;
use std::sync::Arc;

/// Columns made here are called this and a number.
const ALIAS: &str = "join_proj_push_down_";

/// `plan` with every computation of one side of a nested-loop join taken out of its filter, and
/// filters that name only the columns they read.
pub(super) fn hoist(plan: &PlanRef) -> Result<PlanRef> {
    hoist_below(plan, &mut Aliases { root: plan, next: None })
}

fn hoist_below(plan: &PlanRef, aliases: &mut Aliases<'_>) -> Result<PlanRef> {
    let plan = map_children(plan, |_, child| hoist_below(child, aliases))?;
    let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else { return Ok(plan) };
    let Some(filter) = join.filter() else { return Ok(plan) };
    let mut hoisting = Hoisting::new(join, filter);
    let mut expression = Arc::clone(filter.expression());
    for (side, other) in [(JoinSide::Left, join.right()), (JoinSide::Right, join.left())] {
        // Beside one row, a row is in one pair.
        if !matches!(other.statistics(None)?.num_rows, Precision::Exact(0 | 1)) {
            expression = hoisting.rewrite(&expression, side, aliases)?;
        }
    }
    if hoisting.is_unchanged() && filter.reads_all_columns() {
        return Ok(plan);
    }
    let narrowed = hoisting.rebuild(join, expression)?;
    // What the plan promised of its columns holds, or nothing is done.
    Ok(if narrowed.schema() == plan.schema() { narrowed } else { plan })
}

/// Names that no column of the plan has, those of earlier runs included.
struct Aliases<'a> {
    root: &'a PlanRef,
    next: Option<usize>,
}

impl Aliases<'_> {
    fn next(&mut self) -> Result<String> {
        let number = match self.next {
            Some(next) => next,
            None => first_free(self.root)?,
        };
        self.next = Some(number + 1);
        Ok(format!("{ALIAS}{number}"))
    }
}

/// The number after the greatest in use.
fn first_free(plan: &PlanRef) -> Result<usize> {
    let mut next = 1;
    plan.apply(|node| {
        for field in node.schema().fields() {
            let number = field.name().strip_prefix(ALIAS).and_then(|n| n.parse::<usize>().ok());
            next = next.max(number.map_or(0, |n| n.saturating_add(1)));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(next)
}

/// A join filter on its way: its columns, old and new, and what each side computes for it.
struct Hoisting {
    columns: Vec<ColumnIndex>,
    schema: Schema,
    left: Side,
    right: Side,
}

/// One input: how many columns it has, and what comes after them.
struct Side {
    width: usize,
    added: Vec<ProjectionExpr>,
}

impl Hoisting {
    fn new(join: &NestedLoopJoinExec, filter: &JoinFilter) -> Self {
        let side = |plan: &PlanRef| Side { width: plan.schema().fields().len(), added: vec![] };
        Hoisting {
            columns: filter.column_indices().to_vec(),
            schema: filter.schema().as_ref().clone(),
            left: side(join.left()),
            right: side(join.right()),
        }
    }

    fn is_unchanged(&self) -> bool {
        self.left.added.is_empty() && self.right.added.is_empty()
    }

    fn depends_on(&self, expr: &PhysicalExprRef, side: JoinSide) -> bool {
        column_indices(expr).into_iter().any(|i| self.columns[i].side == side)
    }

    /// `expr` without what it computes of `side` alone.
    fn rewrite(
        &mut self,
        expr: &PhysicalExprRef,
        side: JoinSide,
        aliases: &mut Aliases<'_>,
    ) -> Result<PhysicalExprRef> {
        let children = expr.children();
        if children.is_empty() || expr.is_lambda() || !self.depends_on(expr, side) {
            return Ok(Arc::clone(expr));
        }
        // One that can fail would meet rows that no pair has, if the other side is empty.
        let stays = self.depends_on(expr, side.negate())
            || is_volatile(expr)
            || can_fail(expr, &self.schema);
        if !stays {
            return self.add_column(expr, side, aliases);
        }
        let mut rewritten = Vec::with_capacity(children.len());
        for child in &children {
            rewritten.push(self.rewrite(child, side, aliases)?);
        }
        if rewritten.iter().zip(children).all(|(new, old)| Arc::ptr_eq(new, old)) {
            return Ok(Arc::clone(expr));
        }
        Arc::clone(expr).with_new_children(rewritten)
    }

    /// `expr` as a column of `side`; a reference to it.
    fn add_column(
        &mut self,
        expr: &PhysicalExprRef,
        side: JoinSide,
        aliases: &mut Aliases<'_>,
    ) -> Result<PhysicalExprRef> {
        let field = expr.return_field(&self.schema)?;
        let of_side = map_columns(expr, &|c| {
            Some(Arc::new(Column::new(c.name(), self.columns[c.index()].index)))
        })?;
        let Some(of_side) = of_side else { return internal_err!("{expr} cannot be moved") };
        let own = if side == JoinSide::Left { &mut self.left } else { &mut self.right };
        let position = match own.added.iter().position(|e| e.expr.eq(&of_side)) {
            Some(known) => known,
            None => {
                own.added.push(ProjectionExpr::new(of_side, aliases.next()?));
                own.added.len() - 1
            }
        };
        let alias = own.added[position].alias.clone();
        let column = ColumnIndex { index: own.width + position, side };
        if let Some(known) = self.columns.iter().position(|c| *c == column) {
            return Ok(Arc::new(Column::new(&alias, known)));
        }
        self.columns.push(column);
        let mut fields = self.schema.fields().to_vec();
        fields.push(Arc::new(field.as_ref().clone().with_name(&alias)));
        self.schema = Schema::new(fields);
        Ok(Arc::new(Column::new(&alias, self.columns.len() - 1)))
    }

    /// `join` on `expression` over inputs with the added columns, which do not come out.
    fn rebuild(self, join: &NestedLoopJoinExec, expression: PhysicalExprRef) -> Result<PlanRef> {
        let filter = JoinFilter::new(expression, self.columns, Arc::new(self.schema));
        let join_type = join.join_type();
        let mut shown = vec![];
        let mut offset = 0;
        for (side, is_shown) in
            [(&self.left, shows_left(join_type)), (&self.right, shows_right(join_type))]
        {
            if is_shown {
                shown.extend(offset..offset + side.width);
                offset += side.width + side.added.len();
            }
        }
        let left = self.left.over(join.left())?;
        let right = self.right.over(join.right())?;
        let filter = Some(filter.minimized()?);
        let new: PlanRef = Arc::new(NestedLoopJoinExec::try_new(left, right, filter, join_type)?);
        let width = new.schema().fields().len();
        // The mark comes last.
        shown.extend(offset..width);
        if shown.len() == width {
            return Ok(new);
        }
        let shown = ProjectionExprs::from_indices(&shown, &new.schema());
        Ok(Arc::new(ProjectionExec::try_new(shown, new)?))
    }
}

impl Side {
    /// `input` with the added columns.
    fn over(self, input: &PlanRef) -> Result<PlanRef> {
        if self.added.is_empty() {
            return Ok(Arc::clone(input));
        }
        let all: Vec<usize> = (0..self.width).collect();
        let mut exprs: Vec<_> =
            ProjectionExprs::from_indices(&all, &input.schema()).into_iter().collect();
        exprs.extend(self.added);
        Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(input))?))
    }
}
