//! Scans of generated files.

mod common;
mod csv;
mod listing;
mod objects;
mod parquet;
mod pruning;
mod schemas;
