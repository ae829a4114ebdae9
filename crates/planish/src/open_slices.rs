//! Slices with open ends, closed before the front end binds a statement: it refuses `l[2:]`.
//!
//! `l[2:]` becomes `l[2:-1]`, `l[:2]` becomes `l[1:2]`: the first element is number 1, the last
//! one number -1. With a negative step it is the other way round.

use datafusion_sql::parser::Statement as DFStatement;
use datafusion_sql::sqlparser::ast::{
    AccessExpr, Expr, Subscript, UnaryOperator, Value, VisitMut, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Writes down every bound that is left open.
pub(crate) fn close(statement: &mut DFStatement) {
    match statement {
        DFStatement::Statement(statement) => {
            let ControlFlow::Continue(()) = statement.visit(&mut Slices);
        }
        DFStatement::Explain(explain) => close(&mut explain.statement),
        _ => {}
    }
}

struct Slices;

impl VisitorMut for Slices {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::CompoundFieldAccess { access_chain, .. } = expr else {
            return ControlFlow::Continue(());
        };
        for access in access_chain {
            let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) =
                access
            else {
                continue;
            };
            let backwards = stride.as_ref().is_some_and(is_negative);
            let (first, last) = if backwards { (last(), first()) } else { (first(), last()) };
            lower_bound.get_or_insert(first);
            upper_bound.get_or_insert(last);
        }
        ControlFlow::Continue(())
    }
}

fn is_negative(stride: &Expr) -> bool {
    matches!(stride, Expr::UnaryOp { op: UnaryOperator::Minus, .. })
}

fn first() -> Expr {
    Expr::Value(Value::Number("1".to_owned(), false).with_empty_span())
}

fn last() -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(first()) }
}
