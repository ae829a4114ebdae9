//! `planish-batch`.
