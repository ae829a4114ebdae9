//! `m[k]` where `m` is a map and `k` no constant of the type of its keys.
//!
//! The front end makes a field access of it, which takes constants only and compares them as they
//! are. Here it is the first of the values that `map_extract` finds: NULL where there is none.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion_expr::{Expr, ExprSchemable, GetFieldAccess, lit};
use datafusion_functions_nested::expr_fn::{array_element, map_extract};

/// Plans accesses to maps; asked before the planners of the function library.
#[derive(Debug)]
pub(crate) struct MapAccessPlanner;

impl ExprPlanner for MapAccessPlanner {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let GetFieldAccess::ListIndex { key } = &access.field_access else {
            return Ok(PlannerResult::Original(access));
        };
        let DataType::Map(entries, _) = access.expr.get_type(schema)? else {
            return Ok(PlannerResult::Original(access));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Ok(PlannerResult::Original(access));
        };
        let is_key = |value: &Expr| match value {
            Expr::Literal(value, _) => {
                fields.first().is_some_and(|field| *field.data_type() == value.data_type())
            }
            _ => false,
        };
        if is_key(key) {
            return Ok(PlannerResult::Original(access));
        }
        let found = map_extract(access.expr, key.as_ref().clone());
        Ok(PlannerResult::Planned(array_element(found, lit(1i64))))
    }
}
