//! Scans of generated files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod arrow;
mod common;
mod coordinates;
mod csv;
mod json;
mod listing;
mod objects;
mod parquet;
mod pruning;
mod row_filter;
mod schemas;
