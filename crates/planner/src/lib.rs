//! `planish-planner`.
