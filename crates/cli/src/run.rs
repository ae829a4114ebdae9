//! Runs statements in a session and writes their results.

use crate::args::{Args, Format, Input};
use crate::error::{Result, Stop};
use crate::interrupt::Interrupts;
use crate::output;
use crate::script::{Splitter, Statement};
use crate::sink::Sink;
use crate::stdin::Lines;
use crate::{data, panics, prompt};
use futures::TryStreamExt;
use planish::Session;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A session and where its results go.
pub(crate) struct Runner {
    session: Session,
    format: Format,
    timing: bool,
    sink: Sink,
    pub(crate) interrupts: Interrupts,
}

/// Does what the command line says.
pub(crate) async fn run(args: Args, interrupts: Interrupts) -> Result<()> {
    let sink = Sink::open(args.output.as_deref())?;
    let session = panics::caught(open_session(&args)).await?;
    let mut runner = Runner { session, format: args.format, timing: args.timing, sink, interrupts };
    for input in &args.inputs {
        match input {
            Input::Command(sql) => runner.run_text(sql, |_| None).await?,
            Input::File(path) if path == Path::new("-") => runner.run_stdin().await?,
            Input::File(path) => runner.run_file(path).await?,
        }
    }
    if args.inputs.is_empty() {
        match std::io::stdin().is_terminal() {
            true => prompt::run(&mut runner).await?,
            false => runner.run_stdin().await?,
        }
    }
    runner.sink.finish()
}

async fn open_session(args: &Args) -> Result<Session> {
    let mut builder = Session::builder();
    for (key, value) in &args.settings {
        builder = builder.set(key, value);
    }
    if let Some(bytes) = args.memory_limit {
        builder = builder.memory_limit(bytes);
    }
    let session = builder.build()?;
    for (name, path) in data::tables(&args.data)? {
        session.register_path(&name, &path.to_string_lossy())?;
    }
    Ok(session)
}

impl Runner {
    /// Runs the statements of `text`; `place` says where a line of it is.
    async fn run_text(
        &mut self,
        text: &str,
        place: impl Fn(usize) -> Option<String>,
    ) -> Result<()> {
        let mut splitter = Splitter::default();
        let mut statements = splitter.push(text);
        statements.extend(splitter.finish());
        for statement in statements {
            let done = self.run_statement(&statement).await;
            done.map_err(|stop| match place(statement.line) {
                Some(place) => stop.at(place),
                None => stop,
            })?;
        }
        Ok(())
    }

    async fn run_file(&mut self, path: &Path) -> Result<()> {
        let failed = |e| Stop::failed(format!("cannot read {}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(failed)?;
        self.run_text(&text, |line| Some(format!("{}:{line}", path.display()))).await
    }

    /// Runs each statement of standard input as soon as its `;` has come.
    async fn run_stdin(&mut self) -> Result<()> {
        let mut lines = Lines::open();
        let mut splitter = Splitter::default();
        loop {
            let line = self.interrupts.or(lines.next()).await.ok_or(Stop::Interrupted)??;
            let statements = match &line {
                Some(line) => splitter.push(line),
                None => splitter.finish().into_iter().collect(),
            };
            for statement in statements {
                let place = format!("line {}", statement.line);
                self.run_statement(&statement).await.map_err(|stop| stop.at(place))?;
            }
            if line.is_none() {
                return Ok(());
            }
        }
    }

    /// Runs one statement and writes its result.
    pub(crate) async fn run_statement(&mut self, statement: &Statement) -> Result<()> {
        let Runner { session, format, timing, sink, interrupts } = self;
        let work = async {
            let out = sink.stream();
            let time = execute(session, &statement.sql, *format, *timing, out).await?;
            out.flush()?;
            if let Some(time) = time {
                let ms = time.as_secs_f64() * 1e3;
                // Nobody to read the time is no reason to stop.
                let _ = writeln!(std::io::stderr(), "Time: {ms:.3} ms");
            }
            Ok(())
        };
        interrupts.or(panics::caught(work)).await.unwrap_or(Err(Stop::Interrupted))
    }
}

/// Runs `sql`; with `timing`, gives the time until its last row.
async fn execute(
    session: &Session,
    sql: &str,
    format: Format,
    timing: bool,
    out: &mut dyn Write,
) -> Result<Option<Duration>> {
    let start = Instant::now();
    let query = session.sql_async(sql).await?;
    let schema = query.schema();
    let mut writer = output::writer(format, &schema);
    let mut time = None;
    if timing {
        // Rows that wait for a slow reader would count as time, rows made meanwhile would not.
        let batches = query.collect_async().await?;
        time = Some(start.elapsed());
        for batch in &batches {
            writer.write(batch, out)?;
        }
    } else {
        let mut batches = query.stream();
        while let Some(batch) = batches.try_next().await? {
            writer.write(&batch, out)?;
        }
    }
    if query.returns_rows() {
        writer.finish(out)?;
    }
    Ok(time)
}
