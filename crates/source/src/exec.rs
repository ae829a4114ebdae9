//! `DataSourceExec`: the rows of a table's files.
//!
//! Partitions take morsels, in file order, from one queue per execution, so each partition's
//! rows stay in file order. Filters the scan was given only skip work: morsels that cannot hold a
//! passing row, and the other columns of rows that fail. Whoever offered them still applies them.

use crate::file_source::ReadRequest;
use crate::morsels::{Morsel, MorselFeed, MorselQueue, fixed_range};
use crate::row_filter::RowFilter;
use crate::scan_config::FileScanConfig;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, Statistics, internal_err};
use futures::StreamExt;
use planish_expr::expressions::{DynamicFilterExpr, Literal};
use planish_expr::projection::{ProjectionExpr, ProjectionExprs, merge_repeats_work, narrow_expr};
use planish_expr::{ExpressionPlacement, Partitioning, PhysicalExprRef, can_fail};
use planish_plan::display::bracketed;
use planish_plan::operators::projection::ProjectionExec;
use planish_plan::pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    PushedDown,
};
use planish_plan::{
    BatchStream, DynamicFilters, ExecutionPlan, NodeMetrics, PlanProperties, PlanRef, Pushdown,
    TaskContext, node_id,
};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// File names shown by `EXPLAIN`.
const SHOWN_FILES: usize = 5;

/// A scan of files.
#[derive(Debug)]
pub struct DataSourceExec {
    config: FileScanConfig,
    morsels: Arc<[Morsel]>,
    properties: PlanProperties,
    /// Of all partitions, once someone asked.
    statistics: OnceLock<Statistics>,
}

impl DataSourceExec {
    /// The scan that `config` describes.
    ///
    /// # Errors
    /// When the projection does not fit the table.
    pub fn try_new(config: FileScanConfig) -> Result<Self> {
        let equivalences = config.output_equivalences()?;
        let partitioning = Partitioning::UnknownPartitioning(config.partition_count());
        let morsels = (0..config.source.files().len())
            .flat_map(|file| {
                (0..config.source.morsel_count(file)).map(move |index| Morsel { file, index })
            })
            .collect();
        Ok(DataSourceExec {
            morsels,
            properties: PlanProperties::new(equivalences, partitioning),
            statistics: OnceLock::new(),
            config,
        })
    }

    /// What is scanned.
    pub fn config(&self) -> &FileScanConfig {
        &self.config
    }

    fn feed(&self, partition: usize, ctx: &TaskContext) -> MorselFeed {
        let count = self.morsels.len();
        if ctx.planish_options().shared_state {
            MorselFeed::Shared(ctx.state(node_id(self), MorselQueue::default), count)
        } else {
            MorselFeed::Fixed(fixed_range(count, partition, self.partition_count()))
        }
    }

    fn partition_count(&self) -> usize {
        self.properties.partition_count()
    }

    /// Whether the source can skip anything by `filter`, which is over the table's columns.
    fn makes_use_of(&self, filter: &PhysicalExprRef, options: &ConfigOptions) -> bool {
        let source = &self.config.source;
        if filter.is::<DynamicFilterExpr>() {
            return source.filters_rows() && RowFilter::takes(filter, source.table_schema());
        }
        let skips_rows = source.filters_rows()
            && options.execution.parquet.pushdown_filters
            && RowFilter::takes(filter, source.table_schema());
        skips_rows || source.can_prune_by(filter)
    }
}

