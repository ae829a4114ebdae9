//! The border of the engine: what is a dependency, and which crate may know which.

// Helpers of tests count as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Never in the tree, directly or through a feature.
const FORBIDDEN: &[&str] = &[
    "datafusion",
    "datafusion-physical-plan",
    "datafusion-physical-optimizer",
    "datafusion-physical-expr-adapter",
    "datafusion-pruning",
];

/// As [`FORBIDDEN`], by the beginning of the name.
const FORBIDDEN_PREFIXES: &[&str] = &["datafusion-datasource", "datafusion-catalog"];

/// Which of our crates each of them may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("planish-batch", &[]),
    ("planish-expr", &["planish-batch"]),
    ("planish-plan", &["planish-batch", "planish-expr"]),
    ("planish-source", &["planish-batch", "planish-expr", "planish-plan"]),
    ("planish-optimizer", &["planish-expr", "planish-plan"]),
    ("planish-planner", &["planish-batch", "planish-expr", "planish-plan"]),
    (
        "planish",
        &[
            "planish-batch",
            "planish-expr",
            "planish-optimizer",
            "planish-plan",
            "planish-planner",
            "planish-source",
        ],
    ),
    ("planish-cli", &["planish"]),
    ("planish-testkit", &["planish-batch", "planish-expr", "planish-plan"]),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Metadata {
    let manifest = workspace().join("Cargo.toml");
    let options = ["--locked".to_owned()];
    MetadataCommand::new().manifest_path(manifest).other_options(options).exec().unwrap()
}

#[test]
fn no_forbidden_crate_is_in_the_tree() {
    for package in metadata().packages {
        let name = package.name.as_str();
        assert!(!FORBIDDEN.contains(&name), "{name} is in the dependency tree");
        let prefix = FORBIDDEN_PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
        assert!(prefix.is_none(), "{name} is in the dependency tree");
    }
}

#[test]
fn one_version_of_each_shared_library() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata().packages {
        versions.entry(package.name.to_string()).or_default().insert(package.version.to_string());
    }
    for name in
        ["arrow", "arrow-array", "arrow-schema", "parquet", "object_store", "datafusion-common"]
    {
        let found = versions.get(name).map_or(0, BTreeSet::len);
        assert_eq!(found, 1, "{name}: {:?}", versions.get(name));
    }
}

#[test]
fn arrows_between_crates_point_down() {
    let metadata = metadata();
    let ours: Vec<&Package> = metadata.workspace_packages();
    let names: BTreeSet<&str> = ours.iter().map(|p| p.name.as_str()).collect();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known);
    for package in ours {
        let allowed = ARROWS.iter().find(|(name, _)| *name == package.name.as_str()).unwrap().1;
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let testing = dependency.kind == DependencyKind::Development;
            // Tests may use the kit, and the lowest floor from anywhere.
            let kit = testing && matches!(name, "planish-testkit" | "planish-batch");
            if names.contains(name) && !kit {
                assert!(allowed.contains(&name), "{} uses {name}", package.name);
            }
        }
    }
}

/// Only `planish_expr::udf` names DataFusion's physical expressions.
#[test]
fn physical_expressions_of_the_function_library_stay_in_one_module() {
    let crates = workspace().join("crates");
    let own = Path::new(file!()).file_name().unwrap();
    let mut pending = vec![crates.clone()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(&crates).unwrap().to_path_buf();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && path.file_name() != Some(own) {
                if inside.starts_with("expr/src/udf") || inside == Path::new("expr/src/udf.rs") {
                    continue;
                }
                for line in fs::read_to_string(&path).unwrap().lines() {
                    let code = line.trim_start();
                    let named =
                        code.contains("datafusion_physical_expr") && !code.starts_with("//");
                    assert!(!named, "{}: {line}", inside.display());
                }
            }
        }
    }
}

/// `planish-expr` alone may list them in its manifest.
#[test]
fn manifests_list_no_physical_crate() {
    for package in metadata().workspace_packages() {
        for dependency in &package.dependencies {
            let physical = dependency.name.starts_with("datafusion-physical");
            assert!(!physical || package.name == "planish-expr", "{}", package.name);
        }
    }
}
