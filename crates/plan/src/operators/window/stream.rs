//! Running windows over one input partition: rows are cut where PARTITION BY keys change, each
//! batch comes out again, as it is, once all of its rows have results.

use super::call::WindowExpr;
use super::columns::Columns;
use super::partition::Partition;
use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::operators::sort::bind_keys;
use arrow::array::{Array, ArrayRef};
use arrow::compute::{SortOptions, concat, partition};
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::{DataFusionError, Result};
use futures::StreamExt;
use planish_batch::{Batch, Column, RetainedBytes};
use planish_expr::{LexOrdering, PhysicalExprRef};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// What a stream needs to know of its node.
pub(super) struct Windowing {
    pub(super) name: &'static str,
    pub(super) exprs: Vec<WindowExpr>,
    pub(super) partition_by: Vec<PhysicalExprRef>,
    pub(super) order_by: LexOrdering,
    pub(super) input_schema: SchemaRef,
    pub(super) schema: SchemaRef,
    pub(super) streams: bool,
}

impl Windowing {
    /// The output of one partition.
    pub(super) fn run(self, mut input: BatchStream, ctx: Arc<TaskContext>) -> BatchStream {
        Box::pin(try_stream! {
            let reservation = ctx.reservation(self.name, false);
            let name = self.name;
            let mut running = self.start(&ctx).await?;
            while let Some(batch) = input.next().await {
                let batch = batch?;
                if batch.num_rows() == 0 {
                    continue;
                }
                running.push(batch)?;
                while let Some(ready) = running.pop()? {
                    yield ready;
                }
                let size = running.size();
                if reservation.try_resize(size).is_err() {
                    Err(exhausted(name, size - reservation.size()))?;
                }
                tokio::task::consume_budget().await;
            }
            drop(input);
            running.end_partition()?;
            while let Some(ready) = running.pop()? {
                yield ready;
            }
        })
    }

    async fn start(self, ctx: &Arc<TaskContext>) -> Result<Running> {
        let mut exprs = vec![];
        for expr in &self.exprs {
            let unbound = expr.expressions();
            let bound = ctx.bind_all(&unbound).await?;
            exprs.push(match bound == unbound {
                true => expr.clone(),
                false => expr.with_expressions(bound, Arc::clone(&self.input_schema))?,
            });
        }
        let partition_by = ctx.bind_all(&self.partition_by).await?;
        let order_by = bind_keys(&self.order_by, ctx).await?;
        let columns = Columns::try_new(&exprs, &partition_by, &order_by, &self.input_schema)?;
        let results = exprs.iter().map(|_| VecDeque::new()).collect();
        Ok(Running {
            exprs,
            options: order_by.iter().map(|key| key.options).collect(),
            columns,
            schema: self.schema,
            streams: self.streams,
            last_keys: vec![],
            current: None,
            pending: VecDeque::new(),
            results,
            retained: RetainedBytes::default(),
            pending_bytes: 0,
        })
    }
}

struct Running {
    exprs: Vec<WindowExpr>,
    options: Vec<SortOptions>,
    columns: Columns,
    schema: SchemaRef,
    streams: bool,
    /// The PARTITION BY keys of the last row seen.
    last_keys: Vec<ArrayRef>,
    current: Option<Partition>,
    /// Input batches that are yet to come out.
    pending: VecDeque<Batch>,
    /// For each function, the results of their rows from the first one on.
    results: Vec<VecDeque<ArrayRef>>,
    retained: RetainedBytes,
    pending_bytes: usize,
}

