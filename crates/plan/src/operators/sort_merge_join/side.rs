//! One input of a merge join: the batch at hand, its encoded keys, and the batches before it that
//! rows waiting to leave lie in.

use crate::execute::BatchStream;
use crate::operators::sort::keys::{KeyEncoder, KeyForm, Keys};
use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Result, plan_err};
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::expressions::Column;
use planish_expr::{PhysicalExprRef, PhysicalSortExpr};
use std::cmp::Ordering;
use std::sync::Arc;

/// The types in which keys are compared: a dictionary's are those of its values.
pub(crate) fn key_types(
    on: &[(PhysicalExprRef, PhysicalExprRef)],
    left: &Schema,
    right: &Schema,
) -> Result<Vec<DataType>> {
    on.iter()
        .map(|(l, r)| {
            let (of_left, of_right) = (plain(l.data_type(left)?), plain(r.data_type(right)?));
            if of_left != of_right {
                return plan_err!(
                    "a join of {l}, which is {of_left}, with {r}, which is {of_right}"
                );
            }
            Ok(of_left)
        })
        .collect()
}

fn plain(data_type: DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => *values,
        other => other,
    }
}

/// Makes the keys of batches: both inputs' compare with each other.
pub(crate) struct KeyMaker {
    exprs: Vec<PhysicalExprRef>,
    schema: SchemaRef,
    encoder: KeyEncoder,
    nulls_match: bool,
}

impl KeyMaker {
    /// A maker of keys of `types` by the bound expressions `exprs`, ordered by `options`.
    /// `nulls_match`: whether NULL equals NULL.
    pub(crate) fn try_new(
        exprs: Vec<PhysicalExprRef>,
        types: &[DataType],
        options: &[SortOptions],
        nulls_match: bool,
    ) -> Result<(Self, KeyForm)> {
        let fields: Vec<Field> = types.iter().map(|t| Field::new("", t.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let sorts: Vec<PhysicalSortExpr> = options
            .iter()
            .enumerate()
            .map(|(i, &options)| PhysicalSortExpr::new(Arc::new(Column::new("", i)), options))
            .collect();
        let (encoder, form) = KeyEncoder::try_new(&sorts, &schema)?;
        Ok((KeyMaker { exprs, schema, encoder, nulls_match }, form))
    }

    /// The keys of `batch`, and which of them match nothing because a part is NULL.
    fn keys<K: Keys>(&self, batch: &Batch) -> Result<(K, Option<NullBuffer>)> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.exprs.len());
        for (expr, field) in self.exprs.iter().zip(self.schema.fields()) {
            let array = expr.evaluate_array(batch)?;
            let same = array.data_type() == field.data_type();
            arrays.push(if same { array } else { cast(&array, field.data_type())? });
        }
        let nulls = match self.nulls_match {
            true => None,
            false => arrays
                .iter()
                .fold(None, |all, a| NullBuffer::union(all.as_ref(), a.logical_nulls().as_ref())),
        };
        let keys = Batch::from_arrays(Arc::clone(&self.schema), arrays, batch.num_rows())?;
        Ok((K::encode(&self.encoder, &keys)?, nulls))
    }
}

/// An input and the row it is at.
pub(crate) struct Side<K: Keys> {
    input: BatchStream,
    maker: KeyMaker,
    /// A batch, or the end, that came while nobody could wait for it.
    arrived: Option<Option<Result<Batch>>>,
    /// Batches that references point into; the last one is at hand.
    pub(crate) window: Vec<Batch>,
    /// For each batch of the window, which rows found a match; as far as somebody asked.
    pub(crate) hits: Vec<Vec<bool>>,
    keys: Option<K>,
    nulls: Option<NullBuffer>,
    /// The current row of the batch at hand.
    pub(crate) row: usize,
    /// Its number of rows.
    pub(crate) rows: usize,
    ended: bool,
    /// Whether the batch at hand begins with the key that the one before it ended with.
    pub(crate) continues: bool,
}

impl<K: Keys> Side<K> {
    /// The rows of `input`, which is sorted by the keys of `maker`.
    pub(crate) fn new(input: BatchStream, maker: KeyMaker) -> Self {
        Side {
            input,
            maker,
            arrived: None,
            window: vec![],
            hits: vec![],
            keys: None,
            nulls: None,
            row: 0,
            rows: 0,
            ended: false,
            continues: false,
        }
    }

