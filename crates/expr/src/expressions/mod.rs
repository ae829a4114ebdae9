//! The kinds of expressions, one file each.

mod binary;
mod column;
mod literal;
mod scalar_subquery;

pub use binary::BinaryExpr;
pub use column::Column;
pub use literal::{Literal, lit};
pub use scalar_subquery::ScalarSubqueryExpr;
