//! `SubplansExec`: the root of a plan with scalar subqueries.
//!
//! The first child is the plan itself, the others are the subqueries, each run at most once per
//! execution, when an operator first binds an expression that needs its value
//! ([`TaskContext::bind`]).

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::properties::PlanProperties;
use crate::pushdown::Pushdown;
use crate::shared::SharedTask;
use arrow::datatypes::{FieldRef, Schema};
use datafusion_common::{
    DataFusionError, Result, ScalarValue, Statistics, exec_err, internal_datafusion_err,
    internal_err,
};
use datafusion_expr::ColumnarValue;
use futures::StreamExt;
use parking_lot::Mutex;
use planish_batch::Batch;
use planish_expr::expressions::ScalarSubqueryExpr;
use planish_expr::{PhysicalExpr, PhysicalExprRef};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A plan (the first child) and the scalar subqueries it refers to by id.
#[derive(Debug)]
pub struct SubplansExec {
    plan: PlanRef,
    subplans: Vec<PlanRef>,
    ids: Vec<usize>,
    properties: PlanProperties,
}

impl SubplansExec {
    /// `plan` with the subplans `(id, plan)`.
    pub fn new(plan: PlanRef, subplans: impl IntoIterator<Item = (usize, PlanRef)>) -> Self {
        let (ids, subplans) = subplans.into_iter().unzip();
        let properties = plan.properties().clone();
        SubplansExec { plan, subplans, ids, properties }
    }
}

impl ExecutionPlan for SubplansExec {
    fn name(&self) -> &'static str {
        "SubplansExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        std::iter::once(&self.plan).chain(&self.subplans).collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let mut children = children.into_iter();
        let Some(plan) = children.next() else { return internal_err!("no plan above subplans") };
        Ok(Arc::new(SubplansExec::new(plan, self.ids.iter().copied().zip(children))))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subqueries={:?}", self.ids)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        (0..=self.subplans.len()).map(|i| i == 0).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.subplans.len() + 1]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let values = ctx.state::<SubplanValues>(0, SubplanValues::default);
        for (id, plan) in self.ids.iter().zip(&self.subplans) {
            values.register(*id, plan);
        }
        execute_stream(&self.plan, partition, ctx)
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        self.plan.statistics(partition)
    }
}

impl Pushdown for SubplansExec {}

/// The subqueries of one execution and, once computed, their values.
#[derive(Default)]
pub(crate) struct SubplanValues {
    subplans: Mutex<HashMap<usize, Subplan>>,
}

#[derive(Clone)]
struct Subplan {
    plan: PlanRef,
    value: Arc<SharedTask<ScalarValue>>,
}

impl SubplanValues {
    fn register(&self, id: usize, plan: &PlanRef) {
        self.subplans.lock().entry(id).or_insert_with(|| Subplan {
            plan: Arc::clone(plan),
            value: Arc::new(SharedTask::new(1)),
        });
    }

    /// The value of subquery `id`, computed by the first to ask.
    pub(crate) async fn value(
        &self,
        id: usize,
        ctx: &Arc<TaskContext>,
    ) -> std::result::Result<ScalarValue, Arc<DataFusionError>> {
        let Some(subplan) = self.subplans.lock().get(&id).cloned() else {
            return Err(Arc::new(internal_datafusion_err!(
                "subquery({id}) is not part of the plan"
            )));
        };
        let value = subplan.value.get(|| {
            let stream_ctx = Arc::clone(ctx);
            Ok(ctx.spawn(async move { scalar(&subplan.plan, &stream_ctx).await }))
        });
        match value.await {
            Ok(value) => Ok(value.as_ref().clone()),
            Err(DataFusionError::Shared(error)) => Err(error),
            Err(error) => Err(Arc::new(error)),
        }
    }
}

/// In place of a subquery that failed: the error of every row that reads its value.
#[derive(Clone, Debug)]
pub(crate) struct FailedSubqueryExpr {
    subquery: ScalarSubqueryExpr,
    error: Arc<DataFusionError>,
}

impl FailedSubqueryExpr {
    pub(crate) fn new(subquery: &ScalarSubqueryExpr, error: &Arc<DataFusionError>) -> Self {
        FailedSubqueryExpr { subquery: subquery.clone(), error: Arc::clone(error) }
    }
}

/// An execution has one value of a subquery, hence one error.
impl PartialEq for FailedSubqueryExpr {
    fn eq(&self, other: &Self) -> bool {
        self.subquery == other.subquery
    }
}

impl Eq for FailedSubqueryExpr {}

impl Hash for FailedSubqueryExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.subquery.hash(state);
    }
}

impl fmt::Display for FailedSubqueryExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subquery)
    }
}

impl PhysicalExpr for FailedSubqueryExpr {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.subquery.return_field(schema)
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        if batch.num_rows() > 0 {
            return Err(DataFusionError::Shared(Arc::clone(&self.error)));
        }
        let data_type = self.subquery.data_type(batch.schema())?;
        ScalarValue::try_new_null(&data_type).map(ColumnarValue::Scalar)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(self)
    }
}

/// The only value of a one-column plan of at most one row; NULL when there is no row.
async fn scalar(plan: &PlanRef, ctx: &Arc<TaskContext>) -> Result<ScalarValue> {
    let mut value = None;
    for partition in 0..plan.partition_count() {
        let mut stream = execute_stream(plan, partition, ctx)?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            if value.is_some() || batch.num_rows() > 1 {
                return exec_err!("a scalar subquery returned more than one row");
            }
            value = Some(ScalarValue::try_from_array(&batch.column(0)?, 0)?);
        }
    }
    value.map_or_else(|| ScalarValue::try_new_null(plan.schema().field(0).data_type()), Ok)
}
