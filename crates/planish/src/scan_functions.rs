//! `file_row_index()` and `input_file_name()` become columns of the scan below.
//!
//! The function library declares both volatile, and has nothing to evaluate them with. So they
//! are resolved first of all, before anything asks what is volatile: the one scan of files below
//! a node is made to yield the column, and all nodes between hand it on.
//!
//! ```text
//! Filter: file_row_index() > 3
//!   SubqueryAlias: s
//!     Projection: t.a
//!       TableScan: t projection=[a]
//! ```
//!
//! becomes
//!
//! ```text
//! Projection: s.a
//!   Filter: s.__planish_file_row_index > 3
//!     SubqueryAlias: s
//!       Projection: t.a, t.__planish_file_row_index
//!         TableScan: t projection=[a, __planish_file_row_index]
//! ```
//!
//! Where no file or more than one scan is behind a call, where rows were grouped, deduplicated or
//! united on the way, it has no meaning, and is an error.

use crate::plan_expressions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result, internal_err, plan_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{
    Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan,
    TableScanBuilder,
};
use planish_planner::TableSourceAdapter;
use planish_source::{FILE_ROW_INDEX, INPUT_FILE_NAME};
use std::sync::Arc;

/// The functions, and the column of a scan that each stands for.
const FUNCTIONS: [(&str, &str); 2] =
    [("file_row_index", FILE_ROW_INDEX), ("input_file_name", INPUT_FILE_NAME)];

/// The function that `expr` calls.
fn called(expr: &Expr) -> Option<(&'static str, &'static str)> {
    match expr {
        Expr::ScalarFunction(call) if call.args.is_empty() => {
            FUNCTIONS.into_iter().find(|(name, _)| *name == call.func.name())
        }
        _ => None,
    }
}

/// `plan` with every call a column.
///
/// # Errors
/// A plan error for a call that no single scan of files answers.
pub(crate) fn as_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan_expressions::any(&plan, |expr| called(expr).is_some())? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let calls = calls_of(&node)?;
        if calls.is_empty() {
            // The columns of what is below may be nullable in another way now.
            return Ok(Transformed::yes(node.recompute_schema()?));
        }
        Ok(Transformed::yes(resolve(node, &calls)?))
    })
    .data()
}

fn calls_of(node: &LogicalPlan) -> Result<Vec<(&'static str, &'static str)>> {
    let mut calls = vec![];
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            calls.extend(called(part).filter(|call| !calls.contains(call)));
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(calls)
}

/// `node` with its own `calls` as columns, and the columns that it had before.
fn resolve(node: LogicalPlan, calls: &[(&'static str, &'static str)]) -> Result<LogicalPlan> {
    let before = Arc::clone(node.schema());
    let names = NamePreserver::new(&node);
    let mut inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let mut columns = vec![];
    for (function, hidden) in calls {
        columns.push((*function, expose_in_one(&mut inputs, function, hidden)?));
    }
    let as_column = |part: Expr| match called(&part) {
        Some((function, _)) => match columns.iter().find(|(name, _)| *name == function) {
            Some((_, column)) => Ok(Transformed::yes(Expr::Column(column.clone()))),
            None => internal_err!("{function}() was not resolved"),
        },
        None => Ok(Transformed::no(part)),
    };
    let node = node
        .map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(as_column)?;
            Ok(Transformed::new(name.restore(expr.data), expr.transformed, expr.tnr))
        })?
        .data;
    let exprs = node.expressions();
    let node = node.with_new_exprs(exprs, inputs)?.recompute_schema()?;
    if node.schema().fields().len() == before.fields().len() {
        return Ok(node);
    }
    let columns = before.columns().into_iter().map(Expr::from);
    LogicalPlanBuilder::from(node).project(columns.collect::<Vec<_>>())?.build()
}