impl ExecutionPlan for DataSourceExec {
    fn name(&self) -> &'static str {
        "DataSourceExec"
    }

    fn properties(&self) -> &PlanProperties {
        &self.properties
    }

    fn children(&self) -> Vec<&PlanRef> {
        vec![]
    }

    fn with_new_children(self: Arc<Self>, _: Vec<PlanRef>) -> Result<PlanRef> {
        Ok(Arc::new(DataSourceExec::try_new(self.config.clone())?))
    }

    fn fmt_details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.config.source.files();
        let groups = self.partition_count();
        let names = files.iter().take(SHOWN_FILES).map(|file| file.name());
        let more = if files.len() > SHOWN_FILES { ", ..." } else { "" };
        let names = names.collect::<Vec<_>>().join(", ");
        let plural = if groups == 1 { "" } else { "s" };
        write!(f, "file_groups={{{groups} group{plural}: [[{names}{more}]]}}")?;
        write!(f, ", projection={}", bracketed(self.config.projection.iter()))?;
        if let Some(ordering) = self.properties.output_ordering() {
            write!(f, ", output_ordering={}", planish_expr::sort_expr::display_ordering(ordering))?;
        }
        write!(f, ", file_type={}", self.config.source.file_type())?;
        if !self.config.filters.is_empty() {
            let filters: Vec<String> =
                self.config.filters.iter().map(ToString::to_string).collect();
            write!(f, ", predicate={}", filters.join(" AND "))?;
        }
        if let Some(fetch) = self.config.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        Ok(())
    }

    fn execute(&self, partition: usize, ctx: &Arc<TaskContext>) -> Result<BatchStream> {
        if partition >= self.partition_count() {
            return internal_err!("partition {partition} of {}", self.partition_count());
        }
        let mut feed = self.feed(partition, ctx);
        let metrics = ctx.metrics().node(node_id(self));
        let output = Output::try_new(&self.config, self.schema())?;
        let source = Arc::clone(&self.config.source);
        let filters = self.config.filters.clone();
        let morsels = Arc::clone(&self.morsels);
        let mut left = self.config.fetch.unwrap_or(usize::MAX);
        let request = ReadRequest {
            columns: output.columns.clone().into(),
            schema: Arc::clone(&output.read_schema),
            batch_size: ctx.batch_size(),
            limit: self.config.fetch,
            row_filter: None,
            metrics: Arc::clone(&metrics),
        };
        let table = Arc::clone(self.config.source.table_schema());
        let filters_rows = self.config.source.filters_rows()
            && self.config.fetch.is_none()
            && ctx.options().execution.parquet.pushdown_filters;
        let ctx = Arc::clone(ctx);
        Ok(Box::pin(try_stream! {
            let mut filters = ctx.bind_all(&filters).await?;
            let mut dynamic = DynamicFilters::of(&mut filters, &ctx);
            let mut request = request;
            if filters_rows {
                let filter = RowFilter::try_new(&filters, &request.columns, &table)?;
                request.row_filter = filter.map(Arc::new);
            }
            let output = output.bind(&ctx).await?;
            let mut pruning = Pruning::new(metrics);
            while left > 0
                && let Some(position) = feed.take()
            {
                let morsel = morsels[position];
                if dynamic.refresh()? {
                    pruning.forget();
                    if filters_rows {
                        let all: Vec<_> = filters.iter().chain(dynamic.for_rows()).cloned().collect();
                        let filter = RowFilter::try_new(&all, &request.columns, &table)?;
                        request.row_filter = filter.map(Arc::new);
                    }
                }
                if !pruning.keeps(source.as_ref(), morsel, &filters, dynamic.current())? {
                    continue;
                }
                let request = ReadRequest { limit: (left < usize::MAX).then_some(left), ..request.clone() };
                let mut rows = Arc::clone(&source).read(morsel.file, morsel.index, request);
                while left > 0
                    && let Some(batch) = rows.next().await
                {
                    let mut batch = output.project(&batch?)?;
                    if batch.num_rows() > left {
                        batch = batch.slice(0, left);
                    }
                    left -= batch.num_rows();
                    if batch.num_rows() > 0 {
                        yield batch;
                        // Local reads never wait, so the scan itself lets others run.
                        tokio::task::consume_budget().await;
                    }
                }
            }
        }))
    }

    fn statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        if partition.is_some() {
            return self.config.output_statistics(partition);
        }
        if let Some(known) = self.statistics.get() {
            return Ok(known.clone());
        }
        let statistics = self.config.output_statistics(None)?;
        Ok(self.statistics.get_or_init(|| statistics).clone())
    }
}

/// From the columns that are read to the columns that come out.
#[derive(Debug)]
struct Output {
    /// Table columns that are read, ascending.
    columns: Vec<usize>,
    read_schema: SchemaRef,
    /// The projection, over the columns that are read.
    exprs: ProjectionExprs,
    /// The same as indices, where it only picks columns.
    indices: Option<Vec<usize>>,
    schema: SchemaRef,
}

impl Output {
    fn try_new(config: &FileScanConfig, schema: SchemaRef) -> Result<Self> {
        let columns = config.projection.column_indices();
        let read_schema = Arc::new(config.source.table_schema().project(&columns)?);
        let mut exprs = vec![];
        for e in &config.projection {
            match narrow_expr(&e.expr, &columns)? {
                Some(moved) => exprs.push(ProjectionExpr::new(moved, e.alias.clone())),
                None => return internal_err!("{} reads a column that is not read", e.expr),
            }
        }
        let exprs = ProjectionExprs::from(exprs);
        let indices = exprs.column_only_indices();
        Ok(Output { columns, read_schema, exprs, indices, schema })
    }

