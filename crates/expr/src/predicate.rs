//! Which rows of a batch a predicate keeps: its conjuncts one after the other, each on the rows
//! that the ones before have left.
//!
//! A conjunct that can fail sees no row that a conjunct before it drops, for whatever reason: a
//! guard that is NULL (`TRY_CAST(s AS INT) > 1`) guards as well as one that is false. Conjuncts
//! that cannot fail change places as the running filter learns what they cost and what they drop;
//! the order by `cost / (1 - share kept)` is the cheapest one for independent conjuncts (J. M.
//! Hellerstein, *Optimization techniques for queries with expensive methods*, TODS 1998).

use crate::expressions::kernels::scatter;
use crate::utils::{conjunction, split_conjunction};
use crate::{PhysicalExprRef, can_fail, is_volatile};
use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::sync::Arc;
use std::time::Instant;

/// Nanoseconds that it costs to gather one row for a conjunct, about.
const GATHER_NANOS: f64 = 2.0;

/// Rows in one of so many left: then even an unknown conjunct is evaluated on those alone.
const SPARSE: usize = 8;

/// The rows of a batch that pass.
#[derive(Clone, Debug)]
pub enum Passing {
    /// Every row.
    All,
    /// Those whose bit is set; there may be none.
    Rows(BooleanBuffer),
}

impl Passing {
    /// The rows of `batch` that pass.
    pub fn filter(self, batch: &Batch) -> Batch {
        match self {
            Passing::All => batch.clone(),
            Passing::Rows(rows) if !rows.has_true() => batch.slice(0, 0),
            Passing::Rows(rows) => batch.filter(&BooleanArray::new(rows, None)),
        }
    }

    /// One bit for each of `len` rows.
    pub fn into_bits(self, len: usize) -> BooleanBuffer {
        match self {
            Passing::All => BooleanBuffer::new_set(len),
            Passing::Rows(rows) => rows,
        }
    }

    fn count(&self, len: usize) -> usize {
        match self {
            Passing::All => len,
            Passing::Rows(rows) => rows.count_set_bits(),
        }
    }
}

/// A predicate at work: what it has learned belongs to one stream of one execution.
#[derive(Clone, Debug)]
pub struct Predicate {
    conjuncts: Vec<Conjunct>,
    /// So many conjuncts may change places: none of them can fail, or is volatile.
    movable: usize,
}

#[derive(Clone, Debug)]
struct Conjunct {
    expr: PhysicalExprRef,
    /// Whether it must not see a row that is dropped already.
    guarded: bool,
    rows: usize,
    kept: usize,
    /// Of evaluations of whole batches: what a gather costs is known.
    timed_rows: usize,
    nanos: f64,
}

impl Predicate {
    /// The rows for which `predicate`, over `schema`, is true.
    pub fn new(predicate: &PhysicalExprRef, schema: &Schema) -> Self {
        Self::all_of(split_conjunction(predicate), schema)
    }

    /// The rows for which all of `conjuncts`, over `schema`, are true.
    pub fn all_of(conjuncts: Vec<PhysicalExprRef>, schema: &Schema) -> Self {
        let conjuncts: Vec<Conjunct> = conjuncts
            .into_iter()
            .map(|expr| Conjunct {
                guarded: can_fail(&expr, schema) || is_volatile(&expr),
                expr,
                rows: 0,
                kept: 0,
                timed_rows: 0,
                nanos: 0.0,
            })
            .collect();
        let movable = conjuncts.iter().take_while(|conjunct| !conjunct.guarded).count();
        Predicate { conjuncts, movable }
    }

    /// The conjuncts in the order of the moment, joined by `AND`.
    pub fn expr(&self) -> PhysicalExprRef {
        conjunction(self.conjuncts.iter().map(|conjunct| Arc::clone(&conjunct.expr)))
    }

    /// The rows of `batch` for which the predicate is true.
    ///
    /// # Errors
    /// Those of a conjunct, on a row that those before it leave.
    pub fn passing(&mut self, batch: &Batch) -> Result<Passing> {
        let len = batch.num_rows();
        let mut passing = Passing::All;
        let mut left = len;
        for conjunct in &mut self.conjuncts {
            if left == 0 {
                break;
            }
            passing = conjunct.narrow(passing, left, batch)?;
            left = passing.count(len);
        }
        if self.movable > 1 {
            self.conjuncts[..self.movable].sort_by(|a, b| a.rank().total_cmp(&b.rank()));
        }
        Ok(passing)
    }
}

impl Conjunct {
    /// Those of the `left` rows `passing` that this conjunct keeps.
    fn narrow(&mut self, passing: Passing, left: usize, batch: &Batch) -> Result<Passing> {
        let len = batch.num_rows();
        match passing {
            Passing::Rows(rows) if left < len && self.on_few(left, len) => {
                let few = batch.filter(&BooleanArray::new(rows.clone(), None));
                let kept = truth(&self.expr, &few)?;
                self.count(left, kept.count(left));
                Ok(match kept {
                    Passing::All => Passing::Rows(rows),
                    Passing::Rows(kept) => {
                        let kept = scatter(&rows, &BooleanArray::new(kept, None), false);
                        Passing::Rows(kept.values().clone())
                    }
                })
            }
            passing => {
                let start = Instant::now();
                let kept = truth(&self.expr, batch)?;
                self.nanos += start.elapsed().as_nanos() as f64;
                self.timed_rows += len;
                self.count(len, kept.count(len));
                Ok(match (passing, kept) {
                    (Passing::All, kept) | (kept, Passing::All) => kept,
                    (Passing::Rows(rows), Passing::Rows(kept)) => Passing::Rows(&rows & &kept),
                })
            }
        }
    }

    /// Whether to gather the rows that are left.
    fn on_few(&self, left: usize, len: usize) -> bool {
        if self.guarded || left * SPARSE < len {
            return true;
        }
        let cost = self.cost();
        left as f64 * (cost + GATHER_NANOS) < len as f64 * cost
    }

    fn count(&mut self, rows: usize, kept: usize) {
        self.rows += rows;
        self.kept += kept;
    }

    /// Nanoseconds per row; 0 when unknown.
    fn cost(&self) -> f64 {
        if self.timed_rows == 0 { 0.0 } else { self.nanos / self.timed_rows as f64 }
    }

    /// What it costs to drop a row. A conjunct not seen at work stays in front of those that drop
    /// little.
    fn rank(&self) -> f64 {
        let dropped = 1.0 - self.kept as f64 / self.rows.max(1) as f64;
        self.cost() / dropped.max(1e-3)
    }
}

/// The rows of `batch` for which `expr` is true: not those for which it is NULL.
fn truth(expr: &PhysicalExprRef, batch: &Batch) -> Result<Passing> {
    Ok(match expr.evaluate(batch)? {
        ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => Passing::All,
        ColumnarValue::Array(mask) if *mask.data_type() == DataType::Boolean => {
            let mask = mask.as_boolean();
            Passing::Rows(match mask.nulls() {
                Some(valid) if mask.null_count() > 0 => mask.values() & valid.inner(),
                _ => mask.values().clone(),
            })
        }
        ColumnarValue::Array(_) | ColumnarValue::Scalar(_) => {
            Passing::Rows(BooleanBuffer::new_unset(batch.num_rows()))
        }
    })
}
