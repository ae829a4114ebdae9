//! `Window` becomes a `BoundedWindowAggExec` where its functions can stream, else a
//! `WindowAggExec`.

use crate::planner::{Lowering, project_columns};
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::expr::{NullTreatment, Sort, WindowFunction as WindowCall};
use datafusion_expr::{Expr, Window, WindowFunctionDefinition};
use planish_expr::udf::{AggregateFunctionExpr, WindowUdfExpr};
use planish_plan::PlanRef;
use planish_plan::operators::window::{WindowExpr, WindowFunction, window_exec};
use std::sync::Arc;

/// The functions of a node that share partitions and order, each with its place in the node.
struct Group<'a> {
    partition_by: &'a [Expr],
    order_by: &'a [Sort],
    calls: Vec<(usize, &'a WindowCall)>,
}

impl Lowering {
    pub(crate) fn lower_window(&self, node: &Window) -> Result<PlanRef> {
        let mut plan = self.lower(&node.input)?;
        let width = plan.schema().fields().len();
        let mut places = vec![0; node.window_expr.len()];
        let mut made = 0;
        for group in groups(&node.window_expr)? {
            let schema = node.input.schema();
            let input = plan.schema();
            let mut exprs = vec![];
            for (place, call) in &group.calls {
                let name = node.schema.field(width + place).name();
                exprs.push(self.window_expr(call, name, node, &input)?);
                places[*place] = width + made;
                made += 1;
            }
            let partition_by = self.exprs(group.partition_by, schema)?;
            let order_by = self.ordering(group.order_by, schema)?;
            plan = window_exec(exprs, partition_by, order_by, plan)?;
        }
        let in_place = places.iter().enumerate().all(|(i, &place)| place == width + i);
        if in_place {
            return Ok(plan);
        }
        project_columns(plan, node.schema.inner(), (0..width).chain(places))
    }

    fn window_expr(
        &self,
        call: &WindowCall,
        name: &str,
        node: &Window,
        input: &arrow::datatypes::SchemaRef,
    ) -> Result<WindowExpr> {
        let (params, schema) = (&call.params, node.input.schema());
        let args = self.exprs(&params.args, schema)?;
        let ignore_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
        let filter = match &params.filter {
            Some(filter) => Some(self.expr(filter, schema)?),
            None => None,
        };
        let function = match &call.fun {
            WindowFunctionDefinition::AggregateUDF(fun) => {
                WindowFunction::Aggregate(Arc::new(AggregateFunctionExpr::try_new(
                    Arc::clone(fun),
                    args,
                    Arc::clone(input),
                    name,
                    params.distinct,
                    ignore_nulls,
                    vec![],
                    filter,
                )?))
            }
            WindowFunctionDefinition::WindowUDF(fun) => {
                if filter.is_some() {
                    return plan_err!("FILTER is for aggregates, {} is none", fun.name());
                }
                if params.distinct {
                    return plan_err!("DISTINCT is for aggregates, {} is none", fun.name());
                }
                WindowFunction::Udf(Arc::new(WindowUdfExpr::try_new(
                    Arc::clone(fun),
                    args,
                    Arc::clone(input),
                    name,
                    ignore_nulls,
                )?))
            }
        };
        Ok(WindowExpr { function, frame: Arc::new(params.window_frame.clone()) })
    }
}

fn groups(exprs: &[Expr]) -> Result<Vec<Group<'_>>> {
    let mut groups: Vec<Group<'_>> = vec![];
    for (place, expr) in exprs.iter().enumerate() {
        let Expr::WindowFunction(call) = strip_alias(expr) else {
            return internal_err!("{expr} is no window function");
        };
        let (partition_by, order_by) = (&call.params.partition_by, &call.params.order_by);
        match groups.iter_mut().find(|g| g.partition_by == partition_by && g.order_by == order_by) {
            Some(group) => group.calls.push((place, call)),
            None => groups.push(Group { partition_by, order_by, calls: vec![(place, call)] }),
        }
    }
    Ok(groups)
}

fn strip_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => strip_alias(&alias.expr),
        other => other,
    }
}
