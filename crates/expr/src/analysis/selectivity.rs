//! Which share of rows a condition keeps.
//!
//! The classic estimates of Selinger et al., "Access Path Selection in a Relational Database
//! Management System" (SIGMOD 1979): values spread evenly between the bounds of a column,
//! columns independent of each other; two ends of a range of one expression are taken together.

use super::bounds::{ValueBounds, compare, value_bounds};
use super::distinct::distinct_values;
use super::truth::possible_truth;
use crate::PhysicalExprRef;
use crate::expressions::{
    BetweenExpr, BinaryExpr, Column, InListExpr, IsNullExpr, LikeExpr, NotExpr,
};
use crate::utils::split_conjunction;
use arrow::datatypes::Schema;
use datafusion_common::{ScalarValue, Statistics};
use datafusion_expr::Operator;
use std::cmp::Ordering;
use std::sync::Arc;

/// Share of rows that a condition of which nothing is known keeps.
const UNKNOWN: f64 = 0.2;

/// So many conditions of which nothing is known count, no more: ten of them together are not a
/// reason to expect no rows.
const UNKNOWN_COUNTED: usize = 3;

/// An estimate of the share of rows, from 0 to 1, for which `predicate` is true.
pub fn selectivity(predicate: &PhysicalExprRef, stats: &Statistics, schema: &Schema) -> f64 {
    Estimator { stats, schema }.conjunction(&split_conjunction(predicate))
}

struct Estimator<'a> {
    stats: &'a Statistics,
    schema: &'a Schema,
}

/// The ends of a range asked of one expression: the shares of rows above the one, below the
/// other.
struct Range {
    expr: PhysicalExprRef,
    above: f64,
    below: f64,
}

