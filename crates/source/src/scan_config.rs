//! [`FileScanConfig`]: what a scan reads, in which coordinates.
//!
//! Three coordinate systems meet here. The *table's* columns are those of the file source's
//! table schema; filters and orders are kept in them, so that a new projection leaves them
//! alone. The scan's *output* columns are those of its projection. A *file's* columns are known
//! to the file source only. [`FileScanConfig::output_to_table`] leads from the output to the
//! table, [`FileScanConfig::table_to_output`] back.

use crate::file_source::FileSource;
use crate::virtual_columns::stored_schema;
use arrow::datatypes::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{Result, Statistics};
use planish_expr::equivalence::EquivalenceProperties;
use planish_expr::projection::{ProjectionExprs, project_expr, unproject_expr};
use planish_expr::{LexOrdering, PhysicalExprRef, is_volatile};
use std::sync::Arc;

/// Which columns and rows of a file source a scan wants.
#[derive(Clone, Debug)]
pub struct FileScanConfig {
    pub(crate) source: Arc<dyn FileSource>,
    pub(crate) projection: ProjectionExprs,
    /// Over the table's columns.
    pub(crate) filters: Vec<PhysicalExprRef>,
    pub(crate) fetch: Option<usize>,
    /// Over the table's columns; of the rows of all files, in the order of files.
    pub(crate) orderings: Vec<LexOrdering>,
    pub(crate) target_partitions: usize,
}

impl FileScanConfig {
    /// All rows and stored columns of `source`.
    pub fn new(source: Arc<dyn FileSource>) -> Self {
        let schema = source.table_schema();
        let all: Vec<usize> = (0..stored_schema(schema).fields().len()).collect();
        let projection = ProjectionExprs::from_indices(&all, schema);
        FileScanConfig {
            source,
            projection,
            filters: vec![],
            fetch: None,
            orderings: vec![],
            target_partitions: 1,
        }
    }

    /// The same with the projection `projection` of the table's columns.
    #[must_use]
    pub fn with_projection(mut self, projection: ProjectionExprs) -> Self {
        self.projection = projection;
        self
    }

    /// The same with at most `partitions` partitions.
    #[must_use]
    pub fn with_target_partitions(mut self, partitions: usize) -> Self {
        self.target_partitions = partitions.max(1);
        self
    }

    /// The same, claiming that all rows, file after file, are in these orders (over the table's
    /// columns).
    #[must_use]
    pub fn with_orderings(mut self, orderings: Vec<LexOrdering>) -> Self {
        self.orderings = orderings;
        self
    }

    /// The same with a filter over the *table's* columns that the source may skip rows by.
    #[must_use]
    pub fn with_table_filter(mut self, filter: PhysicalExprRef) -> Self {
        if !self.filters.iter().any(|known| known.eq(&filter)) {
            self.filters.push(filter);
        }
        self
    }

    /// The file source.
    pub fn source(&self) -> &Arc<dyn FileSource> {
        &self.source
    }

    /// The projection of the table's columns that is the output.
    pub fn projection(&self) -> &ProjectionExprs {
        &self.projection
    }

    /// The filters rows may be skipped by, over the table's columns.
    pub fn table_filters(&self) -> &[PhysicalExprRef] {
        &self.filters
    }

    /// `expr`, over the scan's output, as an expression over the table's columns; `None` when
    /// its value there could be another one.
    ///
    /// # Errors
    /// When `expr` cannot be rebuilt.
    pub fn output_to_table(&self, expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        if is_volatile(expr) || self.projection.iter().any(|e| is_volatile(&e.expr)) {
            return Ok(None);
        }
        unproject_expr(expr, &self.projection)
    }

    /// `expr`, over the table's columns, as an expression over the scan's output; `None` when the
    /// output does not show what it reads, or its value there could be another one.
    ///
    /// # Errors
    /// When `expr` cannot be rebuilt.
    pub fn table_to_output(&self, expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
        if is_volatile(expr) {
            return Ok(None);
        }
        project_expr(expr, &self.projection)
    }

