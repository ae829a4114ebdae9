//! Row indices into one or many base arrays.

use arrow::buffer::ScalarBuffer;

/// The index that stands for "no row": the value is NULL.
pub const NO_ROW: u32 = u32::MAX;

/// A row of a chunked base: which chunk, and which row of it. [`RowRef::NONE`] is "no row".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RowRef(u64);

impl RowRef {
    /// "No row": every column reads NULL.
    pub const NONE: RowRef = RowRef(u64::MAX);

    /// Row `row` of chunk `chunk`.
    #[inline]
    pub fn new(chunk: u32, row: u32) -> Self {
        RowRef((u64::from(chunk) << 32) | u64::from(row))
    }

    /// The chunk's index.
    #[inline]
    pub fn chunk(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The row within its chunk.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 as u32
    }

    /// True for [`RowRef::NONE`].
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == u64::MAX
    }
}

/// Row indices, shared by all columns that came through the same step.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Rows of a single base array; [`NO_ROW`] reads NULL when `nullable`.
    One {
        /// Row indices.
        rows: ScalarBuffer<u32>,
        /// Whether [`NO_ROW`] may occur.
        nullable: bool,
    },
    /// Rows of a chunked base; [`RowRef::NONE`] reads NULL.
    Many(std::sync::Arc<[RowRef]>, std::ops::Range<usize>),
}

impl Selection {
    /// Rows of one base, all present.
    pub fn rows(rows: Vec<u32>) -> Self {
        Selection::One { rows: rows.into(), nullable: false }
    }

    /// Rows of one base, where [`NO_ROW`] may occur.
    pub fn nullable_rows(rows: Vec<u32>) -> Self {
        let nullable = rows.contains(&NO_ROW);
        Selection::One { rows: rows.into(), nullable }
    }

    /// Rows of a chunked base.
    pub fn refs(refs: Vec<RowRef>) -> Self {
        let len = refs.len();
        Selection::Many(refs.into(), 0..len)
    }

    /// Number of rows selected.
    pub fn len(&self) -> usize {
        match self {
            Selection::One { rows, .. } => rows.len(),
            Selection::Many(_, range) => range.len(),
        }
    }

    /// True when no row is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `offset..offset + len` of this selection, without a copy.
    pub fn slice(&self, offset: usize, len: usize) -> Self {
        match self {
            Selection::One { rows, nullable } => {
                Selection::One { rows: rows.slice(offset, len), nullable: *nullable }
            }
            Selection::Many(refs, range) => {
                let start = range.start + offset;
                Selection::Many(std::sync::Arc::clone(refs), start..start + len)
            }
        }
    }

    /// Where row `i` of this selection lies.
    #[inline]
    pub fn get(&self, i: usize) -> RowRef {
        match self {
            Selection::One { rows, .. } => match rows[i] {
                NO_ROW => RowRef::NONE,
                row => RowRef::new(0, row),
            },
            Selection::Many(refs, range) => refs[range.start + i],
        }
    }

    /// The references of a [`Selection::Many`].
    pub(crate) fn as_refs(&self) -> Option<&[RowRef]> {
        match self {
            Selection::Many(refs, range) => Some(&refs[range.clone()]),
            Selection::One { .. } => None,
        }
    }

    /// `outer` applied to the rows of `self`: row `i` of the result is row `outer[i]` of `self`.
    pub(crate) fn compose(&self, outer: &[u32], outer_nullable: bool) -> Selection {
        match self {
            Selection::One { rows, nullable } => {
                let composed: Vec<u32> = if outer_nullable {
                    outer
                        .iter()
                        .map(|&o| if o == NO_ROW { NO_ROW } else { rows[o as usize] })
                        .collect()
                } else {
                    outer.iter().map(|&o| rows[o as usize]).collect()
                };
                Selection::One { rows: composed.into(), nullable: *nullable || outer_nullable }
            }
            Selection::Many(refs, range) => {
                let refs = &refs[range.clone()];
                Selection::refs(
                    outer
                        .iter()
                        .map(|&o| if o == NO_ROW { RowRef::NONE } else { refs[o as usize] })
                        .collect(),
                )
            }
        }
    }

    /// Bytes held by the index itself.
    pub fn size(&self) -> usize {
        match self {
            Selection::One { rows, .. } => rows.len() * 4,
            Selection::Many(refs, _) => refs.len() * 8,
        }
    }
}
