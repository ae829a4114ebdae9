//! Physical expressions, the projection algebra, orderings and partitionings.
//!
//! A [`PhysicalExpr`] is evaluated over a [`planish_batch::Batch`]; a
//! [`projection::ProjectionExprs`] is a list of them with names; an
//! [`equivalence::EquivalenceProperties`] says which orders and equalities hold for a stream.
//!
//! Architecture invariants: nothing here knows a plan or does I/O. Only the module [`udf`] names
//! `datafusion_physical_expr*`, and only to call DataFusion's functions.

pub mod analysis;
pub mod equivalence;
pub mod expressions;
mod order_source;
pub mod partitioning;
mod physical_expr;
pub mod predicate;
pub mod projection;
pub mod sort_expr;
pub mod udf;
pub mod utils;

pub use datafusion_expr::{ColumnarValue, ExpressionPlacement};
pub use order_source::order_source;
pub use partitioning::{Distribution, Partitioning};
pub use physical_expr::{DynEq, DynHash, PhysicalExpr, PhysicalExprRef, can_fail, is_volatile};
pub use projection::{ProjectionExpr, ProjectionExprs};
pub use sort_expr::{LexOrdering, PhysicalSortExpr};
