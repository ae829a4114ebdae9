//! What the front end's optimizer may ask of a session.

use crate::functions::Functions;
use chrono::{DateTime, Utc};
use datafusion_common::alias::AliasGenerator;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_optimizer::OptimizerConfig;
use std::sync::Arc;

/// Options, functions and the start time of one query. `DISTINCT ON` needs the functions.
#[derive(Debug)]
pub(crate) struct QueryOptimizerConfig {
    pub(crate) started: DateTime<Utc>,
    pub(crate) aliases: Arc<AliasGenerator>,
    pub(crate) options: Arc<ConfigOptions>,
    pub(crate) functions: Arc<Functions>,
}

impl OptimizerConfig for QueryOptimizerConfig {
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        Some(self.started)
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.aliases
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(&self.options)
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(self.functions.as_ref())
    }
}
