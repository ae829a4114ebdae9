//! Named windows, written out before the front end binds a statement: it drops what a window
//! takes over from another one (`WINDOW b AS (a ORDER BY x)`).

use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_sql::parser::Statement as DFStatement;
use datafusion_sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Select, VisitMut, VisitorMut, WindowSpec,
    WindowType,
};
use std::ops::ControlFlow;

/// Replaces every reference to a named window by what it stands for.
///
/// # Errors
/// A plan error for a window that is not defined (before its use), or that takes over what it may
/// not change.
pub(crate) fn write_out(statement: &mut DFStatement) -> Result<()> {
    let done = match statement {
        DFStatement::Statement(statement) => statement.visit(&mut Selects),
        DFStatement::Explain(explain) => return write_out(&mut explain.statement),
        _ => ControlFlow::Continue(()),
    };
    match done {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Selects;

impl VisitorMut for Selects {
    type Break = DataFusionError;

    /// The inner ones first: they see no windows but their own.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        let mut known: Vec<(Ident, WindowSpec)> = vec![];
        for NamedWindowDefinition(name, definition) in &select.named_window {
            let spec = match definition {
                NamedWindowExpr::NamedWindow(other) => find(&known, other),
                NamedWindowExpr::WindowSpec(spec) => complete(&known, spec),
            };
            match spec {
                Ok(spec) => known.push((name.clone(), spec)),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        select.named_window.clear();
        let mut calls = Calls { known };
        for item in &mut select.projection {
            item.visit(&mut calls)?;
        }
        match &mut select.qualify {
            Some(qualify) => qualify.visit(&mut calls),
            None => ControlFlow::Continue(()),
        }
    }
}

struct Calls {
    known: Vec<(Ident, WindowSpec)>,
}

impl VisitorMut for Calls {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let spec = match &call.over {
            Some(WindowType::NamedWindow(name)) => find(&self.known, name),
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => {
                complete(&self.known, spec)
            }
            _ => return ControlFlow::Continue(()),
        };
        match spec {
            Ok(spec) => call.over = Some(WindowType::WindowSpec(spec)),
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

fn find(known: &[(Ident, WindowSpec)], name: &Ident) -> Result<WindowSpec> {
    let folded = |ident: &Ident| match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    match known.iter().find(|(own, _)| folded(own) == folded(name)) {
        Some((_, spec)) => Ok(spec.clone()),
        None => plan_err!("there is no window {name}"),
    }
}

/// `spec` with what it takes over: the partitions, and the order unless it has its own.
fn complete(known: &[(Ident, WindowSpec)], spec: &WindowSpec) -> Result<WindowSpec> {
    let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
    let base = find(known, name)?;
    if !spec.partition_by.is_empty() {
        return plan_err!("a window cannot change the PARTITION BY of window {name}");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return plan_err!("a window cannot change the ORDER BY of window {name}");
    }
    if base.window_frame.is_some() {
        return plan_err!("window {name} has a frame, so no other window can take it over");
    }
    let order_by = if spec.order_by.is_empty() { base.order_by } else { spec.order_by.clone() };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by,
        order_by,
        window_frame: spec.window_frame.clone(),
    })
}
