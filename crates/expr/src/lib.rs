//! `planish-expr`.
