//! [`Batch`]: a schema, a number of rows, and columns.

use crate::coalesce::gather_rows;
use crate::column::{Column, Form};
use crate::selection::{NO_ROW, Selection};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion_common::{Result, internal_err};
use std::collections::HashSet;
use std::sync::Arc;

/// A set of equally long columns. Cloning is cheap; values move only when they are read.
#[derive(Clone, Debug)]
pub struct Batch {
    schema: SchemaRef,
    columns: Arc<[Column]>,
    num_rows: usize,
}

impl Batch {
    /// A batch of columns in any form.
    ///
    /// # Errors
    /// An internal error when a column's length, or the number of columns, does not fit.
    pub fn try_new(schema: SchemaRef, columns: Vec<Column>, num_rows: usize) -> Result<Self> {
        if columns.len() != schema.fields().len() {
            return internal_err!("{} columns for {} fields", columns.len(), schema.fields().len());
        }
        for (column, field) in columns.iter().zip(schema.fields()) {
            if column.len() != num_rows {
                return internal_err!(
                    "column {} has {} rows, not {num_rows}",
                    field.name(),
                    column.len()
                );
            }
            debug_assert_eq!(&column.data_type(), field.data_type(), "column {}", field.name());
        }
        Ok(Batch { schema, columns: columns.into(), num_rows })
    }

    /// A batch of flat arrays, which must have the types of `schema`.
    ///
    /// # Errors
    /// An internal error when lengths, types or the number of columns do not fit.
    pub fn from_arrays(schema: SchemaRef, arrays: Vec<ArrayRef>, num_rows: usize) -> Result<Self> {
        for (array, field) in arrays.iter().zip(schema.fields()) {
            if array.data_type() != field.data_type() {
                return internal_err!(
                    "column {} is declared {}, its array is {}",
                    field.name(),
                    field.data_type(),
                    array.data_type()
                );
            }
        }
        Batch::try_new(schema, arrays.into_iter().map(Column::flat).collect(), num_rows)
    }

    /// A batch over the arrays of a record batch, without a copy.
    pub fn from_record_batch(batch: &RecordBatch) -> Self {
        let columns = batch.columns().iter().map(|c| Column::flat(Arc::clone(c))).collect();
        Batch { schema: batch.schema(), columns, num_rows: batch.num_rows() }
    }

    /// A batch without rows.
    pub fn empty(schema: SchemaRef) -> Self {
        let columns = schema
            .fields()
            .iter()
            .map(|f| Column::flat(arrow::array::new_empty_array(f.data_type())))
            .collect();
        Batch { schema, columns, num_rows: 0 }
    }

    /// All columns, gathered: the form for results, UDFs and spill files.
    ///
    /// # Errors
    /// Fails when a column cannot be gathered.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let arrays = (0..self.num_columns()).map(|i| self.column(i)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// The values of column `i` in its declared type; gathered at the first call and kept.
    ///
    /// # Errors
    /// An internal error when `i` is out of bounds or the column cannot be gathered.
    pub fn column(&self, i: usize) -> Result<ArrayRef> {
        match self.columns.get(i) {
            Some(column) => column.values(),
            None => internal_err!("column {i} of a batch of {}", self.columns.len()),
        }
    }

    /// The columns, in whatever form they are.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns at `indices` (any order, repeats allowed), under `schema`.
    ///
    /// # Errors
    /// An internal error when an index is out of bounds.
    pub fn project(&self, indices: &[usize], schema: SchemaRef) -> Result<Batch> {
        let columns = indices
            .iter()
            .map(|&i| match self.columns.get(i) {
                Some(column) => Ok(column.clone()),
                None => internal_err!("column {i} of a batch of {}", self.columns.len()),
            })
            .collect::<Result<Vec<_>>>()?;
        Batch::try_new(schema, columns, self.num_rows)
    }

