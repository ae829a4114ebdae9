//! Which columns expressions read.

use crate::PhysicalExprRef;
use crate::expressions::Column;
use std::collections::BTreeMap;

/// How often each column is read by `exprs`, by index; only columns that are. A reference in a
/// lambda counts twice: it may be read for many elements of one row.
pub fn column_uses<'a>(
    exprs: impl IntoIterator<Item = &'a PhysicalExprRef>,
) -> BTreeMap<usize, usize> {
    fn count(expr: &PhysicalExprRef, times: usize, uses: &mut BTreeMap<usize, usize>) {
        if let Some(column) = expr.downcast_ref::<Column>() {
            *uses.entry(column.index()).or_default() += times;
        }
        let times = if expr.is_lambda() { 2 } else { times };
        expr.children().into_iter().for_each(|child| count(child, times, uses));
    }
    let mut uses = BTreeMap::new();
    exprs.into_iter().for_each(|expr| count(expr, 1, &mut uses));
    uses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{BinaryExpr, lit};
    use datafusion_expr::Operator;
    use std::sync::Arc;

    #[test]
    fn every_reference_counts() {
        let a = || Arc::new(Column::new("a", 0)) as PhysicalExprRef;
        let sum = |l, r| Arc::new(BinaryExpr::new(l, Operator::Plus, r)) as PhysicalExprRef;
        let c = Arc::new(Column::new("c", 2)) as PhysicalExprRef;
        let exprs = [sum(a(), sum(a(), lit(1i64))), c, a(), lit(2i64)];
        assert_eq!(column_uses(&exprs), BTreeMap::from([(0, 3), (2, 1)]));
        assert!(column_uses([]).is_empty());
    }
}
