//! What DataFusion 55.2's front end plans wrongly, refused until a rule of ours replaces it: an
//! error is better than wrong rows.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, JoinConstraint, JoinType, Result, not_impl_err};
use datafusion_expr::expr::InSubquery;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, ExprSchemable, Filter, Join, Limit, LogicalPlan};
use datafusion_sql::parser::Statement as DFStatement;
use datafusion_sql::sqlparser::ast::{TableFactor, Visit, Visitor};
use std::ops::ControlFlow;

/// Clauses that the binder drops without a word.
pub(crate) fn dropped_clauses(statement: &DFStatement) -> Result<()> {
    let found = match statement {
        DFStatement::Statement(statement) => statement.visit(&mut Sampled),
        DFStatement::Explain(explain) => return dropped_clauses(&explain.statement),
        _ => ControlFlow::Continue(()),
    };
    if found.is_break() {
        return not_impl_err!("TABLESAMPLE is not supported yet");
    }
    Ok(())
}

struct Sampled;

impl Visitor for Sampled {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Expressions of an analyzed plan that the logical optimizer would change the meaning of.
pub(crate) fn changed_meanings(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                check_expression(part)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        match node {
            LogicalPlan::Filter(filter) => check_filter(filter)?,
            LogicalPlan::Join(join) => check_join(join)?,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_expression(expr: &Expr) -> Result<()> {
    match expr {
        // Its OFFSET is lost.
        Expr::Exists(exists) if skips_rows(&exists.subquery.subquery) => {
            not_impl_err!("EXISTS over a query with OFFSET is not supported yet")
        }
        Expr::Exists(exists) if aggregates_correlated(&exists.subquery.subquery)? => {
            not_impl_err!(
                "EXISTS over a correlated aggregate without GROUP BY is not supported yet"
            )
        }
        Expr::InSubquery(list) if aggregates_correlated(&list.subquery.subquery)? => {
            not_impl_err!("IN over a correlated aggregate without GROUP BY is not supported yet")
        }
        // The condition is looked up in the plan without the subquery.
        Expr::InSubquery(list) if list.expr.contains_outer() => {
            not_impl_err!(
                "IN (subquery) over a value of an outer query is not supported yet: {expr}"
            )
        }
        Expr::ScalarSubquery(subquery) if filters_correlated_aggregate(&subquery.subquery)? => {
            not_impl_err!(
                "HAVING in a correlated scalar subquery without GROUP BY is not supported yet"
            )
        }
        _ => Ok(()),
    }
}

/// Whether a correlated aggregate yields one row for every outer row: as a join it has none for
/// those without a match.
fn aggregates_correlated(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Aggregate(aggregate)
            if aggregate.group_expr.is_empty() && !aggregate.input.all_out_ref_exprs().is_empty()))
    })
}

/// Whether the one row of a correlated aggregate may be filtered out: as a join it has NULL, or
/// the aggregate of nothing, for those.
fn filters_correlated_aggregate(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::Filter(filter) => aggregates_correlated(&filter.input),
        _ => Ok(false),
    })
}

fn skips_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(Limit { skip: Some(_), .. }) => true,
        LogicalPlan::Limit(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::SubqueryAlias(_) => plan.inputs().into_iter().any(skips_rows),
        _ => false,
    }
}

/// A column named in USING is taken from the left side, where an unmatched row has NULL.
fn check_join(join: &Join) -> Result<()> {
    if join.join_constraint == JoinConstraint::Using
        && matches!(join.join_type, JoinType::Right | JoinType::Full)
    {
        let kind = join.join_type.to_string().to_uppercase();
        return not_impl_err!("{kind} JOIN with USING or NATURAL is not supported yet; write ON");
    }
    Ok(())
}

/// `NOT IN` below anything but AND becomes a mark join that takes "unknown" for "no match".
fn check_filter(filter: &Filter) -> Result<()> {
    let schema = filter.input.schema();
    for conjunct in split_conjunction(&filter.predicate) {
        if matches!(conjunct, Expr::InSubquery(_)) {
            continue;
        }
        let mut unknown = false;
        conjunct.apply(|part| {
            match part {
                Expr::Not(inner) => unknown |= contains_unknown_in(inner, schema)?,
                Expr::InSubquery(list) if list.negated => unknown |= may_be_unknown(list, schema)?,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        // NOT directly over IN is turned into NOT IN, which is fine as a conjunct of its own.
        let own_conjunct = matches!(conjunct, Expr::Not(e) if matches!(**e, Expr::InSubquery(_)));
        if unknown && !own_conjunct {
            return not_impl_err!(
                "NOT IN (subquery) inside of another expression, where NULLs may occur, is not \
                 supported yet: {conjunct}"
            );
        }
    }
    Ok(())
}

fn contains_unknown_in(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut found = false;
    expr.apply(|part| {
        if let Expr::InSubquery(list) = part {
            found |= may_be_unknown(list, schema)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn may_be_unknown(list: &InSubquery, schema: &DFSchema) -> Result<bool> {
    let values = list.subquery.subquery.schema();
    Ok(list.expr.nullable(schema)? || values.fields().iter().any(|f| f.is_nullable()))
}