impl Running {
    fn push(&mut self, batch: Batch) -> Result<()> {
        let evaluated = self.columns.evaluate(&batch)?;
        let rows = batch.num_rows();
        for (i, range) in self.cut(&evaluated.partition, rows)?.into_iter().enumerate() {
            if i > 0 {
                self.end_partition()?;
            }
            if range.is_empty() {
                continue;
            }
            let current = match &mut self.current {
                Some(current) => current,
                None => {
                    let (exprs, options) = (&self.exprs, &self.options);
                    let new = Partition::new(exprs, options, &self.columns, self.streams)?;
                    self.current.insert(new)
                }
            };
            let slice = |c: &ArrayRef| c.slice(range.start, range.len());
            current.push(evaluated.columns.iter().map(slice).collect(), range.len());
        }
        self.last_keys = evaluated.partition.iter().map(|c| c.slice(rows - 1, 1)).collect();
        self.pending_bytes += self.retained.add(&batch);
        self.pending.push_back(batch);
        if self.streams && self.current.as_ref().is_some_and(Partition::is_due) {
            self.advance(false)?;
        }
        Ok(())
    }

    /// The rows of a batch by partition; the first range, perhaps empty, continues the last one.
    fn cut(&self, keys: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
        if keys.is_empty() {
            return Ok(std::iter::once(0..rows).collect());
        }
        if self.last_keys.is_empty() {
            return Ok(partition(keys)?.ranges());
        }
        let joined = self
            .last_keys
            .iter()
            .zip(keys)
            .map(|(last, keys)| Ok(concat(&[last.as_ref(), keys.as_ref()])?))
            .collect::<Result<Vec<_>>>()?;
        let ranges = partition(&joined)?.ranges();
        Ok(ranges.into_iter().map(|r| r.start.saturating_sub(1)..r.end - 1).collect())
    }

    fn advance(&mut self, ended: bool) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let results = current.advance(self.columns.keys.clone(), ended)?;
        for (known, new) in self.results.iter_mut().zip(results) {
            if !new.is_empty() {
                known.push_back(new);
            }
        }
        Ok(())
    }

    /// The current partition has no more rows.
    fn end_partition(&mut self) -> Result<()> {
        self.advance(true)?;
        self.current = None;
        Ok(())
    }

    /// The next batch whose rows have all results.
    fn pop(&mut self) -> Result<Option<Batch>> {
        let Some(batch) = self.pending.front() else { return Ok(None) };
        let rows = batch.num_rows();
        let known =
            |results: &VecDeque<ArrayRef>| results.iter().map(|a| a.len()).sum::<usize>() >= rows;
        if !self.results.iter().all(known) {
            return Ok(None);
        }
        let mut columns: Vec<Column> = batch.columns().to_vec();
        self.pending.pop_front();
        for results in &mut self.results {
            columns.push(Column::flat(take_rows(results, rows)?));
        }
        self.retained.clear();
        self.pending_bytes = self.pending.iter().map(|batch| self.retained.add(batch)).sum();
        Batch::try_new(Arc::clone(&self.schema), columns, rows).map(Some)
    }

    fn size(&self) -> usize {
        let results: usize = self.results.iter().flatten().map(|a| a.get_array_memory_size()).sum();
        self.pending_bytes + results + self.current.as_ref().map_or(0, Partition::size)
    }
}

/// The first `rows` rows of `arrays`, which has as many.
fn take_rows(arrays: &mut VecDeque<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    let mut parts: Vec<ArrayRef> = vec![];
    let mut missing = rows;
    while missing > 0
        && let Some(first) = arrays.pop_front()
    {
        if first.len() > missing {
            arrays.push_front(first.slice(missing, first.len() - missing));
            parts.push(first.slice(0, missing));
            break;
        }
        missing -= first.len();
        parts.push(first);
    }
    match parts.as_slice() {
        [one] => Ok(Arc::clone(one)),
        many => Ok(concat(&many.iter().map(|a| a.as_ref()).collect::<Vec<_>>())?),
    }
}

fn exhausted(name: &str, bytes: usize) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "{name} cannot spill and needs {:.1} MB more than the memory limit allows; raise it with \
         --memory-limit or SET datafusion.runtime.memory_limit",
        bytes as f64 / 1_000_000.0
    ))
}
