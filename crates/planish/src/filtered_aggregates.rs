//! Arguments of aggregates with `FILTER` are computed for the rows that pass it, and no others.
//!
//! The front end's elimination of common subexpressions takes them for computed in every row: of
//! `sum(10 / z) FILTER (WHERE z <> 0), max(10 / z) FILTER (WHERE z <> 0)` it makes a projection
//! that divides by zero. So it does not see nodes with such aggregates: while it runs, they are
//! extension nodes. What is lost is the sharing within these nodes.

use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchemaRef, Result};
use datafusion_expr::logical_plan::Extension;
use datafusion_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A rule of the front end's optimizer.
type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule`, which does not see filtered aggregates if it is the elimination of common
/// subexpressions.
pub(crate) fn keep_arguments_in_place(rule: Rule) -> Rule {
    if rule.name() == "common_sub_expression_eliminate" {
        Arc::new(KeepArguments(rule))
    } else {
        rule
    }
}

#[derive(Debug)]
struct KeepArguments(Rule);

impl OptimizerRule for KeepArguments {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut hidden = false;
        plan.apply_with_subqueries(|node| {
            hidden |= has_guarded_arguments(node)?;
            Ok(if hidden { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !hidden {
            return self.0.rewrite(plan, config);
        }
        let without = plan.transform_up_with_subqueries(hide).data()?;
        self.0
            .rewrite(without, config)?
            .map_data(|plan| plan.transform_up_with_subqueries(show).data())
    }
}

/// Whether an aggregate of the node computes its arguments behind a filter.
fn has_guarded_arguments(node: &LogicalPlan) -> Result<bool> {
    if !matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
        return Ok(false);
    }
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(is_guarded(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn is_guarded(expr: &Expr) -> bool {
    let is_computed = |part: &Expr| !matches!(part, Expr::Column(_) | Expr::Literal(..));
    let (args, order_by, filter) = match expr {
        Expr::AggregateFunction(call) => {
            (&call.params.args, &call.params.order_by, &call.params.filter)
        }
        // The order of a window is one of all of its rows.
        Expr::WindowFunction(call) => {
            return call.params.filter.is_some() && call.params.args.iter().any(is_computed);
        }
        _ => return false,
    };
    let keys = order_by.iter().map(|key| &key.expr);
    filter.is_some() && args.iter().chain(keys).any(is_computed)
}

fn hide(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_guarded_arguments(&node)? {
        return Ok(Transformed::no(node));
    }
    let node: Arc<dyn datafusion_expr::UserDefinedLogicalNode> = Arc::new(Hidden(node));
    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
}

fn show(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Extension(extension) = &node
        && let Some(hidden) = extension.node.as_any().downcast_ref::<Hidden>()
    {
        return Ok(Transformed::yes(hidden.0.clone()));
    }
    Ok(Transformed::no(node))
}

/// A node that a rule does not know.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Hidden(LogicalPlan);

impl PartialOrd for Hidden {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl UserDefinedLogicalNodeCore for Hidden {
    fn name(&self) -> &'static str {
        "Hidden"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.0.inputs()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.0.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        self.0.expressions()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        self.0.with_new_exprs(exprs, inputs).map(Hidden)
    }
}
