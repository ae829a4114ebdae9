//! The operators, one file or folder each.

pub mod aggregate;
pub mod coalesce_partitions;
pub mod cross_join;
mod emitted;
pub mod empty;
pub mod filter;
pub mod hash_join;
pub mod join_filter;
mod join_output;
mod join_probe;
mod join_product;
mod join_pushdown;
pub mod join_schema;
mod join_state;
#[cfg(test)]
mod join_testing;
pub mod limit;
pub mod memory;
pub mod nested_loop_join;
pub mod output_requirement;
pub(crate) mod passing;
pub mod placeholder_row;
pub mod projection;
pub mod repartition;
pub mod sort;
pub mod sort_merge_join;
pub mod sort_preserving_merge;
pub mod subplans;
pub mod union;
pub mod values;
pub mod window;
