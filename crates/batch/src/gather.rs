//! Turning a selection over base arrays into one array: the only place where values move.

use crate::counters;
use crate::selection::{RowRef, Selection};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{interleave, take};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type};
use arrow::downcast_primitive_array;
use datafusion_common::{Result, internal_err};
use std::sync::Arc;

/// Gathers `selection` over `chunks` (never empty) into one array, in the chunks' own type.
pub(crate) fn gather(chunks: &[ArrayRef], selection: &Selection) -> Result<ArrayRef> {
    let array = match selection {
        Selection::One { rows, nullable } => {
            let nulls = nullable.then(|| {
                NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| {
                    rows[i] != crate::NO_ROW
                }))
            });
            let indices = UInt32Array::new(rows.clone(), nulls);
            take(chunks[0].as_ref(), &indices, None)?
        }
        Selection::Many(..) => {
            let refs = selection.as_refs().unwrap_or_default();
            gather_chunks(chunks, refs)?
        }
    };
    counters::add_gathered(moved_bytes(&array));
    Ok(array)
}

/// Chunks that are worth leaving out when hardly any row lies in them.
const MANY_CHUNKS: usize = 32;

fn gather_chunks(chunks: &[ArrayRef], refs: &[RowRef]) -> Result<ArrayRef> {
    if chunks.len() > MANY_CHUNKS && refs.len() < chunks.len() * 4 {
        let (chunks, refs) = used_chunks(chunks, refs);
        return gather_used(&chunks, &refs);
    }
    gather_used(chunks, refs)
}

/// The chunks that `refs` point to, at least one, and the references into those.
fn used_chunks(chunks: &[ArrayRef], refs: &[RowRef]) -> (Vec<ArrayRef>, Vec<RowRef>) {
    let mut places = vec![u32::MAX; chunks.len()];
    let mut used = vec![];
    let refs = refs
        .iter()
        .map(|r| {
            if r.is_none() {
                return *r;
            }
            let place = &mut places[r.chunk() as usize];
            if *place == u32::MAX {
                *place = used.len() as u32;
                used.push(Arc::clone(&chunks[r.chunk() as usize]));
            }
            RowRef::new(*place, r.row())
        })
        .collect();
    if used.is_empty() {
        used.push(Arc::clone(&chunks[0]));
    }
    (used, refs)
}

fn gather_used(chunks: &[ArrayRef], refs: &[RowRef]) -> Result<ArrayRef> {
    let first = &chunks[0];
    let no_nulls = chunks.iter().all(|c| c.null_count() == 0);
    if no_nulls && first.data_type().is_primitive() && !refs.iter().any(|r| r.is_none()) {
        let first = first.as_ref();
        return Ok(downcast_primitive_array!(
            first => gather_primitive(first, chunks, refs),
            _ => interleave_chunks(chunks, refs)?
        ));
    }
    interleave_chunks(chunks, refs)
}

fn gather_primitive<T: ArrowPrimitiveType>(
    first: &PrimitiveArray<T>,
    chunks: &[ArrayRef],
    refs: &[RowRef],
) -> ArrayRef {
    let bases: Vec<&[T::Native]> =
        chunks.iter().map(|c| c.as_primitive::<T>().values().as_ref()).collect();
    let values: Vec<T::Native> =
        refs.iter().map(|r| bases[r.chunk() as usize][r.row() as usize]).collect();
    Arc::new(
        PrimitiveArray::<T>::new(values.into(), None).with_data_type(first.data_type().clone()),
    )
}

fn interleave_chunks(chunks: &[ArrayRef], refs: &[RowRef]) -> Result<ArrayRef> {
    let none = chunks.len();
    let mut bases: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
    let null_row;
    if refs.iter().any(|r| r.is_none()) {
        null_row = new_null_array(chunks[0].data_type(), 1);
        bases.push(null_row.as_ref());
    }
    let indices: Vec<(usize, usize)> = refs
        .iter()
        .map(|r| if r.is_none() { (none, 0) } else { (r.chunk() as usize, r.row() as usize) })
        .collect();
    Ok(interleave(&bases, &indices)?)
}

/// Bytes written to make `array`: of a view array the views, whose text stays where it was.
fn moved_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => array.len() * size_of::<u128>(),
        _ => array.get_buffer_memory_size(),
    }
}

/// An array of an encoded form (dictionary codes, runs, narrowed decimals) in its declared type.
pub(crate) fn decode(array: &ArrayRef, declared: &DataType) -> Result<ArrayRef> {
    if array.data_type() == declared {
        return Ok(Arc::clone(array));
    }
    let decoded = match (array.data_type(), declared) {
        (DataType::Dictionary(_, value), _) if value.as_ref() == declared => {
            arrow::compute::cast(array, declared)?
        }
        (DataType::RunEndEncoded(_, value), _) if value.data_type() == declared => {
            arrow::compute::cast(array, declared)?
        }
        (DataType::Int64, DataType::Decimal128(precision, scale)) => {
            let narrow = array.as_primitive::<arrow::datatypes::Int64Type>();
            let wide: PrimitiveArray<Decimal128Type> = narrow.unary(i128::from);
            Arc::new(wide.with_precision_and_scale(*precision, *scale)?)
        }
        (from, to) => return internal_err!("a column declared as {to} holds an array of {from}"),
    };
    counters::add_gathered(moved_bytes(&decoded));
    Ok(decoded)
}
