//! A panic is a bug; the user sees one error line, not the runtime's text.

use futures::FutureExt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use crate::error::{Result, Stop};

/// What the last panic said.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics from printing; [`caught`] tells what they said.
pub(crate) fn silence() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let said = info.payload_as_str().unwrap_or("a panic without a text");
        let place = info.location().map(|l| format!(" at {l}")).unwrap_or_default();
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{said}{place}"));
    }));
}

/// Runs `work`; a panic in it becomes an error.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(_) => {
            let said = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
            let said = said.unwrap_or_else(|| "a panic".to_owned());
            Err(Stop::failed(format!("Internal error: {said}. This is a bug in Planish")))
        }
    }
}
