//! [`Session`]: tables, options and functions, and the runtime that queries run on.

use crate::catalog::Catalog;
use crate::config::SessionOptions;
use crate::files;
use crate::frontend::{self, Frontend};
use crate::functions::Functions;
use crate::planning::{Planned, plan_query};
use crate::query::Query;
use crate::runtime::{OwnRuntime, block_on};
use crate::statements::{self, Statement};
use crate::tables::MemTable;
use arrow::array::RecordBatch;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, plan_err};
use datafusion_execution::disk_manager::DiskManager;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::{AggregateUDF, LogicalPlan, ScalarUDF, WindowUDF};
use parking_lot::RwLock;
use planish_optimizer::PhysicalOptimizer;
use planish_plan::TaskContext;
use planish_planner::Table;
use planish_source::FileFormatOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// A place to run queries in. Clones are the same session.
///
/// Every method that blocks may be called from anywhere, also from inside another runtime; each
/// has an `_async` twin that any executor can poll.
#[derive(Clone, Debug)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: OwnRuntime,
    state: RwLock<State>,
}

/// What a session knows. A clone is a snapshot, under which one query is planned and run.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) catalog: Catalog,
    pub(crate) functions: Arc<Functions>,
    pub(crate) optimizer: Arc<PhysicalOptimizer>,
    memory: Arc<dyn MemoryPool>,
    disk: Arc<DiskManager>,
}

impl State {
    /// The options, as queries share them.
    pub(crate) fn config(&self) -> Arc<ConfigOptions> {
        Arc::new(self.options.options.clone())
    }
}

/// Settings that a session starts with.
#[derive(Clone, Debug, Default)]
pub struct SessionBuilder {
    options: Vec<(String, String)>,
    memory_pool: Option<Arc<dyn MemoryPool>>,
    optimizer: Option<PhysicalOptimizer>,
}

impl SessionBuilder {
    /// Sets an option, as `SET key = value` does.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((key.into(), value.into()));
        self
    }

    /// The number of partitions that operators aim for, and of the runtime's workers; the number
    /// of cores by default.
    #[must_use]
    pub fn target_partitions(self, partitions: usize) -> Self {
        self.set("datafusion.execution.target_partitions", partitions.to_string())
    }

    /// The rows per batch that operators aim for.
    #[must_use]
    pub fn batch_size(self, rows: usize) -> Self {
        self.set("datafusion.execution.batch_size", rows.to_string())
    }

    /// The memory, in bytes, that all queries of the session may hold together.
    #[must_use]
    pub fn memory_limit(self, bytes: usize) -> Self {
        self.set("datafusion.runtime.memory_limit", bytes.to_string())
    }

    /// A memory pool of the caller's, in place of one with `datafusion.runtime.memory_limit`.
    #[must_use]
    pub fn memory_pool(mut self, pool: Arc<dyn MemoryPool>) -> Self {
        self.memory_pool = Some(pool);
        self
    }

    /// The physical optimizer, in place of the default one.
    #[must_use]
    pub fn optimizer(mut self, optimizer: PhysicalOptimizer) -> Self {
        self.optimizer = Some(optimizer);
        self
    }

    /// The session.
    ///
    /// # Errors
    /// When an option does not exist, or threads or the spill folder cannot be made.
    pub fn build(self) -> Result<Session> {
        let mut options = SessionOptions::new()?;
        for (key, value) in &self.options {
            options.set(key, value)?;
        }
        let runtime = OwnRuntime::new(options.options.execution.target_partitions)?;
        let state = State {
            memory: self.memory_pool.unwrap_or_else(|| options.runtime.memory_pool()),
            disk: options.runtime.disk_manager()?,
            options: Arc::new(options),
            catalog: Catalog::default(),
            functions: Arc::new(Functions::defaults()),
            optimizer: Arc::new(self.optimizer.unwrap_or_default()),
        };
        Ok(Session { inner: Arc::new(Inner { runtime, state: RwLock::new(state) }) })
    }
}

impl Session {
    /// A session with the default options.
    ///
    /// # Errors
    /// When threads or the spill folder cannot be made.
    pub fn new() -> Result<Self> {
        SessionBuilder::default().build()
    }

    /// A session with other options.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// Plans the one statement in `text`. Statements that are no queries (`CREATE VIEW`, `SET`)
    /// are done when this returns.
    ///
    /// # Errors
    /// When the text is not one statement, or the statement cannot be planned or done.
    pub fn sql(&self, text: &str) -> Result<Query> {
        block_on(self.sql_async(text))
    }

