//! [`RowKeys`]: groups by rows in Arrow's row format, for keys of any type.

use super::KeyTable;
use super::slots::{SlotTable, hash_bytes};
use crate::floats::normalize_floats;
use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::Result;
use planish_batch::Column;
use std::sync::Arc;

/// Groups by encoded rows, each stored once in one arena.
#[derive(Debug)]
pub(super) struct RowKeys {
    converter: RowConverter,
    types: Vec<DataType>,
    slots: SlotTable,
    arena: Vec<u8>,
    /// Where each group's row ends in the arena, after a leading zero.
    ends: Vec<usize>,
    scratch: Rows,
}

impl RowKeys {
    pub(super) fn try_new(types: Vec<DataType>) -> Result<Self> {
        let converter =
            RowConverter::new(types.iter().map(|t| SortField::new(t.clone())).collect())?;
        let scratch = converter.empty_rows(0, 0);
        Ok(RowKeys {
            converter,
            types,
            slots: SlotTable::new(),
            arena: vec![],
            ends: vec![0],
            scratch,
        })
    }
}

impl KeyTable for RowKeys {
    fn intern(&mut self, columns: &[Column], _rows: usize, groups: &mut Vec<usize>) -> Result<()> {
        let arrays = columns
            .iter()
            .map(|column| normalize_floats(&column.values()?))
            .collect::<Result<Vec<_>>>()?;
        self.scratch.clear();
        self.converter.append(&mut self.scratch, &arrays)?;
        groups.reserve(self.scratch.num_rows());
        for row in &self.scratch {
            let bytes = row.data();
            let hash = hash_bytes(bytes);
            self.slots.reserve(1);
            let (ends, arena) = (&self.ends, &self.arena);
            let found = self.slots.find(hash, |i| &arena[ends[i]..ends[i + 1]] == bytes);
            groups.push(match found {
                Ok(group) => group,
                Err(vacant) => {
                    let group = self.ends.len() - 1;
                    self.slots.fill(vacant, hash, group);
                    self.arena.extend_from_slice(bytes);
                    self.ends.push(self.arena.len());
                    group
                }
            });
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn size(&self) -> usize {
        self.slots.size()
            + self.arena.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.converter.size()
            + self.scratch.size()
    }

    fn emit(&mut self) -> Result<Vec<ArrayRef>> {
        let arena = std::mem::take(&mut self.arena);
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        self.slots = SlotTable::new();
        self.scratch = self.converter.empty_rows(0, 0);
        let parser = self.converter.parser();
        let rows = ends.windows(2).map(|ends| parser.parse(&arena[ends[0]..ends[1]]));
        let arrays = self.converter.convert_rows(rows)?;
        // The row format does not keep dictionaries.
        arrays
            .iter()
            .zip(&self.types)
            .map(|(array, declared)| {
                let same = array.data_type() == declared;
                if same { Ok(Arc::clone(array)) } else { Ok(cast(array, declared)?) }
            })
            .collect()
    }
}
