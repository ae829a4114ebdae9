//! The operators: [`WindowAggExec`] and [`BoundedWindowAggExec`].

use super::call::WindowExpr;
use super::pushdown;
use super::stream::Windowing;
use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::projection::ProjectionExec;
use crate::properties::{EmissionType, PlanProperties};
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{ColumnStatistics, DataFusionError, Result, Statistics, internal_err};
use planish_expr::expressions::Literal;
use planish_expr::sort_expr::display_ordering;
use planish_expr::{Distribution, LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use std::fmt;
use std::sync::Arc;

/// What both operators are made of.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub(super) exprs: Vec<WindowExpr>,
    pub(super) partition_by: Vec<PhysicalExprRef>,
    pub(super) order_by: LexOrdering,
    pub(super) input: PlanRef,
    pub(super) properties: PlanProperties,
}

impl Windows {
    /// # Errors
    /// A plan error when a frame means nothing over these keys.
    pub(super) fn try_new(
        exprs: Vec<WindowExpr>,
        partition_by: Vec<PhysicalExprRef>,
        order_by: LexOrdering,
        input: PlanRef,
        emission: EmissionType,
    ) -> Result<Self> {
        let schema = input.schema();
        // Rows are peers in a key that has one value.
        let varies =
            |e: &PhysicalExprRef| Ok::<_, DataFusionError>(e.data_type(&schema)? != DataType::Null);
        let mut keys = vec![];
        for key in order_by {
            if varies(&key.expr)? {
                keys.push(key);
            }
        }
        let mut of_partition = vec![];
        for key in partition_by {
            if varies(&key)? && !key.is::<Literal>() && !of_partition.contains(&key) {
                of_partition.push(key);
            }
        }
        let types = keys.iter().map(|k| k.expr.data_type(&schema)).collect::<Result<Vec<_>>>()?;
        exprs.iter().try_for_each(|expr| expr.check_frame(&types))?;
        let fields = schema.fields().iter().chain(exprs.iter().map(WindowExpr::field));
        let fields: Vec<_> = fields.cloned().collect();
        let output = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut properties = input.properties().clone();
        properties.equivalences = properties.equivalences.shifted(0, output)?;
        if emission == EmissionType::Final {
            properties.emission = emission;
        }
        Ok(Windows { exprs, partition_by: of_partition, order_by: keys, input, properties })
    }

    /// The order that rows must come in: partitions one after the other, each in its own order.
    fn ordering(&self) -> Option<LexOrdering> {
        let options = |key: &PhysicalExprRef| {
            let known = self.order_by.iter().find(|own| own.expr.eq(key));
            known
                .map(|own| own.options)
                .unwrap_or(arrow::compute::SortOptions { descending: false, nulls_first: false })
        };
        let mut ordering: LexOrdering = self
            .partition_by
            .iter()
            .map(|key| PhysicalSortExpr::new(Arc::clone(key), options(key)))
            .collect();
        for key in &self.order_by {
            if !key.expr.is::<Literal>() && !ordering.iter().any(|known| known.expr.eq(&key.expr)) {
                ordering.push(key.clone());
            }
        }
        (!ordering.is_empty()).then_some(ordering)
    }

    fn distribution(&self) -> Distribution {
        if self.partition_by.is_empty() {
            return Distribution::SinglePartition;
        }
        Distribution::HashPartitioned(self.partition_by.clone())
    }

    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        write!(f, "wdw=[{}]", list(self.exprs.iter().map(ToString::to_string).collect()))?;
        if !self.partition_by.is_empty() {
            let keys = self.partition_by.iter().map(ToString::to_string).collect();
            write!(f, ", partition_by=[{}]", list(keys))?;
        }
        if !self.order_by.is_empty() {
            write!(f, ", order_by={}", display_ordering(&self.order_by))?;
        }
        Ok(())
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let keys = self.order_by.iter().map(|key| Arc::clone(&key.expr));
        let of_calls = self.exprs.iter().flat_map(WindowExpr::expressions);
        of_calls.chain(self.partition_by.iter().cloned()).chain(keys).collect()
    }

    fn run(
        &self,
        name: &'static str,
        streams: bool,
        partition: usize,
        ctx: &Arc<TaskContext>,
    ) -> Result<BatchStream> {
        if partition >= self.input.partition_count() {
            return internal_err!("{name} has no partition {partition}");
        }
        let input = execute_stream(&self.input, partition, ctx)?;
        let windowing = Windowing {
            name,
            exprs: self.exprs.clone(),
            partition_by: self.partition_by.clone(),
            order_by: self.order_by.clone(),
            input_schema: self.input.schema(),
            schema: Arc::clone(self.properties.schema()),
            streams,
        };
        Ok(windowing.run(input, Arc::clone(ctx)))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = self.input.statistics(partition)?;
        statistics.total_byte_size = statistics.total_byte_size.to_inexact();
        let unknown = self.exprs.iter().map(|_| ColumnStatistics::new_unknown());
        statistics.column_statistics.extend(unknown);
        Ok(statistics)
    }
}

