//! [`Table`]: what a source of rows implements to be queried.

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Constraints, Result};
use datafusion_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableSource, TableType};
use planish_plan::PlanRef;
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// A source of rows. Implement this to query data of your own.
#[async_trait]
pub trait Table: Any + Debug + Send + Sync {
    /// The table's columns.
    fn schema(&self) -> SchemaRef;

    /// The table's columns, followed by those that only a scan knows (a row's place in its file).
    fn scan_schema(&self) -> SchemaRef {
        self.schema()
    }

    /// A plan that yields the columns at `projection` of [`Self::scan_schema`], in that order;
    /// the table's columns for `None`. Filters, limits and orders reach the plan later, through its pushdown methods.
    ///
    /// # Errors
    /// When the source cannot be read.
    async fn scan(&self, projection: Option<&[usize]>, options: &ConfigOptions) -> Result<PlanRef>;

    /// The query that a view stands for.
    fn view_plan(&self) -> Option<&LogicalPlan> {
        None
    }

    /// Known keys.
    fn constraints(&self) -> Option<&Constraints> {
        None
    }
}

/// A [`Table`] as the front end sees it. It takes no filters: they stay plan nodes, and our own
/// rule negotiates them.
#[derive(Debug)]
pub struct TableSourceAdapter {
    table: Arc<dyn Table>,
    schema: SchemaRef,
}

impl TableSourceAdapter {
    /// The front end's view of `table`.
    pub fn new(table: Arc<dyn Table>) -> Self {
        TableSourceAdapter { schema: table.schema(), table }
    }

    /// The same with all columns that a scan knows.
    #[must_use]
    pub fn with_scan_columns(&self) -> Self {
        let table = Arc::clone(&self.table);
        TableSourceAdapter { schema: table.scan_schema(), table }
    }

    /// The table.
    pub fn table(&self) -> &Arc<dyn Table> {
        &self.table
    }
}

impl TableSource for TableSourceAdapter {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        if self.table.view_plan().is_some() { TableType::View } else { TableType::Base }
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.table.view_plan().map(Cow::Borrowed)
    }
}
