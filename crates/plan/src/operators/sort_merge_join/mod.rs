//! `SortMergeJoinExec`: rows of two inputs whose keys are equal, both sorted by them.
//!
//! Both inputs are hash-partitioned on the keys, and each partition is sorted by them; partition
//! `i` joins partition `i`. One input is streamed: the left one, or the right one of a join that
//! keeps the right one's rows. Of the other, the buffered input, the rows of one key are held.
//! So memory is that of the largest group of equal keys, accounted for and not spilled, and rows
//! leave as they are found, in the streamed input's order.
//!
//! Output batches are selections over the input batches: no value moves here that is not read.

mod output;
mod pushdown;
mod side;
mod stream;
#[cfg(test)]
mod tests;

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::emitted::Emitted;
use crate::operators::join_filter::{JoinFilter, Residual};
use crate::operators::join_probe::deferred;
use crate::operators::join_schema::{join_statistics, key_values, merge_join_properties};
use crate::operators::sort::keys::{KeyForm, PairKeys, RowKeys, WordKeys};
use crate::properties::{Boundedness, PlanProperties};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion_common::{JoinType, NullEquality, Result, Statistics, internal_err, plan_err};
use output::Output;
use planish_batch::Batch;
use planish_expr::{Distribution, LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use side::{KeyMaker, Side, key_types};
use std::fmt;
use std::sync::Arc;
use stream::Merge;

/// A join on equal keys of inputs sorted by them, with an optional residual condition.
#[derive(Debug)]
pub struct SortMergeJoinExec {
    left: PlanRef,
    right: PlanRef,
    on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
    filter: Option<JoinFilter>,
    join_type: JoinType,
    sort_options: Vec<SortOptions>,
    null_equality: NullEquality,
    types: Vec<DataType>,
    emitted: Emitted,
    properties: PlanProperties,
}

impl SortMergeJoinExec {
    /// A join of `left` and `right` on the pairs `on` of expressions, the first of a pair over
    /// the left input, the second over the right; both inputs are sorted by their expressions
    /// under `sort_options`, one for each pair. `filter` is a further condition on pairs of
    /// equal keys.
    ///
    /// # Errors
    /// A plan error when there is no key or types do not fit; "not implemented" when keys of
    /// this type cannot be sorted.
    pub fn try_new(
        left: PlanRef,
        right: PlanRef,
        on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
        filter: Option<JoinFilter>,
        join_type: JoinType,
        sort_options: Vec<SortOptions>,
        null_equality: NullEquality,
    ) -> Result<Self> {
        let (left_schema, right_schema) = (left.schema(), right.schema());
        if on.is_empty() || on.len() != sort_options.len() {
            return plan_err!(
                "a sort-merge join on {} keys with {} sort options",
                on.len(),
                sort_options.len()
            );
        }
        if let Some(filter) = &filter {
            filter.check(&left_schema, &right_schema)?;
        }
        let types = key_types(&on, &left_schema, &right_schema)?;
        KeyMaker::try_new(vec![], &types, &sort_options, true)?;
        let properties =
            merge_join_properties(&left, &right, &on, join_type, streams_left(join_type))?;
        Ok(SortMergeJoinExec {
            left,
            right,
            on,
            filter,
            join_type,
            sort_options,
            null_equality,
            types,
            emitted: Emitted::all(Arc::clone(properties.schema())),
            properties,
        })
    }

    /// The same join, of whose columns only those at `indices` come out; `None`: all.
    fn emitting(self, indices: Option<Arc<[usize]>>) -> Result<Self> {
        let emitted = Emitted::only(Arc::clone(self.emitted.made()), indices);
        let properties = emitted.properties(self.properties)?;
        Ok(SortMergeJoinExec { emitted, properties, ..self })
    }

    /// The same join of other inputs, handing on all columns.
    fn emitting_all(&self, left: PlanRef, right: PlanRef) -> Result<Self> {
        SortMergeJoinExec::try_new(
            left,
            right,
            self.on.clone(),
            self.filter.clone(),
            self.join_type,
            self.sort_options.clone(),
            self.null_equality,
        )
    }

    /// The left input.
    pub fn left(&self) -> &PlanRef {
        &self.left
    }

    /// The right input.
    pub fn right(&self) -> &PlanRef {
        &self.right
    }

    /// The pairs of keys, `(left, right)`.
    pub fn on(&self) -> &[(PhysicalExprRef, PhysicalExprRef)] {
        &self.on
    }

    /// The residual condition.
    pub fn filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }

    /// The join type.
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }

    /// How the inputs are sorted by each key.
    pub fn sort_options(&self) -> &[SortOptions] {
        &self.sort_options
    }

    /// Whether NULL keys match each other.
    pub fn null_equality(&self) -> NullEquality {
        self.null_equality
    }

    /// Which of the columns it makes this node hands on, and in which order; `None`: all. Only its
    /// output has these coordinates: its expressions are over its inputs.
    pub fn projection(&self) -> Option<&[usize]> {
        self.emitted.as_slice()
    }

    /// The merge of one partition.
    async fn merge(self, inputs: [BatchStream; 2], ctx: Arc<TaskContext>) -> Result<BatchStream> {
        let [left, right] = inputs;
        let nulls_match = self.null_equality == NullEquality::NullEqualsNull;
        let maker = |exprs| KeyMaker::try_new(exprs, &self.types, &self.sort_options, nulls_match);
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = self.on.iter().cloned().unzip();
        let (of_left, form) = maker(ctx.bind_all(&left_keys).await?)?;
        let (of_right, _) = maker(ctx.bind_all(&right_keys).await?)?;
        let residual = match &self.filter {
            Some(filter) => {
                let no_build = Batch::empty(self.left.schema());
                Some(Residual::bind(filter, &no_build, &ctx).await?)
            }
            None => None,
        };
        let streams_left = streams_left(self.join_type);
        let (streamed, join_type) = match streams_left {
            true => (&self.left, self.join_type),
            false => (&self.right, self.join_type.swap()),
        };
        let out = Output::new(
            join_type,
            streams_left,
            Arc::clone(self.emitted.made()),
            streamed.schema().fields().len(),
            ctx.batch_size(),
            residual,
        );
        let (streamed, buffered) = match streams_left {
            true => ((left, of_left), (right, of_right)),
            false => ((right, of_right), (left, of_left)),
        };
        macro_rules! merge {
            ($keys:ty) => {
                Merge::<$keys> {
                    streamed: Side::new(streamed.0, streamed.1),
                    buffered: Side::new(buffered.0, buffered.1),
                    out,
                    reservation: ctx.reservation("SortMergeJoinExec", false),
                    eager: self.properties.boundedness == Boundedness::Unbounded,
                    name: "SortMergeJoinExec",
                }
                .run()
            };
        }
        Ok(match form {
            KeyForm::Word => merge!(WordKeys),
            KeyForm::Pair => merge!(PairKeys),
            KeyForm::Rows => merge!(RowKeys),
        })
    }
}

