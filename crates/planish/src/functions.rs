//! The functions of a session, by every name they have.

use crate::map_access::MapAccessPlanner;
use datafusion_common::{Result, plan_err};
use datafusion_expr::planner::ExprPlanner;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion_functions::core::planner::CoreFunctionPlanner;
use datafusion_functions::datetime::planner::DatetimeFunctionPlanner;
use datafusion_functions::unicode::planner::UnicodeFunctionPlanner;
use datafusion_functions_aggregate::planner::AggregateFunctionPlanner;
use datafusion_functions_nested::planner::{FieldAccessPlanner, NestedFunctionPlanner};
use datafusion_functions_window::planner::WindowFunctionPlanner;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Scalar, aggregate, window and higher-order functions, and who plans SQL's special syntax.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
    higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    planners: Vec<Arc<dyn ExprPlanner>>,
}

macro_rules! by_every_name {
    ($map:expr, $function:expr) => {
        for alias in $function.aliases() {
            $map.insert(alias.clone(), Arc::clone(&$function));
        }
        $map.insert($function.name().to_owned(), $function);
    };
}

impl Functions {
    /// DataFusion's function library.
    pub(crate) fn defaults() -> Self {
        let mut functions = Functions {
            scalar: HashMap::new(),
            aggregate: HashMap::new(),
            window: HashMap::new(),
            higher_order: HashMap::new(),
            planners: vec![
                Arc::new(MapAccessPlanner),
                Arc::new(CoreFunctionPlanner::default()),
                Arc::new(NestedFunctionPlanner),
                Arc::new(FieldAccessPlanner),
                Arc::new(DatetimeFunctionPlanner),
                Arc::new(UnicodeFunctionPlanner),
                Arc::new(AggregateFunctionPlanner),
                Arc::new(WindowFunctionPlanner),
            ],
        };
        datafusion_functions::all_default_functions()
            .into_iter()
            .chain(datafusion_functions_nested::all_default_nested_functions())
            .for_each(|f| functions.add_scalar(f));
        for function in datafusion_functions_nested::all_default_higher_order_functions() {
            by_every_name!(functions.higher_order, function);
        }
        datafusion_functions_aggregate::all_default_aggregate_functions()
            .into_iter()
            .for_each(|f| functions.add_aggregate(f));
        datafusion_functions_window::all_default_window_functions()
            .into_iter()
            .for_each(|f| functions.add_window(f));
        functions
    }

    pub(crate) fn add_scalar(&mut self, function: Arc<ScalarUDF>) {
        by_every_name!(self.scalar, function);
    }

    pub(crate) fn add_aggregate(&mut self, function: Arc<AggregateUDF>) {
        by_every_name!(self.aggregate, function);
    }

    pub(crate) fn add_window(&mut self, function: Arc<WindowUDF>) {
        by_every_name!(self.window, function);
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        self.scalar.get(name)
    }

    pub(crate) fn aggregate(&self, name: &str) -> Option<&Arc<AggregateUDF>> {
        self.aggregate.get(name)
    }

    pub(crate) fn window(&self, name: &str) -> Option<&Arc<WindowUDF>> {
        self.window.get(name)
    }

    pub(crate) fn higher_order(&self, name: &str) -> Option<&Arc<HigherOrderUDF>> {
        self.higher_order.get(name)
    }

    pub(crate) fn scalar_names(&self) -> Vec<String> {
        self.scalar.keys().cloned().collect()
    }

    pub(crate) fn aggregate_names(&self) -> Vec<String> {
        self.aggregate.keys().cloned().collect()
    }

    pub(crate) fn window_names(&self) -> Vec<String> {
        self.window.keys().cloned().collect()
    }

    pub(crate) fn higher_order_names(&self) -> Vec<String> {
        self.higher_order.keys().cloned().collect()
    }

    pub(crate) fn planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }
}

fn found<T>(function: Option<&Arc<T>>, kind: &str, name: &str) -> Result<Arc<T>> {
    match function {
        Some(function) => Ok(Arc::clone(function)),
        None => plan_err!("there is no {kind} function {name}"),
    }
}

impl FunctionRegistry for Functions {
    fn udfs(&self) -> HashSet<String> {
        self.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> HashSet<String> {
        self.higher_order.keys().cloned().collect()
    }

    fn udafs(&self) -> HashSet<String> {
        self.aggregate.keys().cloned().collect()
    }

    fn udwfs(&self) -> HashSet<String> {
        self.window.keys().cloned().collect()
    }

    fn udf(&self, name: &str) -> Result<Arc<ScalarUDF>> {
        found(self.scalar(name), "scalar", name)
    }

    fn higher_order_function(&self, name: &str) -> Result<Arc<HigherOrderUDF>> {
        found(self.higher_order(name), "higher-order", name)
    }

    fn udaf(&self, name: &str) -> Result<Arc<AggregateUDF>> {
        found(self.aggregate(name), "aggregate", name)
    }

    fn udwf(&self, name: &str) -> Result<Arc<WindowUDF>> {
        found(self.window(name), "window", name)
    }

    fn expr_planners(&self) -> Vec<Arc<dyn ExprPlanner>> {
        self.planners.clone()
    }
}
