//! `UnionExec`: the partitions of several inputs beside each other (`UNION ALL`).
//!
//! Nothing moves: output partition `i` is a partition of one input. What holds for the output is
//! what holds in all inputs; constants of the inputs need not agree, so they are not claimed.

use crate::context::TaskContext;
use crate::execute::{BatchStream, execute_stream};
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::operators::passing::{narrows, offer_filters};
use crate::operators::projection::ProjectionExec;
use crate::properties::{Boundedness, EmissionType, PlanProperties};
use crate::pushdown::{FilterDescription, FilterPushdownPhase, Pushdown};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::stats::NdvFallback;
use datafusion_common::{Result, Statistics, internal_err, plan_err};
use futures::StreamExt;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{Partitioning, PhysicalExprRef};
use std::fmt;
use std::sync::Arc;

/// All rows of all inputs.
#[derive(Debug)]
pub struct UnionExec {
    inputs: Vec<PlanRef>,
    properties: PlanProperties,
}

impl UnionExec {
    /// The union of inputs with the same column types; names and metadata are the first one's.
    ///
    /// # Errors
    /// A plan error when the inputs' columns do not fit, or there is none.
    pub fn try_new(inputs: Vec<PlanRef>) -> Result<Self> {
        let schema = union_schema(&inputs)?;
        let equivalences = common_equivalences(&inputs, schema);
        let partitions = inputs.iter().map(|input| input.partition_count()).sum();
        let unbounded = inputs.iter().any(|i| i.properties().boundedness == Boundedness::Unbounded);
        let emission = inputs
            .iter()
            .map(|input| input.properties().emission)
            .reduce(|a, b| if a == b { a } else { EmissionType::Both })
            .unwrap_or(EmissionType::Incremental);
        let properties =
            PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(partitions))
                .with_emission(emission)
                .with_boundedness(match unbounded {
                    true => Boundedness::Unbounded,
                    false => Boundedness::Bounded,
                });
        Ok(UnionExec { inputs, properties })
    }

    /// The inputs.
    pub fn inputs(&self) -> &[PlanRef] {
        &self.inputs
    }

    /// The input that output partition `partition` belongs to, and its partition there.
    fn locate(&self, mut partition: usize) -> Result<(&PlanRef, usize)> {
        let wanted = partition;
        for input in &self.inputs {
            match partition.checked_sub(input.partition_count()) {
                None => return Ok((input, partition)),
                Some(rest) => partition = rest,
            }
        }
        internal_err!("UnionExec has no partition {wanted}")
    }
}

fn union_schema(inputs: &[PlanRef]) -> Result<SchemaRef> {
    let Some((first, rest)) = inputs.split_first() else {
        return plan_err!("a union needs at least one input");
    };
    let first = first.schema();
    let mut fields: Vec<Field> = first.fields().iter().map(|f| f.as_ref().clone()).collect();
    for input in rest {
        let other = input.schema();
        if other.fields().len() != fields.len() {
            return plan_err!("a union of {} and {} columns", fields.len(), other.fields().len());
        }
        for (field, other) in fields.iter_mut().zip(other.fields()) {
            if field.data_type() != other.data_type() {
                return plan_err!(
                    "a union of {} as {} and {}",
                    field.name(),
                    field.data_type(),
                    other.data_type()
                );
            }
            field.set_nullable(field.is_nullable() || other.is_nullable());
        }
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, first.metadata().clone())))
}

/// Orders and equalities that hold in every input.
fn common_equivalences(inputs: &[PlanRef], schema: SchemaRef) -> EquivalenceProperties {
    if let [only] = inputs {
        return only.properties().equivalences.clone();
    }
    let all: Vec<_> = inputs.iter().map(|input| &input.properties().equivalences).collect();
    let mut common = EquivalenceProperties::new(schema);
    for class in all.iter().take(1).flat_map(|first| first.classes()) {
        for (i, a) in class.iter().enumerate() {
            for b in &class[i + 1..] {
                if all.iter().all(|e| e.normalize_expr(a).eq(&e.normalize_expr(b))) {
                    common.add_equal(a, b);
                }
            }
        }
    }
    for ordering in all.iter().flat_map(|e| e.orderings()) {
        let shared = all.iter().map(|e| e.common_prefix(ordering)).min().unwrap_or(0);
        common.add_ordering(ordering[..shared].to_vec());
    }
    common
}

impl ExecutionPlan for UnionExec {
    fn name(&self) -> &'static str {
        "UnionExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        self.inputs.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(UnionExec::try_new(children)?))
    }

    fn fmt_details(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let (input, partition) = self.locate(partition)?;
        let schema = self.schema();
        let batches = execute_stream(input, partition, ctx)?;
        Ok(Box::pin(batches.map(move |batch| Ok(batch?.with_schema(Arc::clone(&schema))))))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        if let Some(partition) = partition {
            let (input, partition) = self.locate(partition)?;
            return input.statistics(Some(partition));
        }
        let all =
            self.inputs.iter().map(|input| input.statistics(None)).collect::<Result<Vec<_>>>()?;
        Statistics::try_merge_iter_with_ndv_fallback(&all, &self.schema(), NdvFallback::Sum)
    }
}

impl Pushdown for UnionExec {
    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        if !narrows(projection, self.schema().fields().len()) {
            return Ok(None);
        }
        let inputs = self
            .inputs
            .iter()
            .map(|input| projection.with_input(Arc::clone(input)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Arc::new(UnionExec::try_new(inputs)?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: &[PhysicalExprRef],
        children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(offer_filters(parent_filters, children))
    }
}