    /// The same columns under another schema of the same types.
    pub fn with_schema(&self, schema: SchemaRef) -> Batch {
        debug_assert_eq!(schema.fields().len(), self.columns.len());
        Batch { schema, columns: Arc::clone(&self.columns), num_rows: self.num_rows }
    }

    /// Rows `offset..offset + len`; nothing moves.
    pub fn slice(&self, offset: usize, len: usize) -> Batch {
        if offset == 0 && len == self.num_rows {
            return self.clone();
        }
        let columns = self.columns.iter().map(|c| c.slice(offset, len)).collect();
        Batch { schema: Arc::clone(&self.schema), columns, num_rows: len }
    }

    /// The rows where `mask` is true (NULL counts as false); nothing moves.
    pub fn filter(&self, mask: &BooleanArray) -> Batch {
        debug_assert_eq!(mask.len(), self.num_rows);
        let kept = mask.true_count();
        if kept == self.num_rows {
            return self.clone();
        }
        let bits = match mask.nulls() {
            Some(nulls) if nulls.null_count() > 0 => mask.values() & nulls.inner(),
            _ => mask.values().clone(),
        };
        let mut rows = Vec::with_capacity(kept);
        rows.extend(bits.set_indices_u32());
        self.select(&Arc::new(Selection::rows(rows)))
    }

    /// The rows of `rows`, a [`Selection::One`] over this batch; nothing moves. Selections that
    /// columns already carry are composed once for all columns that share them.
    pub fn select(&self, rows: &Arc<Selection>) -> Batch {
        let Selection::One { rows: outer, nullable } = rows.as_ref() else {
            debug_assert!(false, "a batch is one chunk");
            return self.clone();
        };
        let mut composed: Vec<(*const Selection, Arc<Selection>)> = Vec::new();
        let columns = self
            .columns
            .iter()
            .map(|column| match column.form() {
                Form::Constant(value) if !nullable => Column::constant(value.clone(), outer.len()),
                Form::Constant(value) => {
                    let rows: Vec<u32> =
                        outer.iter().map(|&o| if o == NO_ROW { NO_ROW } else { 0 }).collect();
                    let one = value
                        .to_array_of_size(1)
                        .unwrap_or_else(|_| arrow::array::new_null_array(&value.data_type(), 1));
                    Column::selected(
                        value.data_type(),
                        Arc::new([one]),
                        Arc::new(Selection::nullable_rows(rows)),
                    )
                }
                Form::Flat(array) => Column::selected(
                    array.data_type().clone(),
                    Arc::new([Arc::clone(array)]),
                    Arc::clone(rows),
                ),
                Form::Encoded(array) => Column::selected(
                    column.data_type(),
                    Arc::new([Arc::clone(array)]),
                    Arc::clone(rows),
                ),
                Form::Selected(chunks, inner) => {
                    let key = Arc::as_ptr(inner);
                    let selection = match composed.iter().find(|(k, _)| *k == key) {
                        Some((_, selection)) => Arc::clone(selection),
                        None => {
                            let selection = Arc::new(inner.compose(outer, *nullable));
                            composed.push((key, Arc::clone(&selection)));
                            selection
                        }
                    };
                    Column::selected(column.data_type(), Arc::clone(chunks), selection)
                }
            })
            .collect();
        Batch { schema: Arc::clone(&self.schema), columns, num_rows: outer.len() }
    }

    /// The columns of `self` followed by those of `other`, which has as many rows.
    ///
    /// # Errors
    /// An internal error when the row counts or the schema do not fit.
    pub fn zip(&self, other: &Batch, schema: SchemaRef) -> Result<Batch> {
        let columns = self.columns.iter().chain(other.columns.iter()).cloned().collect();
        Batch::try_new(schema, columns, self.num_rows)
    }

