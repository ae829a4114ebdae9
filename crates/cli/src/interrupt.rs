//! Ctrl-C: the first one ends the statement at hand, one more the process.

use crate::error::{Result, Stop};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The exit code of a process that Ctrl-C ended, as shells know it.
pub(crate) const EXIT_CODE: u8 = 130;

/// Tells that Ctrl-C was pressed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    /// Pressed, and nobody has taken notice yet.
    pending: Arc<AtomicBool>,
    pressed: Arc<Notify>,
}

impl Interrupts {
    /// Starts to listen, on a thread of its own.
    pub(crate) fn listen() -> Result<Interrupts> {
        let interrupts = Interrupts::default();
        let Interrupts { pending, pressed } = interrupts.clone();
        let handler = move || {
            // Something does not let itself be cancelled, for instance a write to a pipe that is
            // not read.
            if pending.swap(true, Ordering::AcqRel) {
                std::process::exit(EXIT_CODE.into());
            }
            pressed.notify_one();
        };
        ctrlc::set_handler(handler).map_err(|e| Stop::failed(format!("cannot start: {e}")))?;
        Ok(interrupts)
    }

    /// Waits for `work`, or gives `None` when Ctrl-C comes first.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.pressed.notified() => {
                self.pending.store(false, Ordering::Release);
                None
            }
        }
    }
}
