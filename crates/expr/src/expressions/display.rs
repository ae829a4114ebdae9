//! Parentheses: only where the text would otherwise read as another expression.

use super::{
    BetweenExpr, BinaryExpr, InListExpr, IsBoolExpr, IsNullExpr, LikeExpr, NegativeExpr, NotExpr,
};
use crate::PhysicalExprRef;
use datafusion_expr::Operator;
use std::fmt;

/// How tightly an expression binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Precedence(u8);

impl Precedence {
    /// `NOT`, tighter than AND.
    pub(super) const NOT: Precedence = Precedence(12);
    /// `LIKE`, `IN`, `IS`, `BETWEEN`: as comparisons.
    pub(super) const TEST: Precedence = Precedence(20);
    /// Unary minus.
    pub(super) const SIGN: Precedence = Precedence(50);
    /// Names, literals, calls: never in parentheses.
    const ATOM: Precedence = Precedence(u8::MAX);

    pub(super) fn of_operator(op: Operator) -> Self {
        Precedence(op.precedence())
    }

    /// A little tighter: for the operand that must not associate.
    pub(super) fn next(self) -> Self {
        Precedence(self.0 + 1)
    }

    fn of(expr: &PhysicalExprRef) -> Self {
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return Precedence::of_operator(*binary.op());
        }
        if expr.is::<NotExpr>() {
            return Precedence::NOT;
        }
        if expr.is::<NegativeExpr>() {
            return Precedence::SIGN;
        }
        let test = expr.is::<LikeExpr>()
            || expr.is::<InListExpr>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsBoolExpr>()
            || expr.is::<BetweenExpr>();
        if test { Precedence::TEST } else { Precedence::ATOM }
    }
}

/// `expr` where something that binds as `around` is written next to it.
pub(super) fn operand(expr: &PhysicalExprRef, around: Precedence) -> impl fmt::Display {
    let parenthesized = Precedence::of(expr) < around;
    fmt::from_fn(move |f| match parenthesized {
        true => write!(f, "({expr})"),
        false => write!(f, "{expr}"),
    })
}

/// `a, b, c`.
pub(crate) fn list(exprs: &[PhysicalExprRef]) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        for (i, expr) in exprs.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{expr}")?;
        }
        Ok(())
    })
}