impl Estimator<'_> {
    fn conjunction(&self, conjuncts: &[PhysicalExprRef]) -> f64 {
        let mut share = 1.0;
        let mut unknown = 0;
        let mut ranges: Vec<Range> = vec![];
        for conjunct in conjuncts {
            if let Some((expr, op, of)) = self.range(conjunct) {
                let known = ranges.iter().position(|r| r.expr.eq(&expr));
                let at = known.unwrap_or_else(|| {
                    ranges.push(Range { expr, above: 1.0, below: 1.0 });
                    ranges.len() - 1
                });
                let end = match op {
                    Operator::Gt | Operator::GtEq => &mut ranges[at].above,
                    _ => &mut ranges[at].below,
                };
                *end = end.min(of);
            } else if let Some(of) = self.known(conjunct) {
                share *= of;
            } else {
                unknown += 1;
            }
        }
        for range in ranges {
            share *= self.overlap(&range);
        }
        share * UNKNOWN.powi(unknown.min(UNKNOWN_COUNTED) as i32)
    }

    /// Rows above the one end and below the other; at least those of one value.
    fn overlap(&self, range: &Range) -> f64 {
        let both = range.above + range.below - 1.0;
        let least = range.above.min(range.below);
        both.max(self.one_value(&range.expr).unwrap_or(0.0)).min(least)
    }

    /// `None` when nothing is known.
    fn known(&self, condition: &PhysicalExprRef) -> Option<f64> {
        let truth = possible_truth(condition, self.schema, &|i| self.column(i));
        if !truth.may_be_true {
            return Some(0.0);
        }
        if !truth.may_be_false && !truth.may_be_null {
            return Some(1.0);
        }
        let valid = |e: &PhysicalExprRef| 1.0 - self.nulls(e).unwrap_or(0.0);
        if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
            return self.of_binary(condition, binary);
        }
        if let Some(not) = condition.downcast_ref::<NotExpr>() {
            let of = self.known(not.expr())?;
            return Some((valid(not.expr()) - of).max(0.0));
        }
        if let Some(test) = condition.downcast_ref::<IsNullExpr>() {
            let nulls = self.nulls(test.expr())?;
            return Some(if test.negated() { 1.0 - nulls } else { nulls });
        }
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            let found = self.one_value(list.expr())? * list.list().len() as f64;
            return Some(negated_if(list.negated(), found.min(1.0), valid(list.expr())));
        }
        if let Some(between) = condition.downcast_ref::<BetweenExpr>() {
            let end = |op, bound| self.fraction(between.expr(), op, bound);
            let range = Range {
                expr: Arc::clone(between.expr()),
                above: end(Operator::GtEq, between.low())?,
                below: end(Operator::LtEq, between.high())?,
            };
            let found = self.overlap(&range);
            return Some(negated_if(between.negated(), found, valid(between.expr())));
        }
        if let Some(like) = condition.downcast_ref::<LikeExpr>() {
            return like.negated().then(|| valid(like.expr()) * (1.0 - UNKNOWN));
        }
        condition.is::<Column>().then(|| 0.5 * valid(condition))
    }

    fn of_binary(&self, condition: &PhysicalExprRef, binary: &BinaryExpr) -> Option<f64> {
        let (left, right) = (binary.left(), binary.right());
        let valid = || {
            let nulls = |e| self.nulls(e).unwrap_or(0.0);
            (1.0 - nulls(left)) * (1.0 - nulls(right))
        };
        let equal = || {
            let of = match (self.one_value(left), self.one_value(right)) {
                (Some(l), Some(r)) => l.min(r),
                // Of a literal alone it is known that it is one value.
                (one, other) => one.or(other).filter(|share| *share < 1.0)?,
            };
            Some(of * valid())
        };
        match binary.op() {
            Operator::And => Some(self.conjunction(&split_conjunction(condition))),
            Operator::Or => {
                let of = |e| self.conjunction(&split_conjunction(e));
                let (l, r) = (of(left), of(right));
                Some(l + r - l * r)
            }
            Operator::Eq => equal(),
            Operator::NotEq => Some((valid() - equal()?).max(0.0)),
            _ => None,
        }
    }

    /// The expression, the operator and the share of rows, when `condition` compares an
    /// expression of known bounds with one value.
    fn range(&self, condition: &PhysicalExprRef) -> Option<(PhysicalExprRef, Operator, f64)> {
        let binary = condition.downcast_ref::<BinaryExpr>()?;
        let op = *binary.op();
        if !matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq) {
            return None;
        }
        if let Some(share) = self.fraction(binary.left(), op, binary.right()) {
            return Some((Arc::clone(binary.left()), op, share));
        }
        let op = op.swap()?;
        let share = self.fraction(binary.right(), op, binary.left())?;
        Some((Arc::clone(binary.right()), op, share))
    }

    /// The share of rows for which `expr op value` is true, values spread evenly.
    fn fraction(
        &self,
        expr: &PhysicalExprRef,
        op: Operator,
        value: &PhysicalExprRef,
    ) -> Option<f64> {
        let (of, value) = (self.bounds(expr), self.bounds(value));
        if !value.is_single() {
            return None;
        }
        let (value, low, high) = (value.lower.as_ref()?, of.lower.as_ref()?, of.upper.as_ref()?);
        let before = compare(value, low)? == Ordering::Less;
        let after = compare(value, high)? == Ordering::Greater;
        let (value, low, high) = (number(value)?, number(low)?, number(high)?);
        let width = high - low;
        if !width.is_finite() || width < 0.0 {
            return None;
        }
        let below = if width > 0.0 { (value - low) / width } else { 0.5 };
        let downwards = matches!(op, Operator::Lt | Operator::LtEq);
        let share = match downwards {
            _ if before || after => f64::from(u8::from(downwards == after)),
            true => below,
            false => 1.0 - below,
        };
        let at_least = if before || after { 0.0 } else { self.one_value(expr).unwrap_or(0.0) };
        Some(share.max(at_least) * (1.0 - self.nulls(expr).unwrap_or(0.0)))
    }

    /// The share of the rows that one value has, NULLs left out.
    fn one_value(&self, expr: &PhysicalExprRef) -> Option<f64> {
        let distinct = distinct_values(expr, self.stats, self.schema)?;
        let rows = self.stats.num_rows.get_value().copied().unwrap_or(usize::MAX);
        Some(1.0 / distinct.min(rows).max(1) as f64)
    }

    fn nulls(&self, expr: &PhysicalExprRef) -> Option<f64> {
        if let Ok(false) = expr.nullable(self.schema) {
            return Some(0.0);
        }
        let column = expr.downcast_ref::<Column>()?;
        let nulls = *self.stats.column_statistics.get(column.index())?.null_count.get_value()?;
        let rows = (*self.stats.num_rows.get_value()?).max(1);
        Some((nulls as f64 / rows as f64).min(1.0))
    }

    fn bounds(&self, expr: &PhysicalExprRef) -> ValueBounds {
        value_bounds(expr, self.schema, &|i| self.column(i))
    }

    fn column(&self, i: usize) -> ValueBounds {
        ValueBounds::estimate(self.stats, self.schema, i)
    }
}

