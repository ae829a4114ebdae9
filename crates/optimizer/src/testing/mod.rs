//! Plans and checks for the tests of rules.
//!
//! [`Check::fires`] runs one rule through the real driver and asserts that it fired, that a second
//! run changes nothing, that the schema stayed, and that the plans before and after, both
//! completed by the enforce rules, yield the same rows.

mod nodes;
mod plans;

pub(crate) use nodes::{counting, filtering_scan, lambda, needs, random, unbounded};
pub(crate) use plans::{
    aggregate, asc, binary, coalesce, col, columns, desc, filter, finish, group_by, gt,
    hash_repartition, join, limit, local_limit, merge, nested_join, project, repartition, scan,
    schema, sort, sort_each, sorted_scan, table, union,
};

use crate::rule::PhysicalOptimizerRule;
use crate::{PhysicalOptimizer, default_rules};
use datafusion_common::config::ConfigOptions;
use planish_plan::config::PlanishOptions;
use planish_plan::display::displayable;
use planish_plan::{PlanRef, TaskContext, collect};
use planish_testkit::{driving, rows};
use std::sync::Arc;

/// Runs one rule and checks the laws that hold for all of them.
#[derive(Debug)]
pub(crate) struct Check {
    rule: Arc<dyn PhysicalOptimizerRule>,
    options: ConfigOptions,
    compare: Compare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    InOrder,
    AsMultisets,
    /// Which rows come out is not determined, only how many.
    Counts,
    /// The plan cannot be run.
    Not,
}

impl Check {
    pub(crate) fn new(rule: impl PhysicalOptimizerRule + 'static) -> Self {
        Check { rule: Arc::new(rule), options: options(), compare: Compare::AsMultisets }
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut ConfigOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) fn set_planish(self, change: impl FnOnce(&mut PlanishOptions)) -> Self {
        self.set(|options| {
            let mut planish = PlanishOptions::of(options);
            change(&mut planish);
            options.extensions.insert(planish);
        })
    }

    pub(crate) fn in_order(self) -> Self {
        Check { compare: Compare::InOrder, ..self }
    }

    pub(crate) fn counting(self) -> Self {
        Check { compare: Compare::Counts, ..self }
    }

    pub(crate) fn not_run(self) -> Self {
        Check { compare: Compare::Not, ..self }
    }

    /// The plan that the rule makes of `plan`, as text.
    pub(crate) fn fires(self, plan: PlanRef) -> String {
        text(&self.rewrite(plan))
    }

    /// The plan that the rule makes of `plan`.
    pub(crate) fn rewrite(self, plan: PlanRef) -> PlanRef {
        let before = Arc::clone(&plan);
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let name = self.rule.name();
        let once = optimizer.optimize(plan, &self.options).unwrap();
        assert!(once.trace.fired(name), "{name} did not fire on\n{}", text(&before));
        let twice = optimizer.optimize(Arc::clone(&once.plan), &self.options).unwrap();
        assert!(
            !twice.trace.fired(name),
            "{name} changed its own result\n{}to\n{}",
            text(&once.plan),
            text(&twice.plan)
        );
        self.assert_same_rows(&before, &once.plan);
        once.plan
    }

    /// Asserts that the rule leaves `plan` as it is.
    pub(crate) fn declines(self, plan: PlanRef) {
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let before = text(&plan);
        let done = optimizer.optimize(plan, &self.options).unwrap();
        let name = self.rule.name();
        assert!(!done.trace.fired(name), "{name} made of\n{before}this\n{}", text(&done.plan));
    }

    /// The error with which the rule rejects `plan`.
    pub(crate) fn rejects(self, plan: PlanRef) -> String {
        let optimizer = PhysicalOptimizer::with_rules(vec![Arc::clone(&self.rule)]);
        let error = optimizer.optimize(plan, &self.options).unwrap_err();
        error.strip_backtrace()
    }

    fn assert_same_rows(&self, before: &PlanRef, after: &PlanRef) {
        if self.compare == Compare::Not {
            return;
        }
        let (mut a, mut b) = (execute(before, &self.options), execute(after, &self.options));
        match self.compare {
            Compare::Counts => assert_eq!(a.len(), b.len(), "number of rows"),
            Compare::InOrder => assert_eq!(a, b),
            Compare::AsMultisets | Compare::Not => {
                a.sort();
                b.sort();
                assert_eq!(a, b);
            }
        }
    }
}

/// The rows of `plan`, completed by the enforce rules.
pub(crate) fn execute(plan: &PlanRef, options: &ConfigOptions) -> Vec<String> {
    let complete =
        PhysicalOptimizer::enforce_only().optimize(Arc::clone(plan), options).unwrap().plan;
    let shown = text(&complete);
    let options = options.clone();
    let batches = driving::run(2, &shown, async move {
        let ctx = TaskContext::for_testing(options)?;
        collect(&complete, &ctx).await
    });
    rows::of(&batches.unwrap())
}

/// Four partitions, batches of 8 rows, so that small tables are worth spreading.
pub(crate) fn options() -> ConfigOptions {
    let mut options = ConfigOptions::default();
    options.extensions.insert(PlanishOptions::default());
    options.set("datafusion.execution.target_partitions", "4").unwrap();
    options.set("datafusion.execution.batch_size", "8").unwrap();
    options
}

pub(crate) fn text(plan: &PlanRef) -> String {
    displayable(plan).to_string()
}

/// The before and after plans in a rule's module comment are those of a test.
pub(crate) fn assert_documented(source: &str, before: &str, after: &str) {
    let comment: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let block = |heading: &str| {
        let lines = comment.iter().skip_while(|line| **line != heading).skip(2);
        lines.take_while(|line| **line != "```").map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(block("# Before"), before, "the module comment, before");
    assert_eq!(block("# After"), after, "the module comment, after");
}

/// The names of the default pipeline's rules, in order.
pub(crate) fn rule_names() -> Vec<&'static str> {
    default_rules().iter().map(|rule| rule.name()).collect()
}
