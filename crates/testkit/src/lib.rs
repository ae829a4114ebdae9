//! What tests of several crates share: batch generators, plan builders, naive oracles, and a
//! harness that drives a plan's partitions in every way the laws of execution allow.
//!
//! Use it from integration tests (`crates/<crate>/tests/*.rs`): a unit test of a crate below
//! this one would see a second copy of that crate's types.
//!
//! ```
//! use planish_testkit::{batches, driving, plans, rows};
//!
//! let data = batches::mixed(100, 1);
//! let expected = rows::of_record_batches(&[data.clone()]);
//! driving::assert_drives(|| plans::scan(&data, 3), &expected);
//! ```

// Test support: an assertion that fails, or an input that cannot be built, ends the test.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod batches;
pub mod driving;
pub mod plans;
pub mod rows;