    /// All `batches` as one; index lists are appended, values do not move.
    ///
    /// # Errors
    /// An internal error when the batches' types differ.
    pub fn concat(schema: &SchemaRef, batches: &[Batch]) -> Result<Batch> {
        match batches {
            [] => Ok(Batch::empty(Arc::clone(schema))),
            [one] => Ok(one.with_schema(Arc::clone(schema))),
            many => {
                let mut refs = Vec::with_capacity(many.iter().map(Batch::num_rows).sum());
                for (chunk, batch) in many.iter().enumerate() {
                    refs.extend(
                        (0..batch.num_rows as u32).map(|row| crate::RowRef::new(chunk as u32, row)),
                    );
                }
                gather_rows(schema, many, &refs)
            }
        }
    }

    /// Bytes this batch keeps alive: each base array once (by its buffers), plus index lists.
    pub fn retained_bytes(&self) -> usize {
        RetainedBytes::default().add(self)
    }

    /// The same rows over bases of their own: what a pipeline breaker keeps, so that a few
    /// surviving rows do not hold large arrays alive. Columns whose live rows are at least half
    /// of their base stay as they are.
    ///
    /// # Errors
    /// Fails when a column cannot be gathered.
    pub fn compact(&self) -> Result<Batch> {
        let columns = self
            .columns
            .iter()
            .map(|column| {
                let mut base_rows = 0;
                column.visit_bases(|array| base_rows += array.len());
                let sparse = column.selection().is_some() && column.len() * 2 < base_rows;
                // A selected column that was read counts as flat, yet still holds its bases.
                let column = match column.form() {
                    Form::Flat(values) => Column::flat(Arc::clone(values)),
                    _ if sparse => Column::flat(column.values()?),
                    _ => column.clone(),
                };
                Ok(collect_views(column))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Batch {
            schema: Arc::clone(&self.schema),
            columns: columns.into(),
            num_rows: self.num_rows,
        })
    }
}

/// Bytes kept alive by several batches together: what they share counts once.
#[derive(Debug, Default)]
pub struct RetainedBytes {
    /// Addresses of buffers and selections that were counted.
    seen: HashSet<usize>,
}

impl RetainedBytes {
    /// Bytes that `batch` keeps alive beyond those of the batches added before, which must
    /// still be alive.
    pub fn add(&mut self, batch: &Batch) -> usize {
        let mut total = 0;
        for column in batch.columns.iter() {
            column.visit_bases(|array| add_buffers(&array.to_data(), &mut self.seen, &mut total));
            if let Some(selection) = column.selection()
                && self.seen.insert(Arc::as_ptr(selection) as usize)
            {
                total += selection.size();
            }
        }
        total
    }

    /// Forgets all batches.
    pub fn clear(&mut self) {
        self.seen.clear();
    }
}

/// Copies a view array whose buffers are mostly dead.
fn collect_views(column: Column) -> Column {
    let Form::Flat(array) = column.form() else { return column };
    let (buffers, live) = match array.data_type() {
        DataType::Utf8View => {
            let views = array.as_string_view();
            (views.data_buffers(), views.total_buffer_bytes_used())
        }
        DataType::BinaryView => {
            let views = array.as_binary_view();
            (views.data_buffers(), views.total_buffer_bytes_used())
        }
        _ => return column,
    };
    let held: usize = buffers.iter().map(|b| b.capacity()).sum();
    if held < 64 * 1024 || live * 2 >= held {
        return column;
    }
    Column::flat(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        _ => Arc::new(array.as_binary_view().gc()),
    })
}

fn add_buffers(data: &arrow::array::ArrayData, seen: &mut HashSet<usize>, total: &mut usize) {
    for buffer in data.buffers() {
        if seen.insert(buffer.data_ptr().as_ptr() as usize) {
            *total += buffer.capacity();
        }
    }
    if let Some(nulls) = data.nulls()
        && seen.insert(nulls.buffer().data_ptr().as_ptr() as usize)
    {
        *total += nulls.buffer().capacity();
    }
    for child in data.child_data() {
        add_buffers(child, seen, total);
    }
}
