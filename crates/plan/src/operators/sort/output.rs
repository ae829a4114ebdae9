//! Handing on what was sorted: the runs of all partitions, merged range by range.
//!
//! Keys sampled from all runs split them into ranges of about equal size. Each range is merged
//! by a task of its own, a few of them ahead of the reader, and leaves as one selection, cut into
//! batches.

use super::keys::Keys;
use super::runs::{Entry, Settings, Sorted, collect, merged_refs, order};
use super::spilled::merge_spilled;
use crate::execute::BatchStream;
use async_stream::try_stream;
use futures::StreamExt;
use planish_batch::{Batch, RowRef, gather_rows};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows that one task merges at most, unless many of their keys are equal.
const RANGE_ROWS: usize = 256 * 1024;

/// Sampled keys per range.
const SAMPLES: usize = 32;

/// The rows of all `inputs`, sorted.
pub(super) fn sorted<K: Keys>(
    mut inputs: Vec<BatchStream>,
    settings: Arc<Settings>,
) -> BatchStream {
    Box::pin(try_stream! {
        let mut parts: Vec<Sorted<K>> = vec![];
        if inputs.len() == 1 {
            parts.push(collect(inputs.remove(0), Arc::clone(&settings)).await?);
        } else {
            let (ctx, node) = (&settings.ctx, settings.node);
            let tasks: Vec<_> = inputs
                .into_iter()
                .map(|input| ctx.spawn_for(node, collect(input, Arc::clone(&settings))))
                .collect();
            for task in tasks {
                parts.push(task.await??);
            }
        }
        let mut batches = if parts.iter().all(|part| part.spilled.is_empty()) {
            from_memory(parts, settings)
        } else {
            let mut runs = vec![];
            for mut part in parts {
                part.spill(&settings)?;
                runs.append(&mut part.spilled);
            }
            merge_spilled(runs, settings)
        };
        while let Some(batch) = batches.next().await {
            yield batch?;
        }
    })
}

/// Everything that was sorted in memory, of all partitions.
struct Merge<K: Keys> {
    keys: Vec<K>,
    runs: Vec<Vec<Entry<K>>>,
    /// For each range, where it ends in each run.
    ends: Vec<Vec<usize>>,
    fetch: usize,
}

fn from_memory<K: Keys>(parts: Vec<Sorted<K>>, settings: Arc<Settings>) -> BatchStream {
    Box::pin(try_stream! {
        let (mut batches, mut keys, mut runs, mut reservations) = (vec![], vec![], vec![], vec![]);
        for mut part in parts {
            let first = batches.len() as u32;
            if first > 0 {
                for (_, row) in part.runs.iter_mut().flatten() {
                    *row = RowRef::new(first + row.chunk(), row.row());
                }
            }
            batches.append(&mut part.batches);
            keys.append(&mut part.keys);
            runs.append(&mut part.runs);
            reservations.push(part.reservation);
        }
        let ends = split(&keys, &runs);
        let ranges = ends.len();
        let merge = Arc::new(Merge { keys, runs, ends, fetch: settings.fetch });
        let ahead = settings.ctx.options().execution.target_partitions.max(1);
        let mut tasks = VecDeque::new();
        let (mut started, mut left) = (0, settings.fetch);
        while left > 0 {
            let refs = if ranges == 1 {
                merge.range(0)
            } else {
                while started < ranges && tasks.len() < ahead {
                    let (merge, range) = (Arc::clone(&merge), started);
                    let task = async move { merge.range(range) };
                    tasks.push_back(settings.ctx.spawn_for(settings.node, task));
                    started += 1;
                }
                let Some(task) = tasks.pop_front() else { break };
                task.await?
            };
            let rows = gather_rows(&settings.schema, &batches, &refs)?;
            let wanted = rows.num_rows().min(left);
            left -= wanted;
            for batch in cut(&rows, wanted, settings.ctx.batch_size()) {
                yield batch;
            }
            if ranges == 1 {
                break;
            }
        }
        drop(reservations);
    })
}

fn cut(rows: &Batch, wanted: usize, size: usize) -> impl Iterator<Item = Batch> {
    (0..wanted).step_by(size).map(move |offset| rows.slice(offset, size.min(wanted - offset)))
}

impl<K: Keys> Merge<K> {
    /// The rows of one range, in order.
    fn range(&self, range: usize) -> Vec<RowRef> {
        let ends = &self.ends[range];
        let start = |run: usize| if range == 0 { 0 } else { self.ends[range - 1][run] };
        let rows = ends.iter().enumerate().map(|(run, &end)| end - start(run)).sum();
        let mut entries = Vec::with_capacity(rows);
        for (run, &end) in ends.iter().enumerate() {
            entries.extend_from_slice(&self.runs[run][start(run)..end]);
        }
        merged_refs(&self.keys, entries, self.fetch)
    }
}

/// Where each range ends in each run; at least one range.
fn split<K: Keys>(keys: &[K], runs: &[Vec<Entry<K>>]) -> Vec<Vec<usize>> {
    let total: usize = runs.iter().map(Vec::len).sum();
    let ranges = total.div_ceil(RANGE_ROWS).max(1);
    let mut ends = Vec::with_capacity(ranges);
    if ranges > 1 {
        let step = (total / (ranges * SAMPLES)).max(1);
        let mut samples: Vec<Entry<K>> =
            runs.iter().flat_map(|run| run.iter().skip(step / 2).step_by(step)).copied().collect();
        samples.sort_unstable_by(|a, b| order(keys, a, b));
        for range in 1..ranges {
            let Some(splitter) = samples.get(range * samples.len() / ranges) else { break };
            let end =
                |run: &Vec<Entry<K>>| run.partition_point(|e| order(keys, e, splitter).is_lt());
            ends.push(runs.iter().map(end).collect());
        }
    }
    ends.push(runs.iter().map(Vec::len).collect());
    ends
}
