//! Plans and checks for the tests of rules.
//!
//! [`Check::fires`] runs one rule through the real driver and asserts that it fired, that a second
//! run changes nothing, that the schema stayed, and that the plans before and after, both
//! completed by the enforce rules, yield the same rows.

use crate::rule::PhysicalOptimizerRule;
use crate::{PhysicalOptimizer, default_rules};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinType, NullEquality, Result, ScalarValue, Statistics};
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_expr::expressions::{BinaryExpr, Column, lit};
use planish_expr::utils::conjunction;
use planish_expr::{
    ColumnarValue, Distribution, LexOrdering, Partitioning, PhysicalExpr, PhysicalExprRef,
    PhysicalSortExpr, ProjectionExpr, ProjectionExprs,
};
use planish_plan::config::PlanishOptions;
use planish_plan::display::displayable;
use planish_plan::operators::aggregate::{AggregateExec, AggregateMode, PhysicalGroupBy};
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::filter::FilterExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::memory::MemoryScanExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::union::UnionExec;
use planish_plan::pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use planish_plan::{
    BatchStream, Boundedness, ExecutionPlan, PlanProperties, PlanRef, Pushdown, TaskContext,
    collect, execute_stream,
};
use planish_testkit::{driving, rows};
use std::fmt;
use std::sync::Arc;

/// Runs one rule and checks the laws that hold for all of them.
#[derive(Debug)]
pub(crate) struct Check {
    rule: Arc<dyn PhysicalOptimizerRule>,
    options: ConfigOptions,
    compare: Compare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    InOrder,
    AsMultisets,
    /// Which rows come out is not determined, only how many.
    Counts,
    /// The plan cannot be run.
    Not,
}

impl Check {
    pub(crate) fn new(rule: impl PhysicalOptimizerRule + 'static) -> Self {
        Check { rule: Arc::new(rule), options: options(), compare: Compare::AsMultisets }
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut ConfigOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) fn set_planish(self, change: impl FnOnce(&mut PlanishOptions)) -> Self {
        self.set(|options| {
            let mut planish = PlanishOptions::of(options);
            change(&mut planish);
            options.extensions.insert(planish);
        })
    }

    pub(crate) fn in_order(self) -> Self {
        Check { compare: Compare::InOrder, ..self }
    }

    pub(crate) fn counting(self) -> Self {
        Check { compare: Compare::Counts, ..self }
    }

    pub(crate) fn not_run(self) -> Self {
        Check { compare: Compare::Not, ..self }
    }

    /// The plan that the rule makes of `plan`, as text.
    pub(crate) fn fires(self, plan: PlanRef) -> String {
        text(&self.rewrite(plan))
    }

    /// The plan that the rule makes of `plan`.
    pub(crate) fn rewrite(self, plan: PlanRef) -> PlanRef {
        let before = Arc::clone(&plan);
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let name = self.rule.name();
        let once = optimizer.optimize(plan, &self.options).unwrap();
        assert!(once.trace.fired(name), "{name} did not fire on\n{}", text(&before));
        let twice = optimizer.optimize(Arc::clone(&once.plan), &self.options).unwrap();
        assert!(
            !twice.trace.fired(name),
            "{name} changed its own result\n{}to\n{}",
            text(&once.plan),
            text(&twice.plan)
        );
        self.assert_same_rows(&before, &once.plan);
        once.plan
    }

    /// Asserts that the rule leaves `plan` as it is.
    pub(crate) fn declines(self, plan: PlanRef) {
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let before = text(&plan);
        let done = optimizer.optimize(plan, &self.options).unwrap();
        let name = self.rule.name();
        assert!(!done.trace.fired(name), "{name} made of\n{before}this\n{}", text(&done.plan));
    }

    /// The error with which the rule rejects `plan`.
    pub(crate) fn rejects(self, plan: PlanRef) -> String {
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let error = optimizer.optimize(plan, &self.options).unwrap_err();
        error.strip_backtrace()
    }

    fn assert_same_rows(&self, before: &PlanRef, after: &PlanRef) {
        if self.compare == Compare::Not {
            return;
        }
        let (mut a, mut b) = (execute(before, &self.options), execute(after, &self.options));
        match self.compare {
            Compare::Counts => assert_eq!(a.len(), b.len(), "number of rows"),
            Compare::InOrder => assert_eq!(a, b),
            Compare::AsMultisets | Compare::Not => {
                a.sort();
                b.sort();
                assert_eq!(a, b);
            }
        }
    }
}

