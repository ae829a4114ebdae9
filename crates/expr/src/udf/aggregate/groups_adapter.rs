//! One [`Accumulator`] per group behind the interface for many groups, for functions (and
//! DISTINCT calls) that have no vectorized accumulator.
//!
//! Rows are brought together by group once per batch, so that each accumulator is fed one
//! contiguous slice.

use super::AggregateFunctionExpr;
use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow::compute::take;
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};

pub(super) struct GroupsAdapter {
    call: AggregateFunctionExpr,
    groups: Vec<Group>,
    /// Bytes held by all accumulators, as they said when last fed.
    size: usize,
    /// Scratch space: `group << 32 | row` of the rows of a batch.
    order: Vec<u64>,
}

struct Group {
    accumulator: Box<dyn Accumulator>,
    size: usize,
}

impl GroupsAdapter {
    pub(super) fn new(call: AggregateFunctionExpr) -> Self {
        GroupsAdapter { call, groups: vec![], size: 0, order: vec![] }
    }

    fn grow(&mut self, total: usize) -> Result<()> {
        while self.groups.len() < total {
            let accumulator = self.call.create_accumulator()?;
            let size = accumulator.size();
            self.size += size;
            self.groups.push(Group { accumulator, size });
        }
        Ok(())
    }

    /// Feeds each group its rows of `values`, in their order, through `feed`.
    fn feed(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        feed: impl Fn(&mut dyn Accumulator, &[ArrayRef]) -> Result<()>,
    ) -> Result<()> {
        self.order.clear();
        let pairs =
            group_indices.iter().enumerate().map(|(row, &g)| ((g as u64) << 32) | row as u64);
        match filter {
            Some(filter) => self.order.extend(
                pairs.zip(filter.iter()).filter(|(_, keep)| *keep == Some(true)).map(|(p, _)| p),
            ),
            None => self.order.extend(pairs),
        }
        let (Some(first), Some(last)) = (self.order.first(), self.order.last()) else {
            return Ok(());
        };
        let in_place = self.order.len() == group_indices.len()
            && first >> 32 == last >> 32
            && self.order.iter().all(|pair| pair >> 32 == first >> 32);
        let gathered: Vec<ArrayRef> = if in_place {
            values.to_vec()
        } else {
            self.order.sort_unstable();
            let rows: UInt32Array = self.order.iter().map(|pair| *pair as u32).collect();
            values.iter().map(|v| Ok(take(v.as_ref(), &rows, None)?)).collect::<Result<_>>()?
        };
        let mut start = 0;
        for chunk in self.order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let group = &mut self.groups[(chunk[0] >> 32) as usize];
            let slices: Vec<ArrayRef> =
                gathered.iter().map(|v| v.slice(start, chunk.len())).collect();
            feed(group.accumulator.as_mut(), &slices)?;
            let size = group.accumulator.size();
            self.size = self.size - group.size + size;
            group.size = size;
            start += chunk.len();
        }
        Ok(())
    }

    fn emit(&mut self, emit_to: EmitTo) -> Vec<Group> {
        let emitted = emit_to.take_needed(&mut self.groups);
        self.size -= emitted.iter().map(|g| g.size).sum::<usize>();
        emitted
    }
}

impl GroupsAccumulator for GroupsAdapter {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups)?;
        self.feed(values, group_indices, opt_filter, |accumulator, values| {
            accumulator.update_batch(values)
        })
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups)?;
        self.feed(values, group_indices, None, |accumulator, states| {
            accumulator.merge_batch(states)
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = self.emit(emit_to);
        if groups.is_empty() {
            return Ok(new_empty_array(self.call.field().data_type()));
        }
        ScalarValue::iter_to_array(
            groups
                .into_iter()
                .map(|mut group| group.accumulator.evaluate())
                .collect::<Result<Vec<_>>>()?,
        )
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.emit(emit_to);
        let fields = self.call.state_fields();
        if groups.is_empty() {
            return Ok(fields.iter().map(|f| new_empty_array(f.data_type())).collect());
        }
        let mut columns: Vec<Vec<ScalarValue>> =
            fields.iter().map(|_| Vec::with_capacity(groups.len())).collect();
        for mut group in groups {
            for (column, value) in columns.iter_mut().zip(group.accumulator.state()?) {
                column.push(value);
            }
        }
        columns.into_iter().map(ScalarValue::iter_to_array).collect()
    }

    fn convert_to_state(
        &self,
        _values: &[ArrayRef],
        _opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        not_impl_err!("a state per row of {}", self.call.name)
    }

    fn size(&self) -> usize {
        self.size
            + self.groups.capacity() * size_of::<Group>()
            + self.order.capacity() * size_of::<u64>()
    }
}
