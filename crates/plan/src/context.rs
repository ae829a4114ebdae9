//! [`TaskContext`]: everything one execution of a plan may touch or remember.

use crate::config::PlanishOptions;
use crate::execution_plan::ExecutionPlan;
use crate::metrics::{MetricsRegistry, NodeMetrics};
use crate::operators::subplans::{FailedSubqueryExpr, SubplanValues};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::disk_manager::{DiskManager, DiskManagerBuilder};
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryPool, MemoryReservation, UnboundedMemoryPool,
};
use parking_lot::Mutex;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{Literal, ScalarSubqueryExpr};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The identity of a plan node, by which per-execution state and metrics are kept.
pub fn node_id(node: &dyn ExecutionPlan) -> usize {
    std::ptr::from_ref(node).cast::<()>() as usize
}

/// One execution of one plan: configuration, memory, disk, runtime, and the state that
/// partitions share. Every execution has a context of its own.
#[derive(Debug)]
pub struct TaskContext {
    options: Arc<ConfigOptions>,
    memory: Arc<dyn MemoryPool>,
    disk: Arc<DiskManager>,
    runtime: Handle,
    states: Mutex<States>,
    metrics: Arc<MetricsRegistry>,
}

/// What the partitions of an execution share.
#[derive(Debug, Default)]
struct States {
    by_node: HashMap<(usize, TypeId), Arc<dyn Any + Send + Sync>>,
    cancelled: bool,
}

impl TaskContext {
    /// A context for one execution on `runtime`.
    pub fn new(
        options: Arc<ConfigOptions>,
        memory: Arc<dyn MemoryPool>,
        disk: Arc<DiskManager>,
        runtime: Handle,
    ) -> Self {
        TaskContext {
            options,
            memory,
            disk,
            runtime,
            states: Mutex::default(),
            metrics: Arc::default(),
        }
    }

    /// A context with unlimited memory on the current Tokio runtime, for tests and examples.
    ///
    /// # Errors
    /// When no spill folder can be made.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn for_testing(options: ConfigOptions) -> Result<Arc<Self>> {
        Ok(Arc::new(TaskContext::new(
            Arc::new(options),
            Arc::new(UnboundedMemoryPool::default()),
            Arc::new(DiskManagerBuilder::default().build()?),
            Handle::current(),
        )))
    }

    /// The session's options.
    pub fn options(&self) -> &Arc<ConfigOptions> {
        &self.options
    }

    /// The `planish.*` options.
    pub fn planish_options(&self) -> PlanishOptions {
        PlanishOptions::of(&self.options)
    }

    /// Rows per batch that operators aim for.
    pub fn batch_size(&self) -> usize {
        self.options.execution.batch_size.get()
    }

    /// A reservation in the query's memory pool for `name`, an operator's name. A breaker that
    /// can write its state to disk says so.
    pub fn reservation(&self, name: impl Into<String>, can_spill: bool) -> MemoryReservation {
        MemoryConsumer::new(name).with_can_spill(can_spill).register(&self.memory)
    }

    /// Where to spill.
    pub fn disk(&self) -> &Arc<DiskManager> {
        &self.disk
    }

    /// This execution's metrics.
    pub fn metrics(&self) -> &Arc<MetricsRegistry> {
        &self.metrics
    }

    /// The state of type `T` that the partitions of a node share, made by the first to ask.
    pub fn state<T: Any + Send + Sync>(&self, node: usize, init: impl FnOnce() -> T) -> Arc<T> {
        let mut states = self.states.lock();
        if states.cancelled {
            return Arc::new(init());
        }
        let entry =
            states.by_node.entry((node, TypeId::of::<T>())).or_insert_with(|| Arc::new(init()));
        let Ok(state) = Arc::clone(entry).downcast::<T>() else {
            unreachable!("states are keyed by their type")
        };
        state
    }

    /// Ends the execution: shared states are let go, which aborts the tasks in them, and new
    /// ones are kept by none but those who ask for them. Tasks in a state hold this context, so
    /// without this call they would keep each other alive when nobody reads any more.
    pub fn cancel(&self) {
        let states = {
            let mut states = self.states.lock();
            states.cancelled = true;
            std::mem::take(&mut states.by_node)
        };
        // Outside of the lock: what is dropped here may ask for states.
        drop(states);
    }

    /// Runs `future` on the query's runtime; dropping the task aborts it.
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Task(self.runtime.spawn(future))
    }

    /// As [`Self::spawn`], with time and gathered bytes charged to node `node`.
    pub fn spawn_for<F>(&self, node: usize, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let metrics = self.metrics.node(node);
        self.spawn(Measured { future: Box::pin(future), metrics })
    }

    /// `expr` with every scalar subquery replaced by its value, which is computed once per
    /// execution. Operators bind their expressions when a stream starts. An error of the subquery,
    /// "more than one row" among them, is one of the rows that read the value: there may be none,
    /// as behind a guard.
    ///
    /// # Errors
    /// Internal ones.
    pub async fn bind(self: &Arc<Self>, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let mut ids = vec![];
        find_subqueries(expr, &mut ids);
        if ids.is_empty() {
            return Ok(Arc::clone(expr));
        }
        let subplans = self.state::<SubplanValues>(0, SubplanValues::default);
        let mut values = HashMap::new();
        for id in ids {
            values.insert(id, subplans.value(id, self).await);
        }
        Arc::clone(expr)
            .transform_up(|node| {
                let Some(subquery) = node.downcast_ref::<ScalarSubqueryExpr>() else {
                    return Ok(Transformed::no(node));
                };
                let bound: PhysicalExprRef = match values.get(&subquery.id()) {
                    Some(Ok(value)) => Arc::new(Literal::new(value.clone())),
                    Some(Err(error)) => Arc::new(FailedSubqueryExpr::new(subquery, error)),
                    None => return internal_err!("subquery({}) has no value", subquery.id()),
                };
                Ok(Transformed::yes(bound))
            })
            .data()
    }

    /// [`Self::bind`] for a list.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub async fn bind_all(
        self: &Arc<Self>,
        exprs: impl IntoIterator<Item = &PhysicalExprRef>,
    ) -> Result<Vec<PhysicalExprRef>> {
        let mut bound = vec![];
        for expr in exprs {
            bound.push(self.bind(expr).await?);
        }
        Ok(bound)
    }
}

fn find_subqueries(expr: &PhysicalExprRef, ids: &mut Vec<usize>) {
    if let Some(subquery) = expr.downcast_ref::<ScalarSubqueryExpr>() {
        ids.push(subquery.id());
    }
    expr.children().into_iter().for_each(|child| find_subqueries(child, ids));
}

/// A spawned piece of work. Awaiting it gives its output; dropping it aborts it; a panic in it
/// becomes an internal error.
#[derive(Debug)]
pub struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|joined| {
            joined.map_err(|error| match error.try_into_panic() {
                Ok(panic) => DataFusionError::Internal(format!(
                    "a task of the query panicked: {}",
                    panic_text(panic.as_ref())
                )),
                Err(_) => DataFusionError::Execution("the query was cancelled".to_owned()),
            })
        })
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

struct Measured<F> {
    future: Pin<Box<F>>,
    metrics: Arc<NodeMetrics>,
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let future = &mut this.future;
        this.metrics.measure(|| future.as_mut().poll(cx))
    }
}