/// The rows of `plan`, completed by the enforce rules.
pub(crate) fn execute(plan: &PlanRef, options: &ConfigOptions) -> Vec<String> {
    let complete =
        PhysicalOptimizer::enforce_only().optimize(Arc::clone(plan), options).unwrap().plan;
    let shown = text(&complete);
    let options = options.clone();
    let batches = driving::run(2, &shown, async move {
        let ctx = TaskContext::for_testing(options)?;
        collect(&complete, &ctx).await
    });
    rows::of(&batches.unwrap())
}

/// Four partitions, batches of 8 rows, so that small tables are worth spreading.
pub(crate) fn options() -> ConfigOptions {
    let mut options = ConfigOptions::default();
    options.extensions.insert(PlanishOptions::default());
    options.set("datafusion.execution.target_partitions", "4").unwrap();
    options.set("datafusion.execution.batch_size", "8").unwrap();
    options
}

pub(crate) fn text(plan: &PlanRef) -> String {
    displayable(plan).to_string()
}

/// The before and after plans in a rule's module comment are those of a test.
pub(crate) fn assert_documented(source: &str, before: &str, after: &str) {
    let comment: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let block = |heading: &str| {
        let lines = comment.iter().skip_while(|line| **line != heading).skip(2);
        lines.take_while(|line| **line != "```").map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(block("# Before"), before, "the module comment, before");
    assert_eq!(block("# After"), after, "the module comment, after");
}

/// Nullable 64-bit integers under these names.
pub(crate) fn schema(names: &[&str]) -> SchemaRef {
    let fields: Vec<Field> =
        names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    Arc::new(Schema::new(fields))
}

/// `rows` rows per partition; values repeat, and one in seven is NULL.
pub(crate) fn table(names: &[&str], partitions: usize, rows: usize) -> MemoryScanExec {
    let schema = schema(names);
    let partition = |p: usize| {
        let columns = (0..names.len()).map(|c| {
            let value = |r: usize| ((r + p) % 7 != c).then_some(((r * (c + 3) + p) % 10) as i64);
            Arc::new((0..rows).map(value).collect::<Int64Array>()) as ArrayRef
        });
        vec![RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()]
    };
    let partitions: Vec<_> = (0..partitions).map(partition).collect();
    MemoryScanExec::try_new(partitions, Arc::clone(&schema), None).unwrap()
}

/// A table of 20 rows per partition.
pub(crate) fn scan(names: &[&str], partitions: usize) -> PlanRef {
    Arc::new(table(names, partitions, 20))
}

/// As [`scan`], with each partition ordered by its first column.
pub(crate) fn sorted_scan(names: &[&str], partitions: usize) -> PlanRef {
    let schema = schema(names);
    let partition = |p: usize| {
        let columns = (0..names.len()).map(|c| {
            let value = |r: usize| if c == 0 { r / 2 + p } else { (r * 7) % 10 } as i64;
            Arc::new((0..20).map(value).collect::<Int64Array>()) as ArrayRef
        });
        vec![RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()]
    };
    let partitions: Vec<_> = (0..partitions).map(partition).collect();
    let scan = MemoryScanExec::try_new(partitions, Arc::clone(&schema), None).unwrap();
    Arc::new(scan.try_with_ordering(vec![asc(col(names[0], 0))]).unwrap())
}

pub(crate) fn col(name: &str, index: usize) -> PhysicalExprRef {
    Arc::new(Column::new(name, index))
}

pub(crate) fn binary(
    left: PhysicalExprRef,
    op: Operator,
    right: PhysicalExprRef,
) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(left, op, right))
}

pub(crate) fn gt(left: PhysicalExprRef, right: i64) -> PhysicalExprRef {
    binary(left, Operator::Gt, lit(right))
}

pub(crate) fn asc(expr: PhysicalExprRef) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, SortOptions { descending: false, nulls_first: false })
}

pub(crate) fn desc(expr: PhysicalExprRef) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, SortOptions { descending: true, nulls_first: true })
}

pub(crate) fn filter(predicate: PhysicalExprRef, input: PlanRef) -> PlanRef {
    Arc::new(FilterExec::try_new(predicate, input).unwrap())
}

