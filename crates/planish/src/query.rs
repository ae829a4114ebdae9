//! [`Query`]: a planned statement, to be run, or asked for its plans.

use crate::explain;
use crate::planning::{Kind, Planned, PlanningTimes};
use crate::runtime::block_on;
use crate::session::Session;
use crate::stream::{Batches, QueryStream};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use futures::TryStreamExt;
use planish_optimizer::Trace;
use planish_plan::PlanRef;
use std::sync::Arc;

/// A planned query. It may be run many times, also at once; each run sees the tables' plans as
/// they were when the query was planned.
#[derive(Clone, Debug)]
pub struct Query {
    session: Session,
    planned: Arc<Planned>,
}

impl Query {
    pub(crate) fn new(session: Session, planned: Planned) -> Self {
        Query { session, planned: Arc::new(planned) }
    }

    /// The columns of the result.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.planned.schema)
    }

    /// Whether this is a query, rather than a statement that was done when it was planned.
    pub fn returns_rows(&self) -> bool {
        self.planned.kind != Kind::Done
    }

    /// The logical plan, optimized.
    pub fn logical_plan(&self) -> &LogicalPlan {
        &self.planned.logical
    }

    /// The physical plan, optimized.
    pub fn physical_plan(&self) -> &PlanRef {
        &self.planned.physical
    }

    /// What each rule of the physical optimizer did.
    pub fn trace(&self) -> &Trace {
        &self.planned.trace
    }

    /// How long planning took.
    pub fn planning_times(&self) -> PlanningTimes {
        self.planned.times
    }

    /// All rows.
    ///
    /// # Errors
    /// Those of the query.
    pub fn collect(&self) -> Result<Vec<RecordBatch>> {
        block_on(self.collect_async())
    }

    /// As [`Self::collect`], on any executor.
    ///
    /// # Errors
    /// Those of the query.
    pub async fn collect_async(&self) -> Result<Vec<RecordBatch>> {
        self.stream().try_collect().await
    }

    /// The rows batch by batch, to be polled by any executor. The query begins at once, and is
    /// cancelled when the stream is dropped.
    pub fn stream(&self) -> QueryStream {
        QueryStream::start(&self.session, &self.planned)
    }

    /// The rows batch by batch, blocking at each.
    pub fn batches(&self) -> Batches {
        Batches::new(self.stream())
    }

    /// The plans as text: with `verbose`, after each rule that changed them; with `analyze`, the
    /// query is run and the physical plan shows what each operator did.
    ///
    /// # Errors
    /// With `analyze`, those of the query.
    pub fn explain(&self, verbose: bool, analyze: bool) -> Result<String> {
        if !analyze {
            return Ok(explain::sections(&self.planned, None, verbose).to_string());
        }
        let run = QueryStream::analyze(&self.session, &self.planned, verbose);
        let rows: Vec<RecordBatch> = block_on(run.try_collect())?;
        explain::text_of(&rows)
    }
}
