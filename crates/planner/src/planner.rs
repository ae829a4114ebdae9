//! [`PhysicalPlanner`]: resolves the table scans, then lowers node by node.

use crate::expr::{ExprContext, create_physical_expr};
use crate::scan::ResolvedScans;
use crate::subquery::Subplans;
use arrow::datatypes::Schema;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result, internal_err, not_impl_err};
use datafusion_expr::{Expr, LogicalPlan};
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::Column;
use planish_expr::projection::ProjectionExpr;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::{PlanRef, unshare_nodes};
use std::sync::Arc;

/// Turns logical plans into physical ones, which the optimizer has yet to complete: operators
/// say what order and distribution they need, and nothing here provides it.
#[derive(Clone, Debug)]
pub struct PhysicalPlanner {
    options: Arc<ConfigOptions>,
}

impl PhysicalPlanner {
    /// A planner under these options.
    pub fn new(options: Arc<ConfigOptions>) -> Self {
        PhysicalPlanner { options }
    }

    /// The physical plan of `plan`: its output has the names, types and metadata of
    /// `plan.schema()`.
    ///
    /// # Errors
    /// When a table cannot be read, or a node or an expression has no physical form yet; the
    /// error names it.
    pub async fn create_physical_plan(&self, plan: &LogicalPlan) -> Result<PlanRef> {
        let scans = ResolvedScans::resolve(plan, &self.options).await?;
        let lowering = Lowering::new(Arc::clone(&self.options), scans);
        let root = conform(lowering.lower(plan)?, plan.schema())?;
        unshare_nodes(lowering.subplans.wrap(root))
    }
}

/// The state of lowering one plan.
pub(crate) struct Lowering {
    pub(crate) options: Arc<ConfigOptions>,
    pub(crate) scans: ResolvedScans,
    pub(crate) subplans: Subplans,
}

impl Lowering {
    fn new(options: Arc<ConfigOptions>, scans: ResolvedScans) -> Self {
        Lowering { options, scans, subplans: Subplans::default() }
    }

    /// Lowers `plan` and all below it.
    pub(crate) fn lower(&self, plan: &LogicalPlan) -> Result<PlanRef> {
        let lowered = match plan {
            LogicalPlan::TableScan(node) => self.lower_table_scan(node),
            LogicalPlan::Projection(node) => self.lower_projection(node),
            LogicalPlan::Filter(node) => self.lower_filter(node),
            LogicalPlan::Aggregate(node) => self.lower_aggregate(node),
            LogicalPlan::Distinct(node) => self.lower_distinct(node),
            LogicalPlan::Sort(node) => self.lower_sort(node),
            LogicalPlan::Limit(node) => self.lower_limit(node),
            LogicalPlan::Join(node) => self.lower_join(node),
            LogicalPlan::Union(node) => self.lower_union(node),
            LogicalPlan::Values(node) => self.lower_values(node),
            LogicalPlan::EmptyRelation(node) => self.lower_empty_relation(node),
            LogicalPlan::SubqueryAlias(node) => self.lower_subquery_alias(node),
            LogicalPlan::Repartition(node) => self.lower_repartition(node),
            LogicalPlan::Window(node) => self.lower_window(node),
            other => not_implemented(other),
        }?;
        check_types(plan, &lowered)?;
        Ok(lowered)
    }

    /// What lowering an expression needs.
    pub(crate) fn expr_context(&self) -> ExprContext<'_> {
        ExprContext { options: Arc::clone(&self.options), subqueries: self }
    }

    /// `expr` over rows of `input`.
    pub(crate) fn expr(&self, expr: &Expr, input: &DFSchema) -> Result<PhysicalExprRef> {
        create_physical_expr(expr, input, &self.expr_context())
    }

    /// Several expressions over rows of `input`.
    pub(crate) fn exprs(&self, exprs: &[Expr], input: &DFSchema) -> Result<Vec<PhysicalExprRef>> {
        exprs.iter().map(|e| self.expr(e, input)).collect()
    }
}

fn not_implemented(plan: &LogicalPlan) -> Result<PlanRef> {
    let what = match plan {
        LogicalPlan::Unnest(_) => "UNNEST is",
        LogicalPlan::RecursiveQuery(_) => "recursive queries are",
        LogicalPlan::Subquery(_) => "LATERAL subqueries that cannot be decorrelated are",
        LogicalPlan::Extension(_) => "extension nodes are",
        LogicalPlan::Copy(_) => "COPY is",
        LogicalPlan::Dml(_) => "INSERT, UPDATE and DELETE are",
        LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => "statements inside of queries are",
        _ => "this plan node is",
    };
    not_impl_err!("{what} not supported yet: {}", plan.display())
}

/// Columns are resolved by position from here on, so a node's columns must be, in number and
/// type, those that the logical plan says.
fn check_types(logical: &LogicalPlan, plan: &PlanRef) -> Result<()> {
    let (promised, own) = (logical.schema().as_arrow(), plan.schema());
    let same = promised.fields().len() == own.fields().len()
        && promised
            .fields()
            .iter()
            .zip(own.fields())
            .all(|(a, b)| same_type(a.data_type(), b.data_type()));
    if same {
        return Ok(());
    }
    internal_err!(
        "{} yields {}, the logical plan says {}",
        plan.name(),
        describe(&own),
        describe(promised)
    )
}

/// Equal up to the names and nullability of nested fields.
fn same_type(a: &arrow::datatypes::DataType, b: &arrow::datatypes::DataType) -> bool {
    a == b || a.equals_datatype(b)
}

fn describe(schema: &Schema) -> String {
    let fields: Vec<String> =
        schema.fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
    format!("({})", fields.join(", "))
}

/// `plan` under the names and metadata of `schema`; a projection only where they differ.
pub(crate) fn conform(plan: PlanRef, schema: &DFSchema) -> Result<PlanRef> {
    let promised = schema.inner();
    let own = plan.schema();
    let same = own.metadata() == promised.metadata()
        && own
            .fields()
            .iter()
            .zip(promised.fields())
            .all(|(a, b)| a.name() == b.name() && a.metadata() == b.metadata());
    if same {
        return Ok(plan);
    }
    project_columns(plan, promised, 0..promised.fields().len())
}

/// The columns at `indices`, called as the fields of `schema` are, with their metadata.
pub(crate) fn project_columns(
    plan: PlanRef,
    schema: &Arc<Schema>,
    indices: impl IntoIterator<Item = usize>,
) -> Result<PlanRef> {
    let own = plan.schema();
    let exprs: Vec<ProjectionExpr> = indices
        .into_iter()
        .zip(schema.fields())
        .map(|(i, field)| {
            let column = Column::new(own.field(i).name(), i);
            ProjectionExpr::new(Arc::new(column), field.name())
        })
        .collect();
    named_projection(exprs, plan, schema)
}

/// A projection whose metadata is that of `schema`: overridden only where the expressions' own
/// differs.
pub(crate) fn named_projection(
    exprs: Vec<ProjectionExpr>,
    input: PlanRef,
    schema: &Arc<Schema>,
) -> Result<PlanRef> {
    let plain = ProjectionExec::try_new(exprs.clone(), Arc::clone(&input))?;
    let own = planish_plan::ExecutionPlan::schema(&plain);
    let same = own.metadata() == schema.metadata()
        && own.fields().iter().zip(schema.fields()).all(|(a, b)| a.metadata() == b.metadata());
    if same {
        return Ok(Arc::new(plain));
    }
    let exact = ProjectionExec::try_new_with_schema(exprs, input, Arc::clone(schema))?;
    Ok(Arc::new(exact))
}
