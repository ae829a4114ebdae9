//! `HashJoinExec`: rows of two inputs whose keys are equal.
//!
//! The left input is the build side. In `CollectLeft` mode one table is built, in parallel, from
//! all partitions of the left input as they come, and every partition of the right input probes
//! it where it is: neither side needs a distribution. In `Partitioned` mode both sides are
//! hash-partitioned on the keys, and partition `i` joins partition `i`.
//!
//! Build rows stay in their batches, output batches are selections over them and over the probe
//! batch: nothing is gathered that is not read. Probe rows keep their order, unless build rows
//! follow (Left, Full, LeftSemi, LeftAnti, LeftMark), which come from the last probe partition
//! to finish.
//!
//! Memory: the build side and its table are reserved, and not spilled. Dropping all partitions
//! aborts the build.

mod build;
mod key_filter;
mod keys;
mod layout;
mod null_aware;
mod pack;
mod probe;
mod pushdown;
mod recode;
mod table;
#[cfg(test)]
mod tests;

use crate::context::{TaskContext, node_id};
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::emitted::Emitted;
use crate::operators::join_filter::{JoinFilter, Residual};
use crate::operators::join_output::JoinOutput;
use crate::operators::join_probe::{deferred, empty, probe_stream};
use crate::operators::join_pushdown::restore_columns;
use crate::operators::join_schema::{
    emits_build_rows, join_properties, join_statistics, key_values,
};
use crate::properties::PlanProperties;
use crate::shared::SharedTask;
use build::{BuildSpec, HashBuild};
use datafusion_common::{JoinType, NullEquality, Result, Statistics, internal_err, plan_err};
use keys::KeyEncoder;
use null_aware::NullAwareProbe;
use planish_expr::expressions::DynamicFilterExpr;
use planish_expr::{Distribution, PhysicalExprRef};
use probe::HashProbe;
use std::fmt;
use std::sync::Arc;

/// How the two sides of a hash join meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMode {
    /// One table of all left partitions, probed by every right partition.
    CollectLeft,
    /// Both sides hash-partitioned on the keys; partition `i` meets partition `i`.
    Partitioned,
    /// Not decided yet; runs as `CollectLeft` if nobody decides.
    Auto,
}

/// A join on equal keys, with an optional residual condition.
#[derive(Debug)]
pub struct HashJoinExec {
    pub(crate) left: PlanRef,
    pub(crate) right: PlanRef,
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) join_type: JoinType,
    pub(crate) on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
    pub(crate) mode: PartitionMode,
    pub(crate) null_equality: NullEquality,
    pub(crate) null_aware: bool,
    pub(crate) emitted: Emitted,
    /// What drops probe rows below that cannot match, where somebody does.
    dynamic_filter: Option<PhysicalExprRef>,
    encoder: KeyEncoder,
    properties: PlanProperties,
}

impl HashJoinExec {
    /// A join of `left` (the build side) and `right` on the pairs `on` of expressions, the first
    /// of a pair over the left input, the second over the right.
    ///
    /// `filter` is a further condition on pairs of equal keys. A `null_aware` join is `NOT IN`,
    /// a `LeftAnti` join whose *first* pair is the comparison of `NOT IN`; further pairs and the
    /// filter are the subquery's correlation. It runs as `CollectLeft` only.
    ///
    /// # Errors
    /// A plan error when there is no key, when types do not fit, or when `null_aware` is asked
    /// of a join that cannot be.
    #[expect(clippy::too_many_arguments, reason = "a join is all of these")]
    pub fn try_new(
        left: PlanRef,
        right: PlanRef,
        on: Vec<(PhysicalExprRef, PhysicalExprRef)>,
        filter: Option<JoinFilter>,
        join_type: JoinType,
        mode: PartitionMode,
        null_equality: NullEquality,
        null_aware: bool,
    ) -> Result<Self> {
        let (left_schema, right_schema) = (left.schema(), right.schema());
        if on.is_empty() {
            return plan_err!("a hash join needs a key");
        }
        if null_aware {
            let plain = null_equality == NullEquality::NullEqualsNothing;
            if join_type != JoinType::LeftAnti || !plain || mode == PartitionMode::Partitioned {
                return plan_err!(
                    "a null-aware join is a LeftAnti join in which NULL equals nothing, with one \
                     table for all partitions, not {join_type} in mode {mode:?}"
                );
            }
        }
        if let Some(filter) = &filter {
            filter.check(&left_schema, &right_schema)?;
        }
        let mut types = vec![];
        for (l, r) in &on {
            types.push((l.data_type(&left_schema)?, r.data_type(&right_schema)?));
        }
        KeyEncoder::try_new(&types, null_equality)?;
        let table_types = if null_aware && on.len() > 1 { &types[1..] } else { &types[..] };
        let encoder = KeyEncoder::try_new(table_types, null_equality)?;
        let properties =
            join_properties(&left, &right, &on, join_type, mode == PartitionMode::Partitioned)?;
        Ok(HashJoinExec {
            left,
            right,
            filter,
            join_type,
            on,
            mode,
            null_equality,
            null_aware,
            emitted: Emitted::all(Arc::clone(properties.schema())),
            dynamic_filter: None,
            encoder,
            properties,
        })
    }

