//! `planish-testkit`.
