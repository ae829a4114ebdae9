//! The session's own Tokio runtime, and waiting for it from anywhere.

use datafusion_common::{DataFusionError, Result};
use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use tokio::runtime::{Builder, Handle, Runtime};

/// Lowering a plan recurses as deep as its expressions nest.
const WORKER_STACK_BYTES: usize = 16 * 1024 * 1024;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// A Tokio runtime that may be dropped anywhere.
#[derive(Debug)]
pub(crate) struct OwnRuntime {
    /// Taken when dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl OwnRuntime {
    pub(crate) fn new(workers: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers.max(1))
            .thread_name("planish")
            .thread_stack_size(WORKER_STACK_BYTES)
            .on_thread_start(|| IS_WORKER.set(true))
            .enable_time()
            .build()
            .map_err(|e| DataFusionError::Execution(format!("cannot start threads: {e}")))?;
        let handle = runtime.handle().clone();
        Ok(OwnRuntime { runtime: Some(runtime), handle })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The output of `future`, run here; a panic in it becomes an internal error.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let task = AbortOnDrop(self.handle.spawn(future));
        task.wait().await
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        // Waiting for the workers is not allowed inside of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<Result<T>>);

impl<T> AbortOnDrop<T> {
    async fn wait(mut self) -> Result<T> {
        match (&mut self.0).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(panic_error(panic.as_ref())),
                Err(_) => Err(DataFusionError::Execution("the query was cancelled".to_owned())),
            },
        }
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a caught panic says, as an internal error.
pub(crate) fn panic_error(panic: &(dyn Any + Send)) -> DataFusionError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    DataFusionError::Internal(format!("the query panicked: {text}"))
}

/// Waits for `future` by parking this thread, which works inside of any executor.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    if IS_WORKER.get() {
        // One of our own workers: its other tasks move to another thread meanwhile.
        tokio::task::block_in_place(|| park_on(future))
    } else {
        park_on(future)
    }
}

fn park_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
