//! Plans as text.

use crate::context::node_id;
use crate::execution_plan::{ExecutionPlan, PlanRef};
use crate::metrics::MetricsRegistry;
use std::fmt;
use std::time::Duration;

/// A plan as an indented tree, one line per node.
pub fn displayable(plan: &PlanRef) -> impl fmt::Display + '_ {
    Indented { plan, metrics: None }
}

/// As [`displayable`], with what each node did in an execution.
pub fn displayable_with_metrics<'a>(
    plan: &'a PlanRef,
    metrics: &'a MetricsRegistry,
) -> impl fmt::Display + 'a {
    Indented { plan, metrics: Some(metrics) }
}

struct Indented<'a> {
    plan: &'a PlanRef,
    metrics: Option<&'a MetricsRegistry>,
}

impl Indented<'_> {
    fn fmt_node(&self, plan: &PlanRef, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:width$}{}", "", NodeLine(plan.as_ref()), width = depth * 2)?;
        if let Some(metrics) = self.metrics {
            let node = metrics.node(node_id(plan.as_ref()));
            let elapsed = Duration::from_nanos(node.elapsed_nanos());
            write!(
                f,
                ", metrics=[rows={}, time={elapsed:.2?}, gathered_bytes={}",
                node.output_rows(),
                node.gathered_bytes()
            )?;
            for (name, value) in node.counters() {
                write!(f, ", {name}={value}")?;
            }
            f.write_str("]")?;
        }
        f.write_str("\n")?;
        plan.children().into_iter().try_for_each(|child| self.fmt_node(child, depth + 1, f))
    }
}

impl fmt::Display for Indented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_node(self.plan, 0, f)
    }
}

/// `Name: details`, or the name alone.
struct NodeLine<'a>(&'a dyn ExecutionPlan);

impl fmt::Display for NodeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Details<'a>(&'a dyn ExecutionPlan);
        impl fmt::Display for Details<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_details(f)
            }
        }
        let details = Details(self.0).to_string();
        f.write_str(self.0.name())?;
        if details.is_empty() { Ok(()) } else { write!(f, ": {details}") }
    }
}

/// `[a, b]` from displayable items.
pub fn bracketed<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    format!("[{}]", items.join(", "))
}