    /// As [`Self::sql`].
    ///
    /// # Errors
    /// As [`Self::sql`].
    pub async fn sql_async(&self, text: &str) -> Result<Query> {
        let statements = self.statements(text)?;
        match statements.as_slice() {
            [statement] => self.run_async(statement).await,
            [] => plan_err!("no SQL statement was given"),
            many => plan_err!(
                "{} statements where one was expected; split them with Session::statements",
                many.len()
            ),
        }
    }

    /// The statements of a script, in order. Comments and empty statements are skipped, and the
    /// last statement may lack its `;`.
    ///
    /// # Errors
    /// When the text cannot be parsed.
    pub fn statements(&self, text: &str) -> Result<Vec<Statement>> {
        let options = self.snapshot().options;
        let parsed = frontend::parse(text, &options.options)?;
        Ok(parsed.into_iter().map(Statement::new).collect())
    }

    /// Plans a statement of [`Self::statements`], as [`Self::sql`] does.
    ///
    /// # Errors
    /// When it cannot be planned or done.
    pub fn run(&self, statement: &Statement) -> Result<Query> {
        block_on(self.run_async(statement))
    }

    /// As [`Self::run`].
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_async(&self, statement: &Statement) -> Result<Query> {
        let (session, statement) = (self.clone(), statement.clone());
        let planned = self
            .inner
            .runtime
            .run(async move { statements::execute(&session, statement.into_ast()).await });
        Ok(self.query(planned.await?))
    }

    /// A query for a logical plan, whose tables must be [`planish_planner::TableSourceAdapter`]s.
    ///
    /// # Errors
    /// When the plan is not valid, or has nodes that are not supported.
    pub fn plan(&self, plan: LogicalPlan) -> Result<Query> {
        block_on(self.plan_async(plan))
    }

    /// As [`Self::plan`].
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub async fn plan_async(&self, plan: LogicalPlan) -> Result<Query> {
        let state = self.snapshot();
        let planned = self.inner.runtime.run(async move { plan_query(plan, &state).await });
        Ok(self.query(planned.await?))
    }

    /// Makes `table` known as `name`, in place of any table of that name.
    pub fn register_table(&self, name: impl Into<String>, table: Arc<dyn Table>) {
        self.update(|state| state.catalog.insert(name.into(), table));
    }

    /// Makes rows in memory a table, in one partition. Without a batch there is no schema: see
    /// [`MemTable::try_new`].
    ///
    /// # Errors
    /// When there is no batch, or batches differ in type.
    pub fn register_batches(
        &self,
        name: impl Into<String>,
        batches: Vec<RecordBatch>,
    ) -> Result<()> {
        let Some(first) = batches.first() else {
            return plan_err!("a table of no batches has no columns");
        };
        let table = MemTable::try_new(first.schema(), vec![batches])?;
        self.register_table(name, Arc::new(table));
        Ok(())
    }

    /// Makes a file, a folder of files of one format, or a glob a table; extensions tell the
    /// format.
    ///
    /// # Errors
    /// When there is no file, or files cannot be read or do not fit together.
    pub fn register_path(&self, name: impl Into<String>, path: &str) -> Result<()> {
        self.register_files(name, vec![path.to_owned()], FileFormatOptions::default())
    }

    /// As [`Self::register_path`], for Parquet files of any extension.
    ///
    /// # Errors
    /// As [`Self::register_path`].
    pub fn register_parquet(&self, name: impl Into<String>, path: &str) -> Result<()> {
        self.register_files(name, vec![path.to_owned()], files::parquet())
    }

    /// As [`Self::register_path`], for CSV files of any extension.
    ///
    /// # Errors
    /// As [`Self::register_path`].
    pub fn register_csv(&self, name: impl Into<String>, path: &str) -> Result<()> {
        self.register_files(name, vec![path.to_owned()], files::csv())
    }

    /// As [`Self::register_path`], for JSON files of any extension.
    ///
    /// # Errors
    /// As [`Self::register_path`].
    pub fn register_json(&self, name: impl Into<String>, path: &str) -> Result<()> {
        self.register_files(name, vec![path.to_owned()], files::json())
    }

