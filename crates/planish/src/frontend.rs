//! The front end: SQL text to a logical plan, by way of DataFusion's parser and binder.

use crate::catalog::{Catalog, INFORMATION_SCHEMA, own_name};
use crate::config::SessionOptions;
use crate::dialect::dialect_named;
use crate::functions::Functions;
use crate::information_schema;
use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner};
use datafusion_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion_sql::parser::{DFParserBuilder, Statement as DFStatement};
use datafusion_sql::planner::{ParserOptions, SqlToRel};
use datafusion_sql::resolve::resolve_table_references;
use planish_planner::{Table, TableSourceAdapter};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The statements of `text`, in order; the last may lack its `;`.
pub(crate) fn parse(text: &str, options: &ConfigOptions) -> Result<VecDeque<DFStatement>> {
    let parser = &options.sql_parser;
    let dialect = dialect_named(parser.dialect)?;
    DFParserBuilder::new(text)
        .with_dialect(dialect.as_ref())
        .with_recursion_limit(parser.recursion_limit.get())
        .build()?
        .parse_statements()
}

/// What a statement is bound against.
pub(crate) struct Frontend {
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) catalog: Catalog,
    pub(crate) functions: Arc<Functions>,
    /// Tables that the statement names by their path.
    pub(crate) files: HashMap<String, Arc<dyn Table>>,
}

impl Frontend {
    /// The paths that `statement` uses as tables (`FROM 'data/*.parquet'`): bare names that look
    /// like paths and are no tables.
    pub(crate) fn file_references(&self, statement: &DFStatement) -> Result<Vec<String>> {
        let normalize = self.options.options.sql_parser.enable_ident_normalization;
        let (references, _) = resolve_table_references(statement, normalize)?;
        Ok(references
            .into_iter()
            .filter_map(|reference| match reference {
                TableReference::Bare { table }
                    if looks_like_path(&table) && self.catalog.get(&table).is_none() =>
                {
                    Some(table.to_string())
                }
                _ => None,
            })
            .collect())
    }

    /// The logical plan of `statement`, as bound.
    pub(crate) fn statement_to_plan(&self, statement: DFStatement) -> Result<LogicalPlan> {
        let options = ParserOptions::from(&self.options.options.sql_parser);
        SqlToRel::new_with_options(self, options).statement_to_plan(statement)
    }
}

fn looks_like_path(name: &str) -> bool {
    name.contains(['/', '\\', '*', '?'])
        || name
            .rsplit_once('.')
            .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
}

impl ContextProvider for Frontend {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let table = if let Some(table) = self.catalog.resolve(&name, &self.options.options) {
            Arc::clone(table)
        } else if let Some(file) =
            own_name(&name, &self.options.options).and_then(|name| self.files.get(name))
        {
            Arc::clone(file)
        } else if name.schema() == Some(INFORMATION_SCHEMA)
            && self.options.options.catalog.information_schema
            && let Some(table) =
                information_schema::table(name.table(), &self.catalog, &self.options)
        {
            table?
        } else {
            return Err(self.catalog.not_found(&name));
        };
        Ok(Arc::new(TableSourceAdapter::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.functions.planners()
    }

    /// Functions such as `now` depend on options.
    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let function = self.functions.scalar(name)?;
        let configured = function.inner().with_updated_config(&self.options.options);
        Some(configured.map_or_else(|| Arc::clone(function), Arc::new))
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.functions.higher_order(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.aggregate(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options.options
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.scalar_names()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions.higher_order_names()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.aggregate_names()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.window_names()
    }
}
