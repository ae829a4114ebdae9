//! The facade, end to end: one binary, since each links the whole engine.

mod common;
mod errors;
mod files;
mod running;
mod sql;
mod statements;
