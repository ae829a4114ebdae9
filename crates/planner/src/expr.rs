//! From DataFusion's logical [`Expr`] to a [`PhysicalExprRef`].
//!
//! Columns are resolved by qualified name to an index here, and only here; later nothing looks
//! at names.

use crate::between_once::BetweenOnce;
use arrow::compute::{SortOptions, can_cast_types};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{
    Column as LogicalColumn, DFSchema, Result, TableReference, internal_err, not_impl_err, plan_err,
};
use datafusion_expr::expr::{
    Between, BinaryExpr as LogicalBinary, Case, HigherOrderFunction, Lambda, Like, ScalarFunction,
    Sort,
};
use datafusion_expr::{Expr, Operator, Subquery};
use planish_expr::expressions::{
    BetweenExpr, BinaryExpr, CaseExpr, CastExpr, CoalesceExpr, Column, InListExpr, IsBoolExpr,
    IsNullExpr, LambdaExpr, LambdaVariable, LikeExpr, LikeKind, Literal, NegativeExpr, NotExpr,
    TryCastExpr,
};
use planish_expr::udf::{HigherOrderFunctionExpr, ScalarFunctionExpr};
use planish_expr::utils::check_precision;
use planish_expr::{PhysicalExprRef, PhysicalSortExpr, is_volatile};
use std::sync::Arc;

/// Who plans the subqueries that occur inside expressions.
pub trait SubqueryPlanner: Send + Sync {
    /// An expression that stands for the one value of an uncorrelated scalar `subquery`.
    ///
    /// # Errors
    /// When the subquery cannot be planned.
    fn scalar_subquery(&self, subquery: &Subquery) -> Result<PhysicalExprRef>;
}

/// What lowering an expression needs besides the expression.
#[derive(Clone)]
pub struct ExprContext<'a> {
    /// The session's options, handed to scalar functions.
    pub options: Arc<ConfigOptions>,
    /// Who plans subqueries.
    pub subqueries: &'a dyn SubqueryPlanner,
}

/// `expr`, over rows of `input`, as a physical expression.
///
/// # Errors
/// When a column is unknown, types do not fit, or the expression is of a kind that has no
/// physical form (the error names it).
pub fn create_physical_expr(
    expr: &Expr,
    input: &DFSchema,
    ctx: &ExprContext<'_>,
) -> Result<PhysicalExprRef> {
    Lowering { input, ctx, variables: vec![] }.lower(expr)
}

/// One expression on its way down.
struct Lowering<'a> {
    input: &'a DFSchema,
    ctx: &'a ExprContext<'a>,
    /// The variables of the lambdas around, the innermost last: the index is the level.
    variables: Vec<FieldRef>,
}

