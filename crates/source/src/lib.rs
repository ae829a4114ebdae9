//! `planish-source`.
