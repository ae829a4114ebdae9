//! How the rows of a stream are spread over partitions, and how an operator wants them spread.

use crate::PhysicalExprRef;
use crate::equivalence::EquivalenceProperties;
use std::fmt;

/// How an operator's output is spread over its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// Whole batches in turn.
    RoundRobinBatch(usize),
    /// Rows with equal values of all expressions share a partition.
    Hash(Vec<PhysicalExprRef>, usize),
    /// Nothing is known but the number of partitions.
    UnknownPartitioning(usize),
}

/// How an operator wants the rows of an input spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Any way.
    UnspecifiedDistribution,
    /// All rows in one partition.
    SinglePartition,
    /// Rows with equal values of all expressions in one partition.
    HashPartitioned(Vec<PhysicalExprRef>),
}

impl Partitioning {
    /// Number of partitions.
    pub fn partition_count(&self) -> usize {
        match self {
            Partitioning::RoundRobinBatch(n)
            | Partitioning::Hash(_, n)
            | Partitioning::UnknownPartitioning(n) => *n,
        }
    }

    /// Whether rows spread this way are spread as `required`, given what is known about the
    /// stream. Hash partitioning satisfies a requirement on the same expressions, up to
    /// equivalence and order; one partition satisfies everything.
    pub fn satisfies(&self, required: &Distribution, properties: &EquivalenceProperties) -> bool {
        match required {
            Distribution::UnspecifiedDistribution => true,
            _ if self.partition_count() == 1 => true,
            Distribution::SinglePartition => false,
            Distribution::HashPartitioned(wanted) => match self {
                Partitioning::Hash(keys, _) => same_expressions(keys, wanted, properties),
                _ => false,
            },
        }
    }
}

fn same_expressions(
    a: &[PhysicalExprRef],
    b: &[PhysicalExprRef],
    properties: &EquivalenceProperties,
) -> bool {
    let a: Vec<_> = a.iter().map(|e| properties.normalize_expr(e)).collect();
    let b: Vec<_> = b.iter().map(|e| properties.normalize_expr(e)).collect();
    !a.is_empty() && a.iter().all(|e| b.contains(e)) && b.iter().all(|e| a.contains(e))
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::UnspecifiedDistribution => f.write_str("UnspecifiedDistribution"),
            Distribution::SinglePartition => f.write_str("SinglePartition"),
            Distribution::HashPartitioned(exprs) => {
                let exprs: Vec<String> = exprs.iter().map(ToString::to_string).collect();
                write!(f, "HashPartitioned([{}])", exprs.join(", "))
            }
        }
    }
}

impl fmt::Display for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Partitioning::RoundRobinBatch(n) => write!(f, "RoundRobinBatch({n})"),
            Partitioning::Hash(exprs, n) => {
                let exprs: Vec<String> = exprs.iter().map(ToString::to_string).collect();
                write!(f, "Hash([{}], {n})", exprs.join(", "))
            }
            Partitioning::UnknownPartitioning(n) => write!(f, "UnknownPartitioning({n})"),
        }
    }
}
