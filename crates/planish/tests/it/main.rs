//! The facade, end to end: one binary, since each links the whole engine.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod dynamic_filters;
mod errors;
mod files;
mod laziness;
mod pushdown;
mod running;
mod scan_functions;
mod sql;
mod statements;
mod streaming;
