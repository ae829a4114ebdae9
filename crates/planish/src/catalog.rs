//! Tables and views by name.

use crate::config::nearest;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, TableReference};
use planish_planner::Table;
use planish_source::FileFormat;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The schema of tables that describe the session.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// The tables of a session; a clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    tables: Arc<BTreeMap<String, Arc<dyn Table>>>,
}

impl Catalog {
    pub(crate) fn insert(&mut self, name: String, table: Arc<dyn Table>) {
        Arc::make_mut(&mut self.tables).insert(name, table);
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<dyn Table>> {
        let name = self.spelling(name)?.to_owned();
        Arc::make_mut(&mut self.tables).remove(&name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn Table>)> {
        self.tables.iter().map(|(name, table)| (name.as_str(), table))
    }

    /// The table called `name`, or else the only one called so but for case: SQL folds names
    /// that are not quoted to lower case, file names may have any.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Table>> {
        self.tables.get(self.spelling(name)?)
    }

    fn spelling(&self, name: &str) -> Option<&str> {
        if let Some((exact, _)) = self.tables.get_key_value(name) {
            return Some(exact);
        }
        let mut alike = self.tables.keys().filter(|n| n.eq_ignore_ascii_case(name));
        match (alike.next(), alike.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// The table that `reference` names in this catalog, whose one schema has the name that the
    /// options say.
    pub(crate) fn resolve(
        &self,
        reference: &TableReference,
        options: &ConfigOptions,
    ) -> Option<&Arc<dyn Table>> {
        own_name(reference, options).and_then(|name| self.get(name))
    }

    /// The error for a table that is not there.
    pub(crate) fn not_found(&self, reference: &TableReference) -> DataFusionError {
        let near = nearest(reference.table(), self.tables.keys().map(String::as_str));
        let name = unquoted(reference);
        let hint = match (near, reference) {
            (Some(near), _) => format!("; did you mean {near}?"),
            (None, TableReference::Partial { table, .. }) if is_file_extension(table) => {
                format!("; the name of a file needs quotes: FROM '{name}'")
            }
            (None, _) => String::new(),
        };
        DataFusionError::Plan(format!("table {name} not found{hint}"))
    }
}

/// The table's name, when `reference` may mean a table of the session's own schema.
pub(crate) fn own_name<'a>(
    reference: &'a TableReference,
    options: &ConfigOptions,
) -> Option<&'a str> {
    let own_catalog = reference.catalog().is_none_or(|c| c == options.catalog.default_catalog);
    let own_schema = reference.schema().is_none_or(|s| s == options.catalog.default_schema);
    (own_catalog && own_schema).then(|| reference.table())
}

fn unquoted(reference: &TableReference) -> String {
    [reference.catalog(), reference.schema(), Some(reference.table())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(".")
}

fn is_file_extension(text: &str) -> bool {
    FileFormat::of_name(&format!("x.{text}")).is_ok_and(|format| format.is_some())
}
