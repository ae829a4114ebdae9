//! Running an aggregation: the loops over the input.

use super::grace::{GraceSpill, MAX_LEVEL, SpilledPart};
use super::groups::{Groups, declared, in_type};
use super::inputs::AggregateInputs;
use super::source::{RowSource, SkipDecision, merge_states};
use super::{AggregateMode, PhysicalGroupBy};
use crate::context::TaskContext;
use crate::execute::BatchStream;
use crate::metrics::NodeMetrics;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{FieldRef, SchemaRef};
use async_stream::try_stream;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_expr::Accumulator;
use futures::StreamExt;
use planish_batch::Batch;
use planish_expr::udf::AggregateFunctionExpr;
use std::sync::Arc;

/// What a partition needs to know of its node.
pub(super) struct Aggregation {
    pub(super) mode: AggregateMode,
    pub(super) group_by: PhysicalGroupBy,
    pub(super) calls: Vec<Arc<AggregateFunctionExpr>>,
    pub(super) input_schema: SchemaRef,
    pub(super) schema: SchemaRef,
    /// Key and state columns: what is spilled.
    pub(super) state_schema: SchemaRef,
    /// Number of key columns, the grouping id included.
    pub(super) keys: usize,
    pub(super) metrics: Arc<NodeMetrics>,
}

impl Aggregation {
    /// The output of one partition.
    pub(super) fn run(self, input: BatchStream, ctx: Arc<TaskContext>) -> BatchStream {
        if self.keys == 0 { self.run_whole(input, ctx) } else { self.run_groups(input, ctx) }
    }

    async fn bound(&self, ctx: &Arc<TaskContext>) -> Result<Vec<Arc<AggregateFunctionExpr>>> {
        if !self.mode.is_raw() {
            return Ok(self.calls.clone());
        }
        let mut calls = vec![];
        for call in &self.calls {
            let exprs = call.expressions();
            let bound = ctx.bind_all(&exprs).await?;
            calls.push(if bound == exprs {
                Arc::clone(call)
            } else {
                Arc::new(call.with_expressions(bound, Arc::clone(&call.input_schema))?)
            });
        }
        Ok(calls)
    }

    /// All rows are one group.
    fn run_whole(self, mut input: BatchStream, ctx: Arc<TaskContext>) -> BatchStream {
        Box::pin(try_stream! {
            let calls = self.bound(&ctx).await?;
            let reservation = ctx.reservation("AggregateExec", false);
            let mut inputs = AggregateInputs::new(&calls, &self.input_schema, true);
            let mut accumulators = create(&calls)?;
            while let Some(batch) = input.next().await {
                let batch = batch?;
                if batch.num_rows() == 0 {
                    continue;
                }
                if self.mode.is_raw() {
                    let evaluated = inputs.evaluate(&batch)?;
                    for (i, accumulator) in accumulators.iter_mut().enumerate() {
                        accumulator.update_batch(&inputs.of_call(i, &evaluated).values)?;
                    }
                } else {
                    merge_whole(&calls, &mut accumulators, &batch)?;
                }
                let size = accumulators.iter().map(|a| a.size()).sum();
                if reservation.try_resize(size).is_err() {
                    if self.mode != AggregateMode::Partial {
                        Err(exhausted(size - reservation.size()))?;
                    }
                    yield self.whole_row(&calls, &mut accumulators)?;
                    accumulators = create(&calls)?;
                    reservation.free();
                }
                tokio::task::consume_budget().await;
            }
            yield self.whole_row(&calls, &mut accumulators)?;
        })
    }

    fn whole_row(
        &self,
        calls: &[Arc<AggregateFunctionExpr>],
        accumulators: &mut [Box<dyn Accumulator>],
    ) -> Result<Batch> {
        let mut columns = vec![];
        for (accumulator, call) in accumulators.iter_mut().zip(calls) {
            if self.mode == AggregateMode::Partial {
                let states = accumulator.state()?;
                let states =
                    states.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
                columns.extend(declared(states, call.state_fields())?);
            } else {
                let result = accumulator.evaluate()?.to_array()?;
                columns.push(in_type(result, call.field().data_type())?);
            }
        }
        Batch::from_arrays(Arc::clone(&self.schema), columns, 1)
    }

