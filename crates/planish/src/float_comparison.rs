//! Where floats meet decimals and one type must be found for both, it is the float's.
//!
//! Numbers with a point are decimals. The front end brings a float to a decimal of fixed digits to
//! compare the two: `f > 0.5` would be an error for NaN, for infinities and from `1e15` on, and
//! `f = 1e-16` would be true for zero. So the decimal is cast, as in DuckDB and PostgreSQL, before
//! the front end looks at types: in comparisons, `IN`, `BETWEEN`, `CASE`, functions that choose
//! among their arguments, lists, `UNION` and `JOIN`. Arithmetic of the two is one of floats anyway.

use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Between, Case, InList, InSubquery};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Subquery, Union,
};
use std::sync::Arc;

/// `plan`, not analyzed yet, with decimals cast to the floats that they are compared with.
pub(crate) fn compare_as_floats(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let schema = merge_schema(&node.inputs());
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|part| unified(part, &schema))?;
            Ok(Transformed::new(name.restore(expr.data), expr.transformed, expr.tnr))
        })?;
        let node = node.transform_data(|node| match node {
            LogicalPlan::Union(union) => unified_union(union),
            LogicalPlan::Join(join) => unified_join(join),
            other => Ok(Transformed::no(other)),
        })?;
        changed |= node.transformed;
        // Types above what has changed may be others than when they were bound.
        if changed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })
    .data()
}

/// The float type that `types` have to become, if there are floats and `others` among them.
fn common_float<'a>(
    types: impl IntoIterator<Item = &'a DataType>,
    others: fn(&DataType) -> bool,
) -> Option<DataType> {
    let (mut float, mut mixed) = (None, false);
    for data_type in types {
        match data_type {
            DataType::Float64 => float = Some(DataType::Float64),
            DataType::Float32 => float = float.or(Some(DataType::Float32)),
            other => mixed |= others(other),
        }
    }
    float.filter(|_| mixed)
}

/// Of branches and `UNION`s the front end takes the first type for that of all, until it coerces
/// them; so they are told here also where nothing but integers meets the floats.
fn is_exact_number(data_type: &DataType) -> bool {
    data_type.is_decimal() || data_type.is_integer() || data_type.is_null()
}

/// Casts the decimals among `exprs` if there are floats among them too.
fn unify<'a>(
    exprs: impl IntoIterator<Item = &'a mut Expr>,
    schema: &DFSchema,
    type_of: impl Fn(DataType) -> DataType,
) -> bool {
    let exprs: Vec<&mut Expr> = exprs.into_iter().collect();
    // What has no type is reported by the analyzer.
    let own: Vec<DataType> =
        exprs.iter().map(|e| e.get_type(schema).unwrap_or(DataType::Null)).collect();
    let compared: Vec<DataType> = own.iter().cloned().map(type_of).collect();
    let Some(float) = common_float(&compared, DataType::is_decimal) else { return false };
    for (expr, data_type) in exprs.into_iter().zip(own) {
        if data_type.is_decimal() {
            *expr = as_float(std::mem::take(expr), &float);
        }
    }
    true
}

/// Casts all `results` to floats if there are floats among them.
fn unify_results<'a>(results: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let results: Vec<(&mut Expr, DataType)> = results
        .into_iter()
        .map(|result| {
            let data_type = result.get_type(schema).unwrap_or(DataType::Null);
            (result, data_type)
        })
        .collect();
    let types = results.iter().map(|(_, data_type)| data_type);
    let Some(float) = common_float(types, |t| !t.is_null() && is_exact_number(t)) else {
        return false;
    };
    for (result, data_type) in results {
        if !data_type.is_null() && is_exact_number(&data_type) {
            *result = as_float(std::mem::take(result), &float);
        }
    }
    true
}

/// A literal is read as a float: a decimal's digits, divided, would be rounded twice.
fn as_float(expr: Expr, float: &DataType) -> Expr {
    let text = match &expr {
        Expr::Literal(ScalarValue::Decimal128(Some(v), p, s), None) => {
            Some(Decimal128Type::format_decimal(*v, *p, *s))
        }
        Expr::Literal(ScalarValue::Decimal256(Some(v), p, s), None) => {
            Some(Decimal256Type::format_decimal(*v, *p, *s))
        }
        Expr::Negative(inner) if matches!(inner.as_ref(), Expr::Literal(..)) => {
            return Expr::Negative(Box::new(as_float(inner.as_ref().clone(), float)));
        }
        _ => None,
    };
    match text.and_then(|text| ScalarValue::try_from_string(text, float).ok()) {
        Some(value) => Expr::Literal(value, None),
        None => Expr::Cast(Cast::new(Box::new(expr), float.clone())),
    }
}

