//! Operators and expressions that behave as a test needs.

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue, Statistics};
use planish_batch::Batch;
use planish_expr::utils::conjunction;
use planish_expr::{ColumnarValue, Distribution, LexOrdering, PhysicalExpr, PhysicalExprRef};
use planish_plan::operators::filter::FilterExec;
use planish_plan::pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use planish_plan::{
    BatchStream, Boundedness, ExecutionPlan, PlanProperties, PlanRef, Pushdown, TaskContext,
    execute_stream,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An operator with whatever requirements a test needs, which hands its input on.
#[derive(Clone, Debug)]
struct Needs {
    input: PlanRef,
    distribution: Distribution,
    ordering: Option<LexOrdering>,
    maintains: bool,
    properties: PlanProperties,
}

/// See [`Needs`].
pub(crate) fn needs(
    distribution: Distribution,
    ordering: Option<LexOrdering>,
    maintains: bool,
    input: PlanRef,
) -> PlanRef {
    let mut properties = input.properties().clone();
    if !maintains {
        properties.equivalences.clear_orderings();
    }
    Arc::new(Needs { input, distribution, ordering, maintains, properties })
}

/// A source without end.
pub(crate) fn unbounded(input: PlanRef) -> PlanRef {
    let properties = input.properties().clone().with_boundedness(Boundedness::Unbounded);
    Arc::new(Needs {
        input,
        distribution: Distribution::UnspecifiedDistribution,
        ordering: None,
        maintains: true,
        properties,
    })
}

impl ExecutionPlan for Needs {
    fn name(&self) -> &'static str {
        "Needs"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let boundedness = self.properties.boundedness;
        let new = needs(
            self.distribution.clone(),
            self.ordering.clone(),
            self.maintains,
            Arc::clone(&children[0]),
        );
        Ok(if boundedness == Boundedness::Unbounded { unbounded(new) } else { new })
    }

    fn fmt_details(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![self.distribution.clone()]
    }

    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        vec![self.ordering.clone()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.maintains]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        execute_stream(&self.input, partition, ctx)
    }
}

impl Pushdown for Needs {}

/// A leaf that takes filters: for pruning only, or exactly (and then says so).
#[derive(Clone, Debug)]
struct FilteringScan {
    inner: PlanRef,
    exact: bool,
    predicate: Option<PhysicalExprRef>,
}

/// See [`FilteringScan`].
pub(crate) fn filtering_scan(inner: PlanRef, exact: bool) -> PlanRef {
    Arc::new(FilteringScan { inner, exact, predicate: None })
}

impl ExecutionPlan for FilteringScan {
    fn name(&self) -> &'static str {
        "FilteringScan"
    }

    fn properties(&self) -> &PlanProperties {
        self.inner.properties()
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.inner.statistics(partition)
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(FilteringScan::clone(&self)))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.predicate.iter().try_for_each(|p| write!(f, "predicate={p}"))
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        match &self.predicate {
            Some(predicate) if self.exact => {
                let filtered = FilterExec::try_new(Arc::clone(predicate), Arc::clone(&self.inner))?;
                let filtered: PlanRef = Arc::new(filtered);
                execute_stream(&filtered, partition, ctx)
            }
            _ => execute_stream(&self.inner, partition, ctx),
        }
    }
}

impl Pushdown for FilteringScan {
    fn fetch(&self) -> Option<usize> {
        self.inner.fetch()
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        let answer = if self.exact { PushedDown::Yes } else { PushedDown::Used };
        let filters = vec![answer; result.parent_filters.len()];
        if result.parent_filters.is_empty() {
            return Ok(FilterPushdownPropagation { filters, node: result.node });
        }
        let predicate = conjunction(result.parent_filters.into_iter().map(|(filter, _)| filter));
        if self.predicate.as_ref() == Some(&predicate) {
            return Ok(FilterPushdownPropagation { filters, node: result.node });
        }
        let node = FilteringScan { predicate: Some(predicate), ..self.clone() };
        Ok(FilterPushdownPropagation { filters, node: Arc::new(node) })
    }
}

/// A random number per row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Volatile;

pub(crate) fn random() -> PhysicalExprRef {
    Arc::new(Volatile)
}

impl fmt::Display for Volatile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("random()")
    }
}

impl PhysicalExpr for Volatile {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("random", DataType::Int64, false)))
    }

    fn evaluate(&self, _: &Batch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(7))))
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(self)
    }

    fn is_volatile_node(&self) -> bool {
        true
    }
}

/// The value of another expression, and the number of rows it was evaluated for.
#[derive(Debug)]
struct Counting {
    expr: PhysicalExprRef,
    rows: Arc<AtomicUsize>,
    lambda: bool,
}

pub(crate) fn counting(expr: PhysicalExprRef) -> (PhysicalExprRef, Arc<AtomicUsize>) {
    let rows = Arc::new(AtomicUsize::new(0));
    (Arc::new(Counting { expr, rows: Arc::clone(&rows), lambda: false }), rows)
}

/// An expression that says it is a lambda.
pub(crate) fn lambda(expr: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(Counting { expr, rows: Arc::new(AtomicUsize::new(0)), lambda: true })
}

impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        self.expr.eq(&other.expr)
    }
}

impl Eq for Counting {}

impl Hash for Counting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expr.hash(state);
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", if self.lambda { "lambda" } else { "counting" }, self.expr)
    }
}

impl PhysicalExpr for Counting {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.expr.return_field(schema)
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        self.rows.fetch_add(batch.num_rows(), Ordering::Relaxed);
        self.expr.evaluate(batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let expr = children.remove(0);
        Ok(Arc::new(Counting { expr, rows: Arc::clone(&self.rows), lambda: self.lambda }))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        false
    }

    fn is_lambda(&self) -> bool {
        self.lambda
    }
}
