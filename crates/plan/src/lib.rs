//! `planish-plan`.
