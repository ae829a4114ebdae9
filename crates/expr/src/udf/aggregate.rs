//! [`AggregateFunctionExpr`]: one call of one of DataFusion's aggregate functions.
//!
//! A function wants to look at its arguments: columns and literals are handed to it as such
//! (some read a literal's value: a percentile, a separator), every other expression as a column
//! of a schema made up of the input's columns and the computed arguments.

mod decimal_sum;
mod groups_adapter;

use crate::expressions::{Column, Literal};
use crate::{PhysicalExprRef, PhysicalSortExpr};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue, Statistics, internal_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDF, GroupsAccumulator, StatisticsArgs};
use datafusion_functions_aggregate::string_agg::StringAgg;
use datafusion_functions_aggregate::sum::Sum;
use datafusion_physical_expr::expressions as theirs;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr as TheirExpr;
use datafusion_physical_expr_common::sort_expr::PhysicalSortExpr as TheirSortExpr;
use groups_adapter::GroupsAdapter;
use std::fmt;
use std::sync::Arc;

/// One call of an aggregate function: `sum(DISTINCT a@0) FILTER (WHERE b@1)`.
#[derive(Clone, Debug)]
pub struct AggregateFunctionExpr {
    /// The function.
    pub fun: Arc<AggregateUDF>,
    /// Arguments, over `input_schema`.
    pub args: Vec<PhysicalExprRef>,
    /// The schema of the rows that are aggregated.
    pub input_schema: SchemaRef,
    /// Name of the output column.
    pub name: String,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Whether rows with a NULL argument are left out (`IGNORE NULLS`).
    pub ignore_nulls: bool,
    /// The order in which the function sees the rows of a group; no key twice.
    pub order_by: Vec<PhysicalSortExpr>,
    /// The FILTER clause, over `input_schema`.
    pub filter: Option<PhysicalExprRef>,
    field: FieldRef,
    state_fields: Vec<FieldRef>,
    described: Described,
}

/// What the function is told about its arguments.
#[derive(Clone, Debug)]
pub(super) struct Described {
    schema: Schema,
    pub(super) exprs: Vec<Arc<dyn TheirExpr>>,
    pub(super) fields: Vec<FieldRef>,
    order_by: Vec<TheirSortExpr>,
}

impl AggregateFunctionExpr {
    /// The call of `fun` with `args`, over rows of `input_schema`.
    ///
    /// # Errors
    /// A plan error when the function does not take such arguments or the filter is not boolean;
    /// what the function itself refuses (two arguments of `COUNT(DISTINCT ...)`, say).
    #[expect(clippy::too_many_arguments, reason = "the parts of the SQL syntax of a call")]
    pub fn try_new(
        fun: Arc<AggregateUDF>,
        args: Vec<PhysicalExprRef>,
        input_schema: SchemaRef,
        name: impl Into<String>,
        distinct: bool,
        ignore_nulls: bool,
        order_by: Vec<PhysicalSortExpr>,
        filter: Option<PhysicalExprRef>,
    ) -> Result<Self> {
        let name = name.into();
        if let Some(filter) = &filter {
            match filter.data_type(&input_schema)? {
                DataType::Boolean | DataType::Null => {}
                other => {
                    return plan_err!("the FILTER of {name} must be boolean, {filter} is {other}");
                }
            }
        }
        let mut keys: Vec<PhysicalSortExpr> = vec![];
        for key in order_by {
            if !keys.iter().any(|known| known.expr.eq(&key.expr)) {
                keys.push(key);
            }
        }
        let described = Described::new(&args, &keys, &input_schema)?;
        let returned = fun.return_field(&described.fields)?;
        let field: FieldRef = Arc::new(returned.as_ref().clone().with_name(&name));
        let mut ordering_fields: Vec<FieldRef> = vec![];
        for (key, described) in keys.iter().zip(&described.order_by) {
            // The name that functions give to sort keys within their states.
            let name = described.expr.to_string();
            ordering_fields.push(Arc::new(Field::new(
                name,
                key.expr.data_type(&input_schema)?,
                true,
            )));
        }
        let state_fields = fun.state_fields(StateFieldsArgs {
            name: &name,
            input_fields: &described.fields,
            return_field: Arc::clone(&field),
            ordering_fields: &ordering_fields,
            is_distinct: distinct,
        })?;
        let call = AggregateFunctionExpr {
            fun,
            args,
            input_schema,
            name,
            distinct,
            ignore_nulls,
            order_by: keys,
            filter,
            field,
            state_fields,
            described,
        };
        // What a function cannot do it says when an accumulator is made: better now than later.
        if call.groups_accumulator_supported() {
            call.create_groups_accumulator()?;
        } else {
            call.create_accumulator()?;
        }
        Ok(call)
    }

