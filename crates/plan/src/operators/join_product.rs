//! All pairs of build rows and probe rows, in blocks: what nested-loop and cross joins look at.

use crate::context::TaskContext;
use crate::execution_plan::PlanRef;
use crate::operators::join_filter::Residual;
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::PairSource;
use crate::operators::join_schema::emits_build_rows;
use crate::operators::join_state::{BuildRows, Collector, MatchedRows, grow};
use datafusion_common::{JoinType, Result, ScalarValue, internal_err};
use planish_batch::{Batch, Column};
use std::sync::Arc;

/// Build rows from which on a condition is evaluated for one probe row at a time, whose values
/// are then constants, beside a slice of the build side.
const CONSTANT_PROBE_ROWS: usize = 512;

/// Blocks of pairs that may be looked at, without a match, before the runtime gets a turn.
const BLOCKS_PER_STEP: usize = 16;

/// Collects the build side of an operator called `name` from all partitions of `left`.
/// `read_columns` are read for every probe row, so they are gathered here, once.
pub(crate) async fn collect_build(
    collector: Collector,
    join_type: JoinType,
    probes: usize,
    read_columns: Vec<usize>,
    ctx: Arc<TaskContext>,
) -> Result<BuildRows> {
    let left: &PlanRef = &collector.left;
    let partitions = 0..left.partition_count();
    let collected = collector.collect(partitions, &ctx, |_| Ok(((), 0))).await?;
    let batches: Vec<Batch> = collected.into_iter().map(|(batch, ())| batch).collect();
    let total: usize = batches.iter().map(Batch::num_rows).sum();
    let tracks = emits_build_rows(join_type);
    let marks = if tracks { MatchedRows::bytes_for(total) } else { 0 };
    grow(&collector.reservation, collector.name, marks + total * 8)?;
    let reservation = Arc::clone(&collector.reservation);
    let build = BuildRows::try_new(&left.schema(), &batches, probes, tracks, reservation)?;
    for column in read_columns {
        let values = build.rows.column(column)?;
        grow(&collector.reservation, collector.name, values.get_array_memory_size())?;
    }
    let metrics = ctx.metrics().node(collector.node);
    metrics.add("build_rows", total);
    metrics.add("build_bytes", collector.reservation.size());
    Ok(build)
}

/// Pairs every probe row with every build row; a condition decides which match.
pub(crate) struct ProductProbe {
    build: Arc<BuildRows>,
    residual: Option<Residual>,
    current: Option<Current>,
}

/// The probe batch at hand, and the next pair.
struct Current {
    rows: usize,
    residual_side: Option<Batch>,
    row: usize,
    at: usize,
}

impl ProductProbe {
    /// All pairs with the rows of `build` for which `residual` is true.
    pub(crate) fn new(build: Arc<BuildRows>, residual: Option<Residual>) -> Self {
        ProductProbe { build, residual, current: None }
    }
}

impl PairSource for ProductProbe {
    fn start(&mut self, probe: &Batch, _: &mut JoinOutput) -> Result<()> {
        let residual_side =
            self.residual.as_ref().map(|residual| residual.probe_side(probe)).transpose()?;
        self.current = Some(Current { rows: probe.num_rows(), residual_side, row: 0, at: 0 });
        Ok(())
    }

    fn step(&mut self, out: &mut JoinOutput) -> Result<bool> {
        let Some(current) = &mut self.current else {
            return internal_err!("a probe step without a batch");
        };
        let build_len = self.build.len();
        let limit = out.target();
        let (mut build, mut probe) = (vec![], vec![]);
        let done = match (&self.residual, &current.residual_side) {
            (Some(residual), Some(side)) if build_len >= CONSTANT_PROBE_ROWS => {
                let side = side.clone();
                current.constant_rows(residual, &side, out, (&mut build, &mut probe))?
            }
            (Some(residual), Some(side)) => {
                let side = side.clone();
                let done = current.block(build_len, limit, Some(out), &mut build, &mut probe);
                residual.retain(&side, &mut build, &mut probe)?;
                done
            }
            _ => match out.join_type() {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                    out.set_hits(std::iter::repeat_n(build_len > 0, current.rows));
                    true
                }
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    if let Some(matched) = self.build.matched() {
                        (0..build_len as u32).for_each(|row| matched.set(row));
                    }
                    true
                }
                _ => current.block(build_len, limit, None, &mut build, &mut probe),
            },
        };
        let decided = if done { current.rows } else { current.row };
        out.pairs(&build, &probe, decided);
        Ok(done)
    }
}

impl Current {
    /// The next block of at most `limit` pairs, without those that `out` knows to be settled;
    /// true when it was the last.
    fn block(
        &mut self,
        build_len: usize,
        limit: usize,
        out: Option<&JoinOutput>,
        build: &mut Vec<u32>,
        probe: &mut Vec<u32>,
    ) -> bool {
        let mut looked_at = 0;
        while self.row < self.rows && looked_at < limit * BLOCKS_PER_STEP && build.len() < limit {
            let until = build_len.min(self.at + limit - build.len());
            let (block, row) = (self.at as u32..until as u32, self.row as u32);
            looked_at += block.len().max(1);
            match out {
                Some(out) if out.settles_pairs() => {
                    build.extend(block.filter(|&at| !out.is_settled(at, row)));
                }
                _ => build.extend(block),
            }
            probe.resize(build.len(), row);
            self.at = until;
            if until == build_len {
                self.row += 1;
                self.at = 0;
            }
        }
        self.row == self.rows
    }

    /// As [`Self::block`] with the condition applied, one probe row after the other.
    fn constant_rows(
        &mut self,
        residual: &Residual,
        side: &Batch,
        out: &JoinOutput,
        (build, probe): (&mut Vec<u32>, &mut Vec<u32>),
    ) -> Result<bool> {
        let limit = out.target();
        let build_len = residual.build_side().num_rows();
        let mut looked_at = 0;
        while self.row < self.rows {
            let row = self.row as u32;
            let values = (0..side.num_columns())
                .map(|i| ScalarValue::try_from_array(&side.column(i)?, self.row))
                .collect::<Result<Vec<_>>>()?;
            while self.at < build_len {
                if build.len() >= limit || looked_at >= limit * BLOCKS_PER_STEP {
                    return Ok(false);
                }
                let len = limit.min(build_len - self.at);
                let left = residual.build_side().slice(self.at, len);
                let columns = values.iter().map(|v| Column::constant(v.clone(), len)).collect();
                let right = Batch::try_new(Arc::clone(side.schema()), columns, len)?;
                let kept = residual.evaluate(&left, &right)?;
                build.extend(kept.set_indices_u32().map(|i| self.at as u32 + i));
                probe.resize(build.len(), row);
                looked_at += len;
                self.at += len;
                if out.settles_probe_rows() && probe.last() == Some(&row) {
                    self.at = build_len;
                }
            }
            self.row += 1;
            self.at = 0;
        }
        Ok(true)
    }
}