fn negated_if(negated: bool, found: f64, valid: f64) -> f64 {
    if negated { (valid - found).max(0.0) } else { found.min(valid) }
}

/// A number by which values of one type can be placed between others.
fn number(value: &ScalarValue) -> Option<f64> {
    use ScalarValue as S;
    Some(match value {
        S::Float64(v) => (*v)?,
        S::Float32(v) => f64::from((*v)?),
        S::Decimal128(v, _, _) => (*v)? as f64,
        S::Date32(v) => f64::from((*v)?),
        S::Date64(v)
        | S::TimestampSecond(v, _)
        | S::TimestampMillisecond(v, _)
        | S::TimestampMicrosecond(v, _)
        | S::TimestampNanosecond(v, _) => (*v)? as f64,
        S::Int8(v) => f64::from((*v)?),
        S::Int16(v) => f64::from((*v)?),
        S::Int32(v) => f64::from((*v)?),
        S::Int64(v) => (*v)? as f64,
        S::UInt8(v) => f64::from((*v)?),
        S::UInt16(v) => f64::from((*v)?),
        S::UInt32(v) => f64::from((*v)?),
        S::UInt64(v) => (*v)? as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{IsBoolExpr, LikeKind, lit};
    use arrow::datatypes::{DataType, Field};
    use datafusion_common::ColumnStatistics;
    use datafusion_common::stats::Precision;
    use datafusion_expr::Operator as O;

    /// `a` from 0 to 99, a tenth NULL; `d` from 100.0 to 200.0; `x`, of which nothing is known;
    /// `k` with 50 distinct values; `day` over ten days; `t`, truth values.
    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("d", DataType::Float64, false),
            Field::new("x", DataType::Int64, true),
            Field::new("k", DataType::Utf8, false),
            Field::new("day", DataType::Date32, false),
            Field::new("t", DataType::Boolean, false),
        ])
    }

    fn stats() -> Statistics {
        let between = |low: ScalarValue, high: ScalarValue| {
            ColumnStatistics::new_unknown()
                .with_min_value(Precision::Exact(low))
                .with_max_value(Precision::Exact(high))
        };
        let days = |n| ScalarValue::Date32(Some(n));
        let a = between(ScalarValue::from(0i64), ScalarValue::from(99i64));
        Statistics {
            num_rows: Precision::Exact(1000),
            total_byte_size: Precision::Absent,
            column_statistics: vec![
                a.with_null_count(Precision::Exact(100)),
                between(ScalarValue::from(100f64), ScalarValue::from(200f64)),
                ColumnStatistics::new_unknown(),
                ColumnStatistics::new_unknown().with_distinct_count(Precision::Inexact(50)),
                between(days(0), days(9)),
                ColumnStatistics::new_unknown(),
            ],
        }
    }

    fn col(i: usize) -> PhysicalExprRef {
        Arc::new(Column::new(schema().field(i).name(), i))
    }

    fn bin(l: PhysicalExprRef, op: O, r: PhysicalExprRef) -> PhysicalExprRef {
        Arc::new(BinaryExpr::new(l, op, r))
    }

    fn and(l: PhysicalExprRef, r: PhysicalExprRef) -> PhysicalExprRef {
        bin(l, O::And, r)
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tests build their argument in place")]
    fn share(condition: PhysicalExprRef, expected: f64) {
        let found = selectivity(&condition, &stats(), &schema());
        assert!((found - expected).abs() < 0.006, "{condition} keeps {found}, not {expected}");
    }

    #[test]
    fn equality_takes_one_of_the_distinct_values() {
        share(bin(col(0), O::Eq, lit(7i64)), 0.009);
        share(bin(lit(7i64), O::Eq, col(0)), 0.009);
        share(bin(col(3), O::Eq, lit("k")), 0.02);
        share(bin(col(3), O::NotEq, lit("k")), 0.98);
        share(bin(col(4), O::Eq, lit(ScalarValue::Date32(Some(3)))), 0.1);
        share(bin(col(0), O::Eq, lit(100i64)), 0.0);
        share(Arc::new(InListExpr::new(col(3), vec![lit("k"), lit("l")], false)), 0.04);
        share(Arc::new(InListExpr::new(col(3), vec![lit("k"), lit("l")], true)), 0.96);
    }

    #[test]
    fn ranges_take_their_part_of_the_width() {
        share(bin(col(1), O::Lt, lit(125f64)), 0.25);
        share(bin(col(1), O::GtEq, lit(125f64)), 0.75);
        share(bin(lit(125f64), O::Gt, col(1)), 0.25);
        // NULLs are in no range.
        share(bin(col(0), O::Lt, lit(50i64)), 0.9 * 0.505);
        share(bin(col(0), O::Gt, lit(99i64)), 0.009);
        share(bin(col(0), O::Gt, lit(1000i64)), 0.0);
        share(bin(col(0), O::Lt, lit(1000i64)), 0.9);
        share(bin(col(0), O::GtEq, lit(-5i64)), 0.9);
    }

    #[test]
    fn the_two_ends_of_a_range_belong_together() {
        let from = || bin(col(1), O::GtEq, lit(120f64));
        let to = || bin(col(1), O::Lt, lit(130f64));
        share(and(from(), to()), 0.1);
        share(and(to(), and(bin(col(3), O::Eq, lit("k")), from())), 0.1 * 0.02);
        let between = |negated| BetweenExpr::new(col(1), negated, lit(120f64), lit(130f64));
        share(Arc::new(between(false)), 0.1);
        share(Arc::new(between(true)), 0.9);
        // An empty range of known values keeps at least one of them by estimate.
        let day = |op, n| bin(col(4), op, lit(ScalarValue::Date32(Some(n))));
        share(and(day(O::Gt, 6), day(O::Lt, 3)), 0.1);
    }

    #[test]
    fn connectives() {
        let quarter = || bin(col(1), O::Lt, lit(125f64));
        let few = || bin(col(3), O::Eq, lit("k"));
        share(and(quarter(), few()), 0.005);
        share(bin(quarter(), O::Or, few()), 0.25 + 0.02 - 0.005);
        share(Arc::new(NotExpr::new(few())), 0.98);
        share(lit(true), 1.0);
        share(lit(false), 0.0);
        share(lit(ScalarValue::Boolean(None)), 0.0);
        share(and(lit(true), quarter()), 0.25);
    }

    #[test]
    fn nulls() {
        share(Arc::new(IsNullExpr::is_null(col(0))), 0.1);
        share(Arc::new(IsNullExpr::is_not_null(col(0))), 0.9);
        share(Arc::new(IsNullExpr::is_null(col(1))), 0.0);
        share(Arc::new(IsNullExpr::is_not_null(col(1))), 1.0);
    }

    #[test]
    fn what_is_not_known_counts_three_times_at_most() {
        let unknown = || bin(col(2), O::Lt, lit(5i64));
        share(unknown(), UNKNOWN);
        share(bin(col(2), O::Eq, col(0)), 0.009);
        share(Arc::new(LikeExpr::new(LikeKind::Like, false, col(3), lit("%x%"))), UNKNOWN);
        share(Arc::new(LikeExpr::new(LikeKind::Like, true, col(3), lit("%x%"))), 1.0 - UNKNOWN);
        let many = (0..9).fold(unknown(), |all, _| and(all, unknown()));
        let found = selectivity(&many, &stats(), &schema());
        assert!((found - UNKNOWN.powi(3)).abs() < 1e-9, "{found}");
        share(col(5), 0.5);
        share(Arc::new(IsBoolExpr::new(col(5), true, false)), UNKNOWN);
        let nothing = Statistics::new_unknown(&schema());
        let found = selectivity(&bin(col(0), O::Eq, lit(1i64)), &nothing, &schema());
        assert!((found - UNKNOWN).abs() < 1e-9, "{found}");
    }
}