    /// The same call over other expressions: `args`, `order_by` and `filter` in the order in
    /// which [`Self::expressions`] lists them.
    ///
    /// # Errors
    /// As [`Self::try_new`]; an internal error when the number of expressions differs.
    pub fn with_expressions(
        &self,
        exprs: Vec<PhysicalExprRef>,
        input_schema: SchemaRef,
    ) -> Result<Self> {
        if exprs.len() != self.expressions().len() {
            return internal_err!("{} expressions for {}", exprs.len(), self.name);
        }
        let mut exprs = exprs.into_iter();
        let args = exprs.by_ref().take(self.args.len()).collect();
        let order_by = self
            .order_by
            .iter()
            .zip(exprs.by_ref())
            .map(|(key, expr)| PhysicalSortExpr::new(expr, key.options))
            .collect();
        Self::try_new(
            Arc::clone(&self.fun),
            args,
            input_schema,
            self.name.clone(),
            self.distinct,
            self.ignore_nulls,
            order_by,
            exprs.next(),
        )
    }

    /// All expressions of the call: arguments, sort keys, filter.
    pub fn expressions(&self) -> Vec<PhysicalExprRef> {
        let keys = self.order_by.iter().map(|key| &key.expr);
        self.args.iter().chain(keys).chain(&self.filter).cloned().collect()
    }

    /// The expressions whose values an accumulator is fed with: the arguments and, for a
    /// function that looks at the order itself, the sort keys.
    pub fn accumulator_inputs(&self) -> Vec<PhysicalExprRef> {
        let mut inputs = self.args.clone();
        if self.is_ordered() {
            inputs.extend(self.order_by.iter().map(|key| Arc::clone(&key.expr)));
        }
        inputs
    }

    /// The output field, named as the call.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The fields of the partial state.
    pub fn state_fields(&self) -> &[FieldRef] {
        &self.state_fields
    }

    /// The result over all rows of an input with these statistics, where they tell it exactly.
    pub fn value_from_statistics(&self, statistics: &Statistics) -> Option<ScalarValue> {
        // Of a computed argument there are no statistics.
        let stored = |arg: &PhysicalExprRef| arg.is::<Column>() || arg.is::<Literal>();
        if self.filter.is_some() || self.distinct || !self.args.iter().all(stored) {
            return None;
        }
        self.fun.value_from_stats(&StatisticsArgs {
            statistics,
            return_type: self.field.data_type(),
            is_distinct: self.distinct,
            exprs: &self.described.exprs,
        })
    }

    /// Whether the order of rows may change the result.
    fn is_ordered(&self) -> bool {
        // `percentile_cont(p) WITHIN GROUP (ORDER BY x)` has `x` as an argument and looks at
        // nothing but the direction of the key.
        !self.order_by.is_empty()
            && !self.fun.supports_within_group_clause()
            && !matches!(self.fun.order_sensitivity(), AggregateOrderSensitivity::Insensitive)
    }

    /// The order that rows must come in, for functions that do not sort by themselves.
    pub fn required_ordering(&self) -> Option<&[PhysicalSortExpr]> {
        let sorts_itself = self.fun.inner().is::<StringAgg>();
        let required = self.is_ordered()
            && !sorts_itself
            && matches!(self.fun.order_sensitivity(), AggregateOrderSensitivity::HardRequirement);
        required.then_some(self.order_by.as_slice())
    }

    /// Whether the function has a vectorized accumulator for many groups of its own.
    pub fn groups_accumulator_supported(&self) -> bool {
        self.fun.groups_accumulator_supported(self.accumulator_args())
    }

