//! `NOT IN`: the null-aware anti join.
//!
//! A build row `l` stays unless some probe row of its set makes `l.k <> r.k` false or unknown.
//! Its set are the probe rows that satisfy the correlation: further key pairs and the residual.
//! So a match is a probe row of the set with an equal key, or a NULL on either side; a build row
//! whose set is empty stays, NULL or not. Three cases:
//!
//! - one key, no residual: every set is the whole probe side, two flags say all there is to know;
//! - one key and a residual: equal keys come from the table, then NULL build rows are paired with
//!   all probe rows and all build rows with NULL probe rows;
//! - further keys: the table is keyed on those, and the compared key becomes a condition.

use crate::floats::normalize_floats;
use crate::operators::hash_join::build::HashBuild;
use crate::operators::hash_join::keys::{KeyBatch, KeyEncoder, null_rows};
use crate::operators::join_filter::Residual;
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::PairSource;
use crate::operators::join_state::NO_ROW;
use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, take};
use datafusion_common::{Result, internal_err};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Probes a build side for `NOT IN`.
pub(crate) struct NullAwareProbe {
    build: Arc<HashBuild>,
    keys: Vec<PhysicalExprRef>,
    encoder: KeyEncoder,
    /// With further keys: the compared key over the probe side.
    in_key: Option<PhysicalExprRef>,
    residual: Option<Residual>,
    current: Option<Current>,
}

struct Current {
    keys: KeyBatch,
    heads: Vec<u32>,
    in_values: Option<ArrayRef>,
    residual_side: Option<Batch>,
    row: usize,
    chain: Option<u32>,
    /// Products of build rows and probe rows that are still to be looked at.
    products: Vec<Product>,
}

/// All pairs of some build rows and some probe rows.
struct Product {
    build: Rows,
    probe: Vec<u32>,
    at: usize,
}

/// Some build rows.
enum Rows {
    All(usize),
    Nulls,
}

impl NullAwareProbe {
    /// A probe by the bound expressions `keys`; with `in_key`, they are the correlation's alone.
    pub(crate) fn new(
        build: Arc<HashBuild>,
        keys: Vec<PhysicalExprRef>,
        encoder: KeyEncoder,
        in_key: Option<PhysicalExprRef>,
        residual: Option<Residual>,
    ) -> Self {
        NullAwareProbe { build, keys, encoder, in_key, residual, current: None }
    }

    /// Whether every build row's set is the whole probe side.
    fn uncorrelated(&self) -> bool {
        self.in_key.is_none() && self.residual.is_none()
    }
}

impl PairSource for NullAwareProbe {
    fn start(&mut self, probe: &Batch, _: &mut JoinOutput) -> Result<()> {
        let keys = self.encoder.encode(&self.keys, probe)?;
        let heads = self.build.table.heads(&keys);
        let in_values = match &self.in_key {
            Some(key) => Some(normalize_floats(&key.evaluate_array(probe)?)?),
            None => None,
        };
        let residual_side =
            self.residual.as_ref().map(|residual| residual.probe_side(probe)).transpose()?;
        let mut products = vec![];
        if self.uncorrelated() {
            self.build.probe_seen.store(true, Ordering::Relaxed);
            if keys.nulls.is_some() {
                self.build.probe_null_seen.store(true, Ordering::Relaxed);
            }
        } else if self.in_key.is_none() {
            let all = (0..probe.num_rows() as u32).collect();
            products.push(Product { build: Rows::Nulls, probe: all, at: 0 });
            let nulls = null_rows(&keys).set_indices_u32().collect();
            products.push(Product { build: Rows::All(self.build.rows.len()), probe: nulls, at: 0 });
        }
        self.current =
            Some(Current { keys, heads, in_values, residual_side, row: 0, chain: None, products });
        Ok(())
    }

