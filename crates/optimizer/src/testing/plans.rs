//! Builders of small plans.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{JoinSide, JoinType, NullEquality};
use datafusion_expr::Operator;
use planish_expr::expressions::{BinaryExpr, Column, lit};
use planish_expr::udf::AggregateFunctionExpr;
use planish_expr::{
    LexOrdering, Partitioning, PhysicalExprRef, PhysicalSortExpr, ProjectionExpr, ProjectionExprs,
};
use planish_plan::operators::aggregate::{AggregateExec, AggregateMode, PhysicalGroupBy};
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::filter::FilterExec;
use planish_plan::operators::hash_join::{HashJoinExec, PartitionMode};
use planish_plan::operators::join_filter::{ColumnIndex, JoinFilter};
use planish_plan::operators::limit::{GlobalLimitExec, LocalLimitExec};
use planish_plan::operators::memory::MemoryScanExec;
use planish_plan::operators::nested_loop_join::NestedLoopJoinExec;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::operators::repartition::RepartitionExec;
use planish_plan::operators::sort::SortExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_plan::operators::union::UnionExec;
use planish_plan::{PlanRef, Pushdown};
use std::sync::Arc;

/// Nullable 64-bit integers under these names.
pub(crate) fn schema(names: &[&str]) -> SchemaRef {
    let fields: Vec<Field> =
        names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    Arc::new(Schema::new(fields))
}

/// `rows` rows per partition; values repeat, and one in seven is NULL.
pub(crate) fn table(names: &[&str], partitions: usize, rows: usize) -> MemoryScanExec {
    let schema = schema(names);
    let partition = |p: usize| {
        let columns = (0..names.len()).map(|c| {
            let value = |r: usize| ((r + p) % 7 != c).then_some(((r * (c + 3) + p) % 10) as i64);
            Arc::new((0..rows).map(value).collect::<Int64Array>()) as ArrayRef
        });
        vec![RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()]
    };
    let partitions: Vec<_> = (0..partitions).map(partition).collect();
    MemoryScanExec::try_new(partitions, Arc::clone(&schema), None).unwrap()
}

/// A table of 20 rows per partition.
pub(crate) fn scan(names: &[&str], partitions: usize) -> PlanRef {
    Arc::new(table(names, partitions, 20))
}

/// As [`scan`], with each partition ordered by its first column.
pub(crate) fn sorted_scan(names: &[&str], partitions: usize) -> PlanRef {
    let schema = schema(names);
    let partition = |p: usize| {
        let columns = (0..names.len()).map(|c| {
            let value = |r: usize| if c == 0 { r / 2 + p } else { (r * 7) % 10 } as i64;
            Arc::new((0..20).map(value).collect::<Int64Array>()) as ArrayRef
        });
        vec![RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()]
    };
    let partitions: Vec<_> = (0..partitions).map(partition).collect();
    let scan = MemoryScanExec::try_new(partitions, Arc::clone(&schema), None).unwrap();
    Arc::new(scan.try_with_ordering(vec![asc(col(names[0], 0))]).unwrap())
}

pub(crate) fn col(name: &str, index: usize) -> PhysicalExprRef {
    Arc::new(Column::new(name, index))
}

pub(crate) fn binary(
    left: PhysicalExprRef,
    op: Operator,
    right: PhysicalExprRef,
) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(left, op, right))
}

pub(crate) fn gt(left: PhysicalExprRef, right: i64) -> PhysicalExprRef {
    binary(left, Operator::Gt, lit(right))
}

pub(crate) fn asc(expr: PhysicalExprRef) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, SortOptions { descending: false, nulls_first: false })
}

pub(crate) fn desc(expr: PhysicalExprRef) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, SortOptions { descending: true, nulls_first: true })
}

pub(crate) fn filter(predicate: PhysicalExprRef, input: PlanRef) -> PlanRef {
    Arc::new(FilterExec::try_new(predicate, input).unwrap())
}

pub(crate) fn project(exprs: Vec<(PhysicalExprRef, &str)>, input: PlanRef) -> PlanRef {
    let exprs: ProjectionExprs =
        exprs.into_iter().map(|(expr, alias)| ProjectionExpr::new(expr, alias)).collect();
    Arc::new(ProjectionExec::try_new(exprs, input).unwrap())
}

/// The columns of `input` at `indices`.
pub(crate) fn columns(indices: &[usize], input: PlanRef) -> PlanRef {
    let exprs = ProjectionExprs::from_indices(indices, &input.schema());
    Arc::new(ProjectionExec::try_new(exprs, input).unwrap())
}

pub(crate) fn union(inputs: Vec<PlanRef>) -> PlanRef {
    Arc::new(UnionExec::try_new(inputs).unwrap())
}

pub(crate) fn sort(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(SortExec::new(keys, input).with_limit(fetch))
}

/// A sort of each partition by itself.
pub(crate) fn sort_each(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(SortExec::new(keys, input).with_preserve_partitioning(true).with_limit(fetch))
}

pub(crate) fn merge(keys: LexOrdering, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    let merge = SortPreservingMergeExec::new(keys, input);
    match fetch {
        Some(_) => merge.with_fetch(fetch).unwrap(),
        None => Arc::new(merge),
    }
}

