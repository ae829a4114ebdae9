//! Plans to test operators on: scans of given rows, and a source that misbehaves on demand.

use crate::batches;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics, exec_err};
use planish_batch::Batch;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::expressions::Column;
use planish_expr::{LexOrdering, Partitioning, PhysicalExprRef, PhysicalSortExpr};
use planish_plan::operators::memory::MemoryScanExec;
use planish_plan::{BatchStream, ExecutionPlan, PlanProperties, PlanRef, Pushdown, TaskContext};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A scan of `data`, its rows dealt to `partitions` partitions in pieces of 10.
///
/// # Panics
/// When the scan cannot be made.
pub fn scan(data: &RecordBatch, partitions: usize) -> PlanRef {
    let parts = batches::deal(data, partitions, 10);
    Arc::new(MemoryScanExec::try_new(parts, data.schema(), None).unwrap())
}

/// Column `name` of `schema`.
///
/// # Panics
/// When there is none.
pub fn col(name: &str, schema: &SchemaRef) -> PhysicalExprRef {
    Arc::new(Column::new_with_schema(name, schema).unwrap())
}

/// A sort key over column `name`.
///
/// # Panics
/// When there is no such column.
pub fn sort_key(
    name: &str,
    descending: bool,
    nulls_first: bool,
    schema: &SchemaRef,
) -> PhysicalSortExpr {
    let options = arrow::compute::SortOptions { descending, nulls_first };
    PhysicalSortExpr::new(col(name, schema), options)
}

/// A source of ready batches in any form, which can be told how to behave.
#[derive(Debug)]
pub struct Source {
    partitions: Arc<[Vec<Batch>]>,
    fails_after: Option<usize>,
    panics: bool,
    endless: bool,
    polled: Arc<AtomicUsize>,
    properties: PlanProperties,
}

impl Source {
    /// A source of these batches, one list per partition.
    pub fn new(schema: SchemaRef, partitions: Vec<Vec<Batch>>) -> Self {
        let count = partitions.len();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(count),
        );
        Source {
            partitions: partitions.into(),
            fails_after: None,
            panics: false,
            endless: false,
            polled: Arc::default(),
            properties,
        }
    }

    /// The rows of `data` in a disguise, dealt to `partitions` partitions, `rows` per batch.
    pub fn disguised(
        data: &RecordBatch,
        partitions: usize,
        rows: usize,
        disguise: batches::Disguise,
    ) -> Self {
        let parts = batches::deal(data, partitions, rows)
            .iter()
            .map(|part| part.iter().map(|b| batches::disguised(b, disguise)).collect())
            .collect();
        Source::new(data.schema(), parts)
    }

    /// The same source, whose partitions are known to be ordered so.
    #[must_use]
    pub fn with_ordering(mut self, ordering: LexOrdering) -> Self {
        self.properties.equivalences.add_ordering(ordering);
        self
    }

    /// The same source with other equivalences.
    #[must_use]
    pub fn with_equivalences(mut self, equivalences: EquivalenceProperties) -> Self {
        self.properties.equivalences = equivalences;
        self
    }

    /// The same source claiming another partitioning.
    #[must_use]
    pub fn with_partitioning(mut self, partitioning: Partitioning) -> Self {
        self.properties.partitioning = partitioning;
        self
    }

    /// Each partition fails with "the source broke" after `batches` batches.
    #[must_use]
    pub fn failing_after(mut self, batches: usize) -> Self {
        self.fails_after = Some(batches);
        self
    }

    /// As [`Self::failing_after`], with a panic.
    #[must_use]
    pub fn panicking_after(mut self, batches: usize) -> Self {
        self.fails_after = Some(batches);
        self.panics = true;
        self
    }

    /// Each partition repeats its batches forever.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.endless = true;
        self
    }

    /// A counter of the batches taken from this source.
    pub fn polled(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.polled)
    }
}

impl ExecutionPlan for Source {
    fn name(&self) -> &'static str {
        "Source"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(Source {
            partitions: Arc::clone(&self.partitions),
            fails_after: self.fails_after,
            panics: self.panics,
            endless: self.endless,
            polled: Arc::clone(&self.polled),
            properties: self.properties.clone(),
        }))
    }

    fn execute(&self, partition: usize, _ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        let Some(batches) = self.partitions.get(partition).cloned() else {
            return exec_err!("no partition {partition}");
        };
        let polled = Arc::clone(&self.polled);
        let (fails_after, panics, endless) = (self.fails_after, self.panics, self.endless);
        Ok(Box::pin(async_stream::try_stream! {
            let mut given = 0;
            loop {
                for batch in &batches {
                    if fails_after == Some(given) {
                        break;
                    }
                    given += 1;
                    polled.fetch_add(1, Ordering::Relaxed);
                    yield batch.clone();
                    if given % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                if fails_after.is_some_and(|n| n <= given) {
                    if panics {
                        panic!("the source blew up");
                    }
                    exec_err!("the source broke")?;
                }
                if !endless || batches.is_empty() {
                    break;
                }
            }
        }))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partitions={}", self.partitions.len())
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let rows = self
            .partitions
            .iter()
            .enumerate()
            .filter(|(i, _)| partition.is_none_or(|p| p == *i))
            .flat_map(|(_, part)| part)
            .map(Batch::num_rows)
            .sum();
        let statistics = Statistics::new_unknown(&self.schema());
        Ok(statistics.with_num_rows(Precision::Exact(rows)))
    }
}

impl Pushdown for Source {}
