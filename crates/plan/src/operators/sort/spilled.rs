//! Merging sorted runs from disk, with one small batch of each in memory.
//!
//! When there are more runs than batches fit, some are first merged into one on disk.

use super::merge::merge_sorted;
use super::runs::{SPILLED_BATCH_BYTES, Settings};
use crate::execute::BatchStream;
use crate::spill::{SpillFileWriter, Spilled, exhausted};
use async_stream::try_stream;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use std::sync::Arc;

/// Runs merged at once at most: each is an open file.
const MAX_FAN_IN: usize = 128;

/// The rows of all `runs`, in order.
pub(super) fn merge_spilled(mut runs: Vec<Spilled>, settings: Arc<Settings>) -> BatchStream {
    Box::pin(try_stream! {
        let reservation = settings.ctx.reservation("SortExec", false);
        loop {
            // Short runs first: a row is then rewritten less often.
            runs.sort_by_key(|run| std::cmp::Reverse(run.rows()));
            let fan_in = reserve(&runs, &reservation)?;
            if fan_in == runs.len() {
                break;
            }
            let some = runs.split_off(runs.len() - fan_in);
            runs.push(merge_to_disk(&some, &settings).await?);
            reservation.free();
        }
        let mut merged = merge(&runs, &settings, settings.ctx.batch_size())?;
        while let Some(batch) = merged.next().await {
            yield batch?;
        }
        drop(reservation);
    })
}

/// Reserves memory for as many of the last `runs` as can be merged at once: all, or at least two.
fn reserve(runs: &[Spilled], reservation: &MemoryReservation) -> Result<usize> {
    let mut fan_in = 0;
    for run in runs.iter().rev().take(MAX_FAN_IN) {
        // The batch, its keys, and the rows of it that wait to leave.
        let needed = 3 * run.largest_batch();
        if reservation.try_grow(needed).is_err() {
            if fan_in < 2 {
                return Err(exhausted("SortExec", needed));
            }
            break;
        }
        fan_in += 1;
    }
    Ok(fan_in)
}

fn merge(runs: &[Spilled], settings: &Settings, batch_size: usize) -> Result<BatchStream> {
    let inputs = runs.iter().map(Spilled::read).collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(&settings.schema);
    merge_sorted(inputs, &settings.keys, schema, batch_size, settings.fetch)
}

async fn merge_to_disk(runs: &[Spilled], settings: &Settings) -> Result<Spilled> {
    // Batches as small as those that came in: the next merge holds one of each run again.
    let batch_size = runs.iter().map(Spilled::largest_batch_rows).max().unwrap_or(1);
    let mut merged = merge(runs, settings, batch_size)?;
    let schema = Arc::clone(&settings.schema);
    let mut writer = SpillFileWriter::try_new("SortExec", schema, &settings.ctx)?;
    while let Some(batch) = merged.next().await {
        writer.write_pieces(&batch?, SPILLED_BATCH_BYTES)?;
    }
    let (spilled, bytes) = writer.finish()?;
    settings.ctx.metrics().node(settings.node).add("spilled_bytes", bytes);
    Ok(spilled)
}