pub(crate) fn coalesce(input: PlanRef) -> PlanRef {
    Arc::new(CoalescePartitionsExec::new(input))
}

pub(crate) fn limit(skip: usize, fetch: Option<usize>, input: PlanRef) -> PlanRef {
    Arc::new(GlobalLimitExec::new(input, skip, fetch))
}

pub(crate) fn local_limit(fetch: usize, input: PlanRef) -> PlanRef {
    Arc::new(LocalLimitExec::new(input, fetch))
}

pub(crate) fn repartition(partitioning: Partitioning, input: PlanRef) -> PlanRef {
    Arc::new(RepartitionExec::try_new(input, partitioning).unwrap())
}

/// `input` spread over `partitions` by the hash of columns `keys`.
pub(crate) fn hash_repartition(keys: &[usize], partitions: usize, input: PlanRef) -> PlanRef {
    let schema = input.schema();
    let keys = keys.iter().map(|&i| col(schema.field(i).name(), i)).collect();
    repartition(Partitioning::Hash(keys, partitions), input)
}

/// A join of columns `left` and `right`, whose mode is to be chosen.
pub(crate) fn join(
    on: &[(usize, usize)],
    join_type: JoinType,
    mode: PartitionMode,
    left: PlanRef,
    right: PlanRef,
) -> PlanRef {
    let key = |plan: &PlanRef, i: usize| col(plan.schema().field(i).name(), i);
    let on = on.iter().map(|&(l, r)| (key(&left, l), key(&right, r))).collect();
    let nulls = NullEquality::NullEqualsNothing;
    Arc::new(HashJoinExec::try_new(left, right, on, None, join_type, mode, nulls, false).unwrap())
}

/// A join on `condition` over the columns of `left` and then those of `right`.
pub(crate) fn nested_join(
    join_type: JoinType,
    condition: PhysicalExprRef,
    left: PlanRef,
    right: PlanRef,
) -> PlanRef {
    let of = |side, plan: &PlanRef| {
        (0..plan.schema().fields().len()).map(move |index| ColumnIndex { index, side })
    };
    let columns: Vec<_> = of(JoinSide::Left, &left).chain(of(JoinSide::Right, &right)).collect();
    let schema = JoinFilter::build_schema(&columns, &left.schema(), &right.schema());
    let filter = JoinFilter::new(condition, columns, Arc::new(schema)).minimized().unwrap();
    Arc::new(NestedLoopJoinExec::try_new(left, right, Some(filter), join_type).unwrap())
}

/// `count(*)`-less aggregation: the distinct values of columns `keys`.
pub(crate) fn group_by(mode: AggregateMode, keys: &[usize], input: PlanRef) -> PlanRef {
    let schema = input.schema();
    let keys = keys
        .iter()
        .map(|&i| (col(schema.field(i).name(), i), schema.field(i).name().clone()))
        .collect();
    let keys = PhysicalGroupBy::new_single(keys);
    Arc::new(AggregateExec::try_new(mode, keys, vec![], input, schema).unwrap())
}

/// The calls `name(column)` (`count(*)` for no column) over `input`, named as EXPLAIN shows them.
pub(crate) fn calls(
    list: &[(&str, Option<usize>)],
    input: &PlanRef,
) -> Vec<Arc<AggregateFunctionExpr>> {
    let schema = input.schema();
    let all = datafusion_functions_aggregate::all_default_aggregate_functions();
    let call = |&(name, column): &(&str, Option<usize>)| {
        let fun = all.iter().find(|fun| fun.name() == name).unwrap();
        let (arg, shown) = match column {
            Some(i) => (col(schema.field(i).name(), i), schema.field(i).name().clone()),
            None => (lit(1i64), "*".to_owned()),
        };
        let call = AggregateFunctionExpr::try_new(
            Arc::clone(fun),
            vec![arg],
            Arc::clone(&schema),
            format!("{name}({shown})"),
            false,
            false,
            vec![],
            None,
        );
        Arc::new(call.unwrap())
    };
    list.iter().map(call).collect()
}

/// An aggregation in one step.
pub(crate) fn aggregate(
    mode: AggregateMode,
    keys: &[usize],
    list: &[(&str, Option<usize>)],
    input: PlanRef,
) -> PlanRef {
    let schema = input.schema();
    let key = |&i: &usize| (col(schema.field(i).name(), i), schema.field(i).name().clone());
    let keys = PhysicalGroupBy::new_single(keys.iter().map(key).collect());
    let calls = calls(list, &input);
    Arc::new(AggregateExec::try_new(mode, keys, calls, input, schema).unwrap())
}

/// A final aggregation over the partial one `partial`, with `between` put in between.
pub(crate) fn finish(
    mode: AggregateMode,
    partial: &PlanRef,
    between: impl FnOnce(PlanRef) -> PlanRef,
) -> PlanRef {
    let of = partial.downcast_ref::<AggregateExec>().unwrap();
    let (keys, calls) = (of.group_by().clone(), of.aggregates().to_vec());
    let schema = Arc::clone(of.input_schema());
    let input = between(Arc::clone(partial));
    Arc::new(AggregateExec::try_new(mode, keys, calls, input, schema).unwrap())
}
