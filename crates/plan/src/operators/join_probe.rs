//! The loop that drives a probe: batch by batch, block by block, then the build rows.

use crate::execute::BatchStream;
use crate::operators::join_output::JoinOutput;
use crate::operators::join_schema::emits_build_rows;
use async_stream::try_stream;
use datafusion_common::Result;
use futures::{StreamExt, TryStreamExt};
use planish_batch::Batch;

/// Finds matches for probe batches, one batch after the other.
pub(crate) trait PairSource: Send {
    /// A new probe batch.
    fn start(&mut self, probe: &Batch, out: &mut JoinOutput) -> Result<()>;

    /// Finds some matches, at most about a batch's worth, and reports them to `out`; true when
    /// the current probe batch has no more.
    fn step(&mut self, out: &mut JoinOutput) -> Result<bool>;

    /// Whether further probe rows can change anything.
    fn wants_more(&self) -> bool {
        true
    }

    /// Called once all probe partitions have finished, before build rows are emitted by their
    /// marks; false to emit none.
    fn before_build_rows(&mut self) -> bool {
        true
    }
}

/// The stream that `setup` makes once it is first polled.
pub(crate) fn deferred(
    setup: impl Future<Output = Result<BatchStream>> + Send + 'static,
) -> BatchStream {
    Box::pin(futures::stream::once(setup).try_flatten())
}

/// A stream without batches.
pub(crate) fn empty() -> BatchStream {
    Box::pin(futures::stream::empty())
}

/// Probes all batches of `right`, then emits build rows if this partition is the last one.
/// `guard` lives as long as the stream.
pub(crate) fn probe_stream<S, G>(
    mut right: BatchStream,
    mut source: S,
    mut out: JoinOutput,
    guard: G,
) -> BatchStream
where
    S: PairSource + 'static,
    G: Send + 'static,
{
    Box::pin(try_stream! {
        let _guard = guard;
        while source.wants_more() {
            let Some(probe) = right.next().await else { break };
            let probe = probe?;
            if probe.num_rows() == 0 {
                continue;
            }
            out.start(&probe);
            source.start(&probe, &mut out)?;
            loop {
                let done = source.step(&mut out)?;
                if done {
                    out.finish_batch(&probe)?;
                }
                while let Some(batch) = out.ready(done)? {
                    yield batch;
                }
                // A long probe stays open to cancellation.
                tokio::task::consume_budget().await;
                if done {
                    break;
                }
            }
        }
        drop(right);
        while let Some(batch) = out.flush()? {
            yield batch;
        }
        if emits_build_rows(out.join_type()) && out.build().finish_probe() && source.before_build_rows()
        {
            let mut from = 0;
            while let Some(batch) = out.build_rows(&mut from)? {
                yield batch;
            }
        }
    })
}