    /// Rows are grouped by keys.
    fn run_groups(self, mut input: BatchStream, ctx: Arc<TaskContext>) -> BatchStream {
        Box::pin(try_stream! {
            let calls = self.bound(&ctx).await?;
            let partial = self.mode == AggregateMode::Partial;
            let reservation = ctx.reservation("AggregateExec", !partial);
            let mut source = RowSource::try_new(&self, &calls, &ctx).await?;
            let mut groups = Groups::try_new(self.key_fields(), calls.clone())?;
            let mut spill: Option<GraceSpill> = None;
            let mut skip = SkipDecision::new(&ctx, partial && source.can_skip(&calls));
            source.add_empty_sets(&mut groups)?;

            while let Some(batch) = input.next().await {
                let batch = batch?;
                if batch.num_rows() == 0 {
                    continue;
                }
                source.consume(&batch, &mut groups)?;
                if reservation.try_resize(groups.size()).is_err() {
                    let columns = groups.take_states()?;
                    if partial {
                        for batch in sliced(columns, &self.schema, ctx.batch_size()) {
                            yield batch?;
                        }
                    } else {
                        self.evict(&mut spill, 0, &ctx, &columns)?;
                    }
                    reservation.free();
                }
                if skip.after(batch.num_rows(), groups.len()) {
                    break;
                }
                tokio::task::consume_budget().await;
            }

            if skip.skipping {
                for batch in sliced(groups.take_states()?, &self.schema, ctx.batch_size()) {
                    yield batch?;
                }
                reservation.free();
                while let Some(batch) = input.next().await {
                    let batch = batch?;
                    self.metrics.add("rows_passed_on", batch.num_rows());
                    yield source.pass_on(&batch, &groups, &self.schema)?;
                }
                return;
            }
            drop(input);

            let Some(mut spill) = spill else {
                let columns = if partial { groups.take_states()? } else { groups.take_results()? };
                for batch in sliced(columns, &self.schema, ctx.batch_size()) {
                    yield batch?;
                }
                return;
            };
            spill.write(&ctx, &groups.take_states()?)?;
            drop(groups);
            reservation.free();
            let mut parts = self.finish(spill)?;
            while let Some(part) = parts.pop() {
                let (groups, more) = self.merge_part(part, &calls, &reservation, &ctx).await?;
                parts.extend(more);
                if let Some(mut groups) = groups {
                    for batch in sliced(groups.take_results()?, &self.schema, ctx.batch_size()) {
                        yield batch?;
                    }
                }
                reservation.free();
            }
        })
    }

    fn key_fields(&self) -> Vec<FieldRef> {
        self.state_schema.fields().iter().take(self.keys).cloned().collect()
    }

    fn evict(
        &self,
        spill: &mut Option<GraceSpill>,
        level: u32,
        ctx: &TaskContext,
        columns: &[ArrayRef],
    ) -> Result<()> {
        spill
            .get_or_insert_with(|| {
                GraceSpill::new(Arc::clone(&self.state_schema), self.keys, level)
            })
            .write(ctx, columns)
    }

    fn finish(&self, spill: GraceSpill) -> Result<Vec<SpilledPart>> {
        let parts = spill.finish()?;
        let bytes = parts.iter().map(|p| p.file.bytes()).sum();
        self.metrics.add("spilled_bytes", bytes);
        Ok(parts)
    }

    /// Merges one spilled part: all of its groups, or smaller parts when it does not fit.
    async fn merge_part(
        &self,
        part: SpilledPart,
        calls: &[Arc<AggregateFunctionExpr>],
        reservation: &MemoryReservation,
        ctx: &Arc<TaskContext>,
    ) -> Result<(Option<Groups>, Vec<SpilledPart>)> {
        let level = part.level;
        let mut batches = part.file.stream()?;
        let mut groups = Groups::try_new(self.key_fields(), calls.to_vec())?;
        let mut spill: Option<GraceSpill> = None;
        while let Some(batch) = batches.next().await {
            merge_states(&batch?, self.keys, &mut groups)?;
            let size = groups.size();
            if reservation.try_resize(size).is_err() {
                if level >= MAX_LEVEL {
                    return Err(exhausted(size - reservation.size()));
                }
                self.evict(&mut spill, level, ctx, &groups.take_states()?)?;
                reservation.free();
            }
        }
        match spill {
            None => Ok((Some(groups), vec![])),
            Some(mut spill) => {
                spill.write(ctx, &groups.take_states()?)?;
                Ok((None, self.finish(spill)?))
            }
        }
    }
}

fn merge_whole(
    calls: &[Arc<AggregateFunctionExpr>],
    accumulators: &mut [Box<dyn Accumulator>],
    batch: &Batch,
) -> Result<()> {
    let mut at = 0;
    for (accumulator, call) in accumulators.iter_mut().zip(calls) {
        let end = at + call.state_fields().len();
        let states = (at..end).map(|i| batch.column(i)).collect::<Result<Vec<_>>>()?;
        accumulator.merge_batch(&states)?;
        at = end;
    }
    Ok(())
}

fn create(calls: &[Arc<AggregateFunctionExpr>]) -> Result<Vec<Box<dyn Accumulator>>> {
    calls.iter().map(|call| call.create_accumulator()).collect()
}

/// `columns` as batches of at most `size` rows; nothing is copied.
fn sliced(
    columns: Vec<ArrayRef>,
    schema: &SchemaRef,
    size: usize,
) -> impl Iterator<Item = Result<Batch>> + use<> {
    let rows = columns.first().map_or(0, |c| c.len());
    let schema = Arc::clone(schema);
    (0..rows).step_by(size.max(1)).map(move |start| {
        let len = size.min(rows - start);
        let columns = columns.iter().map(|c| c.slice(start, len)).collect();
        Batch::from_arrays(Arc::clone(&schema), columns, len)
    })
}

fn exhausted(bytes: usize) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "AggregateExec needs {:.1} MB more than the memory limit allows; raise it with \
         --memory-limit or SET datafusion.runtime.memory_limit",
        bytes as f64 / 1_000_000.0
    ))
}
