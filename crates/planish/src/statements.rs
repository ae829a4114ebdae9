//! Statements: which are queries, and what the others do.

use crate::catalog::own_name;
use crate::explain;
use crate::files;
use crate::frontend::Frontend;
use crate::information_schema;
use crate::named_windows;
use crate::open_slices;
use crate::planning::{Kind, Planned, analyze, plan_query};
use crate::refuse;
use crate::rewrite;
use crate::session::{Session, State};
use crate::tables::{MemTable, View};
use datafusion_common::{Result, TableReference, not_impl_err, plan_err};
use datafusion_expr::logical_plan::ExplainFormat;
use datafusion_expr::logical_plan::{Analyze, Explain};
use datafusion_expr::{
    CreateExternalTable, CreateMemoryTable, CreateView, DdlStatement, LogicalPlan,
    Statement as LogicalStatement,
};
use datafusion_sql::parser::Statement as DFStatement;
use datafusion_sql::sqlparser::ast::{Ident, Statement as SqlStatement};
use planish_planner::Table;
use std::fmt;
use std::sync::Arc;

/// One statement of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    ast: DFStatement,
}

impl Statement {
    pub(crate) fn new(ast: DFStatement) -> Self {
        Statement { ast }
    }

    pub(crate) fn into_ast(self) -> DFStatement {
        self.ast
    }
}

/// The statement as SQL, without comments.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ast)
    }
}

/// Plans a query, does anything else.
pub(crate) async fn execute(session: &Session, statement: DFStatement) -> Result<Planned> {
    if let Some(key) = shown_option(&statement) {
        let state = session.snapshot();
        let rows = information_schema::settings(&state.options.show(&key)?)?;
        return Planned::rows(no_plan(), rows, &state);
    }
    rewrite::supported(&statement)?;
    refuse::dropped_clauses(&statement)?;
    let (frontend, state) = session.frontend(&statement).await?;
    let plan = bind(&frontend, &state, statement)?;
    match plan {
        LogicalPlan::Ddl(ddl) => {
            execute_ddl(session, &state, ddl).await?;
            Ok(Planned::done(&state))
        }
        LogicalPlan::Statement(statement) => {
            execute_session_statement(session, &statement)?;
            Ok(Planned::done(&session.snapshot()))
        }
        LogicalPlan::Explain(explain) => execute_explain(explain, &state).await,
        LogicalPlan::Analyze(analyze) => execute_analyze(analyze, &state).await,
        LogicalPlan::DescribeTable(ref table) => {
            let rows = information_schema::describe(&table.schema)?;
            Planned::rows(plan, rows, &state)
        }
        query => plan_query(query, &state).await,
    }
}

/// The logical plan of `statement`.
fn bind(frontend: &Frontend, state: &State, mut statement: DFStatement) -> Result<LogicalPlan> {
    if state.options.options.sql_parser.parse_float_as_decimal {
        rewrite::exponents_are_doubles(&mut statement);
    }
    named_windows::write_out(&mut statement)?;
    open_slices::close(&mut statement);
    match frontend.statement_to_plan(statement.clone()) {
        Err(error) if rewrite::is_repeated_name(&error) => {
            rewrite::name_columns(&mut statement);
            frontend.statement_to_plan(statement)
        }
        bound => bound,
    }
}

fn no_plan() -> LogicalPlan {
    LogicalPlan::default()
}

/// The key of `SHOW key`, `SHOW ALL` or `SHOW key VERBOSE`.
fn shown_option(statement: &DFStatement) -> Option<String> {
    let DFStatement::Statement(statement) = statement else { return None };
    let SqlStatement::ShowVariable { variable } = statement.as_ref() else { return None };
    let parts = match variable.as_slice() {
        [rest @ .., last] if !rest.is_empty() && last.value.eq_ignore_ascii_case("verbose") => rest,
        all => all,
    };
    let name = |ident: &Ident| ident.value.clone();
    Some(parts.iter().map(name).collect::<Vec<_>>().join("."))
}

fn execute_session_statement(session: &Session, statement: &LogicalStatement) -> Result<()> {
    match statement {
        LogicalStatement::SetVariable(set) => session.set(&set.variable, &set.value),
        LogicalStatement::ResetVariable(reset) => session.reset(&reset.variable),
        other => not_impl_err!("the statement {} is not supported yet", other.name()),
    }
}

async fn execute_explain(explain: Explain, state: &State) -> Result<Planned> {
    let inner = Arc::unwrap_or_clone(explain.plan);
    if explain.explain_format != ExplainFormat::Indent {
        return not_impl_err!("EXPLAIN FORMAT {} is not supported yet", explain.explain_format);
    }
    if !is_query(&inner) {
        let rows = explain::logical_only(&inner).to_batch()?;
        return Planned::rows(inner, rows, state);
    }
    let planned = plan_query(inner, state).await?;
    let rows = explain::sections(&planned, None, explain.verbose).to_batch()?;
    Planned::rows(planned.logical, rows, state)
}