    /// The same join, of whose columns only those at `indices` come out; `None`: all.
    pub(crate) fn emitting(self, indices: Option<Arc<[usize]>>) -> Result<Self> {
        let emitted = Emitted::only(Arc::clone(self.emitted.made()), indices);
        let properties = emitted.properties(self.properties)?;
        Ok(HashJoinExec { emitted, properties, ..self })
    }

    /// The build side.
    pub fn left(&self) -> &PlanRef {
        &self.left
    }

    /// The probe side.
    pub fn right(&self) -> &PlanRef {
        &self.right
    }

    /// The residual condition.
    pub fn filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }

    /// The join type.
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }

    /// The pairs of keys, `(left, right)`.
    pub fn on(&self) -> &[(PhysicalExprRef, PhysicalExprRef)] {
        &self.on
    }

    /// How the two sides meet.
    pub fn mode(&self) -> PartitionMode {
        self.mode
    }

    /// Whether NULL keys match each other.
    pub fn null_equality(&self) -> NullEquality {
        self.null_equality
    }

    /// Whether this is `NOT IN`.
    pub fn null_aware(&self) -> bool {
        self.null_aware
    }

    /// Which of the columns it makes this node hands on, and in which order; `None`: all. Only its
    /// output has these coordinates: its expressions are over its inputs.
    pub fn projection(&self) -> Option<&[usize]> {
        self.emitted.as_slice()
    }

    /// The same join in another mode.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub fn with_mode(&self, mode: PartitionMode) -> Result<Self> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        self.emitting_all(left, right, mode)?.emitting(self.emitted.indices())
    }

    /// The same join of other inputs, handing on all columns.
    fn emitting_all(&self, left: PlanRef, right: PlanRef, mode: PartitionMode) -> Result<Self> {
        HashJoinExec::try_new(
            left,
            right,
            self.on.clone(),
            self.filter.clone(),
            self.join_type,
            mode,
            self.null_equality,
            self.null_aware,
        )
    }

    /// Whether [`Self::swap_inputs`] works: a null-aware join has its sides.
    pub fn supports_swap(&self) -> bool {
        !self.null_aware
    }

    /// The same rows and columns with the inputs in each other's place, in mode `mode`.
    ///
    /// # Errors
    /// A plan error for a null-aware join.
    pub fn swap_inputs(&self, mode: PartitionMode) -> Result<PlanRef> {
        if self.null_aware {
            return plan_err!("the inputs of a null-aware join cannot be swapped");
        }
        let on = self.on.iter().map(|(l, r)| (Arc::clone(r), Arc::clone(l))).collect();
        let swapped = HashJoinExec::try_new(
            Arc::clone(&self.right),
            Arc::clone(&self.left),
            on,
            self.filter.as_ref().map(JoinFilter::swap),
            self.join_type.swap(),
            mode,
            self.null_equality,
            false,
        )?;
        let left_len = self.left.schema().fields().len();
        match self.emitted.swapped(left_len, self.join_type) {
            Some(indices) => Ok(Arc::new(swapped.emitting(Some(indices))?)),
            None => restore_columns(Arc::new(swapped), &self.schema(), left_len, self.join_type),
        }
    }

    fn build_spec(&self) -> BuildSpec {
        let correlated = self.null_aware && self.on.len() > 1;
        let mut keys: Vec<_> = self.on.iter().map(|(l, _)| Arc::clone(l)).collect();
        let in_key = correlated.then(|| keys.remove(0));
        BuildSpec {
            left: Arc::clone(&self.left),
            keys,
            encoder: self.encoder.clone(),
            in_key,
            null_aware: self.null_aware,
            join_type: self.join_type,
            node: node_id(self),
            dynamic: None,
        }
    }

    fn probe_spec(&self) -> ProbeSpec {
        let correlated = self.null_aware && self.on.len() > 1;
        let mut keys: Vec<_> = self.on.iter().map(|(_, r)| Arc::clone(r)).collect();
        let in_key = correlated.then(|| keys.remove(0));
        ProbeSpec { keys, in_key, encoder: self.encoder.clone(), null_aware: self.null_aware }
    }
}

struct ProbeSpec {
    keys: Vec<PhysicalExprRef>,
    in_key: Option<PhysicalExprRef>,
    encoder: KeyEncoder,
    null_aware: bool,
}

