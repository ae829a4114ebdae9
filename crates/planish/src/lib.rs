//! `planish`.
