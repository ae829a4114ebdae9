//! Each kind of expression: values, NULLs, constants, slices, empty batches, guards, text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

mod arithmetic;
mod common;
mod comparison;
mod conditional;
mod failing;
mod predicate;
mod shape;
mod strings;
