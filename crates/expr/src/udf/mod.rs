//! The border to DataFusion's function library: the only module that may name
//! `datafusion_physical_expr*`. It turns our expressions into theirs where a function wants to
//! look at its arguments, and wraps ours as theirs where a function evaluates one.

mod aggregate;
mod higher_order;
mod scalar;
mod window;
mod wrapped;

pub use aggregate::AggregateFunctionExpr;
pub use higher_order::HigherOrderFunctionExpr;
pub use scalar::ScalarFunctionExpr;
pub use window::WindowUdfExpr;
