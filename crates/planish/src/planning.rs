//! From a bound logical plan to one that runs: analyzer, logical optimizer, physical planner,
//! physical optimizer.

use crate::filtered_aggregates::keep_arguments_in_place;
use crate::float_comparison::compare_as_floats;
use crate::float_equality::write_out_equalities;
use crate::functions::Functions;
use crate::not_in::name_compared_values;
use crate::nullable_subqueries::make_nullable;
use crate::optimizer_config::QueryOptimizerConfig;
use crate::refuse;
use crate::scan_functions::as_columns;
use crate::session::State;
use crate::similar_to::as_regular_expressions;
use crate::try_casts;
use crate::volatile_between::draw_once;
use crate::volatile_preimages::keep_calls_together;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::Utc;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, DataFusionError, Result};
use datafusion_expr::{EmptyRelation, LogicalPlan};
use datafusion_optimizer::optimizer::Optimizer;
use datafusion_optimizer::{Analyzer, OptimizerConfig, OptimizerRule};
use planish_optimizer::Trace;
use planish_plan::PlanRef;
use planish_plan::operators::coalesce_partitions::CoalescePartitionsExec;
use planish_plan::operators::empty::EmptyExec;
use planish_plan::operators::memory::MemoryScanExec;
use planish_plan::operators::sort_preserving_merge::SortPreservingMergeExec;
use planish_planner::PhysicalPlanner;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a [`crate::Query`] does when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Yields the rows of its plan.
    Rows,
    /// Runs its plan and yields what each operator did.
    Analyze {
        /// With the trace of the optimizer.
        verbose: bool,
    },
    /// Nothing: a statement that was done when it was planned.
    Done,
}

/// How long the parts of planning took, parsing and binding aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanningTimes {
    /// The analyzer and the logical optimizer.
    pub logical: Duration,
    /// From the logical plan to the physical one; tables are asked for their scans.
    pub physical: Duration,
    /// The physical optimizer, its trace and its checks included.
    pub optimizer: Duration,
}

impl PlanningTimes {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.logical + self.physical + self.optimizer
    }
}

/// A query ready to run, as often as wanted.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) kind: Kind,
    /// The plan after the logical optimizer.
    pub(crate) logical: LogicalPlan,
    pub(crate) physical: PlanRef,
    pub(crate) trace: Trace,
    pub(crate) times: PlanningTimes,
    /// The columns of the result.
    pub(crate) schema: SchemaRef,
    /// The options under which it was planned, and runs.
    pub(crate) options: Arc<ConfigOptions>,
}

impl Planned {
    /// Rows that are already there, in answer to `logical`.
    pub(crate) fn rows(logical: LogicalPlan, rows: RecordBatch, state: &State) -> Result<Self> {
        let schema = rows.schema();
        let scan = MemoryScanExec::try_new(vec![vec![rows]], Arc::clone(&schema), None)?;
        Ok(Planned {
            kind: Kind::Rows,
            logical,
            physical: Arc::new(scan),
            trace: Trace::default(),
            times: PlanningTimes::default(),
            schema,
            options: state.config(),
        })
    }

    /// A statement without rows that is done.
    pub(crate) fn done(state: &State) -> Self {
        let schema = Arc::new(DFSchema::empty());
        let arrow = Arc::clone(schema.inner());
        Planned {
            kind: Kind::Done,
            logical: LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema }),
            physical: Arc::new(EmptyExec::new(Arc::clone(&arrow))),
            trace: Trace::default(),
            times: PlanningTimes::default(),
            schema: arrow,
            options: state.config(),
        }
    }
}

/// The analyzed plan: types coerced, checked to be executable.
pub(crate) fn analyze(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    Analyzer::new().execute_and_check(compare_as_floats(plan)?, options, |_, _| {})
}

/// Plans a query.
///
/// # Errors
/// The user's mistakes, and what is not supported yet.
pub(crate) async fn plan_query(plan: LogicalPlan, state: &State) -> Result<Planned> {
    let start = Instant::now();
    let options = state.config();
    let analyzed = draw_once(as_columns(analyze(plan, &options)?)?)?;
    refuse::changed_meanings(&analyzed)?;
    let analyzed = make_nullable(name_compared_values(analyzed)?)?;
    let analyzed = write_out_equalities(as_regular_expressions(analyzed)?)?;
    let analyzed = keep_calls_together(analyzed)?;
    let logical = optimize(analyzed, &options, &state.functions)?;
    let logical_done = Instant::now();
    let planner = PhysicalPlanner::new(Arc::clone(&options));
    let physical = planner.create_physical_plan(&logical).await?;
    let physical_done = Instant::now();
    let optimized = state.optimizer.optimize(physical, &options)?;
    let schema = Arc::clone(logical.schema().inner());
    Ok(Planned {
        kind: Kind::Rows,
        logical,
        physical: one_partition(optimized.plan),
        trace: optimized.trace,
        times: PlanningTimes {
            logical: logical_done - start,
            physical: physical_done - logical_done,
            optimizer: physical_done.elapsed(),
        },
        schema,
        options,
    })
}

fn optimize(
    plan: LogicalPlan,
    options: &Arc<ConfigOptions>,
    functions: &Arc<Functions>,
) -> Result<LogicalPlan> {
    let config = QueryOptimizerConfig {
        started: Utc::now(),
        aliases: Arc::default(),
        options: Arc::clone(options),
        functions: Arc::clone(functions),
    };
    let rules = Optimizer::with_rules(logical_rules());
    let plan = try_casts::hide(plan)?;
    let optimized = rules.optimize(plan, &config as &dyn OptimizerConfig, |_, _| {});
    try_casts::show(optimized.map_err(without_rule)?)
}

/// What is wrong with a constant shows when a rule computes it; which one says nothing to a user.
fn without_rule(error: DataFusionError) -> DataFusionError {
    let ours = matches!(error.find_root(), DataFusionError::Internal(_));
    match error {
        DataFusionError::Context(text, inner) if !ours && text.starts_with("Optimizer rule '") => {
            without_rule(*inner)
        }
        other => other,
    }
}

/// The rules of the front end's optimizer, in its order. All of them; the one known to be wrong
/// on plans that are planned here does not see what it is wrong about.
fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    Optimizer::new().rules.into_iter().map(keep_arguments_in_place).collect()
}

/// A result is read from one partition.
fn one_partition(plan: PlanRef) -> PlanRef {
    if plan.partition_count() == 1 {
        return plan;
    }
    match plan.properties().output_ordering().cloned() {
        Some(ordering) => Arc::new(SortPreservingMergeExec::new(ordering, plan)),
        None => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}
