//! Drives a plan's partitions in every way the laws of execution allow, under a timeout: one
//! partition alone, all in reverse, one dropped half-way, two executions at once and in turn.

use crate::rows;
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool, UnboundedMemoryPool};
use futures::{StreamExt, TryStreamExt};
use planish_batch::Batch;
use planish_plan::{PlanRef, TaskContext, collect_partitioned, execute_stream};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

/// How long one way of driving may take.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs `work` on a runtime of its own with `workers` threads.
///
/// # Panics
/// When it takes longer than [`TIMEOUT`], or panics.
pub fn run<F>(workers: usize, what: &str, work: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    let task = runtime.spawn(work);
    let done = runtime.block_on(async { tokio::time::timeout(TIMEOUT, task).await });
    runtime.shutdown_background();
    match done {
        Ok(Ok(output)) => output,
        Ok(Err(failed)) => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => panic!("{what} did not end within {TIMEOUT:?}"),
    }
}

/// A context on the current runtime with this batch size and, if given, memory limit in bytes.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn context(batch_size: usize, memory_limit: Option<usize>) -> Arc<TaskContext> {
    let mut options = ConfigOptions::default();
    options.set("datafusion.execution.batch_size", &batch_size.to_string()).unwrap();
    let memory: Arc<dyn MemoryPool> = match memory_limit {
        Some(limit) => Arc::new(GreedyMemoryPool::new(limit)),
        None => Arc::new(UnboundedMemoryPool::default()),
    };
    let disk = Arc::new(DiskManagerBuilder::default().build().unwrap());
    Arc::new(TaskContext::new(Arc::new(options), memory, disk, Handle::current()))
}

/// All batches of `plan`, partition by partition, on a runtime of its own.
///
/// # Errors
/// The plan's.
///
/// # Panics
/// After [`TIMEOUT`].
pub fn collect(
    plan: &PlanRef,
    batch_size: usize,
    memory_limit: Option<usize>,
) -> Result<Vec<Vec<Batch>>> {
    let plan = Arc::clone(plan);
    run(2, "collecting", async move {
        collect_partitioned(&plan, &context(batch_size, memory_limit)).await
    })
}

/// Asserts that the plans `make` gives yield the rows `expected` (as [`rows::of`] prints them,
/// in any order), however their partitions are driven.
///
/// # Panics
/// When they do not, or hang.
pub fn assert_drives(make: impl Fn() -> PlanRef, expected: &[String]) {
    for workers in [1, 2] {
        for batch_size in [7, 8192] {
            Driven { workers, batch_size, memory_limit: None }.check(&make, expected);
        }
    }
}

/// One setting in which to drive plans; [`assert_drives`] tries several.
#[derive(Clone, Copy, Debug)]
pub struct Driven {
    /// Worker threads of the runtime.
    pub workers: usize,
    /// Rows per batch.
    pub batch_size: usize,
    /// Bytes of memory, if limited.
    pub memory_limit: Option<usize>,
}

impl Driven {
    /// As [`assert_drives`], in this setting.
    ///
    /// # Panics
    /// When a plan yields other rows, or hangs.
    pub fn check(self, make: &impl Fn() -> PlanRef, expected: &[String]) {
        let expected: Arc<[String]> = expected.into();
        let drive = |what: &'static str, how: How| {
            let (plan, expected) = (make(), Arc::clone(&expected));
            let what = format!("{what} ({self:?})");
            let name = what.clone();
            run(self.workers, &name, async move {
                drive(how, &plan, self, &expected, &what).await;
            });
        };
        drive("all partitions", How::All);
        drive("partition 0 alone", How::FirstAlone);
        drive("the last partition alone", How::LastAlone);
        drive("in reverse order", How::Reverse);
        drive("one partition dropped half-way", How::DropHalfWay);
        drive("all partitions dropped half-way", How::DropAll);
        drive("nothing polled", How::NeverPolled);
        drive("two executions at once", How::TwoAtOnce);
        drive("two executions in turn", How::TwoInTurn);
    }

    fn context(self) -> Arc<TaskContext> {
        context(self.batch_size, self.memory_limit)
    }
}

#[derive(Clone, Copy)]
enum How {
    All,
    FirstAlone,
    LastAlone,
    Reverse,
    DropHalfWay,
    DropAll,
    NeverPolled,
    TwoAtOnce,
    TwoInTurn,
}

async fn drive(how: How, plan: &PlanRef, setting: Driven, expected: &[String], what: &str) {
    let partitions = plan.partition_count();
    match how {
        How::All => rows::assert_same(&all(plan, setting).await, expected, what),
        How::FirstAlone => {
            rows::assert_part_of(&one(plan, 0, setting).await, expected, what);
        }
        How::LastAlone => {
            let last = one(plan, partitions - 1, setting).await;
            rows::assert_part_of(&last, expected, what);
        }
        How::Reverse => {
            let ctx = setting.context();
            let mut streams: Vec<_> =
                (0..partitions).map(|p| execute_stream(plan, p, &ctx).unwrap()).collect();
            let mut found = vec![];
            while let Some(stream) = streams.pop() {
                found.extend(rows::of(&stream.try_collect::<Vec<_>>().await.unwrap()));
            }
            rows::assert_same(&found, expected, what);
        }
        How::DropHalfWay => {
            for dropped in [0, partitions - 1] {
                let found = without(plan, dropped, setting).await;
                rows::assert_part_of(&found, expected, what);
            }
        }
        How::DropAll => {
            let ctx = setting.context();
            for partition in 0..partitions {
                let mut stream = execute_stream(plan, partition, &ctx).unwrap();
                if let Some(batch) = stream.next().await {
                    rows::assert_part_of(&rows::of(&[batch.unwrap()]), expected, what);
                }
            }
        }
        How::NeverPolled => {
            let ctx = setting.context();
            (0..partitions).for_each(|p| drop(execute_stream(plan, p, &ctx).unwrap()));
        }
        How::TwoAtOnce => {
            let (a, b) = futures::join!(all(plan, setting), all(plan, setting));
            rows::assert_same(&a, expected, what);
            rows::assert_same(&b, expected, what);
        }
        How::TwoInTurn => {
            rows::assert_same(&all(plan, setting).await, expected, what);
            rows::assert_same(&all(plan, setting).await, expected, what);
        }
    }
}

async fn all(plan: &PlanRef, setting: Driven) -> Vec<String> {
    let partitions = collect_partitioned(plan, &setting.context()).await.unwrap();
    partitions.iter().flat_map(|batches| rows::of(batches)).collect()
}

async fn one(plan: &PlanRef, partition: usize, setting: Driven) -> Vec<String> {
    let stream = execute_stream(plan, partition, &setting.context()).unwrap();
    rows::of(&stream.try_collect::<Vec<_>>().await.unwrap())
}

/// All rows of all partitions, but of `dropped` only the first batch.
async fn without(plan: &PlanRef, dropped: usize, setting: Driven) -> Vec<String> {
    let ctx = setting.context();
    let mut streams: Vec<_> =
        (0..plan.partition_count()).map(|p| Some(execute_stream(plan, p, &ctx).unwrap())).collect();
    let mut found = vec![];
    let mut half = streams[dropped].take().unwrap();
    if let Some(batch) = half.next().await {
        found.extend(rows::of(&[batch.unwrap()]));
    }
    drop(half);
    for stream in streams.into_iter().flatten() {
        found.extend(rows::of(&stream.try_collect::<Vec<_>>().await.unwrap()));
    }
    found
}