pub(crate) fn project(exprs: Vec<(PhysicalExprRef, &str)>, input: PlanRef) -> PlanRef {
    let exprs: ProjectionExprs =
        exprs.into_iter().map(|(expr, alias)| ProjectionExpr::new(expr, alias)).collect();
    Arc::new(ProjectionExec::try_new(exprs, input).unwrap())
}

/// The columns of `input` at `indices`.
pub(crate) fn columns(indices: &[usize], input: PlanRef) -> PlanRef {
    let exprs = ProjectionExprs::from_indices(indices, &input.schema());
    Arc::new(ProjectionExec::try_new(exprs, input).unwrap())
}

pub(crate) fn union(inputs: Vec<PlanRef>) -> PlanRef {
    Arc::new(UnionExec::try_new(inputs).unwrap())
}

/// An operator with whatever requirements a test needs, which hands its input on.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    input: PlanRef,
    distribution: Distribution,
    ordering: Option<LexOrdering>,
    maintains: bool,
    properties: PlanProperties,
}

impl Needs {
    pub(crate) fn new(
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
        let new = Needs::new(
            self.distribution.clone(),
            self.ordering.clone(),
            self.maintains,
            Arc::clone(&children[0]),
        );
        Ok(if boundedness == Boundedness::Unbounded { Needs::unbounded(new) } else { new })
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

/// The names of the default pipeline's rules, in order.
pub(crate) fn rule_names() -> Vec<&'static str> {
    default_rules().iter().map(|rule| rule.name()).collect()
}

/// A leaf that takes filters: for pruning only, or exactly (and then says so).
#[derive(Clone, Debug)]
pub(crate) struct FilteringScan {
    inner: PlanRef,
    exact: bool,
    predicate: Option<PhysicalExprRef>,
}

impl FilteringScan {
    pub(crate) fn new(inner: PlanRef, exact: bool) -> PlanRef {
        Arc::new(FilteringScan { inner, exact, predicate: None })
    }
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
        let answer = if self.exact { PushedDown::Yes } else { PushedDown::No };
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
pub(crate) struct Volatile;

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

pub(crate) fn sort(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(SortExec::new(keys, input).with_limit(fetch))
}

/// A sort of each partition by itself.
pub(crate) fn sort_each(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(SortExec::new(keys, input).with_preserve_partitioning(true).with_limit(fetch))
}

pub(crate) fn merge(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    let merge = SortPreservingMergeExec::new(keys, input);
    match fetch {
        Some(_) => merge.with_fetch(fetch).unwrap(),
        None => Arc::new(merge),
    }
}

pub(crate) fn coalesce(input: PlanRef) -> PlanRef {
    Arc::new(CoalescePartitionsExec::new(input))
}

pub(crate) fn limit(skip: usize, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(GlobalLimitExec::new(input, skip, fetch))
}

pub(crate) fn local_limit(fetch: usize, input: PlanRef) -> PlanRef {
    Arc::new(LocalLimitExec::new(input, fetch))
}

pub(crate) fn repartition(partitioning: Partitioning, input: PlanRef) -> PlanRef {
    Arc::new(RepartitionExec::try_new(input, partitioning).unwrap())
}

/// A join of columns `left` and `right`, whose mode is to be chosen.
pub(crate) fn join(
    on: &[(usize, usize)],
    join_type: JoinType,
    mode: PartitionMode,
    left: PlanRef,
    right: PlanRef,
) -> PlanRef {
    let key = |plan: &PlanRef, i: usize| col(plan.schema().field(i).name(), i);
    let on = on.iter().map(|&(l, r)| (key(&left, l), key(&right, r))).collect();
    let nulls = NullEquality::NullEqualsNothing;
    Arc::new(HashJoinExec::try_new(left, right, on, None, join_type, mode, nulls, false).unwrap())
}

/// `count(*)`-less aggregation: the distinct values of columns `keys`.
pub(crate) fn group_by(mode: AggregateMode, keys: &[usize], input: PlanRef) -> PlanRef {
    let schema = input.schema();
    let keys = keys
        .iter()
        .map(|&i| (col(schema.field(i).name(), i), schema.field(i).name().clone()))
        .collect();
    let keys = PhysicalGroupBy::new_single(keys);
    Arc::new(AggregateExec::try_new(mode, keys, vec![], input, schema).unwrap())
}
