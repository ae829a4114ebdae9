//! [`GroupKeys`]: from rows of key columns to group numbers, and back.
//!
//! Keys of which every column has a fixed width, or can be interned to one, are packed into one
//! to eight words and compared as such; everything else goes through Arrow's row format. Equal
//! keys share a group: NULL equals NULL, `-0.0` equals `0.0`, NaN equals NaN.

mod bits;
mod codec;
mod interner;
mod known;
mod packed;
mod rows;
mod slots;

pub(super) use crate::floats::{has_floats, normalize_floats};
use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;
use codec::KeyColumn;
use datafusion_common::Result;
use packed::PackedKeys;
use planish_batch::Column;
use rows::RowKeys;
use std::fmt::Debug;

/// The groups seen so far, numbered from zero.
#[derive(Debug)]
pub(super) struct GroupKeys(Box<dyn KeyTable>);

/// What the kinds of tables have in common.
trait KeyTable: Debug + Send + Sync {
    fn intern(&mut self, columns: &[Column], rows: usize, groups: &mut Vec<usize>) -> Result<()>;
    fn len(&self) -> usize;
    fn size(&self) -> usize;
    fn emit(&mut self) -> Result<Vec<ArrayRef>>;
}

impl GroupKeys {
    /// No groups yet, of keys with these fields.
    ///
    /// # Errors
    /// When keys of such a type cannot be compared.
    pub(super) fn try_new(fields: &[FieldRef]) -> Result<Self> {
        let columns: Option<Vec<KeyColumn>> =
            fields.iter().map(|f| KeyColumn::for_type(f.data_type())).collect();
        let nullable: Vec<bool> = fields.iter().map(|f| f.is_nullable()).collect();
        if let Some(table) = columns.and_then(|columns| packed_table(columns, &nullable)) {
            return Ok(GroupKeys(table));
        }
        let types = fields.iter().map(|f| f.data_type().clone()).collect();
        Ok(GroupKeys(Box::new(RowKeys::try_new(types)?)))
    }

    /// Appends the group of each of the `rows` rows of `columns` to `groups`.
    ///
    /// # Errors
    /// When a column cannot be gathered, or a limit of the table is met.
    pub(super) fn intern(
        &mut self,
        columns: &[Column],
        rows: usize,
        groups: &mut Vec<usize>,
    ) -> Result<()> {
        self.0.intern(columns, rows, groups)
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.0.size()
    }

    /// The key columns of all groups, in the order of their numbers; none is left.
    ///
    /// # Errors
    /// When the keys do not fit into arrays of the declared types.
    pub(super) fn emit(&mut self) -> Result<Vec<ArrayRef>> {
        self.0.emit()
    }
}

/// A table whose keys have as few words as the columns need; `None` when eight are too few.
fn packed_table(columns: Vec<KeyColumn>, nullable: &[bool]) -> Option<Box<dyn KeyTable>> {
    let columns = match PackedKeys::<u64>::try_new(columns, nullable) {
        Ok(table) => return Some(Box::new(table)),
        Err(columns) => columns,
    };
    let columns = match PackedKeys::<u128>::try_new(columns, nullable) {
        Ok(table) => return Some(Box::new(table)),
        Err(columns) => columns,
    };
    let columns = match PackedKeys::<[u64; 4]>::try_new(columns, nullable) {
        Ok(table) => return Some(Box::new(table)),
        Err(columns) => columns,
    };
    let table = PackedKeys::<[u64; 8]>::try_new(columns, nullable).ok()?;
    Some(Box::new(table))
}

#[cfg(test)]
mod tests;