    /// As [`Self::register_path`], for Arrow IPC files and streams of any extension.
    ///
    /// # Errors
    /// As [`Self::register_path`].
    pub fn register_arrow(&self, name: impl Into<String>, path: &str) -> Result<()> {
        self.register_files(name, vec![path.to_owned()], files::arrow())
    }

    /// Makes files a table: each path is a file, a folder, or a glob.
    ///
    /// # Errors
    /// As [`Self::register_path`].
    pub fn register_files(
        &self,
        name: impl Into<String>,
        paths: Vec<String>,
        options: FileFormatOptions,
    ) -> Result<()> {
        let opened = self.inner.runtime.run(files::open(paths, options));
        let table = block_on(opened)?;
        self.register_table(name, table);
        Ok(())
    }

    /// Forgets the table or view `name`, and hands it back.
    pub fn deregister_table(&self, name: &str) -> Option<Arc<dyn Table>> {
        self.update(|state| state.catalog.remove(name))
    }

    /// The table or view called `name`.
    pub fn table(&self, name: &str) -> Option<Arc<dyn Table>> {
        self.snapshot().catalog.get(name).cloned()
    }

    /// The names of all tables and views, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.snapshot().catalog.iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// Makes a scalar function known, in place of one of the same name.
    pub fn register_udf(&self, function: impl Into<Arc<ScalarUDF>>) {
        self.update(|state| Arc::make_mut(&mut state.functions).add_scalar(function.into()));
    }

    /// Makes an aggregate function known, in place of one of the same name.
    pub fn register_udaf(&self, function: impl Into<Arc<AggregateUDF>>) {
        self.update(|state| Arc::make_mut(&mut state.functions).add_aggregate(function.into()));
    }

    /// Makes a window function known, in place of one of the same name.
    pub fn register_udwf(&self, function: impl Into<Arc<WindowUDF>>) {
        self.update(|state| Arc::make_mut(&mut state.functions).add_window(function.into()));
    }

    /// The options as they are now.
    pub fn options(&self) -> ConfigOptions {
        self.snapshot().options.options.clone()
    }

    /// Sets an option, as `SET key = value` does.
    ///
    /// # Errors
    /// When there is no such option, or the value does not fit it.
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        self.change_options(|options| options.set(key, value))
    }

    /// Sets an option back to what sessions start with.
    ///
    /// # Errors
    /// When there is no such option.
    pub fn reset(&self, key: &str) -> Result<()> {
        self.change_options(|options| options.reset(key))
    }

    /// The value of an option, as `SHOW key` gives it; `None` when it has none.
    ///
    /// # Errors
    /// When there is no such option.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        let entries = self.snapshot().options.show(key)?;
        Ok(entries.into_iter().next().and_then(|entry| entry.value))
    }

    /// A context for one execution.
    pub(crate) fn task_context(&self, options: Arc<ConfigOptions>) -> Arc<TaskContext> {
        let state = self.snapshot();
        let handle = self.inner.runtime.handle().clone();
        Arc::new(TaskContext::new(options, state.memory, state.disk, handle))
    }

    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.inner.runtime.handle()
    }

    pub(crate) fn query(&self, planned: Planned) -> Query {
        Query::new(self.clone(), planned)
    }

    pub(crate) fn snapshot(&self) -> State {
        self.inner.state.read().clone()
    }

    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.inner.state.write())
    }

    fn change_options(&self, change: impl FnOnce(&mut SessionOptions) -> Result<()>) -> Result<()> {
        self.update(|state| {
            let mut options = state.options.as_ref().clone();
            change(&mut options)?;
            let before = &state.options.runtime;
            if options.runtime.memory_limit != before.memory_limit {
                state.memory = options.runtime.memory_pool();
            }
            if !options.runtime.same_disk(before) {
                state.disk = options.runtime.disk_manager()?;
            }
            state.options = Arc::new(options);
            Ok(())
        })
    }

    /// What a statement is bound against, its files opened.
    pub(crate) async fn frontend(
        &self,
        statement: &datafusion_sql::parser::Statement,
    ) -> Result<(Frontend, State)> {
        let state = self.snapshot();
        let mut frontend = Frontend {
            options: Arc::clone(&state.options),
            catalog: state.catalog.clone(),
            functions: Arc::clone(&state.functions),
            files: HashMap::new(),
        };
        for path in frontend.file_references(statement)? {
            let table = files::open(vec![path.clone()], FileFormatOptions::default()).await?;
            frontend.files.insert(path, table);
        }
        Ok((frontend, state))
    }
}