impl Lowering<'_> {
    fn lower(&self, expr: &Expr) -> Result<PhysicalExprRef> {
        Ok(match expr {
            Expr::Alias(alias) => self.lower(&alias.expr)?,
            Expr::Column(column) => Arc::new(Column::new(&column.name, self.column_index(column)?)),
            Expr::Literal(value, metadata) => {
                // The front end computes constants, and lets a decimal overflow its digits.
                if value.data_type().is_decimal() {
                    check_precision(&value.to_array()?)?;
                }
                Arc::new(Literal::new_with_metadata(value.clone(), metadata.clone()))
            }
            Expr::BinaryExpr(binary) => self.binary(binary)?,
            Expr::Like(like) => self.like(like, like_kind(like.case_insensitive))?,
            Expr::SimilarTo(like) => self.like(like, LikeKind::SimilarTo)?,
            Expr::Not(expr) => Arc::new(NotExpr::new(self.lower(expr)?)),
            Expr::IsNull(expr) | Expr::IsUnknown(expr) => {
                Arc::new(IsNullExpr::is_null(self.lower(expr)?))
            }
            Expr::IsNotNull(expr) | Expr::IsNotUnknown(expr) => {
                Arc::new(IsNullExpr::is_not_null(self.lower(expr)?))
            }
            Expr::IsTrue(expr) => Arc::new(IsBoolExpr::new(self.lower(expr)?, true, false)),
            Expr::IsNotTrue(expr) => Arc::new(IsBoolExpr::new(self.lower(expr)?, true, true)),
            Expr::IsFalse(expr) => Arc::new(IsBoolExpr::new(self.lower(expr)?, false, false)),
            Expr::IsNotFalse(expr) => Arc::new(IsBoolExpr::new(self.lower(expr)?, false, true)),
            Expr::Negative(expr) => Arc::new(NegativeExpr::new(self.lower(expr)?)),
            Expr::Between(between) => self.between(between)?,
            Expr::Case(case) => self.case(case)?,
            Expr::Cast(cast) => {
                let expr = self.castable(&cast.expr, cast.field.data_type())?;
                Arc::new(CastExpr::new_with_field(expr, &cast.field))
            }
            Expr::TryCast(cast) => {
                let expr = self.castable(&cast.expr, cast.field.data_type())?;
                Arc::new(TryCastExpr::new_with_field(expr, &cast.field))
            }
            Expr::ScalarFunction(call) => self.function(call)?,
            Expr::InList(in_list) => {
                let expr = self.lower(&in_list.expr)?;
                Arc::new(InListExpr::new(expr, self.lower_all(&in_list.list)?, in_list.negated))
            }
            Expr::HigherOrderFunction(call) => self.higher_order_function(call)?,
            Expr::LambdaVariable(variable) => self.lambda_variable(&variable.name)?,
            Expr::ScalarSubquery(subquery) => self.subquery(subquery)?,
            other => return no_physical_form(other),
        })
    }

    fn lower_all(&self, exprs: &[Expr]) -> Result<Vec<PhysicalExprRef>> {
        exprs.iter().map(|expr| self.lower(expr)).collect()
    }

    /// The index of `column`. A bare name that several tables have, and no column without a
    /// table, is ambiguous: the front end's own lookup would take the first.
    fn column_index(&self, column: &LogicalColumn) -> Result<usize> {
        if column.relation.is_none() {
            let named = |(_, (_, field)): &(usize, (Option<&TableReference>, &FieldRef))| {
                field.name() == &column.name
            };
            let found: Vec<_> = self.input.iter().enumerate().filter(named).collect();
            let mut free = found.iter().filter(|(_, (table, _))| table.is_none());
            match (free.next(), free.next(), found.len()) {
                (Some((index, _)), None, _) => return Ok(*index),
                (_, _, 2..) => return plan_err!("column {} is ambiguous", column.name),
                _ => {}
            }
        }
        self.input.index_of_column(column)
    }

    fn binary(&self, binary: &LogicalBinary) -> Result<PhysicalExprRef> {
        let (left, right) = (self.lower(&binary.left)?, self.lower(&binary.right)?);
        let (kind, negated) = match binary.op {
            Operator::LikeMatch => (LikeKind::Like, false),
            Operator::NotLikeMatch => (LikeKind::Like, true),
            Operator::ILikeMatch => (LikeKind::ILike, false),
            Operator::NotILikeMatch => (LikeKind::ILike, true),
            op => return Ok(Arc::new(BinaryExpr::new(left, op, right))),
        };
        Ok(Arc::new(LikeExpr::new(kind, negated, left, right)))
    }

    fn like(&self, like: &Like, kind: LikeKind) -> Result<PhysicalExprRef> {
        let (expr, pattern) = (self.lower(&like.expr)?, self.lower(&like.pattern)?);
        let lowered = LikeExpr::new(kind, like.negated, expr, pattern);
        Ok(Arc::new(match like.escape_char {
            Some(escape) => lowered.with_escape(escape),
            None => lowered,
        }))
    }

    fn between(&self, between: &Between) -> Result<PhysicalExprRef> {
        let expr = self.lower(&between.expr)?;
        let (low, high) = (self.lower(&between.low)?, self.lower(&between.high)?);
        if is_volatile(&expr) {
            return Ok(Arc::new(BetweenExpr::new(expr, between.negated, low, high)));
        }
        let (above, both, below) = match between.negated {
            false => (Operator::GtEq, Operator::And, Operator::LtEq),
            true => (Operator::Lt, Operator::Or, Operator::Gt),
        };
        let low = Arc::new(BinaryExpr::new(Arc::clone(&expr), above, low));
        let high = Arc::new(BinaryExpr::new(expr, below, high));
        Ok(Arc::new(BinaryExpr::new(low, both, high)))
    }

    /// The front end writes `COALESCE(a, b)` as `CASE WHEN a IS NOT NULL THEN a ELSE b END`;
    /// read back, `a` is evaluated once, as the user wrote it.
    fn case(&self, case: &Case) -> Result<PhysicalExprRef> {
        let coalesces = case.expr.is_none()
            && case.else_expr.is_some()
            && case.when_then_expr.iter().all(
                |(when, then)| matches!(when.as_ref(), Expr::IsNotNull(tested) if tested == then),
            );
        if coalesces {
            let args = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            let args = args.map(|arg| self.lower(arg)).collect::<Result<Vec<_>>>()?;
            return Ok(Arc::new(CoalesceExpr::try_new(args)?));
        }
        let optional = |expr: &Option<Box<Expr>>| expr.as_ref().map(|e| self.lower(e)).transpose();
        let when_then = case
            .when_then_expr
            .iter()
            .map(|(when, then)| Ok((self.lower(when)?, self.lower(then)?)))
            .collect::<Result<Vec<_>>>()?;
        let (operand, otherwise) = (optional(&case.expr)?, optional(&case.else_expr)?);
        Ok(Arc::new(CaseExpr::try_new(operand, when_then, otherwise)?))
    }

    /// `expr`, after a look at whether any of its values can be cast to `to`.
    fn castable(&self, expr: &Expr, to: &DataType) -> Result<PhysicalExprRef> {
        let lowered = self.lower(expr)?;
        let from = lowered.data_type(self.input.as_arrow())?;
        // Structs are cast by the names of their fields, which arrow does not know of.
        if !from.is_nested() && !can_cast_types(&from, to) {
            return plan_err!("{expr} of type {from} cannot be cast to {to}");
        }
        Ok(lowered)
    }

    fn function(&self, call: &ScalarFunction) -> Result<PhysicalExprRef> {
        let args = self.lower_all(&call.args)?;
        if let (Some(between), [expr, low, high]) =
            (call.func.inner().downcast_ref::<BetweenOnce>(), args.as_slice())
        {
            let [expr, low, high] = [expr, low, high].map(Arc::clone);
            return Ok(Arc::new(BetweenExpr::new(expr, between.negated, low, high)));
        }
        // These cannot be called, only expanded.
        match (call.func.name(), args.as_slice()) {
            ("coalesce" | "nvl" | "ifnull", [_, ..]) if call.func.short_circuits() => {
                return Ok(Arc::new(CoalesceExpr::try_new(args)?));
            }
            ("nvl2", [test, then, otherwise]) if call.func.short_circuits() => {
                let test = Arc::new(IsNullExpr::is_not_null(Arc::clone(test)));
                let branches = vec![(test as PhysicalExprRef, Arc::clone(then))];
                return Ok(Arc::new(CaseExpr::try_new(
                    None,
                    branches,
                    Some(Arc::clone(otherwise)),
                )?));
            }
            _ => {}
        }
        let fun = Arc::clone(&call.func);
        let options = Arc::clone(&self.ctx.options);
        Ok(Arc::new(ScalarFunctionExpr::try_new(fun, args, self.input.as_arrow(), options)?))
    }

    fn higher_order_function(&self, call: &HigherOrderFunction) -> Result<PhysicalExprRef> {
        let mut params = call.lambda_parameters(self.input)?.into_iter();
        let args = call.args.iter().map(|arg| match arg {
            Expr::Lambda(lambda) => match params.next() {
                Some(params) => self.lambda(lambda, params),
                None => internal_err!("{} names no parameters of this lambda", call.name()),
            },
            arg => self.lower(arg),
        });
        let args = args.collect::<Result<Vec<_>>>()?;
        let (fun, options) = (Arc::clone(&call.func), Arc::clone(&self.ctx.options));
        let schema = self.input.as_arrow();
        Ok(Arc::new(HigherOrderFunctionExpr::try_new(fun, args, schema, options)?))
    }

    /// The lambda, whose function hands over `params` (it may take fewer).
    fn lambda(&self, lambda: &Lambda, params: Vec<FieldRef>) -> Result<PhysicalExprRef> {
        if lambda.params.len() > params.len() {
            let names = lambda.params.join(", ");
            return plan_err!("the lambda ({names}) can have at most {} parameters", params.len());
        }
        let named = |(name, field): (&String, FieldRef)| -> FieldRef {
            Arc::new(field.as_ref().clone().with_name(name))
        };
        let params: Vec<FieldRef> = lambda.params.iter().zip(params).map(named).collect();
        let first_level = self.variables.len();
        let variables = self.variables.iter().chain(&params).cloned().collect();
        let within = Lowering { input: self.input, ctx: self.ctx, variables };
        let body = within.lower(&lambda.body)?;
        Ok(Arc::new(LambdaExpr::try_new(first_level, params, body)?))
    }

    /// The variable of the innermost lambda that has one of this name.
    fn lambda_variable(&self, name: &str) -> Result<PhysicalExprRef> {
        match self.variables.iter().rposition(|field| field.name() == name) {
            Some(level) => {
                Ok(Arc::new(LambdaVariable::new(level, Arc::clone(&self.variables[level]))))
            }
            None => plan_err!("the variable {name} outside of the lambda that has it"),
        }
    }

    fn subquery(&self, subquery: &Subquery) -> Result<PhysicalExprRef> {
        if subquery.outer_ref_columns.is_empty() {
            return self.ctx.subqueries.scalar_subquery(subquery);
        }
        not_impl_err!("a correlated scalar subquery that cannot be turned into a join")
    }
}

