//! The probe: keys of a batch are looked up all at once, then the chains are walked into pairs.

use crate::operators::hash_join::build::HashBuild;
use crate::operators::hash_join::keys::{KeyBatch, KeyEncoder};
use crate::operators::join_filter::Residual;
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::PairSource;
use crate::operators::join_state::NO_ROW;
use datafusion_common::{JoinType, Result, internal_err};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use std::sync::Arc;

/// Probes a [`HashBuild`] with the batches of one partition.
pub(crate) struct HashProbe {
    build: Arc<HashBuild>,
    keys: Vec<PhysicalExprRef>,
    encoder: KeyEncoder,
    residual: Option<Residual>,
    current: Option<Current>,
}

/// The probe batch at hand.
struct Current {
    keys: KeyBatch,
    heads: Vec<u32>,
    /// The columns the residual reads.
    residual_side: Option<Batch>,
    /// Where to go on: a probe row, and the build row of its chain, if begun.
    row: usize,
    chain: Option<u32>,
}

impl HashProbe {
    /// A probe by the bound expressions `keys`.
    pub(crate) fn new(
        build: Arc<HashBuild>,
        keys: Vec<PhysicalExprRef>,
        encoder: KeyEncoder,
        residual: Option<Residual>,
    ) -> Self {
        HashProbe { build, keys, encoder, residual, current: None }
    }
}

impl PairSource for HashProbe {
    fn start(&mut self, probe: &Batch, _: &mut JoinOutput) -> Result<()> {
        let keys = self.encoder.encode(&self.keys, probe)?;
        let heads = self.build.table.heads(&keys);
        let residual_side =
            self.residual.as_ref().map(|residual| residual.probe_side(probe)).transpose()?;
        self.current = Some(Current { keys, heads, residual_side, row: 0, chain: None });
        Ok(())
    }

    fn step(&mut self, out: &mut JoinOutput) -> Result<bool> {
        let Some(current) = &mut self.current else {
            return internal_err!("a probe step without a batch");
        };
        if self.residual.is_none() {
            match out.join_type() {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                    out.set_hits(current.heads.iter().map(|&head| head != NO_ROW));
                    return Ok(true);
                }
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    current.mark_chains(&self.build);
                    return Ok(true);
                }
                _ => {}
            }
        }
        let limit = out.target();
        let (mut build, mut probe) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
        let done = if self.build.table.is_unique() && self.residual.is_none() {
            current.unique_pairs(&mut build, &mut probe);
            true
        } else {
            current.chain_pairs(&self.build, out, limit, &mut build, &mut probe)
        };
        let decided = if done { current.heads.len() } else { current.row };
        if let (Some(residual), Some(side)) = (&self.residual, &current.residual_side) {
            residual.retain(side, &mut build, &mut probe)?;
        }
        out.pairs(&build, &probe, decided);
        Ok(done)
    }
}

impl Current {
    /// All pairs, when no key has two build rows: at most one per probe row.
    fn unique_pairs(&mut self, build: &mut Vec<u32>, probe: &mut Vec<u32>) {
        for (row, &head) in self.heads.iter().enumerate() {
            if head != NO_ROW {
                build.push(head);
                probe.push(row as u32);
            }
        }
    }

    /// Up to `limit` pairs, from where the last call stopped; true when there are no more.
    fn chain_pairs(
        &mut self,
        side: &HashBuild,
        out: &JoinOutput,
        limit: usize,
        build: &mut Vec<u32>,
        probe: &mut Vec<u32>,
    ) -> bool {
        let verify = side.table.needs_verification();
        // Pairs that decide nothing any more need no residual.
        let skip_settled = self.residual_side.is_some();
        while self.row < self.heads.len() {
            let row = self.row as u32;
            let mut at = self.chain.take().unwrap_or(self.heads[self.row]);
            while at != NO_ROW {
                if build.len() == limit {
                    self.chain = Some(at);
                    return false;
                }
                let matches = !verify || side.table.verifies(at, &self.keys, row);
                if matches && !(skip_settled && out.is_settled(at, row)) {
                    build.push(at);
                    probe.push(row);
                }
                at = side.table.next(at);
            }
            self.row += 1;
        }
        true
    }

    /// Marks all build rows that match; a chain whose first match is marked was walked before.
    fn mark_chains(&self, side: &HashBuild) {
        let Some(matched) = side.rows.matched() else { return };
        for (row, &head) in self.heads.iter().enumerate() {
            let mut at = head;
            if at != NO_ROW && matched.get(at) {
                continue;
            }
            while at != NO_ROW {
                if side.table.verifies(at, &self.keys, row as u32) {
                    matched.set(at);
                }
                at = side.table.next(at);
            }
        }
    }
}