    async fn bind(mut self, ctx: &Arc<TaskContext>) -> Result<Self> {
        if self.indices.is_none() {
            let mut bound = vec![];
            for e in &self.exprs {
                bound.push(ProjectionExpr::new(ctx.bind(&e.expr).await?, e.alias.clone()));
            }
            self.exprs = bound.into();
        }
        Ok(self)
    }

    fn project(&self, batch: &planish_batch::Batch) -> Result<planish_batch::Batch> {
        match &self.indices {
            Some(indices) => batch.project(indices, Arc::clone(&self.schema)),
            None => self.exprs.project_batch(batch, &self.schema),
        }
    }
}

/// A partition's memory of which morsels of the file at hand are worth reading.
struct Pruning {
    file: Option<usize>,
    /// By the static filters.
    kept: Option<BooleanBuffer>,
    /// By the dynamic filters as they are at the moment.
    of_use: Option<BooleanBuffer>,
    metrics: Arc<NodeMetrics>,
}

impl Pruning {
    fn new(metrics: Arc<NodeMetrics>) -> Self {
        Pruning { file: None, kept: None, of_use: None, metrics }
    }

    /// The dynamic filters are others than before.
    fn forget(&mut self) {
        self.file = None;
    }

    fn keeps(
        &mut self,
        source: &dyn crate::file_source::FileSource,
        morsel: Morsel,
        filters: &[PhysicalExprRef],
        dynamic: &[PhysicalExprRef],
    ) -> Result<bool> {
        if self.file != Some(morsel.file) {
            let kept = |filters: &[PhysicalExprRef]| match filters {
                [] => Ok(None),
                filters => source.morsels_to_read(morsel.file, filters),
            };
            (self.kept, self.of_use) = (kept(filters)?, kept(dynamic)?);
            self.file = Some(morsel.file);
        }
        let keeps = |kept: &Option<BooleanBuffer>| {
            kept.as_ref().is_none_or(|kept| kept.value(morsel.index))
        };
        if !keeps(&self.kept) {
            self.metrics.add("row_groups_pruned", 1);
            return Ok(false);
        }
        if !keeps(&self.of_use) {
            self.metrics.add("row_groups_pruned_by_dynamic_filter", 1);
            return Ok(false);
        }
        Ok(true)
    }
}

impl Pushdown for DataSourceExec {
    fn fetch(&self) -> Option<usize> {
        self.config.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<PlanRef> {
        // Rows that were skipped by a filter are not counted, so the two do not go together.
        if fetch.is_some() && !self.config.filters.is_empty() {
            return None;
        }
        let config = FileScanConfig { fetch, ..self.config.clone() };
        DataSourceExec::try_new(config).ok().map(|scan| Arc::new(scan) as PlanRef)
    }

    /// A projection of columns, of cheap accesses to parts of them, and of literals becomes the
    /// scan's own; computations stay above, where they see rows that survived a filter.
    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<PlanRef>> {
        let own = self.schema();
        let cheap = |e: &ProjectionExpr| match e.expr.placement() {
            ExpressionPlacement::Column => true,
            ExpressionPlacement::Literal => e.expr.is::<Literal>(),
            ExpressionPlacement::MoveTowardsLeafNodes => !can_fail(&e.expr, &own),
            ExpressionPlacement::KeepInPlace => false,
        };
        if !projection.exprs().iter().all(cheap)
            || merge_repeats_work(&self.config.projection, projection.exprs())
        {
            return Ok(None);
        }
        let merged = self.config.projection.try_merge(projection.exprs())?;
        let scan = DataSourceExec::try_new(self.config.clone().with_projection(merged))?;
        // A projection that says other things of its fields than its expressions do stays.
        if scan.schema() != projection.schema() {
            return Ok(None);
        }
        Ok(Some(Arc::new(scan)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        _parent_filters: &[PhysicalExprRef],
        _children: usize,
        _options: &ConfigOptions,
    ) -> Result<FilterDescription> {
        Ok(FilterDescription::default())
    }

    /// Filters are kept to skip morsels and rows by; rows that fail may still come out.
    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation> {
        let mut config = self.config.clone();
        let mut answers = vec![];
        for (filter, _) in &result.parent_filters {
            // A fetch counts rows before the filter, so nothing may be skipped below it.
            if config.fetch.is_none()
                && let Some(filter) = config.output_to_table(filter)?
                && self.makes_use_of(&filter, options)
            {
                config = config.with_table_filter(filter);
                answers.push(PushedDown::Used);
            } else {
                answers.push(PushedDown::No);
            }
        }
        let node: PlanRef = if config.filters.len() == self.config.filters.len() {
            result.node
        } else {
            Arc::new(DataSourceExec::try_new(config)?)
        };
        Ok(FilterPushdownPropagation { filters: answers, node })
    }
}
