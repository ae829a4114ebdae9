//! Rows of many batches as one batch: index lists are joined, values stay where they are.

use crate::batch::Batch;
use crate::column::{BaseRows, Column};
use crate::selection::{RowRef, Selection};
use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, internal_err};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows `refs` (chunk = index into `batches`) as one batch under `schema`.
///
/// Columns whose bases are selected alike share one composed selection.
///
/// # Errors
/// An internal error when the batches' forms cannot be combined.
pub fn gather_rows(schema: &SchemaRef, batches: &[Batch], refs: &[RowRef]) -> Result<Batch> {
    if batches.is_empty() {
        if refs.iter().all(|r| r.is_none()) {
            return all_null(schema, refs.len());
        }
        return internal_err!("rows asked of no batch");
    }
    let mut shared: Vec<(Vec<Shape>, Arc<Selection>)> = Vec::new();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (i, field) in schema.fields().iter().enumerate() {
        let mut chunks: Vec<ArrayRef> = Vec::with_capacity(batches.len());
        let mut shapes = Vec::with_capacity(batches.len());
        let mut encodings_differ = false;
        // Batches that came through one join share its bases: each list is taken once.
        let mut known: HashMap<*const ArrayRef, u32> = HashMap::new();
        for batch in batches {
            let column = &batch.columns()[i];
            let (bases, rows) = column.base()?;
            let next = chunks.len() as u32;
            let first = match rows {
                BaseRows::Selected(_) => *known.entry(bases.as_ptr()).or_insert(next),
                BaseRows::All | BaseRows::First => next,
            };
            encodings_differ |=
                chunks.first().is_some_and(|first| first.data_type() != bases[0].data_type());
            shapes.push(Shape {
                first,
                rows: match rows {
                    BaseRows::All => ShapeRows::All,
                    BaseRows::First => ShapeRows::First,
                    BaseRows::Selected(selection) => ShapeRows::Selected(Arc::clone(selection)),
                },
            });
            if first == next {
                chunks.extend(bases.iter().cloned());
            }
        }
        if encodings_differ {
            (chunks, shapes) = decoded(batches, i)?;
        }
        let selection = match shared.iter().find(|(known, _)| *known == shapes) {
            Some((_, selection)) => Arc::clone(selection),
            None => {
                let selection = Arc::new(compose(&shapes, refs));
                shared.push((shapes, Arc::clone(&selection)));
                selection
            }
        };
        columns.push(Column::selected(field.data_type().clone(), chunks.into(), selection));
    }
    Batch::try_new(Arc::clone(schema), columns, refs.len())
}

/// Base arrays that do not share one encoding are decoded first.
fn decoded(batches: &[Batch], i: usize) -> Result<(Vec<ArrayRef>, Vec<Shape>)> {
    let chunks = batches.iter().map(|b| b.column(i)).collect::<Result<Vec<_>>>()?;
    let shapes =
        (0..chunks.len()).map(|c| Shape { first: c as u32, rows: ShapeRows::All }).collect();
    Ok((chunks, shapes))
}

fn all_null(schema: &SchemaRef, rows: usize) -> Result<Batch> {
    let columns = schema
        .fields()
        .iter()
        .map(|f| {
            Ok(Column::constant(datafusion_common::ScalarValue::try_new_null(f.data_type())?, rows))
        })
        .collect::<Result<Vec<_>>>()?;
    Batch::try_new(Arc::clone(schema), columns, rows)
}

/// How one batch's column sits on its bases: the number of its first base among all, and the
/// rows of those bases that it shows.
struct Shape {
    first: u32,
    rows: ShapeRows,
}

enum ShapeRows {
    All,
    First,
    Selected(Arc<Selection>),
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.first == other.first
            && match (&self.rows, &other.rows) {
                (ShapeRows::All, ShapeRows::All) | (ShapeRows::First, ShapeRows::First) => true,
                (ShapeRows::Selected(a), ShapeRows::Selected(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }
}

fn compose(shapes: &[Shape], refs: &[RowRef]) -> Selection {
    if shapes
        .iter()
        .enumerate()
        .all(|(i, s)| s.first == i as u32 && matches!(s.rows, ShapeRows::All))
    {
        return Selection::refs(refs.to_vec());
    }
    let composed = refs
        .iter()
        .map(|r| {
            if r.is_none() {
                return RowRef::NONE;
            }
            let shape = &shapes[r.chunk() as usize];
            match &shape.rows {
                ShapeRows::All => RowRef::new(shape.first, r.row()),
                ShapeRows::First => RowRef::new(shape.first, 0),
                ShapeRows::Selected(selection) => {
                    let inner = selection.get(r.row() as usize);
                    if inner.is_none() {
                        RowRef::NONE
                    } else {
                        RowRef::new(shape.first + inner.chunk(), inner.row())
                    }
                }
            }
        })
        .collect();
    Selection::refs(composed)
}

/// Collects small batches into ones of about `target` rows, keeping order.
///
/// ```
/// # use planish_batch::{Batch, BatchCoalescer};
/// # fn f(schema: arrow::datatypes::SchemaRef, small: Vec<Batch>) -> datafusion_common::Result<()> {
/// let mut coalescer = BatchCoalescer::new(schema, 8192);
/// for batch in small {
///     if let Some(full) = coalescer.push(batch)? { /* hand `full` on */ }
/// }
/// let last = coalescer.finish()?;
/// # Ok(()) }
/// ```
pub struct BatchCoalescer {
    schema: SchemaRef,
    target: usize,
    pending: Vec<Batch>,
    rows: usize,
}

impl BatchCoalescer {
    /// A coalescer that emits batches of at least `target / 2` rows.
    pub fn new(schema: SchemaRef, target: usize) -> Self {
        BatchCoalescer { schema, target, pending: Vec::new(), rows: 0 }
    }

    /// Takes a batch; returns one when enough rows are there. Empty batches vanish.
    ///
    /// # Errors
    /// As [`Batch::concat`].
    pub fn push(&mut self, batch: Batch) -> Result<Option<Batch>> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        if self.pending.is_empty() && batch.num_rows() * 2 >= self.target {
            return Ok(Some(batch));
        }
        self.rows += batch.num_rows();
        self.pending.push(batch);
        if self.rows * 2 >= self.target { self.finish() } else { Ok(None) }
    }

    /// What is left, if anything.
    ///
    /// # Errors
    /// As [`Batch::concat`].
    pub fn finish(&mut self) -> Result<Option<Batch>> {
        self.rows = 0;
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() { Ok(None) } else { Batch::concat(&self.schema, &pending).map(Some) }
    }
}
