//! [`SharedTask`]: work that several partitions need and one task does.

use crate::context::Task;
use datafusion_common::{DataFusionError, Result};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type SharedResult<T> = std::result::Result<Arc<T>, Arc<DataFusionError>>;

/// A computation started by the first partition that needs it, awaited by all, and aborted when
/// every partition that could need it has been dropped.
///
/// Kept in the [`crate::TaskContext`]; each partition's stream holds a [`SharedGuard`].
pub struct SharedTask<T> {
    running: Mutex<Option<Shared<BoxFuture<'static, SharedResult<T>>>>>,
    users: AtomicUsize,
}

impl<T: Send + Sync + 'static> SharedTask<T> {
    /// A task that `users` partitions may need.
    pub fn new(users: usize) -> Self {
        SharedTask { running: Mutex::new(None), users: AtomicUsize::new(users) }
    }

    /// The result; `start` spawns the work if nobody has yet. No worker thread blocks.
    ///
    /// # Errors
    /// Those of the work, shared by all who wait.
    pub async fn get(&self, start: impl FnOnce() -> Result<Task<Result<T>>>) -> Result<Arc<T>> {
        let shared = {
            let mut running = self.running.lock();
            match running.as_ref() {
                Some(shared) => shared.clone(),
                None => {
                    let task = start()?;
                    let shared = async move { flatten(task.await) }.boxed().shared();
                    *running = Some(shared.clone());
                    shared
                }
            }
        };
        shared.await.map_err(DataFusionError::Shared)
    }

    /// A partition's share: when the last one is dropped, unfinished work is aborted.
    pub fn guard(self: &Arc<Self>) -> SharedGuard<T> {
        SharedGuard(Arc::clone(self))
    }
}

fn flatten<T>(joined: Result<Result<T>>) -> SharedResult<T> {
    joined.and_then(|result| result).map(Arc::new).map_err(Arc::new)
}

/// One partition's share in a [`SharedTask`].
pub struct SharedGuard<T>(Arc<SharedTask<T>>);

impl<T> Drop for SharedGuard<T> {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.0.running.lock() = None;
        }
    }
}
