//! One column of a batch, in whichever form it is cheapest to hand on.

use crate::gather::{decode, gather};
use crate::selection::Selection;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A column: values, or how to get at them. Cloning is cheap in every form.
#[derive(Clone)]
pub struct Column(Repr);

#[derive(Clone)]
enum Repr {
    /// Values in the declared type.
    Flat(ArrayRef),
    /// One value for every row.
    Constant { value: Arc<ScalarValue>, rows: usize },
    /// Rows of base arrays, or an encoded array; gathered and decoded on first read.
    Lazy(Arc<Lazy>),
}

struct Lazy {
    declared: DataType,
    /// Base arrays, at least one, all of one type (the declared one or an encoding of it).
    chunks: Arc<[ArrayRef]>,
    /// `None`: all rows of the only chunk.
    selection: Option<Arc<Selection>>,
    values: OnceLock<ArrayRef>,
}

/// The form of a column, for operators that can use more than the plain values.
pub enum Form<'a> {
    /// Values in the declared type.
    Flat(&'a ArrayRef),
    /// One value for every row.
    Constant(&'a ScalarValue),
    /// An encoded array (dictionary codes, runs, narrowed integers) without a selection.
    Encoded(&'a ArrayRef),
    /// Rows of base arrays.
    Selected(&'a Arc<[ArrayRef]>, &'a Arc<Selection>),
}

impl Column {
    /// A column of values in the declared type.
    pub fn flat(array: ArrayRef) -> Self {
        Column(Repr::Flat(array))
    }

    /// The same value in each of `rows` rows.
    pub fn constant(value: ScalarValue, rows: usize) -> Self {
        Column(Repr::Constant { value: Arc::new(value), rows })
    }

    /// An array that holds values of type `declared`, possibly as dictionary codes, runs, or
    /// 64-bit integers under a `Decimal128` type.
    pub fn encoded(array: ArrayRef, declared: &DataType) -> Self {
        if array.data_type() == declared {
            return Column::flat(array);
        }
        Column::lazy(declared.clone(), Arc::new([array]), None)
    }

    /// The rows of `selection` over `chunks`.
    pub fn selected(
        declared: DataType,
        chunks: Arc<[ArrayRef]>,
        selection: Arc<Selection>,
    ) -> Self {
        Column::lazy(declared, chunks, Some(selection))
    }

    fn lazy(
        declared: DataType,
        chunks: Arc<[ArrayRef]>,
        selection: Option<Arc<Selection>>,
    ) -> Self {
        Column(Repr::Lazy(Arc::new(Lazy { declared, chunks, selection, values: OnceLock::new() })))
    }

    /// The declared type.
    pub fn data_type(&self) -> DataType {
        match &self.0 {
            Repr::Flat(array) => array.data_type().clone(),
            Repr::Constant { value, .. } => value.data_type(),
            Repr::Lazy(lazy) => lazy.declared.clone(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(array) => array.len(),
            Repr::Constant { rows, .. } => *rows,
            Repr::Lazy(lazy) => match &lazy.selection {
                Some(selection) => selection.len(),
                None => lazy.chunks[0].len(),
            },
        }
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The form the column is in now: once read, a selected column counts as flat.
    pub fn form(&self) -> Form<'_> {
        match &self.0 {
            Repr::Flat(array) => Form::Flat(array),
            Repr::Constant { value, .. } => Form::Constant(value),
            Repr::Lazy(lazy) => match (lazy.values.get(), &lazy.selection) {
                (Some(values), _) => Form::Flat(values),
                (None, None) => Form::Encoded(&lazy.chunks[0]),
                (None, Some(selection)) => Form::Selected(&lazy.chunks, selection),
            },
        }
    }

    /// The values, in the declared type; gathered at the first call and kept.
    pub fn values(&self) -> Result<ArrayRef> {
        match &self.0 {
            Repr::Flat(array) => Ok(Arc::clone(array)),
            Repr::Constant { value, rows } => value.to_array_of_size(*rows),
            Repr::Lazy(lazy) => {
                if let Some(values) = lazy.values.get() {
                    return Ok(Arc::clone(values));
                }
                let raw = match &lazy.selection {
                    Some(selection) => gather(&lazy.chunks, selection)?,
                    None => Arc::clone(&lazy.chunks[0]),
                };
                let values = decode(&raw, &lazy.declared)?;
                Ok(Arc::clone(lazy.values.get_or_init(|| values)))
            }
        }
    }

    /// Rows `offset..offset + len`, without moving values.
    pub fn slice(&self, offset: usize, len: usize) -> Column {
        match &self.0 {
            Repr::Flat(array) => Column::flat(array.slice(offset, len)),
            Repr::Constant { value, .. } => {
                Column(Repr::Constant { value: Arc::clone(value), rows: len })
            }
            Repr::Lazy(lazy) => match (lazy.values.get(), &lazy.selection) {
                (Some(values), _) => Column::flat(values.slice(offset, len)),
                (None, None) => Column::encoded(lazy.chunks[0].slice(offset, len), &lazy.declared),
                (None, Some(selection)) => Column::selected(
                    lazy.declared.clone(),
                    Arc::clone(&lazy.chunks),
                    Arc::new(selection.slice(offset, len)),
                ),
            },
        }
    }

    /// The base arrays under this column and the selection over them (`None`: every row of one
    /// base). A constant becomes an array of one row, `selection_for_constant` over it.
    pub(crate) fn base(&self) -> Result<(Arc<[ArrayRef]>, BaseRows<'_>)> {
        Ok(match &self.0 {
            Repr::Flat(array) => (Arc::new([Arc::clone(array)]), BaseRows::All),
            Repr::Constant { value, .. } => {
                (Arc::new([value.to_array_of_size(1)?]), BaseRows::First)
            }
            Repr::Lazy(lazy) => match (lazy.values.get(), &lazy.selection) {
                (Some(values), _) => (Arc::new([Arc::clone(values)]), BaseRows::All),
                (None, None) => (Arc::clone(&lazy.chunks), BaseRows::All),
                (None, Some(selection)) => {
                    (Arc::clone(&lazy.chunks), BaseRows::Selected(selection))
                }
            },
        })
    }

    /// Calls `visit` with each base array and the number of its rows that are alive.
    pub(crate) fn visit_bases(&self, mut visit: impl FnMut(&ArrayRef)) {
        match &self.0 {
            Repr::Flat(array) => visit(array),
            Repr::Constant { .. } => {}
            Repr::Lazy(lazy) => match lazy.values.get() {
                Some(values) => visit(values),
                None => lazy.chunks.iter().for_each(visit),
            },
        }
    }

    pub(crate) fn selection(&self) -> Option<&Arc<Selection>> {
        match self.form() {
            Form::Selected(_, selection) => Some(selection),
            _ => None,
        }
    }
}

/// Which rows of its base a column shows.
pub(crate) enum BaseRows<'a> {
    All,
    First,
    Selected(&'a Arc<Selection>),
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form() {
            Form::Flat(array) => write!(f, "Flat({}, {} rows)", array.data_type(), array.len()),
            Form::Constant(value) => write!(f, "Constant({value}, {} rows)", self.len()),
            Form::Encoded(array) => {
                write!(f, "Encoded({}, {} rows)", array.data_type(), array.len())
            }
            Form::Selected(chunks, selection) => {
                write!(f, "Selected({} of {} chunks)", selection.len(), chunks.len())
            }
        }
    }
}