    /// Whether there may be more rows, in a batch that is not here.
    pub(crate) fn needs_batch(&self) -> bool {
        self.row == self.rows && !self.ended
    }

    /// Whether all rows were seen.
    pub(crate) fn at_end(&self) -> bool {
        self.row == self.rows && self.ended
    }

    /// The place of the batch at hand in the window.
    pub(crate) fn chunk(&self) -> u32 {
        self.window.len().saturating_sub(1) as u32
    }

    /// Whether [`Self::refill`] would return at once.
    pub(crate) async fn is_ready(&mut self) -> bool {
        if self.arrived.is_none()
            && let std::task::Poll::Ready(next) = futures::poll!(self.input.next())
        {
            self.arrived = Some(next);
        }
        self.arrived.is_some()
    }

    /// Takes the next batch that has rows, or notes the end.
    pub(crate) async fn refill(&mut self) -> Result<()> {
        loop {
            let next = match self.arrived.take() {
                Some(next) => next,
                None => self.input.next().await,
            };
            let Some(batch) = next.transpose()? else {
                self.ended = true;
                self.continues = false;
                return Ok(());
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let (keys, nulls) = self.maker.keys::<K>(&batch)?;
            self.continues = self
                .keys
                .as_ref()
                .is_some_and(|old| compare_rows(old, self.rows - 1, &keys, 0).is_eq());
            (self.row, self.rows) = (0, batch.num_rows());
            (self.keys, self.nulls) = (Some(keys), nulls);
            self.window.push(batch);
            self.hits.push(vec![]);
            return Ok(());
        }
    }

    /// The order of the current rows of both inputs, neither at its end.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (&self.keys, &other.keys) {
            (Some(own), Some(theirs)) => compare_rows(own, self.row, theirs, other.row),
            _ => Ordering::Equal,
        }
    }

    /// Whether the current row matches nothing, whatever the other input holds.
    pub(crate) fn is_null(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(self.row))
    }

    /// How many rows of the batch at hand, from the current one on, come before the current row
    /// of `other`; the current one does.
    pub(crate) fn run_before(&self, other: &Self) -> usize {
        match (&self.keys, &other.keys) {
            (Some(own), Some(theirs)) => gallop(self.rows - self.row, |i| {
                compare_rows(own, self.row + i, theirs, other.row).is_lt()
            }),
            _ => self.rows - self.row,
        }
    }

    /// How many rows of the batch at hand, from the current one on, have its key.
    pub(crate) fn run_equal(&self) -> usize {
        match &self.keys {
            Some(keys) => gallop(self.rows - self.row, |i| {
                compare_rows(keys, self.row, keys, self.row + i).is_eq()
            }),
            None => self.rows - self.row,
        }
    }

    /// Lets go of the first `count` batches of the window.
    pub(crate) fn forget(&mut self, count: usize) {
        self.window.drain(..count);
        self.hits.drain(..count);
    }

    /// Notes that a row of the window found a match.
    pub(crate) fn hit(&mut self, chunk: u32, row: u32) {
        let chunk = chunk as usize;
        if self.hits[chunk].is_empty() {
            self.hits[chunk] = vec![false; self.window[chunk].num_rows()];
        }
        self.hits[chunk][row as usize] = true;
    }

    /// Whether a row of the window found a match.
    pub(crate) fn is_hit(&self, chunk: u32, row: u32) -> bool {
        self.hits[chunk as usize].get(row as usize).copied().unwrap_or(false)
    }
}

#[inline]
fn compare_rows<K: Keys>(a: &K, a_row: usize, b: &K, b_row: usize) -> Ordering {
    a.item(a_row).cmp(&b.item(b_row)).then_with(|| K::tie(a, a_row, b, b_row))
}

/// The number of leading positions of `0..len` for which `holds`, which is true for the first
/// one and never true again once it is false.
fn gallop(len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut known, mut step) = (1, 1);
    while known < len {
        let probe = (known + step).min(len) - 1;
        if holds(probe) {
            known = probe + 1;
            step *= 2;
            continue;
        }
        let (mut low, mut high) = (known, probe);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
    known.min(len)
}
