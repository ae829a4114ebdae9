//! [`ExecutionPlan`]: what every operator says about itself.

use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::DynTreeNode;
use datafusion_common::{Result, Statistics};
use planish_expr::{Distribution, LexOrdering, PhysicalExprRef};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A shared plan node.
pub type PlanRef = Arc<dyn ExecutionPlan>;

/// An operator of a physical plan.
///
/// Nodes are immutable and pure. Laws every operator keeps: two executions of one plan, one
/// after the other or at once, give equal rows; any partition may be polled alone, in any order,
/// or dropped; no worker thread blocks on another partition.
///
/// Optional abilities (accepting a projection, filters, a fetch) are in [`Pushdown`].
pub trait ExecutionPlan: Pushdown + Any + fmt::Debug + Send + Sync {
    /// The operator's name, as `EXPLAIN` shows it: `FilterExec`.
    fn name(&self) -> &'static str;

    /// What is known about the output.
    fn properties(&self) -> &PlanProperties;

    /// The inputs.
    fn children(&self) -> Vec<&PlanRef>;

    /// The same operator over other inputs, as many as [`Self::children`] gave. Always a new
    /// node: node identity is what per-execution state hangs on.
    ///
    /// # Errors
    /// When the inputs do not fit.
    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef>;

    /// The rows of `partition`. Parents call [`crate::execute_stream`], which also counts rows and time.
    ///
    /// # Errors
    /// When the partition does not exist or a shared state cannot be made.
    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream>;

    /// What `EXPLAIN` shows behind the name: `predicate=a@0 > 1, projection=[a@0]`.
    ///
    /// # Errors
    /// Those of the formatter.
    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The output schema.
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties().schema())
    }

    /// The expressions this node evaluates, over its input(s).
    fn expressions(&self) -> Vec<PhysicalExprRef> {
        vec![]
    }

    /// How each input's rows must be spread.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution; self.children().len()]
    }

    /// How each input's partitions must be ordered.
    fn required_input_ordering(&self) -> Vec<Option<LexOrdering>> {
        vec![None; self.children().len()]
    }

    /// For each input, whether the output's partitions keep the order of its rows.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    /// For each input, whether more partitions of it make this operator faster.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.required_input_distribution()
            .into_iter()
            .map(|d| d != Distribution::SinglePartition)
            .collect()
    }

    /// Statistics of the output: of one partition, or of all.
    ///
    /// # Errors
    /// When they cannot be computed from the inputs'.
    fn statistics(&self, _partition: Option<usize>) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&self.schema()))
    }
}

impl dyn ExecutionPlan {
    /// This node as a `T`, if it is one.
    pub fn downcast_ref<T: ExecutionPlan>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref::<T>()
    }

    /// Whether this node is a `T`.
    pub fn is<T: ExecutionPlan>(&self) -> bool {
        (self as &dyn Any).is::<T>()
    }

    /// Number of output partitions.
    pub fn partition_count(&self) -> usize {
        self.properties().partition_count()
    }
}

impl DynTreeNode for dyn ExecutionPlan {
    fn arc_children(&self) -> Vec<&Arc<Self>> {
        self.children()
    }

    fn with_new_arc_children(
        &self,
        arc_self: Arc<Self>,
        new_children: Vec<Arc<Self>>,
    ) -> Result<Arc<Self>> {
        arc_self.with_new_children(new_children)
    }
}