    fn step(&mut self, out: &mut JoinOutput) -> Result<bool> {
        let Some(current) = &mut self.current else {
            return internal_err!("a probe step without a batch");
        };
        let limit = out.target();
        let (mut build, mut probe) = (vec![], vec![]);
        let mut done = current.chain_pairs(&self.build, out, limit, &mut build, &mut probe);
        if done && let Some(product) = current.products.last_mut() {
            if product.pairs(&self.build, out, limit - build.len(), &mut build, &mut probe) {
                current.products.pop();
            }
            done = current.products.is_empty();
        }
        if let Some(values) = &current.in_values {
            retain_not_different(&self.build, values, &mut build, &mut probe)?;
        }
        if let (Some(residual), Some(side)) = (&self.residual, &current.residual_side) {
            residual.retain(side, &mut build, &mut probe)?;
        }
        out.pairs(&build, &probe, 0);
        Ok(done)
    }

    fn wants_more(&self) -> bool {
        // A NULL in the list: no row is certain not to be in it.
        !self.build.probe_null_seen.load(Ordering::Relaxed)
    }

    fn before_build_rows(&mut self) -> bool {
        if self.build.probe_null_seen.load(Ordering::Relaxed) {
            return false;
        }
        if self.build.probe_seen.load(Ordering::Relaxed)
            && let Some(matched) = self.build.rows.matched()
        {
            self.build.null_rows.iter().for_each(|&row| matched.set(row));
        }
        true
    }
}

impl Current {
    /// As the plain probe's: pairs of equal table keys, without those settled.
    fn chain_pairs(
        &mut self,
        side: &HashBuild,
        out: &JoinOutput,
        limit: usize,
        build: &mut Vec<u32>,
        probe: &mut Vec<u32>,
    ) -> bool {
        while self.row < self.heads.len() {
            let row = self.row as u32;
            let mut at = self.chain.take().unwrap_or(self.heads[self.row]);
            while at != NO_ROW {
                if build.len() == limit {
                    self.chain = Some(at);
                    return false;
                }
                if side.table.verifies(at, &self.keys, row) && !out.is_settled(at, row) {
                    build.push(at);
                    probe.push(row);
                }
                at = side.table.next(at);
            }
            self.row += 1;
        }
        true
    }
}

impl Product {
    /// Up to `limit` pairs that are not settled; true when there are no more.
    fn pairs(
        &mut self,
        side: &HashBuild,
        out: &JoinOutput,
        limit: usize,
        build: &mut Vec<u32>,
        probe: &mut Vec<u32>,
    ) -> bool {
        let rows = match self.build {
            Rows::All(rows) => rows,
            Rows::Nulls => side.null_rows.len(),
        };
        let total = rows * self.probe.len();
        let until = build.len() + limit;
        // Settled pairs are skipped, yet a step ends somewhere.
        let last = total.min(self.at.saturating_add(limit.saturating_mul(16)));
        while self.at < last && build.len() < until {
            let row = match self.build {
                Rows::All(_) => (self.at % rows) as u32,
                Rows::Nulls => side.null_rows[self.at % rows],
            };
            let of_probe = self.probe[self.at / rows];
            if !out.is_settled(row, of_probe) {
                build.push(row);
                probe.push(of_probe);
            }
            self.at += 1;
        }
        self.at == total
    }
}

/// Keeps the pairs whose compared keys are not certainly different.
fn retain_not_different(
    side: &HashBuild,
    probe_values: &ArrayRef,
    build: &mut Vec<u32>,
    probe: &mut Vec<u32>,
) -> Result<()> {
    let Some(build_values) = &side.in_values else { return Ok(()) };
    let left = take(build_values, &UInt32Array::from(build.clone()), None)?;
    let right = take(probe_values, &UInt32Array::from(probe.clone()), None)?;
    let right =
        if right.data_type() == left.data_type() { right } else { cast(&right, left.data_type())? };
    let equal = cmp::eq(&left, &right)?;
    let keep = |i: usize| equal.is_null(i) || equal.value(i);
    let (mut b, mut p) = (0.., 0..);
    build.retain(|_| b.next().is_some_and(keep));
    probe.retain(|_| p.next().is_some_and(keep));
    Ok(())
}
