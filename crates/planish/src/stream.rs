//! Results as they come: [`QueryStream`] for any executor, [`Batches`] for blocking callers.

use crate::explain;
use crate::planning::{Kind, Planned};
use crate::runtime::{block_on, panic_error};
use crate::session::Session;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, exec_err};
use futures::{FutureExt, Stream, StreamExt};
use planish_batch::Batch;
use planish_plan::{TaskContext, execute_stream};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// Batches that may wait for a slow reader.
const WAITING_BATCHES: usize = 2;

/// The batches of one run of a query. Dropping it cancels the run.
#[derive(Debug)]
pub struct QueryStream {
    batches: Receiver<Result<RecordBatch>>,
    schema: SchemaRef,
    driver: AbortHandle,
    context: Arc<TaskContext>,
    /// Keeps the runtime.
    _session: Session,
}

impl QueryStream {
    pub(crate) fn start(session: &Session, planned: &Arc<Planned>) -> Self {
        match planned.kind {
            Kind::Analyze { verbose } => Self::analyze(session, planned, verbose),
            Kind::Rows | Kind::Done => {
                let schema = Arc::clone(&planned.schema);
                Self::spawn(session, planned, schema, |planned, context, sender| async move {
                    send_rows(&planned, &context, &sender).await
                })
            }
        }
    }

    /// A run whose rows are counted rather than kept; the one batch says what operators did.
    pub(crate) fn analyze(session: &Session, planned: &Arc<Planned>, verbose: bool) -> Self {
        Self::spawn(
            session,
            planned,
            explain::schema(),
            move |planned, context, sender| async move {
                let report = analyze(&planned, &context, verbose).await?;
                // This fails when nobody listens any more.
                let _ = sender.send(Ok(report)).await;
                Ok(())
            },
        )
    }

    fn spawn<F>(
        session: &Session,
        planned: &Arc<Planned>,
        schema: SchemaRef,
        run: impl FnOnce(Arc<Planned>, Arc<TaskContext>, Sender<Result<RecordBatch>>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let context = session.task_context(Arc::clone(&planned.options));
        let (sender, batches) = channel(WAITING_BATCHES);
        let work = run(Arc::clone(planned), Arc::clone(&context), sender.clone());
        let guard = CancelOnDrop(Arc::clone(&context));
        let driver = session.runtime().spawn(async move {
            let _guard = guard;
            let error = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(panic) => panic_error(panic.as_ref()),
            };
            let _ = sender.send(Err(error)).await;
        });
        QueryStream {
            batches,
            schema,
            driver: driver.abort_handle(),
            context,
            _session: session.clone(),
        }
    }

    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Stream for QueryStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_recv(cx)
    }
}

impl Drop for QueryStream {
    fn drop(&mut self) {
        self.driver.abort();
        self.context.cancel();
    }
}

/// Lets go of an execution's state when its driver ends, however it ends.
struct CancelOnDrop(Arc<TaskContext>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn send_rows(
    planned: &Planned,
    context: &Arc<TaskContext>,
    sender: &Sender<Result<RecordBatch>>,
) -> Result<()> {
    for partition in 0..planned.physical.partition_count() {
        let mut stream = execute_stream(&planned.physical, partition, context)?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() > 0
                && sender.send(Ok(result_batch(&batch, &planned.schema)?)).await.is_err()
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The rows as promised to the caller: gathered, under the logical plan's schema.
fn result_batch(batch: &Batch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.to_record_batch()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let (_, columns, _) = rows.into_parts();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

async fn analyze(
    planned: &Planned,
    context: &Arc<TaskContext>,
    verbose: bool,
) -> Result<RecordBatch> {
    let started = Instant::now();
    let mut rows = 0;
    for partition in 0..planned.physical.partition_count() {
        let mut stream = execute_stream(&planned.physical, partition, context)?;
        while let Some(batch) = stream.next().await {
            // As a reader would, so that gathering shows in the metrics.
            rows += result_rows(&batch?)?;
        }
    }
    let run = explain::Run { metrics: context.metrics(), rows, elapsed: started.elapsed() };
    explain::sections(planned, Some(&run), verbose).to_batch()
}

fn result_rows(batch: &Batch) -> Result<usize> {
    let rows = batch.to_record_batch()?;
    if rows.num_rows() != batch.num_rows() {
        return exec_err!("a batch of {} rows gave {}", batch.num_rows(), rows.num_rows());
    }
    Ok(rows.num_rows())
}

/// The batches of one run of a query, for callers that block. Dropping it cancels the run.
#[derive(Debug)]
pub struct Batches {
    stream: QueryStream,
}

impl Batches {
    pub(crate) fn new(stream: QueryStream) -> Self {
        Batches { stream }
    }

    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.stream.next())
    }
}