async fn execute_analyze(node: Analyze, state: &State) -> Result<Planned> {
    let inner = Arc::unwrap_or_clone(node.input);
    if !is_query(&inner) {
        return not_impl_err!("EXPLAIN ANALYZE of {} is not supported", inner.display());
    }
    if node.format != ExplainFormat::Indent {
        return not_impl_err!("EXPLAIN ANALYZE FORMAT {} is not supported yet", node.format);
    }
    let mut planned = plan_query(inner, state).await?;
    planned.kind = Kind::Analyze { verbose: node.verbose };
    planned.schema = explain::schema();
    Ok(planned)
}

fn is_query(plan: &LogicalPlan) -> bool {
    !matches!(
        plan,
        LogicalPlan::Ddl(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::DescribeTable(_)
    )
}

async fn execute_ddl(session: &Session, state: &State, ddl: DdlStatement) -> Result<()> {
    match ddl {
        DdlStatement::CreateView(view) => create_view(session, state, view),
        DdlStatement::CreateExternalTable(table) => {
            create_external_table(session, state, &table).await
        }
        DdlStatement::CreateMemoryTable(table) => create_table(session, state, table).await,
        DdlStatement::DropView(drop) => {
            drop_relation(session, state, &drop.name, drop.if_exists, Relation::View)
        }
        DdlStatement::DropTable(drop) => {
            drop_relation(session, state, &drop.name, drop.if_exists, Relation::Table)
        }
        other => not_impl_err!("the statement {} is not supported yet", other.name()),
    }
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Table,
    View,
}

impl Relation {
    fn of(table: &Arc<dyn Table>) -> Self {
        if table.view_plan().is_some() { Relation::View } else { Relation::Table }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Table => "table",
            Relation::View => "view",
        })
    }
}

/// The name under which to create a `new` relation; `None` when there is one that may stay.
fn free_name(
    state: &State,
    reference: &TableReference,
    new: Relation,
    or_replace: bool,
    if_not_exists: bool,
) -> Result<Option<String>> {
    let Some(name) = own_name(reference, &state.options.options) else {
        return not_impl_err!(
            "{reference}: other schemas than {} are not supported yet",
            state.options.options.catalog.default_schema
        );
    };
    let Some(existing) = state.catalog.get(name) else { return Ok(Some(name.to_owned())) };
    let existing = Relation::of(existing);
    if or_replace && existing == new {
        return Ok(Some(name.to_owned()));
    }
    if if_not_exists {
        return Ok(None);
    }
    plan_err!("{existing} {name} already exists")
}

fn create_view(session: &Session, state: &State, view: CreateView) -> Result<()> {
    let name = free_name(state, &view.name, Relation::View, view.or_replace, false)?;
    // Mistakes show here rather than at first use.
    analyze(view.input.as_ref().clone(), &state.options.options)?;
    if let Some(name) = name {
        session.register_table(name, Arc::new(View::new(Arc::unwrap_or_clone(view.input))));
    }
    Ok(())
}

async fn create_external_table(
    session: &Session,
    state: &State,
    statement: &CreateExternalTable,
) -> Result<()> {
    let (or_replace, if_not_exists) = (statement.or_replace, statement.if_not_exists);
    let name = free_name(state, &statement.name, Relation::Table, or_replace, if_not_exists)?;
    if let Some(name) = name {
        let table = files::external(statement, &state.options.options).await?;
        session.register_table(name, table);
    }
    Ok(())
}

async fn create_table(
    session: &Session,
    state: &State,
    statement: CreateMemoryTable,
) -> Result<()> {
    if !statement.constraints.is_empty() {
        return not_impl_err!("constraints in CREATE TABLE are not supported yet");
    }
    if !statement.column_defaults.is_empty() {
        return not_impl_err!("DEFAULT in CREATE TABLE is not supported yet");
    }
    let (or_replace, if_not_exists) = (statement.or_replace, statement.if_not_exists);
    let name = free_name(state, &statement.name, Relation::Table, or_replace, if_not_exists)?;
    let Some(name) = name else { return Ok(()) };
    let planned = plan_query(Arc::unwrap_or_clone(statement.input), state).await?;
    let schema = Arc::clone(&planned.schema);
    let rows = session.query(planned).collect_async().await?;
    session.register_table(name, Arc::new(MemTable::try_new(schema, vec![rows])?));
    Ok(())
}

fn drop_relation(
    session: &Session,
    state: &State,
    reference: &TableReference,
    if_exists: bool,
    kind: Relation,
) -> Result<()> {
    match state.catalog.resolve(reference, &state.options.options).map(Relation::of) {
        Some(existing) if existing == kind => {
            session.deregister_table(reference.table());
            Ok(())
        }
        Some(Relation::View) => plan_err!("{reference} is a view; use DROP VIEW"),
        Some(Relation::Table) => plan_err!("{reference} is a table; use DROP TABLE"),
        None if if_exists => Ok(()),
        None => Err(state.catalog.not_found(reference)),
    }
}
