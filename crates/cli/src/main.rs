//! The `planish` command: SQL over files, results in several formats.
//!
//! Architecture invariant: the only crate that prints.

mod args;
mod data;
mod error;
mod interrupt;
mod output;
mod panics;
mod prompt;
mod run;
mod script;
mod sink;
mod stdin;

use args::Args;
use error::Stop;
use interrupt::Interrupts;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::of_process();
    panics::silence();
    let result = start(args);
    match result {
        Ok(()) | Err(Stop::ReaderGone) => ExitCode::SUCCESS,
        Err(stop) => {
            // Nobody to read the message: the exit code still tells.
            let _ = writeln!(std::io::stderr(), "Error: {stop}");
            match stop {
                Stop::Interrupted => ExitCode::from(interrupt::EXIT_CODE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// The waiting happens on this thread; queries have the session's own runtime.
fn start(args: Args) -> error::Result<()> {
    let interrupts = Interrupts::listen()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|e| Stop::failed(format!("cannot start: {e}")))?;
    runtime.block_on(run::run(args, interrupts))
}
