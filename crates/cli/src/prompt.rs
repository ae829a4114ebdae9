//! The prompt on a terminal: reads lines until `;`, keeps going after errors.

use crate::error::{Result, Stop};
use crate::run::Runner;
use crate::script::Splitter;
use crate::stdin::Lines;
use std::io::Write;

/// Reads and runs statements until the end of the input or `\q`.
pub(crate) async fn run(runner: &mut Runner) -> Result<()> {
    let mut lines = Lines::open();
    let mut splitter = Splitter::default();
    loop {
        say(if splitter.is_empty() { "planish> " } else { "      -> " });
        let Some(line) = runner.interrupts.or(lines.next()).await else {
            // Ctrl-C drops what has been typed so far.
            splitter = Splitter::default();
            say("\n");
            continue;
        };
        let Some(line) = line? else {
            say("\n");
            return Ok(());
        };
        if splitter.is_empty() && matches!(line.trim(), "\\q" | "quit" | "exit") {
            return Ok(());
        }
        for statement in splitter.push(&line) {
            match runner.run_statement(&statement).await {
                Ok(()) => {}
                Err(Stop::ReaderGone) => return Err(Stop::ReaderGone),
                Err(stop) => {
                    say(&format!("Error: {stop}\n"));
                    break;
                }
            }
        }
    }
}

/// Writes to the terminal, apart from the results. Nobody to read it is no reason to stop.
fn say(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}