impl ExecutionPlan for HashJoinExec {
    fn name(&self) -> &'static str {
        "HashJoinExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        let [left, right] = children.as_slice() else {
            return internal_err!("a join of {} inputs", children.len());
        };
        let mut new = self.emitting_all(Arc::clone(left), Arc::clone(right), self.mode)?;
        new.dynamic_filter = self.dynamic_filter.clone();
        Ok(Arc::new(new.emitting(self.emitted.indices())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<String> = self.on.iter().map(|(l, r)| format!("({l}, {r})")).collect();
        write!(f, "mode={:?}, join_type={}, on=[{}]", self.mode, self.join_type, on.join(", "))?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter}")?;
        }
        if self.null_equality == NullEquality::NullEqualsNull {
            f.write_str(", nulls_equal=true")?;
        }
        if self.null_aware {
            f.write_str(", null_aware=true")?;
        }
        if let Some(filter) = &self.dynamic_filter {
            write!(f, ", dynamic_filter={filter}")?;
        }
        self.emitted.fmt(f, ", ")
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let keys = self.on.iter().flat_map(|(l, r)| [Arc::clone(l), Arc::clone(r)]);
        keys.chain(self.filter.iter().map(|f| Arc::clone(f.expression()))).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        match self.mode {
            PartitionMode::CollectLeft | PartitionMode::Auto => {
                vec![Distribution::UnspecifiedDistribution; 2]
            }
            PartitionMode::Partitioned => {
                let (left, right) =
                    self.on.iter().map(|(l, r)| (Arc::clone(l), Arc::clone(r))).unzip();
                vec![Distribution::HashPartitioned(left), Distribution::HashPartitioned(right)]
            }
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, !emits_build_rows(self.join_type)]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let right = execute_stream(&self.right, partition, ctx)?;
        let (join_type, filter) = (self.join_type, self.filter.clone());
        let (schema, right_schema) = (Arc::clone(self.emitted.made()), self.right.schema());
        let (mut build_spec, probe_spec) = (self.build_spec(), self.probe_spec());
        let dynamic =
            self.dynamic_filter.as_ref().and_then(|f| f.downcast_ref::<DynamicFilterExpr>());
        build_spec.dynamic = dynamic.map(|filter| ctx.dynamic_filter(filter.id()));
        let node = node_id(self);
        let probes = self.right.partition_count();
        let left_partitions = self.left.partition_count();
        let shared = match self.mode {
            PartitionMode::CollectLeft | PartitionMode::Auto => {
                let state = ctx.state(node, || SharedBuild(Arc::new(SharedTask::new(probes))));
                Some((Arc::clone(&state.0), state.0.guard()))
            }
            PartitionMode::Partitioned if left_partitions != probes => {
                return internal_err!(
                    "a partitioned join of {left_partitions} and {probes} partitions"
                );
            }
            PartitionMode::Partitioned => None,
        };
        let ctx = Arc::clone(ctx);
        let setup = async move {
            let (build, guard) = match shared {
                Some((task, guard)) => {
                    let build = task.get(|| {
                        let work = build_spec.build(0..left_partitions, probes, Arc::clone(&ctx));
                        Ok(ctx.spawn_for(node, work))
                    });
                    (build.await?, Some(guard))
                }
                None => {
                    let work = build_spec.build(partition..partition + 1, 1, Arc::clone(&ctx));
                    (Arc::new(work.await?), None)
                }
            };
            let no_rows =
                build.rows.len() == 0 && join_type.empty_build_side_produces_empty_result();
            let no_match = build.no_keys
                && matches!(join_type, JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi);
            if no_rows || no_match {
                return Ok(empty());
            }
            let keys = ctx.bind_all(&probe_spec.keys).await?;
            let residual = match &filter {
                Some(filter) => Some(Residual::bind(filter, &build.rows.rows, &ctx).await?),
                None => None,
            };
            let rows = Arc::clone(&build.rows);
            let out = JoinOutput::new(join_type, schema, right_schema, rows, ctx.batch_size());
            if !probe_spec.null_aware {
                let source = HashProbe::new(build, keys, probe_spec.encoder, residual);
                return Ok(probe_stream(right, source, out, guard));
            }
            let in_key = match &probe_spec.in_key {
                Some(key) => Some(ctx.bind(key).await?),
                None => None,
            };
            let source = NullAwareProbe::new(build, keys, probe_spec.encoder, in_key, residual);
            Ok(probe_stream(right, source, out, guard))
        };
        Ok(self.emitted.stream(deferred(setup), self.schema()))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let of_left = if self.mode == PartitionMode::Partitioned { partition } else { None };
        let (left, right) = (self.left.statistics(of_left)?, self.right.statistics(partition)?);
        let (left_schema, right_schema) = (self.left.schema(), self.right.schema());
        let on = key_values(&self.on, (&left, &left_schema), (&right, &right_schema));
        self.emitted.statistics(join_statistics(
            &left,
            &right,
            &on,
            self.join_type,
            self.filter.is_some(),
            self.emitted.made(),
        ))
    }
}

/// The build that all partitions of one execution share.
struct SharedBuild(Arc<SharedTask<HashBuild>>);
