//! Filters that a source applies while it reads: it decodes the columns of the filters first,
//! and the others for the rows that pass.
//!
//! The filters stay above the scan as well, so a source may stop whenever filtering does not
//! pay; it must only keep every row that passes. A filter that can fail is never taken: below its
//! guard it would fail on rows that never reach it.

use arrow::array::BooleanArray;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{Result, internal_err};
use planish_batch::Batch;
use planish_expr::predicate::Predicate;
use planish_expr::projection::narrow_expr;
use planish_expr::utils::column_indices;
use planish_expr::{PhysicalExprRef, can_fail, is_volatile};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Share of rows that pass, in percent, above which reading everything is cheaper.
const MOST_PASSING_PERCENT: usize = 40;

/// Rows after which the share is known well enough.
const SAMPLE_ROWS: usize = 16 * 1024;

/// Filters of one partition of a scan, and how they fared so far.
#[derive(Debug)]
pub struct RowFilter {
    columns: Arc<[usize]>,
    schema: SchemaRef,
    /// Over `columns`.
    predicate: Mutex<Predicate>,
    seen: AtomicUsize,
    passed: AtomicUsize,
}

impl RowFilter {
    /// Whether a source that filters rows can make use of `filter`, which is over `schema`.
    pub(crate) fn takes(filter: &PhysicalExprRef, schema: &Schema) -> bool {
        !column_indices(filter).is_empty() && !is_volatile(filter) && !can_fail(filter, schema)
    }

    /// Those of `filters` (over the table's columns) that can be applied to rows of the table
    /// columns `read` (ascending); `None` when there are none, or no column is left to decode
    /// late.
    ///
    /// # Errors
    /// When an expression cannot be rebuilt.
    pub(crate) fn try_new(
        filters: &[PhysicalExprRef],
        read: &[usize],
        table: &Schema,
    ) -> Result<Option<Self>> {
        let is_read = |filter: &PhysicalExprRef| {
            column_indices(filter).iter().all(|column| read.binary_search(column).is_ok())
        };
        let taken: Vec<_> =
            filters.iter().filter(|filter| Self::takes(filter, table) && is_read(filter)).collect();
        let columns: BTreeSet<usize> =
            taken.iter().flat_map(|filter| column_indices(filter)).collect();
        if taken.is_empty() || columns.len() == read.len() {
            return Ok(None);
        }
        let columns: Vec<usize> = columns.into_iter().collect();
        let mut narrowed = Vec::with_capacity(taken.len());
        for filter in taken {
            match narrow_expr(filter, &columns)? {
                Some(filter) => narrowed.push(filter),
                None => return internal_err!("{filter} reads a column that it does not name"),
            }
        }
        let schema = Arc::new(table.project(&columns)?);
        Ok(Some(RowFilter {
            predicate: Mutex::new(Predicate::all_of(narrowed, &schema)),
            schema,
            columns: columns.into(),
            seen: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
        }))
    }

    /// The table columns that the filters read, ascending.
    pub(crate) fn columns(&self) -> &Arc<[usize]> {
        &self.columns
    }

    /// The schema of these columns, in the table's types.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether few enough rows passed so far.
    pub(crate) fn pays(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        let passed = self.passed.load(Ordering::Relaxed);
        seen < SAMPLE_ROWS || passed * 100 <= seen * MOST_PASSING_PERCENT
    }

    /// Which rows of a batch of [`Self::columns`] pass: no NULL among the answers.
    ///
    /// # Errors
    /// An internal error: the filters cannot fail.
    pub(crate) fn passing(&self, batch: &Batch) -> Result<BooleanArray> {
        // One stream at a time filters with this: nobody waits.
        let mut predicate = self.predicate.lock().unwrap_or_else(PoisonError::into_inner);
        let passing = predicate.passing(batch)?.into_bits(batch.num_rows());
        let all = BooleanArray::new(passing, None);
        self.seen.fetch_add(all.len(), Ordering::Relaxed);
        self.passed.fetch_add(all.true_count(), Ordering::Relaxed);
        Ok(all)
    }
}
