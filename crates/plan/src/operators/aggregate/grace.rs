//! [`GraceSpill`]: groups written out by hash of their keys, so that each part can be merged on
//! its own, and parted again by other hash bits when it is still too large.

use super::spill::{SpillWriter, SpilledFile};
use crate::context::TaskContext;
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::hash_utils::{RandomState, create_hashes};
use std::sync::Arc;

const PART_BITS: u32 = 4;
const PARTS: usize = 1 << PART_BITS;
/// Spilled rows are parted by other hashes than those that spread rows over partitions.
const SEED: u64 = 0x51_7cc1_b727_220a;
/// After so many partings a part is as small as it gets: one group, or equal hashes.
pub(super) const MAX_LEVEL: u32 = 6;

/// Spill files, one per part, written to as groups are evicted.
pub(super) struct GraceSpill {
    parts: Vec<Option<SpillWriter>>,
    schema: SchemaRef,
    keys: usize,
    level: u32,
}

/// A part that waits to be merged.
pub(super) struct SpilledPart {
    pub(super) file: SpilledFile,
    /// How often its groups were parted.
    pub(super) level: u32,
}

impl GraceSpill {
    /// Parts for rows of `schema` whose first `keys` columns are the group's key.
    pub(super) fn new(schema: SchemaRef, keys: usize, level: u32) -> Self {
        GraceSpill { parts: (0..PARTS).map(|_| None).collect(), schema, keys, level }
    }

    /// Writes groups out.
    pub(super) fn write(&mut self, ctx: &TaskContext, columns: &[ArrayRef]) -> Result<()> {
        let rows = columns.first().map_or(0, |c| c.len());
        if rows == 0 {
            return Ok(());
        }
        let state = RandomState::with_seed(SEED);
        let mut hashes = vec![0u64; rows];
        create_hashes(&columns[..self.keys], &state, &mut hashes)?;
        let mut rows_of: Vec<Vec<u32>> = vec![vec![]; PARTS];
        for (row, hash) in hashes.iter().enumerate() {
            let part = (hash >> (self.level * PART_BITS)) as usize % PARTS;
            rows_of[part].push(row as u32);
        }
        for (part, rows) in self.parts.iter_mut().zip(rows_of) {
            for rows in rows.chunks(ctx.batch_size().max(1)) {
                let rows = UInt32Array::from(rows.to_vec());
                let taken = columns
                    .iter()
                    .map(|c| Ok(take(c.as_ref(), &rows, None)?))
                    .collect::<Result<Vec<_>>>()?;
                let batch = RecordBatch::try_new(Arc::clone(&self.schema), taken)?;
                let writer = match part {
                    Some(writer) => writer,
                    None => part.insert(SpillWriter::try_new(ctx, &self.schema, "AggregateExec")?),
                };
                writer.write(&batch)?;
            }
        }
        Ok(())
    }

    /// Ends all files.
    pub(super) fn finish(self) -> Result<Vec<SpilledPart>> {
        let level = self.level + 1;
        self.parts
            .into_iter()
            .flatten()
            .map(|writer| Ok(SpilledPart { file: writer.finish()?, level }))
            .collect()
    }
}
