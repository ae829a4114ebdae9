//! What is known about an operator's output before it runs.

use arrow::datatypes::SchemaRef;
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::{LexOrdering, Partitioning};

/// Whether an input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundedness {
    /// It ends.
    Bounded,
    /// It may go on forever.
    Unbounded,
}

/// When an operator hands on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmissionType {
    /// As rows come in.
    Incremental,
    /// Only after all of its (build) input was seen.
    Final,
    /// Some rows as they come in, the rest at the end.
    Both,
}

/// What is known about an operator's output: the facts later rules live on.
#[derive(Clone, Debug)]
pub struct PlanProperties {
    /// Orders, equalities, constants, and the schema.
    pub equivalences: EquivalenceProperties,
    /// How rows are spread.
    pub partitioning: Partitioning,
    /// Whether the output ends.
    pub boundedness: Boundedness,
    /// When rows come.
    pub emission: EmissionType,
}

impl PlanProperties {
    /// Bounded, incremental output.
    pub fn new(equivalences: EquivalenceProperties, partitioning: Partitioning) -> Self {
        PlanProperties {
            equivalences,
            partitioning,
            boundedness: Boundedness::Bounded,
            emission: EmissionType::Incremental,
        }
    }

    /// The same with another emission.
    #[must_use]
    pub fn with_emission(mut self, emission: EmissionType) -> Self {
        self.emission = emission;
        self
    }

    /// The same with another boundedness.
    #[must_use]
    pub fn with_boundedness(mut self, boundedness: Boundedness) -> Self {
        self.boundedness = boundedness;
        self
    }

    /// The output schema.
    pub fn schema(&self) -> &SchemaRef {
        self.equivalences.schema()
    }

    /// Number of output partitions.
    pub fn partition_count(&self) -> usize {
        self.partitioning.partition_count()
    }

    /// The order of each partition's rows, if one is known.
    pub fn output_ordering(&self) -> Option<&LexOrdering> {
        self.equivalences.output_ordering()
    }
}