fn like_kind(case_insensitive: bool) -> LikeKind {
    if case_insensitive { LikeKind::ILike } else { LikeKind::Like }
}

/// The error for an expression that is not a value per row, or that has to be gone by now.
fn no_physical_form(expr: &Expr) -> Result<PhysicalExprRef> {
    match expr {
        Expr::Placeholder(placeholder) => plan_err!("parameter {} has no value", placeholder.id),
        Expr::ScalarVariable(_, names) => not_impl_err!("the variable {}", names.join(".")),
        Expr::AggregateFunction(call) => {
            plan_err!("the aggregate function {} outside of an aggregation", call.func.name())
        }
        Expr::WindowFunction(call) => {
            plan_err!("the window function {} outside of a window", call.fun.name())
        }
        Expr::Exists(_) => not_impl_err!("EXISTS that cannot be turned into a join: {expr}"),
        Expr::InSubquery(_) => {
            not_impl_err!("IN (subquery) that cannot be turned into a join: {expr}")
        }
        Expr::SetComparison(_) => {
            not_impl_err!("a comparison with ANY or ALL of a subquery: {expr}")
        }
        Expr::OuterReferenceColumn(_, column) => {
            not_impl_err!("a reference to the outer query's column {column}")
        }
        Expr::GroupingSet(_) => plan_err!("grouping sets outside of GROUP BY: {expr}"),
        Expr::Unnest(_) => not_impl_err!("unnest inside an expression: {expr}"),
        Expr::Lambda(_) => {
            plan_err!("the lambda {expr} outside of a function that takes one")
        }
        // A wildcard (a deprecated variant, not to be named) is expanded by the front end.
        other => not_impl_err!("the expression {other}"),
    }
}