/// Whether the left input is the one whose rows go by one after the other.
fn streams_left(join_type: JoinType) -> bool {
    !matches!(
        join_type,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
    )
}

impl ExecutionPlan for SortMergeJoinExec {
    fn name(&self) -> &'static str {
        "SortMergeJoinExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let [left, right] = children.as_slice() else {
            return internal_err!("a join of {} inputs", children.len());
        };
        let new = self.emitting_all(Arc::clone(left), Arc::clone(right))?;
        Ok(Arc::new(new.emitting(self.emitted.indices())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<String> = self.on.iter().map(|(l, r)| format!("({l}, {r})")).collect();
        write!(f, "join_type={}, on=[{}]", self.join_type, on.join(", "))?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter}")?;
        }
        if self.null_equality == NullEquality::NullEqualsNull {
            f.write_str(", nulls_equal=true")?;
        }
        self.emitted.fmt(f, ", ")
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let keys = self.on.iter().flat_map(|(l, r)| [Arc::clone(l), Arc::clone(r)]);
        keys.chain(self.filter.iter().map(|f| Arc::clone(f.expression()))).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        let (left, right) = self.on.iter().map(|(l, r)| (Arc::clone(l), Arc::clone(r))).unzip();
        vec![Distribution::HashPartitioned(left), Distribution::HashPartitioned(right)]
    }

    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        let sorted = |key: fn(&(PhysicalExprRef, PhysicalExprRef)) -> &PhysicalExprRef| {
            let keys = self.on.iter().map(key).zip(&self.sort_options);
            Some(keys.map(|(e, &options)| PhysicalSortExpr::new(Arc::clone(e), options)).collect())
        };
        vec![sorted(|(l, _)| l), sorted(|(_, r)| r)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let streamed = self.join_type != JoinType::Full;
        let left = streams_left(self.join_type);
        vec![streamed && left, streamed && !left]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let (of_left, of_right) = (self.left.partition_count(), self.right.partition_count());
        if of_left != of_right {
            return internal_err!("a sort-merge join of {of_left} and {of_right} partitions");
        }
        let left = execute_stream(&self.left, partition, ctx)?;
        let right = execute_stream(&self.right, partition, ctx)?;
        let whole = self.emitting_all(Arc::clone(&self.left), Arc::clone(&self.right))?;
        let merged = deferred(whole.merge([left, right], Arc::clone(ctx)));
        Ok(self.emitted.stream(merged, self.schema()))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let (left, right) = (self.left.statistics(partition)?, self.right.statistics(partition)?);
        let (left_schema, right_schema) = (self.left.schema(), self.right.schema());
        let on = key_values(&self.on, (&left, &left_schema), (&right, &right_schema));
        self.emitted.statistics(join_statistics(
            &left,
            &right,
            &on,
            self.join_type,
            self.filter.is_some(),
            self.emitted.made(),
        ))
    }
}