macro_rules! window_operator {
    ($(#[$doc:meta])* $name:ident, $streams:expr, $emission:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            windows: Windows,
        }

        impl $name {
            /// `exprs` over the rows of `input`, by partition and order.
            ///
            /// # Errors
            /// A plan error when a frame means nothing over these keys.
            pub fn try_new(
                exprs: Vec<WindowExpr>,
                partition_by: Vec<PhysicalExprRef>,
                order_by: LexOrdering,
                input: PlanRef,
            ) -> Result<Self> {
                let windows = Windows::try_new(exprs, partition_by, order_by, input, $emission)?;
                Ok($name { windows })
            }

            /// The functions.
            pub fn exprs(&self) -> &[WindowExpr] {
                &self.windows.exprs
            }

            /// The PARTITION BY keys.
            pub fn partition_by(&self) -> &[PhysicalExprRef] {
                &self.windows.partition_by
            }

            /// The ORDER BY keys.
            pub fn order_by(&self) -> &LexOrdering {
                &self.windows.order_by
            }

            /// The input.
            pub fn input(&self) -> &PlanRef {
                &self.windows.input
            }
        }

        impl ExecutionPlan for $name {
            fn name(&self) -> &'static str {
                stringify!($name)
            }

            fn properties(&self) -> &PlanProperties {
                &self.windows.properties
            }

            fn children(&self) -> Vec<&PlanRef> {
                vec![&self.windows.input]
            }

            fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
                let Windows { exprs, partition_by, order_by, .. } = self.windows.clone();
                let input = Arc::clone(&children[0]);
                Ok(Arc::new($name::try_new(exprs, partition_by, order_by, input)?))
            }

            fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.windows.fmt(f)
            }

            fn expressions(&self) -> Vec<PhysicalExprRef> {
                self.windows.expressions()
            }

            fn required_input_distribution(&self) -> Vec<Distribution> {
                vec![self.windows.distribution()]
            }

            fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
                vec![self.windows.ordering()]
            }

            fn maintains_input_order(&self) -> Vec<bool> {
                vec![true]
            }

            fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
                self.windows.run(stringify!($name), $streams, partition, ctx)
            }

            fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
                self.windows.statistics(partition)
            }
        }

        impl Pushdown for $name {
            fn try_swapping_with_projection(
                &self,
                projection: &ProjectionExec,
            ) -> Result<Option<PlanRef>> {
                let Some((windows, above)) = pushdown::narrowed(&self.windows, projection)? else {
                    return Ok(None);
                };
                let Windows { exprs, partition_by, order_by, input, .. } = windows;
                let node = $name::try_new(exprs, partition_by, order_by, input)?;
                above.over(Arc::new(node)).map(Some)
            }

            fn gather_filters_for_pushdown(
                &self,
                _phase: FilterPushdownPhase,
                parent_filters: &[PhysicalExprRef],
                _children: usize,
                _options: &ConfigOptions,
            ) -> Result<FilterDescription> {
                Ok(pushdown::offered(&self.windows, parent_filters))
            }
        }
    };
}

window_operator!(
    /// Functions over windows, of each partition when all of its rows are there.
    WindowAggExec,
    false,
    EmissionType::Final
);

window_operator!(
    /// Functions over windows, row by row as frames are complete: of a partition it holds the
    /// rows that some frame still needs.
    BoundedWindowAggExec,
    true,
    EmissionType::Incremental
);
