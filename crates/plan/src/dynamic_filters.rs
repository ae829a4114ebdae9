//! The predicates of dynamic filters, in one execution.
//!
//! An operator that learns which rows it has no use for ([`DynamicFilter::tighten`],
//! [`DynamicFilter::set`]) and scans that skip them ([`DynamicFilters::of`]) meet here, under the
//! id that the plan holds. Nobody waits: a scan takes the predicate that there is.

use crate::context::TaskContext;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::Operator;
use parking_lot::Mutex;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{BinaryExpr, Column, DynamicFilterExpr, IsNullExpr, Literal};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};

/// One filter of one execution.
#[derive(Debug, Default)]
pub struct DynamicFilter {
    /// Counts the changes.
    generation: AtomicUsize,
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    /// Over the filter's arguments by position; none yet: every row passes.
    predicate: Option<PhysicalExprRef>,
    /// The bound that the predicate stands for, of a top-k.
    bound: Option<ScalarValue>,
    /// Who set it: a node of the plan.
    owner: Option<usize>,
    /// Whether it tells so few rows apart that it is for row groups and files only.
    coarse: bool,
}

impl DynamicFilter {
    /// Only rows whose first argument is not behind `bound` in the order `options` are of use.
    /// The tightest bound of all callers counts. A NULL bounds nothing.
    pub(crate) fn tighten(&self, bound: &ScalarValue, options: SortOptions) {
        if bound.is_null() || is_nan(bound) {
            return;
        }
        let mut current = self.current.lock();
        let better = if options.descending { Ordering::Greater } else { Ordering::Less };
        if current.bound.as_ref().is_some_and(|known| bound.partial_cmp(known) != Some(better)) {
            return;
        }
        let op = if options.descending { Operator::GtEq } else { Operator::LtEq };
        let arg = || Arc::new(Column::new("", 0)) as PhysicalExprRef;
        let value = Arc::new(Literal::new(bound.clone()));
        let mut predicate: PhysicalExprRef = Arc::new(BinaryExpr::new(arg(), op, value));
        if options.nulls_first {
            let null = Arc::new(IsNullExpr::is_null(arg()));
            predicate = Arc::new(BinaryExpr::new(null, Operator::Or, predicate));
        }
        current.bound = Some(bound.clone());
        current.predicate = Some(predicate);
        self.generation.fetch_add(1, atomic::Ordering::Release);
    }

    /// Only rows for which `predicate` is true, over the arguments by position, are of use to
    /// node `owner`; a `coarse` predicate is not worth evaluating row by row. A second owner (a copy
    /// of the node, whose rows may be others) takes the filter back.
    pub(crate) fn set(&self, predicate: PhysicalExprRef, coarse: bool, owner: usize) {
        let mut current = self.current.lock();
        let known = *current.owner.get_or_insert(owner);
        current.predicate = (known == owner).then_some(predicate);
        current.coarse = coarse;
        self.generation.fetch_add(1, atomic::Ordering::Release);
    }
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float16(Some(value)) => value.is_nan(),
        _ => false,
    }
}

/// Whether a bound can be told from values of this type.
pub(crate) fn is_bounded_type(data_type: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Decimal128, Decimal256, LargeUtf8, Time32, Time64, Timestamp, Utf8,
        Utf8View,
    };
    data_type.is_numeric() && !matches!(data_type, DataType::Float16)
        || matches!(
            data_type,
            Utf8 | LargeUtf8
                | Utf8View
                | Date32
                | Date64
                | Time32(_)
                | Time64(_)
                | Timestamp(..)
                | Decimal128(..)
                | Decimal256(..)
        )
}

/// All filters of one execution, by id.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<HashMap<usize, Arc<DynamicFilter>>>);

impl TaskContext {
    /// The filter `id` of this execution.
    pub fn dynamic_filter(&self, id: usize) -> Arc<DynamicFilter> {
        let registry = self.state::<Registry>(0, Registry::default);
        let mut filters = registry.0.lock();
        Arc::clone(filters.entry(id).or_default())
    }
}

/// The dynamic filters among a scan's filters, and what they are at the moment.
#[derive(Debug)]
pub struct DynamicFilters {
    filters: Vec<(PhysicalExprRef, Arc<DynamicFilter>)>,
    seen: Vec<usize>,
    current: Vec<PhysicalExprRef>,
    for_rows: Vec<PhysicalExprRef>,
}

