//! Standard input, line by line, without blocking the waiting side.

use crate::error::{Result, Stop};
use std::io::{self, BufRead};
use tokio::sync::mpsc;

/// The lines of standard input, each with its line end.
#[derive(Debug)]
pub(crate) struct Lines {
    receiver: mpsc::Receiver<io::Result<String>>,
}

impl Lines {
    /// Starts to read, in a thread of its own: a read cannot be cancelled.
    pub(crate) fn open() -> Lines {
        let (sender, receiver) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut line = String::new();
                let read = input.read_line(&mut line);
                let last = !matches!(read, Ok(1..));
                let line = match read {
                    Ok(0) => break,
                    Ok(_) => Ok(line),
                    Err(e) => Err(e),
                };
                if sender.blocking_send(line).is_err() || last {
                    break;
                }
            }
        });
        Lines { receiver }
    }

    /// The next line, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>> {
        let failed = |e| Stop::failed(format!("cannot read standard input: {e}"));
        self.receiver.recv().await.transpose().map_err(failed)
    }
}
