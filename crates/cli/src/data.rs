//! Which tables the DATA arguments stand for.

use crate::error::{Result, Stop};
use planish::FileFormat;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

/// The tables of all arguments: name and file or folder.
pub(crate) fn tables(arguments: &[String]) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for argument in arguments {
        let path = Path::new(argument);
        if path.is_dir() {
            add_folder(path, &mut found)?;
        } else if path.exists() {
            add(stem(path), path, &mut found)?;
        } else {
            return Err(Stop::failed(format!("no such file or folder: {argument}")));
        }
    }
    Ok(found)
}

fn add_folder(folder: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let before = found.len();
    for entry in entries(folder)? {
        if entry.is_dir() {
            if !formats_below(&entry)?.is_empty() {
                add(stem(&entry), &entry, found)?;
            }
        } else if format_of(&entry).is_some() {
            add(stem(&entry), &entry, found)?;
        }
    }
    if found.len() == before {
        let text = format!("no Parquet, CSV, JSON or Arrow files in folder {}", folder.display());
        return Err(Stop::failed(text));
    }
    Ok(())
}

fn add(name: String, path: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    if path.is_dir() {
        let formats = formats_below(path)?;
        if formats.len() > 1 {
            let text = format!("folder {} holds files of several formats", path.display());
            return Err(Stop::failed(format!("{text}: {}", formats.join(", "))));
        }
    }
    match found.entry(name) {
        Entry::Vacant(slot) => {
            slot.insert(path.to_owned());
            Ok(())
        }
        Entry::Occupied(slot) => Err(Stop::failed(format!(
            "two inputs would become table {}: {} and {}",
            slot.key(),
            slot.get().display(),
            path.display()
        ))),
    }
}

/// The formats of all files in `folder` and below.
fn formats_below(folder: &Path) -> Result<Vec<String>> {
    // To read the files alone would lose the column that the folders' names hold.
    if folder.file_name().is_some_and(|n| n.to_string_lossy().contains('=')) {
        let folder = folder.display();
        return Err(Stop::failed(format!("partition folders are not supported yet: {folder}")));
    }
    let mut formats = vec![];
    for entry in entries(folder)? {
        match entry.is_dir() {
            true => formats.extend(formats_below(&entry)?),
            false => formats.extend(format_of(&entry)),
        }
    }
    formats.sort();
    formats.dedup();
    Ok(formats)
}

/// What is in `folder`, by name, without hidden files.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Stop::failed(format!("cannot read folder {}: {e}", folder.display()));
    let mut paths = vec![];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(['.', '_'])) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn format_of(path: &Path) -> Option<String> {
    let format = FileFormat::of_name(path.file_name()?.to_str()?);
    format.ok().flatten().map(|format| format.to_string())
}

/// The file name without its format's endings (`a` of `a.csv.gz`); of `.` and `..`, the folder's real name.
fn stem(path: &Path) -> String {
    let real = match path.file_name() {
        Some(_) => path.to_owned(),
        None => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    };
    let Some(name) = real.file_name() else { return "data".to_owned() };
    let name = name.to_string_lossy();
    match path.is_dir() {
        true => name.into_owned(),
        false => FileFormat::stem_of(&name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn names(folder: &Path) -> std::result::Result<Vec<String>, String> {
        let argument = folder.to_str().unwrap().to_owned();
        let tables = tables(&[argument]).map_err(|e| e.to_string())?;
        Ok(tables.into_keys().collect())
    }

    #[test]
    fn files_and_subfolders_become_tables() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "a.parquet",
            "b.csv",
            "d.json.gz",
            "e.arrow",
            "README.md",
            ".hidden.csv",
            "c/1.parquet",
            "empty/x",
        ] {
            touch(dir.path(), name);
        }
        touch(dir.path(), "c/2.parquet");
        touch(dir.path(), "c/_SUCCESS");
        assert_eq!(names(dir.path()).unwrap(), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn partition_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        touch(dir.path(), "sales/year=2024/1.parquet");
        for folder in [dir.path(), &dir.path().join("sales")] {
            assert!(names(folder).unwrap_err().contains("year=2024"));
        }
    }

    #[test]
    fn faults_name_the_files() {
        let dir = tempfile::tempdir().unwrap();
        assert!(names(dir.path()).unwrap_err().contains("no Parquet, CSV, JSON or Arrow files"));
        touch(dir.path(), "a.csv");
        touch(dir.path(), "a.parquet");
        let text = names(dir.path()).unwrap_err();
        assert!(text.contains("table a") && text.contains("a.csv") && text.contains("a.parquet"));

        let dir = tempfile::tempdir().unwrap();
        touch(dir.path(), "m/1.csv");
        touch(dir.path(), "m/1.parquet");
        assert!(names(dir.path()).unwrap_err().contains("several formats"));
        let missing = names(&dir.path().join("nowhere")).unwrap_err();
        assert!(missing.contains("no such file or folder") && missing.contains("nowhere"));
    }
}