/// The type of the elements, if it is a list.
fn element(data_type: DataType) -> DataType {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::FixedSizeList(field, _) => element(field.data_type().clone()),
        other => other,
    }
}

/// Whether the function finds one type for its arguments.
fn chooses_among_arguments(name: &str) -> bool {
    matches!(
        name,
        "coalesce" | "nvl" | "ifnull" | "nvl2" | "greatest" | "least" | "nullif" | "make_array"
    )
}

fn unified(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let same = |data_type| data_type;
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            unify([left.as_mut(), right.as_mut()], schema, same)
        }
        Expr::InList(InList { expr, list, .. }) => {
            unify(std::iter::once(expr.as_mut()).chain(list), schema, same)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            unify([expr.as_mut(), low.as_mut(), high.as_mut()], schema, same)
        }
        Expr::Case(case) => unified_case(case, schema),
        Expr::ScalarFunction(call) if chooses_among_arguments(call.name()) => {
            unify(&mut call.args, schema, same)
        }
        Expr::ScalarFunction(call) if call.name().starts_with("array_") => {
            unify(&mut call.args, schema, element)
        }
        Expr::InSubquery(subquery) => unified_subquery(subquery, schema)?,
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn unified_case(case: &mut Case, schema: &DFSchema) -> bool {
    let Case { expr, when_then_expr, else_expr } = case;
    let (whens, thens): (Vec<&mut Expr>, Vec<&mut Expr>) =
        when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
    let compared = expr.as_mut().is_some_and(|operand| {
        unify(std::iter::once(operand.as_mut()).chain(whens), schema, |data_type| data_type)
    });
    let results = thens.into_iter().chain(else_expr.as_deref_mut());
    unify_results(results, schema) || compared
}

fn unified_subquery(compared: &mut InSubquery, schema: &DFSchema) -> Result<bool> {
    let InSubquery { expr, subquery, .. } = compared;
    let Some(field) = subquery.subquery.schema().fields().first() else { return Ok(false) };
    let Ok(own) = expr.get_type(schema) else { return Ok(false) };
    let Some(float) = common_float([&own, field.data_type()], DataType::is_decimal) else {
        return Ok(false);
    };
    if own.is_decimal() {
        **expr = as_float(std::mem::take(expr.as_mut()), &float);
    } else {
        let plan = cast_columns(Arc::clone(&subquery.subquery), &[Some(float)])?;
        *subquery = Subquery { subquery: plan, ..subquery.clone() };
    }
    Ok(true)
}

/// `plan` with the columns for which a type is given cast to it.
fn cast_columns(plan: Arc<LogicalPlan>, types: &[Option<DataType>]) -> Result<Arc<LogicalPlan>> {
    let columns = plan.schema().columns().into_iter().zip(types).map(|(column, float)| {
        let name = column.name.clone();
        let relation = column.relation.clone();
        match float {
            Some(float) => Expr::Cast(Cast::new(Box::new(Expr::Column(column)), float.clone()))
                .alias_qualified(relation, name),
            None => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::new_from_arc(plan).project(columns)?.build().map(Arc::new)
}

fn unified_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let width = union.schema.fields().len();
    if union.inputs.iter().any(|input| input.schema().fields().len() != width) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let type_of = |input: &LogicalPlan, i: usize| input.schema().field(i).data_type().clone();
    let floats: Vec<Option<DataType>> = (0..width)
        .map(|i| {
            let types: Vec<_> = union.inputs.iter().map(|input| type_of(input, i)).collect();
            common_float(&types, is_exact_number)
        })
        .collect();
    if floats.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let casts: Vec<Option<DataType>> = floats
            .iter()
            .enumerate()
            .map(|(i, float)| float.clone().filter(|_| is_exact_number(&type_of(&input, i))))
            .collect();
        if casts.iter().all(Option::is_none) { Ok(input) } else { cast_columns(input, &casts) }
    });
    let inputs: Vec<_> = inputs.collect::<Result<_>>()?;
    Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union).map(Transformed::yes)
}

fn unified_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let schema = join.left.schema().join(join.right.schema())?;
    let mut changed = false;
    for (left, right) in &mut join.on {
        changed |= unify([left, right], &schema, |data_type| data_type);
    }
    let join = LogicalPlan::Join(join);
    Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
}
