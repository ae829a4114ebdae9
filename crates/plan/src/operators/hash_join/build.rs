//! The build side: batches with their keys, collected from all partitions at once, then the
//! table over them.

use crate::context::TaskContext;
use crate::dynamic_filters::DynamicFilter;
use crate::execution_plan::PlanRef;
use crate::floats::normalize_floats;
use crate::operators::hash_join::key_filter;
use crate::operators::hash_join::keys::{KeyEncoder, null_rows};
use crate::operators::hash_join::recode::Spans;
use crate::operators::hash_join::table::{JoinTable, plan_table};
use crate::operators::join_schema::emits_build_rows;
use crate::operators::join_state::{BuildRows, Collector, MatchedRows, grow};
use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion_common::{JoinType, Result};
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the build of one table needs to know of the join.
#[derive(Clone)]
pub(crate) struct BuildSpec {
    /// The build side.
    pub(crate) left: PlanRef,
    /// The key expressions over it that the table is keyed on.
    pub(crate) keys: Vec<PhysicalExprRef>,
    /// How they become codes.
    pub(crate) encoder: KeyEncoder,
    /// A null-aware anti join with correlation keys: the key that `NOT IN` compares.
    pub(crate) in_key: Option<PhysicalExprRef>,
    /// A null-aware anti join.
    pub(crate) null_aware: bool,
    /// The join type.
    pub(crate) join_type: JoinType,
    /// The join's node id.
    pub(crate) node: usize,
    /// Where to say which probe rows can match.
    pub(crate) dynamic: Option<Arc<DynamicFilter>>,
}

/// A build side with its table, shared by the partitions that probe it.
pub(crate) struct HashBuild {
    /// The rows.
    pub(crate) rows: Arc<BuildRows>,
    /// The table over them.
    pub(crate) table: JoinTable,
    /// Whether no row can match.
    pub(crate) no_keys: bool,
    /// Null-aware: rows with a NULL key.
    pub(crate) null_rows: Vec<u32>,
    /// Null-aware: the values of [`BuildSpec::in_key`].
    pub(crate) in_values: Option<ArrayRef>,
    /// Null-aware: whether any partition saw a probe row.
    pub(crate) probe_seen: AtomicBool,
    /// Null-aware: whether any partition saw a probe row with a NULL key.
    pub(crate) probe_null_seen: AtomicBool,
}

impl BuildSpec {
    /// Builds from `partitions` of the left input, for `probes` probing partitions.
    pub(crate) async fn build(
        self,
        partitions: Range<usize>,
        probes: usize,
        ctx: Arc<TaskContext>,
    ) -> Result<HashBuild> {
        let collector = Collector::new(&self.left, self.node, "HashJoinExec", &ctx);
        let exprs = ctx.bind_all(&self.keys).await?;
        let in_key = match &self.in_key {
            Some(key) => Some(ctx.bind(key).await?),
            None => None,
        };
        let bound_keys = exprs.clone();
        let encoder = self.encoder.clone();
        let lanes = encoder.lanes();
        let digest = move |batch: &Batch| {
            let keys = encoder.encode(&exprs, batch)?;
            let values = match &in_key {
                Some(key) => Some(normalize_floats(&key.evaluate_array(batch)?)?),
                None => None,
            };
            let spans = Spans::of(&keys, &lanes);
            let bytes = keys.size() + values.as_ref().map_or(0, |v| v.get_array_memory_size());
            Ok(((keys, (spans, values)), bytes))
        };
        let collected = collector.collect(partitions, &ctx, digest).await?;
        let (batches, digests): (Vec<Batch>, Vec<_>) = collected.into_iter().unzip();
        let (keys, rest): (Vec<_>, Vec<_>) = digests.into_iter().unzip();
        let (spans, values): (Vec<Spans>, Vec<_>) = rest.into_iter().unzip();
        let total: usize = batches.iter().map(Batch::num_rows).sum();

        let reservation = Arc::clone(&collector.reservation);
        let spans = spans.iter().fold(Spans::default(), Spans::union);
        let plan = plan_table(&keys, &spans, &self.encoder.lanes());
        let tracks = emits_build_rows(self.join_type);
        let marks = if tracks { MatchedRows::bytes_for(total) } else { 0 };
        // The build side as one batch costs a row reference per row.
        grow(&reservation, collector.name, plan.bytes + marks + total * 8)?;
        let rows = BuildRows::try_new(
            &self.left.schema(),
            &batches,
            probes,
            tracks,
            Arc::clone(&reservation),
        )?;
        if let Some(filter) = &self.dynamic
            && let Some((predicate, coarse)) = key_filter::predicate(&bound_keys, &batches)?
        {
            filter.set(predicate, coarse, self.node);
        }
        drop(batches);

        let mut nulls = vec![];
        let mut valid = 0;
        let mut start = 0;
        for batch in &keys {
            let of_batch = batch.nulls.as_ref().map_or(0, |n| n.null_count());
            valid += batch.len() - of_batch;
            if self.null_aware && of_batch > 0 {
                nulls.extend(null_rows(batch).set_indices_u32().map(|row| start + row));
            }
            start += batch.len() as u32;
        }
        let in_values = values.into_iter().collect::<Option<Vec<ArrayRef>>>();
        let in_values = match in_values {
            Some(values) if !values.is_empty() => {
                let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
                Some(concat(&values)?)
            }
            _ => None,
        };
        let key_bytes: usize = keys.iter().map(|k| k.size()).sum();
        let table = JoinTable::build(keys, plan, &ctx, self.node).await?;
        reservation.try_shrink(key_bytes)?;
        let metrics = ctx.metrics().node(self.node);
        metrics.add("build_rows", total);
        metrics.add("build_bytes", reservation.size());
        Ok(HashBuild {
            rows: Arc::new(rows),
            table,
            no_keys: valid == 0,
            null_rows: nulls,
            in_values,
            probe_seen: AtomicBool::new(false),
            probe_null_seen: AtomicBool::new(false),
        })
    }
}