    /// The output's schema.
    ///
    /// # Errors
    /// When the projection does not fit the table.
    pub fn output_schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.projection.project_schema(self.source.table_schema())?))
    }

    /// Number of morsels of all files.
    pub(crate) fn morsel_count(&self) -> usize {
        (0..self.source.files().len()).map(|file| self.source.morsel_count(file)).sum()
    }

    /// No more partitions than there are morsels, at least one.
    pub(crate) fn partition_count(&self) -> usize {
        self.target_partitions.min(self.morsel_count()).max(1)
    }

    /// The orders that the output keeps.
    pub(crate) fn output_equivalences(&self) -> Result<EquivalenceProperties> {
        let table = self.source.table_schema();
        let mut of_table = EquivalenceProperties::new(Arc::clone(table));
        for ordering in &self.orderings {
            of_table.add_ordering(ordering.clone());
        }
        let mapping = self.projection.projection_mapping(table)?;
        Ok(of_table.project(&mapping, self.output_schema()?))
    }

    /// Statistics of the output: of one partition, or of all.
    pub(crate) fn output_statistics(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut of_table = self.source.statistics()?;
        if !self.filters.is_empty() {
            of_table = of_table.to_inexact();
            if let Some(rows) = self.rows_after_pruning()? {
                of_table = scale_to(of_table, rows);
            }
        }
        let partitions = self.partition_count();
        if partition.is_some() && partitions > 1 {
            // Who takes which morsel is known only while running.
            of_table = of_table.to_inexact();
            if let Some(rows) = of_table.num_rows.get_value().copied() {
                of_table = scale_to(of_table, rows.div_ceil(partitions));
            }
        }
        if let (Some(fetch), Some(rows)) = (self.fetch, of_table.num_rows.get_value().copied()) {
            let streams = if partition.is_some() { 1 } else { partitions };
            // `fetch` counts per partition, so the sum is known for one partition only.
            let limit = fetch.saturating_mul(streams);
            if fetch < rows {
                let exact = of_table.num_rows.is_exact() == Some(true) && partitions == 1;
                of_table = scale_to(of_table.to_inexact(), rows.min(limit));
                if exact {
                    of_table.num_rows = Precision::Exact(rows.min(limit));
                }
            }
        }
        self.projection.project_statistics(of_table, self.source.table_schema())
    }

    /// Rows of the morsels that static filters leave, where known.
    fn rows_after_pruning(&self) -> Result<Option<usize>> {
        let mut rows = 0;
        for file in 0..self.source.files().len() {
            let kept = self.source.morsels_to_read(file, &self.filters)?;
            for morsel in 0..self.source.morsel_count(file) {
                if kept.as_ref().is_some_and(|kept| !kept.value(morsel)) {
                    continue;
                }
                match self.source.morsel_rows(file, morsel) {
                    Some(n) => rows += n,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(rows))
    }
}

/// Inexact statistics of `rows` of the rows.
fn scale_to(mut statistics: Statistics, rows: usize) -> Statistics {
    let Some(total) = statistics.num_rows.get_value().copied() else { return statistics };
    let scale = |p: Precision<usize>| match p.get_value() {
        Some(&n) if total > 0 => {
            Precision::Inexact((n as f64 * rows as f64 / total as f64).ceil() as usize)
        }
        _ => p,
    };
    statistics.num_rows = Precision::Inexact(rows);
    statistics.total_byte_size = scale(statistics.total_byte_size);
    for column in &mut statistics.column_statistics {
        column.byte_size = scale(column.byte_size);
        column.null_count = scale(column.null_count);
        column.distinct_count = match column.distinct_count.get_value() {
            Some(&n) => Precision::Inexact(n.min(rows)),
            None => Precision::Absent,
        };
    }
    statistics
}