/// A sort key over rows of `input`.
///
/// # Errors
/// As [`create_physical_expr`].
pub fn create_sort_expr(
    key: &Sort,
    input: &DFSchema,
    ctx: &ExprContext<'_>,
) -> Result<PhysicalSortExpr> {
    let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
    Ok(PhysicalSortExpr::new(create_physical_expr(&key.expr, input, ctx)?, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Schema};
    use datafusion_common::ScalarValue;
    use datafusion_expr::expr::Placeholder;
    use datafusion_expr::{ColumnarValue, Volatility, cast, col, create_udf, lit, try_cast, when};

    struct NoSubqueries;

    impl SubqueryPlanner for NoSubqueries {
        fn scalar_subquery(&self, _: &Subquery) -> Result<PhysicalExprRef> {
            not_impl_err!("subqueries in this test")
        }
    }

    /// Two tables, `t` and `u`, with the same column names.
    fn input() -> DFSchema {
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ]);
        let side = |name: &str| {
            DFSchema::try_from_qualified_schema(TableReference::bare(name), &schema).unwrap()
        };
        side("t").join(&side("u")).unwrap()
    }

    fn lower(expr: &Expr) -> Result<PhysicalExprRef> {
        let ctx = ExprContext { options: Arc::default(), subqueries: &NoSubqueries };
        create_physical_expr(expr, &input(), &ctx)
    }

    fn shows(expr: &Expr, text: &str) {
        assert_eq!(lower(expr).unwrap().to_string(), text);
    }

    fn column(table: &str, name: &str) -> Expr {
        Expr::Column(LogicalColumn::new(Some(table), name))
    }

    #[test]
    fn columns_are_found_by_their_qualified_name() {
        shows(&column("t", "a"), "a@0");
        shows(&column("u", "a"), "a@2");
        assert!(lower(&col("a")).is_err(), "ambiguous");
        assert!(lower(&column("v", "a")).is_err());
    }

    #[test]
    fn each_kind() {
        let (a, s) = (|| column("u", "a"), || column("t", "s"));
        shows(&(a() + lit(1i64)).alias("x"), "a@2 + 1");
        shows(&a().between(lit(1i64), lit(2i64)), "a@2 >= 1 AND a@2 <= 2");
        shows(&a().not_between(lit(1i64), lit(2i64)), "a@2 < 1 OR a@2 > 2");
        shows(&s().like(lit("%x")), "s@1 LIKE %x");
        shows(&s().not_ilike(lit("%x")), "s@1 NOT ILIKE %x");
        shows(&a().in_list(vec![lit(1i64), lit(2i64)], true), "a@2 NOT IN (1, 2)");
        shows(&a().is_not_null(), "a@2 IS NOT NULL");
        shows(&a().eq(lit(1i64)).is_not_true(), "(a@2 = 1) IS NOT TRUE");
        shows(&a().eq(lit(1i64)).is_unknown(), "(a@2 = 1) IS NULL");
        shows(&cast(a(), DataType::Utf8), "CAST(a@2 AS Utf8)");
        shows(&try_cast(s(), DataType::Int64), "TRY_CAST(s@1 AS Int64)");
        shows(&Expr::Negative(Box::new(a())), "- a@2");
        let case = when(a().gt(lit(0i64)), s()).otherwise(lit("n")).unwrap();
        shows(&case, "CASE WHEN a@2 > 0 THEN s@1 ELSE n END");
        let similar = Like::new(false, Box::new(s()), Box::new(lit("a%")), Some('!'), false);
        shows(&Expr::SimilarTo(similar), "s@1 SIMILAR TO a% ESCAPE !");
        let key = Sort::new(a(), false, false);
        let ctx = ExprContext { options: Arc::default(), subqueries: &NoSubqueries };
        let key = create_sort_expr(&key, &input(), &ctx).unwrap();
        assert_eq!(key.to_string(), "a@2 DESC NULLS LAST");
    }

    #[test]
    fn coalesce_is_read_back() {
        let (a, b) = (column("t", "a"), column("u", "a"));
        let case = when(a.clone().is_not_null(), a).otherwise(b).unwrap();
        shows(&case, "coalesce(a@0, a@2)");
    }

    #[test]
    fn a_volatile_operand_is_evaluated_once() {
        let roll = create_udf(
            "roll",
            vec![],
            DataType::Int64,
            Volatility::Volatile,
            Arc::new(|_| Ok(ColumnarValue::Scalar(ScalarValue::from(4i64)))),
        );
        let expr = roll.call(vec![]).between(lit(1i64), lit(2i64));
        shows(&expr, "roll() BETWEEN 1 AND 2");
    }

    #[test]
    fn errors_name_the_thing() {
        let error = |expr: &Expr| lower(expr).unwrap_err().to_string();
        let placeholder = Placeholder::new_with_field("$1".to_owned(), None);
        assert!(error(&Expr::Placeholder(placeholder)).contains("parameter $1 has no value"));
        let interval = cast(column("t", "a"), DataType::Date64);
        lower(&interval).unwrap();
        let boolean = column("t", "a").is_true();
        let list = cast(boolean, DataType::Interval(arrow::datatypes::IntervalUnit::DayTime));
        assert!(error(&list).contains("cannot be cast"), "{}", error(&list));
    }
}
