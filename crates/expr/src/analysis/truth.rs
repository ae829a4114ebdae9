//! Which of SQL's three truth values a condition may have.

use super::bounds::{ValueBounds, compare, value_bounds};
use crate::expressions::{
    BetweenExpr, BinaryExpr, InListExpr, IsBoolExpr, IsNullExpr, Literal, NotExpr,
};
use crate::{PhysicalExprRef, is_volatile};
use arrow::datatypes::Schema;
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use std::cmp::Ordering;

/// Longer `IN` lists are not looked at.
const LONGEST_LIST: usize = 256;

/// The truth values that a condition may have in some row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// It may be true.
    pub may_be_true: bool,
    /// It may be false.
    pub may_be_false: bool,
    /// It may be NULL.
    pub may_be_null: bool,
}

impl Truth {
    /// Any of the three.
    pub const ANY: Truth = Truth { may_be_true: true, may_be_false: true, may_be_null: true };

    /// Exactly `value`; `None` is NULL.
    pub fn constant(value: Option<bool>) -> Self {
        Truth {
            may_be_true: value == Some(true),
            may_be_false: value == Some(false),
            may_be_null: value.is_none(),
        }
    }

    fn and(self, other: Self) -> Self {
        Truth {
            may_be_true: self.may_be_true && other.may_be_true,
            may_be_false: self.may_be_false || other.may_be_false,
            may_be_null: (self.may_be_null && (other.may_be_true || other.may_be_null))
                || (other.may_be_null && self.may_be_true),
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    fn not(self) -> Self {
        Truth { may_be_true: self.may_be_false, may_be_false: self.may_be_true, ..self }
    }

    /// The truth of `self IS value`.
    fn is(self, value: bool) -> Self {
        let (hit, miss) = if value {
            (self.may_be_true, self.may_be_false)
        } else {
            (self.may_be_false, self.may_be_true)
        };
        Truth { may_be_true: hit, may_be_false: miss || self.may_be_null, may_be_null: false }
    }
}

impl From<Truth> for ValueBounds {
    fn from(truth: Truth) -> Self {
        let value = |b: bool| Some(ScalarValue::Boolean(Some(b)));
        let all_null = !truth.may_be_true && !truth.may_be_false;
        ValueBounds {
            lower: if all_null { None } else { value(!truth.may_be_false) },
            upper: if all_null { None } else { value(truth.may_be_true) },
            may_be_nan: false,
            may_be_null: truth.may_be_null,
            all_null,
        }
    }
}

impl From<&ValueBounds> for Truth {
    fn from(bounds: &ValueBounds) -> Self {
        let excludes = |end: &Option<ScalarValue>, value: bool| matches!(end, Some(ScalarValue::Boolean(Some(b))) if *b != value);
        Truth {
            may_be_true: !bounds.all_null && !excludes(&bounds.upper, true),
            may_be_false: !bounds.all_null && !excludes(&bounds.lower, false),
            may_be_null: bounds.may_be_null,
        }
    }
}

/// The truth values that `condition` may have in rows of `schema` where it is not an error;
/// `columns` says between which values those of each column lie.
pub fn possible_truth(
    condition: &PhysicalExprRef,
    schema: &Schema,
    columns: &dyn Fn(usize) -> ValueBounds,
) -> Truth {
    if is_volatile(condition) {
        return Truth::ANY;
    }
    let truth = |e: &PhysicalExprRef| possible_truth(e, schema, columns);
    let bounds = |e: &PhysicalExprRef| value_bounds(e, schema, columns);
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => truth(left).and(truth(right)),
            Operator::Or => truth(left).or(truth(right)),
            op => comparison(*op, &bounds(left), &bounds(right)),
        };
    }
    if let Some(not) = condition.downcast_ref::<NotExpr>() {
        return truth(not.expr()).not();
    }
    if let Some(test) = condition.downcast_ref::<IsBoolExpr>() {
        let is = truth(test.expr()).is(test.value());
        return if test.negated() { is.not() } else { is };
    }
    if let Some(test) = condition.downcast_ref::<IsNullExpr>() {
        let of = bounds(test.expr());
        let is =
            Truth { may_be_true: of.may_be_null, may_be_false: !of.all_null, may_be_null: false };
        return if test.negated() { is.not() } else { is };
    }
    if let Some(between) = condition.downcast_ref::<BetweenExpr>() {
        let of = bounds(between.expr());
        let above = comparison(Operator::GtEq, &of, &bounds(between.low()));
        let is = above.and(comparison(Operator::LtEq, &of, &bounds(between.high())));
        return if between.negated() { is.not() } else { is };
    }
    if let Some(list) = condition.downcast_ref::<InListExpr>()
        && list.list().len() <= LONGEST_LIST
    {
        let of = bounds(list.expr());
        let equal = list.list().iter().map(|item| comparison(Operator::Eq, &of, &bounds(item)));
        let is = equal.fold(Truth::constant(Some(false)), Truth::or);
        return if list.negated() { is.not() } else { is };
    }
    if let Some(literal) = condition.downcast_ref::<Literal>()
        && (literal.value().is_null() || matches!(literal.value(), ScalarValue::Boolean(_)))
    {
        return Truth::constant(match literal.value() {
            ScalarValue::Boolean(value) => *value,
            _ => None,
        });
    }
    if condition.children().is_empty() {
        return Truth::from(&bounds(condition));
    }
    let may_be_null = condition.nullable(schema).unwrap_or(true);
    Truth { may_be_null, ..Truth::ANY }
}