    /// An accumulator for many groups: the function's own, or one [`Accumulator`] per group.
    /// The latter has no `convert_to_state`.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn create_groups_accumulator(&self) -> Result<Box<dyn GroupsAccumulator>> {
        if self.is_checked_sum() {
            decimal_sum::groups_accumulator(self.field.data_type())
        } else if self.groups_accumulator_supported() {
            self.fun.create_groups_accumulator(self.accumulator_args())
        } else {
            Ok(Box::new(GroupsAdapter::new(self.clone())))
        }
    }

    /// An accumulator for one group.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn create_accumulator(&self) -> Result<Box<dyn Accumulator>> {
        if self.is_checked_sum() {
            return decimal_sum::accumulator(self.field.data_type());
        }
        self.fun.accumulator(self.accumulator_args())
    }

    /// An accumulator for a frame that moves: it may take rows back out (`retract_batch`).
    ///
    /// # Errors
    /// What the function refuses.
    pub fn create_sliding_accumulator(&self) -> Result<Box<dyn Accumulator>> {
        if self.is_checked_sum() {
            return decimal_sum::accumulator(self.field.data_type());
        }
        self.fun.create_sliding_accumulator(self.accumulator_args())
    }

    /// Whether this is a sum that could leave its decimal type unnoticed.
    fn is_checked_sum(&self) -> bool {
        let sum = self.fun.inner().is::<Sum>() && !self.distinct;
        sum && decimal_sum::may_overflow(self.field.data_type())
    }

    fn accumulator_args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: Arc::clone(&self.field),
            schema: &self.described.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.described.order_by,
            is_reversed: false,
            name: &self.name,
            is_distinct: self.distinct,
            exprs: &self.described.exprs,
            expr_fields: &self.described.fields,
        }
    }
}

impl fmt::Display for AggregateFunctionExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for AggregateFunctionExpr {
    fn eq(&self, other: &Self) -> bool {
        self.fun == other.fun
            && self.args == other.args
            && self.name == other.name
            && self.distinct == other.distinct
            && self.ignore_nulls == other.ignore_nulls
            && self.order_by == other.order_by
            && self.filter == other.filter
            && self.input_schema == other.input_schema
    }
}

impl Described {
    pub(super) fn new(
        args: &[PhysicalExprRef],
        order_by: &[PhysicalSortExpr],
        input: &SchemaRef,
    ) -> Result<Self> {
        let mut fields: Vec<FieldRef> = input.fields().iter().cloned().collect();
        // Equal computations share a column: functions compare arguments and sort keys.
        let mut computed: Vec<(PhysicalExprRef, usize)> = vec![];
        let mut describe = |expr: &PhysicalExprRef| -> Result<Arc<dyn TheirExpr>> {
            if let Some(column) = expr.downcast_ref::<Column>() {
                return Ok(Arc::new(theirs::Column::new(column.name(), column.index())));
            }
            if let Some(literal) = expr.downcast_ref::<Literal>() {
                return Ok(Arc::new(theirs::Literal::new(literal.value().clone())));
            }
            let name = expr.to_string();
            let index = match computed.iter().find(|(known, _)| known.eq(expr)) {
                Some((_, index)) => *index,
                None => {
                    let field = expr.return_field(input)?.as_ref().clone().with_name(&name);
                    fields.push(Arc::new(field));
                    computed.push((Arc::clone(expr), fields.len() - 1));
                    fields.len() - 1
                }
            };
            Ok(Arc::new(theirs::Column::new(&name, index)))
        };
        let exprs = args.iter().map(&mut describe).collect::<Result<Vec<_>>>()?;
        let order_by = order_by
            .iter()
            .map(|key| Ok(TheirSortExpr { expr: describe(&key.expr)?, options: key.options }))
            .collect::<Result<Vec<_>>>()?;
        let arg_fields = args.iter().map(|e| e.return_field(input)).collect::<Result<Vec<_>>>()?;
        Ok(Described { schema: Schema::new(fields), exprs, fields: arg_fields, order_by })
    }
}

#[cfg(test)]
mod tests;
