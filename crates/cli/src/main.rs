//! The `planish` binary.
fn main() {}