/// What `left op right` may be, for values between these bounds.
fn comparison(op: Operator, left: &ValueBounds, right: &ValueBounds) -> Truth {
    let ordered = matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
    );
    let distinct = matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    if !ordered {
        return Truth { may_be_null: !distinct, ..Truth::ANY };
    }
    if left.all_null || right.all_null {
        return Truth::constant(None);
    }
    // Whether some left value may be less than, not less than, ... some right value. NaN is
    // greater than all numbers, so it takes an upper bound away and leaves a lower one.
    let top = |b: &ValueBounds| b.upper.clone().filter(|_| !b.may_be_nan);
    let may = |a: &Option<ScalarValue>, holds: &[Ordering], b: &Option<ScalarValue>| match (a, b) {
        (Some(a), Some(b)) => compare(a, b).is_none_or(|order| holds.contains(&order)),
        _ => true,
    };
    let (l_top, r_top) = (top(left), top(right));
    use Ordering::{Equal, Greater, Less};
    let less = may(&left.lower, &[Less], &r_top);
    let less_or_equal = may(&left.lower, &[Less, Equal], &r_top);
    let greater = may(&l_top, &[Greater], &right.lower);
    let greater_or_equal = may(&l_top, &[Greater, Equal], &right.lower);
    // NaN equals NaN and no number.
    let numbers_meet = may(&left.lower, &[Less, Equal], &right.upper)
        && may(&left.upper, &[Greater, Equal], &right.lower);
    let equal = numbers_meet || (left.may_be_nan && right.may_be_nan);
    let unequal = !(equal && left.is_single() && right.is_single());
    let (may_be_true, may_be_false) = match op {
        Operator::Eq => (equal, unequal),
        Operator::NotEq => (unequal, equal),
        Operator::Lt => (less, greater_or_equal),
        Operator::LtEq => (less_or_equal, greater),
        Operator::Gt => (greater, less_or_equal),
        _ => (greater_or_equal, less),
    };
    Truth { may_be_true, may_be_false, may_be_null: left.may_be_null || right.may_be_null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{Column, lit};
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;

    /// The truth of `a op value` for floats `a` from 1 to 3.
    fn float(op: Operator, value: f64, may_be_nan: bool) -> (bool, bool) {
        let schema = Schema::new(vec![Field::new("a", DataType::Float64, false)]);
        let known = ValueBounds {
            may_be_nan,
            ..ValueBounds::between(ScalarValue::from(1f64), ScalarValue::from(3f64), false)
        };
        let a = Arc::new(Column::new("a", 0));
        let test: PhysicalExprRef = Arc::new(BinaryExpr::new(a, op, lit(value)));
        let truth = possible_truth(&test, &schema, &|_| known.clone());
        assert!(!truth.may_be_null);
        (truth.may_be_true, truth.may_be_false)
    }

    #[test]
    fn comparisons_by_bounds() {
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let (only_true, only_false, both) = ((true, false), (false, true), (true, true));
        for (op, value, expected) in [
            (Lt, 1.0, only_false),
            (Lt, 2.0, both),
            (Lt, 3.0, both),
            (Lt, 3.5, only_true),
            (LtEq, 3.0, only_true),
            (Gt, 3.0, only_false),
            (Gt, 0.5, only_true),
            (GtEq, 3.0, both),
            (GtEq, 1.0, only_true),
            (Eq, 2.0, both),
            (Eq, 4.0, only_false),
            (NotEq, 4.0, only_true),
            // Of NaN nothing is said.
            (Lt, f64::NAN, both),
            (Gt, f64::NAN, both),
        ] {
            assert_eq!(float(op, value, false), expected, "{op} {value}");
        }
        // What may be NaN may be greater than anything.
        assert_eq!(float(Gt, 5.0, true), both);
        assert_eq!(float(Lt, 5.0, true), both);
        assert_eq!(float(Lt, 0.5, true), only_false);
        assert_eq!(float(Eq, 5.0, true), only_false, "NaN is not 5");
    }

    #[test]
    fn zeros_are_one_value() {
        let schema = Schema::new(vec![Field::new("a", DataType::Float64, false)]);
        let zero = ValueBounds::of_value(&ScalarValue::from(-0f64));
        let a = Arc::new(Column::new("a", 0));
        let test: PhysicalExprRef = Arc::new(BinaryExpr::new(a, Operator::Eq, lit(0f64)));
        let truth = possible_truth(&test, &schema, &|_| zero.clone());
        assert_eq!(truth, Truth::constant(Some(true)));
    }
}
