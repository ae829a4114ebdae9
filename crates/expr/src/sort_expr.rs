//! Sort keys: an expression and a direction.

use crate::{PhysicalExprRef, structural_eq};
use arrow::compute::SortOptions;
use std::fmt;

/// One sort key.
#[derive(Clone, Debug)]
pub struct PhysicalSortExpr {
    /// What to sort by.
    pub expr: PhysicalExprRef,
    /// Direction and place of NULLs.
    pub options: SortOptions,
}

structural_eq!(PhysicalSortExpr { expr, options });

/// Sort keys, the first one leading.
pub type LexOrdering = Vec<PhysicalSortExpr>;

impl PhysicalSortExpr {
    /// A sort key.
    pub fn new(expr: PhysicalExprRef, options: SortOptions) -> Self {
        PhysicalSortExpr { expr, options }
    }
}

impl fmt::Display for PhysicalSortExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.options.descending { "DESC" } else { "ASC" };
        // SQL's default puts NULLs last when ascending and first when descending.
        let nulls = match (self.options.descending, self.options.nulls_first) {
            (false, false) | (true, true) => "",
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
        };
        write!(f, "{} {direction}{nulls}", self.expr)
    }
}

/// `[a@0 ASC, b@1 DESC]`.
pub fn display_ordering(ordering: &[PhysicalSortExpr]) -> String {
    let keys: Vec<String> = ordering.iter().map(ToString::to_string).collect();
    format!("[{}]", keys.join(", "))
}