/// Makes the one of `inputs` with a scan below yield the column `hidden`.
fn expose_in_one(inputs: &mut [LogicalPlan], function: &str, hidden: &str) -> Result<Column> {
    let mut found = None;
    let mut scans = 0;
    for (i, input) in inputs.iter().enumerate() {
        let of_input = scans_below(input)?;
        scans += of_input;
        if of_input > 0 {
            found = Some(i);
        }
    }
    match found {
        Some(i) if scans == 1 => {
            let (input, column) = expose(&inputs[i], function, hidden)?;
            inputs[i] = input;
            Ok(column)
        }
        Some(_) => plan_err!(
            "{function}() is ambiguous: {scans} tables are behind it; \
             call it in a subquery over one of them"
        ),
        None => plan_err!("{function}() has no file behind it"),
    }
}

fn scans_below(plan: &LogicalPlan) -> Result<usize> {
    let mut scans = 0;
    plan.apply(|node| {
        scans += usize::from(matches!(node, LogicalPlan::TableScan(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(scans)
}

/// `plan` with the column `hidden` of the one scan in it among its columns, and that column.
fn expose(plan: &LogicalPlan, function: &str, hidden: &str) -> Result<(LogicalPlan, Column)> {
    match plan {
        LogicalPlan::TableScan(scan) => expose_in_scan(scan, function, hidden),
        LogicalPlan::SubqueryAlias(alias) => {
            let (input, column) = expose(&alias.input, function, hidden)?;
            let relation = alias.alias.clone();
            let plan = SubqueryAlias::try_new(Arc::new(input), relation.clone())?;
            let column = Column::new(Some(relation), column.name);
            Ok((LogicalPlan::SubqueryAlias(plan), column))
        }
        LogicalPlan::Projection(projection) => {
            let (input, column) = expose(&projection.input, function, hidden)?;
            let mut exprs = projection.expr.clone();
            if !projection.schema.has_column(&column) {
                exprs.push(Expr::Column(column.clone()));
            }
            let plan = Projection::try_new(exprs, Arc::new(input))?;
            Ok((LogicalPlan::Projection(plan), column))
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Repartition(_) => {
            let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
            let column = expose_in_one(&mut inputs, function, hidden)?;
            Ok((with_inputs(plan, inputs)?, column))
        }
        LogicalPlan::Join(join) if !hides_a_side(join.join_type) => {
            let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
            let column = expose_in_one(&mut inputs, function, hidden)?;
            Ok((with_inputs(plan, inputs)?, column))
        }
        other => {
            let what = other.display().to_string();
            let what = what.split([':', ' ']).next().unwrap_or_default().to_owned();
            plan_err!(
                "{function}() has no file behind it: the rows of {what} are not those of a file; \
                 call it in a subquery below"
            )
        }
    }
}

/// Whether a join hands on the columns of one side only. Which side the scan is on would have to
/// be told from the join's own column.
fn hides_a_side(join_type: JoinType) -> bool {
    !matches!(join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
}

fn with_inputs(plan: &LogicalPlan, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    plan.with_new_exprs(plan.expressions(), inputs)?.recompute_schema()
}

fn expose_in_scan(scan: &TableScan, function: &str, hidden: &str) -> Result<(LogicalPlan, Column)> {
    let column = Column::new(Some(scan.table_name.clone()), hidden);
    if scan.projected_schema.has_column(&column) {
        return Ok((LogicalPlan::TableScan(scan.clone()), column));
    }
    let Some(source) = scan.source.downcast_ref::<TableSourceAdapter>() else {
        return plan_err!("{function}() has no file behind it: {} is none", scan.table_name);
    };
    let stored = source.table().schema().fields().len();
    let all = source.table().scan_schema();
    let Some(index) = all.fields().iter().skip(stored).position(|field| field.name() == hidden)
    else {
        return plan_err!(
            "{function}() has no file behind it: {} is not a table of files",
            scan.table_name
        );
    };
    let mut projection = scan.projection.clone().unwrap_or_else(|| (0..stored).collect());
    projection.push(stored + index);
    let source = Arc::new(source.with_scan_columns());
    let extended = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(Some(projection))
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch)
        .build()?;
    Ok((LogicalPlan::TableScan(extended), column))
}
