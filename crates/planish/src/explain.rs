//! `EXPLAIN`: plans, the optimizer's trace, and what an execution did, as rows of text.

use crate::information_schema::{batch, text};
use crate::planning::Planned;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use planish_plan::MetricsRegistry;
use planish_plan::display::{displayable, displayable_with_metrics};
use std::fmt;
use std::time::Duration;

/// An execution that was watched.
pub(crate) struct Run<'a> {
    pub(crate) metrics: &'a MetricsRegistry,
    pub(crate) rows: usize,
    pub(crate) elapsed: Duration,
}

/// Titled texts, in order.
#[derive(Default)]
pub(crate) struct Sections(Vec<(String, String)>);

impl Sections {
    fn push(&mut self, title: impl Into<String>, text: impl fmt::Display) {
        self.0.push((title.into(), text.to_string().trim_end().to_owned()));
    }

    /// One row per section: `plan_type`, `plan`.
    pub(crate) fn to_batch(&self) -> Result<RecordBatch> {
        batch(&[
            ("plan_type", false, text(self.0.iter().map(|(title, _)| Some(title.clone())))),
            ("plan", false, text(self.0.iter().map(|(_, text)| Some(text.clone())))),
        ])
    }
}

impl fmt::Display for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, text) in &self.0 {
            writeln!(f, "{title}:")?;
            text.lines().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}

/// The schema of [`Sections::to_batch`].
pub(crate) fn schema() -> SchemaRef {
    LogicalPlan::explain_schema()
}

/// What there is to say about a query. With `verbose`, the plan after each rule that changed it.
pub(crate) fn sections(planned: &Planned, run: Option<&Run<'_>>, verbose: bool) -> Sections {
    let mut sections = Sections::default();
    let explain = &planned.options.explain;
    if !explain.physical_plan_only && (run.is_none() || verbose) {
        sections.push("logical_plan", planned.logical.display_indent());
    }
    if verbose {
        if let Some(first) = planned.trace.steps().first() {
            sections.push("initial_physical_plan", displayable(&first.before));
        }
        for step in planned.trace.changes() {
            let title = format!("physical_plan after {}", step.label());
            sections.push(title, displayable(&step.after));
        }
    }
    match run {
        None if explain.logical_plan_only => {}
        None => sections.push("physical_plan", displayable(&planned.physical)),
        Some(run) => {
            let plan = displayable_with_metrics(&planned.physical, run.metrics);
            sections.push("plan_with_metrics", plan);
            sections.push("summary", format!("{} rows in {:.2?}", run.rows, run.elapsed));
        }
    }
    sections
}

/// A plan that is no query, and has no physical form.
pub(crate) fn logical_only(plan: &LogicalPlan) -> Sections {
    let mut sections = Sections::default();
    sections.push("logical_plan", plan.display_indent());
    sections
}

/// The rows of [`Sections::to_batch`] as one text.
pub(crate) fn text_of(rows: &[RecordBatch]) -> Result<String> {
    let mut sections = Sections::default();
    for batch in rows {
        let (titles, texts) =
            (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        for i in 0..titles.len() {
            sections.push(titles.value(i), texts.value(i));
        }
    }
    Ok(sections.to_string())
}