impl DynamicFilters {
    /// Those of `filters` that are dynamic; the others stay in `filters`.
    pub fn of(filters: &mut Vec<PhysicalExprRef>, ctx: &TaskContext) -> Self {
        let mut dynamic = vec![];
        filters.retain(|filter| match filter.downcast_ref::<DynamicFilterExpr>() {
            Some(found) => {
                dynamic.push((Arc::clone(filter), ctx.dynamic_filter(found.id())));
                false
            }
            None => true,
        });
        DynamicFilters {
            seen: vec![0; dynamic.len()],
            filters: dynamic,
            current: vec![],
            for_rows: vec![],
        }
    }

    /// Whether a filter changed since this was asked last.
    ///
    /// # Errors
    /// When a predicate does not fit its filter.
    pub fn refresh(&mut self) -> Result<bool> {
        let generations: Vec<usize> = self
            .filters
            .iter()
            .map(|(_, filter)| filter.generation.load(atomic::Ordering::Acquire))
            .collect();
        if generations == self.seen {
            return Ok(false);
        }
        self.seen = generations;
        self.current.clear();
        self.for_rows.clear();
        for (expr, filter) in &self.filters {
            let (predicate, coarse) = {
                let current = filter.current.lock();
                (current.predicate.clone(), current.coarse)
            };
            if let (Some(predicate), Some(expr)) =
                (predicate, expr.downcast_ref::<DynamicFilterExpr>())
            {
                let predicate = over_args(&predicate, expr.args())?;
                self.for_rows.extend((!coarse).then(|| Arc::clone(&predicate)));
                self.current.push(predicate);
            }
        }
        Ok(true)
    }

    /// The predicates as of the last [`Self::refresh`], in the coordinates of the filters.
    pub fn current(&self) -> &[PhysicalExprRef] {
        &self.current
    }

    /// Those of [`Self::current`] that are worth evaluating row by row.
    pub fn for_rows(&self) -> &[PhysicalExprRef] {
        &self.for_rows
    }
}

/// `predicate` with each position replaced by the argument there.
fn over_args(predicate: &PhysicalExprRef, args: &[PhysicalExprRef]) -> Result<PhysicalExprRef> {
    Arc::clone(predicate)
        .transform_up(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            match args.get(column.index()) {
                Some(arg) => Ok(Transformed::yes(Arc::clone(arg))),
                None => internal_err!("a dynamic filter has no argument {}", column.index()),
            }
        })
        .data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters() -> (DynamicFilters, Arc<DynamicFilter>) {
        let arg: PhysicalExprRef = Arc::new(Column::new("k", 4));
        let expr: PhysicalExprRef = Arc::new(DynamicFilterExpr::new(vec![arg]));
        let filter = Arc::new(DynamicFilter::default());
        let filters = DynamicFilters {
            filters: vec![(expr, Arc::clone(&filter))],
            seen: vec![0],
            current: vec![],
            for_rows: vec![],
        };
        (filters, filter)
    }

    fn text(filters: &mut DynamicFilters) -> String {
        filters.refresh().unwrap();
        filters.current().iter().map(ToString::to_string).collect::<Vec<_>>().join(" AND ")
    }

    #[test]
    fn bounds_only_get_tighter() {
        let (mut filters, filter) = filters();
        let ascending = SortOptions { descending: false, nulls_first: false };
        assert_eq!(text(&mut filters), "");
        for (bound, expected) in [
            (Some(9i64), "k@4 <= 9"),
            (Some(12), "k@4 <= 9"),
            (None, "k@4 <= 9"),
            (Some(3), "k@4 <= 3"),
        ] {
            filter.tighten(&ScalarValue::Int64(bound), ascending);
            assert_eq!(text(&mut filters), expected);
        }
        assert!(!filters.refresh().unwrap());
    }

    #[test]
    fn nulls_that_come_first_always_pass() {
        let (mut filters, filter) = filters();
        let descending = SortOptions { descending: true, nulls_first: true };
        filter.tighten(&ScalarValue::Float64(Some(f64::NAN)), descending);
        assert_eq!(text(&mut filters), "");
        filter.tighten(&ScalarValue::Float64(Some(1.5)), descending);
        assert_eq!(text(&mut filters), "k@4 IS NULL OR k@4 >= 1.5");
        filter.tighten(&ScalarValue::Float64(Some(0.5)), descending);
        assert_eq!(text(&mut filters), "k@4 IS NULL OR k@4 >= 1.5");
    }

    #[test]
    fn a_second_owner_takes_the_filter_back() {
        let (mut filters, filter) = filters();
        let no: PhysicalExprRef = Arc::new(Literal::new(ScalarValue::Boolean(Some(false))));
        filter.set(Arc::clone(&no), false, 1);
        assert_eq!(text(&mut filters), "false");
        filter.set(no, false, 2);
        assert_eq!(text(&mut filters), "");
    }
}
