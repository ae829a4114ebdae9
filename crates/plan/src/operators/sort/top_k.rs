//! The first `k` rows: only candidates are kept.
//!
//! Once `k` rows were seen, a row whose key is not below that of the worst of them is dropped
//! before anything of it is gathered. Candidates are cut back to `k` when there are twice as
//! many, and the batches they lie in are rewritten when most of their rows are dead, so memory
//! is proportional to `k`. If even that does not fit, the sort goes on with runs on disk.

use super::keys::Keys;
use super::runs::{Entry, Settings, Sorted, order};
use datafusion_common::{Result, ScalarValue};
use datafusion_execution::memory_pool::MemoryReservation;
use planish_batch::{Batch, RetainedBytes, RowRef, Selection, gather_rows};
use std::sync::Arc;

/// Rows that may be kept whatever `k` is, so that small sets are not rewritten all the time.
const SLACK: usize = 4096;

pub(super) struct TopK<'a, K: Keys> {
    settings: &'a Settings,
    k: usize,
    batches: Vec<Batch>,
    keys: Vec<K>,
    candidates: Vec<Entry<K>>,
    /// The worst of the first `k`, once there are as many. It stays among the candidates.
    threshold: Option<Entry<K>>,
    /// Rows of `batches`.
    kept_rows: usize,
    retained: RetainedBytes,
    reservation: MemoryReservation,
}

impl<'a, K: Keys> TopK<'a, K> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        TopK {
            settings,
            k: settings.fetch,
            batches: vec![],
            keys: vec![],
            candidates: vec![],
            threshold: None,
            kept_rows: 0,
            retained: RetainedBytes::default(),
            reservation: settings.ctx.reservation("SortExec", true),
        }
    }

    /// Takes in a batch. False: memory is short although only `k` rows are kept; the set still
    /// holds all it needs, but is to be continued elsewhere.
    pub(super) fn push(&mut self, batch: &Batch) -> Result<bool> {
        let keys = K::encode(&self.settings.encoder, batch)?;
        let chunk = self.batches.len() as u32;
        // Pushed for the comparisons; replaced by those of the chosen rows below.
        self.keys.push(keys);
        let rows = self.rows_below_threshold(batch.num_rows(), chunk);
        let Some(all_keys) = self.keys.pop() else { return Ok(true) };
        if rows.is_empty() {
            return Ok(true);
        }
        let items: Vec<K::Item> = rows.iter().map(|&row| all_keys.item(row as usize)).collect();
        let (kept, keys) = if rows.len() == batch.num_rows() {
            (batch.compact()?, all_keys.for_ties())
        } else {
            let refs: Vec<RowRef> = rows.iter().map(|&row| RowRef::new(0, row)).collect();
            let keys = K::gather(&self.settings.encoder, &[all_keys], &refs)?;
            (batch.select(&Arc::new(Selection::rows(rows))).compact()?, keys)
        };
        let entries = items.into_iter().enumerate();
        self.candidates.extend(entries.map(|(r, item)| (item, RowRef::new(chunk, r as u32))));
        let mut fits = self.keep(kept, keys)?;
        if self.candidates.len() >= 2 * self.k + SLACK.min(self.k * 4) {
            self.prune();
            self.publish()?;
        }
        if self.kept_rows > 4 * self.k + SLACK {
            fits = self.rewrite()?;
        }
        Ok(fits)
    }

    /// The rows of the newest batch that may be among the first `k`.
    fn rows_below_threshold(&self, rows: usize, chunk: u32) -> Vec<u32> {
        let rows = 0..rows as u32;
        let Some(worst) = &self.threshold else { return rows.collect() };
        let newest = &self.keys[chunk as usize];
        rows.filter(|&row| {
            let item = newest.item(row as usize);
            item < worst.0
                || (item == worst.0
                    && order(&self.keys, &(item, RowRef::new(chunk, row)), worst).is_lt())
        })
        .collect()
    }

    /// As [`Self::push`] for the rows chosen.
    fn keep(&mut self, batch: Batch, keys: K) -> Result<bool> {
        let bytes =
            self.retained.add(&batch) + keys.size() + 2 * batch.num_rows() * size_of::<Entry<K>>();
        self.kept_rows += batch.num_rows();
        self.batches.push(batch);
        self.keys.push(keys);
        if self.reservation.try_grow(bytes).is_err() {
            return self.rewrite();
        }
        Ok(true)
    }

    /// Cuts the candidates back to the best `k`, the worst of them last, and sets the threshold.
    fn prune(&mut self) {
        if self.candidates.len() < self.k {
            return;
        }
        let keys = &self.keys;
        let (_, worst, _) =
            self.candidates.select_nth_unstable_by(self.k - 1, |a, b| order(keys, a, b));
        self.threshold = Some(*worst);
        self.candidates.truncate(self.k);
    }

    /// Tells whoever skips rows below how far behind a row must be to be of no use.
    fn publish(&self) -> Result<()> {
        let (Some(filter), Some((_, row))) = (&self.settings.dynamic, &self.threshold) else {
            return Ok(());
        };
        let key = &self.settings.keys[0];
        let worst = self.batches[row.chunk() as usize].slice(row.row() as usize, 1);
        let value = key.expr.evaluate_array(&worst)?;
        filter.tighten(&ScalarValue::try_from_array(&value, 0)?, key.options);
        Ok(())
    }

    /// Rewrites the kept batches as one that holds the candidates alone. False: it does not fit.
    fn rewrite(&mut self) -> Result<bool> {
        self.prune();
        let refs: Vec<RowRef> = self.candidates.iter().map(|(_, row)| *row).collect();
        let kept = gather_rows(&self.settings.schema, &self.batches, &refs)?;
        let kept = Batch::from_record_batch(&kept.to_record_batch()?).compact()?;
        let keys = K::gather(&self.settings.encoder, &self.keys, &refs)?;
        for (row, candidate) in self.candidates.iter_mut().enumerate() {
            candidate.1 = RowRef::new(0, row as u32);
        }
        if self.threshold.is_some() {
            self.threshold = self.candidates.last().copied();
        }
        self.retained.clear();
        let bytes = self.retained.add(&kept) + keys.size() + 2 * refs.len() * size_of::<Entry<K>>();
        self.kept_rows = kept.num_rows();
        self.batches = vec![kept];
        self.keys = vec![keys];
        Ok(self.reservation.try_resize(bytes).is_ok())
    }

    pub(super) fn finish(mut self) -> Sorted<K> {
        self.prune();
        let keys = &self.keys;
        self.candidates.sort_unstable_by(|a, b| order(keys, a, b));
        Sorted {
            batches: self.batches,
            keys: self.keys,
            runs: vec![self.candidates],
            spilled: vec![],
            reservation: self.reservation,
        }
    }
}
