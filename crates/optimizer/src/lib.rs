//! `planish-optimizer`.
