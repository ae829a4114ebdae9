//! From paths, folders and globs to files.

use crate::bytes::{FileVersion, LocalByteSource, io_error};
use crate::file_source::SourceFile;
use crate::format::FileFormat;
use datafusion_common::{Result, not_impl_err, plan_err};
use globset::GlobBuilder;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files of one format.
#[derive(Clone, Debug)]
pub struct ListedFiles {
    /// The files: those of each path in the order of paths, by name within a folder or a glob.
    pub files: Vec<Arc<SourceFile>>,
    /// Their format.
    pub format: FileFormat,
}

/// The files that `paths` stand for: each a file, a folder, or a glob. Hidden files, files whose
/// names start with `_` or end in `.crc`, and empty files are skipped in folders and globs.
///
/// # Errors
/// When a path is missing or matches nothing, when formats are mixed, or when a format cannot be
/// read.
pub fn list_paths(paths: &[String], format: Option<FileFormat>) -> Result<ListedFiles> {
    if paths.is_empty() {
        return plan_err!("a file table needs at least one path");
    }
    let mut files = vec![];
    let mut found: Option<(FileFormat, String)> = None;
    for path in paths {
        for (file, its_format) in list_path(path, format)? {
            match &found {
                Some((first, example)) if *first != its_format => {
                    return plan_err!(
                        "one table over files of several formats: {example} is {first}, {} is \
                         {its_format}",
                        file.path()
                    );
                }
                Some(_) => {}
                None => found = Some((its_format, file.path().to_owned())),
            }
            files.push(Arc::new(file));
        }
    }
    match found {
        Some((format, _)) => Ok(ListedFiles { files, format }),
        None => plan_err!("no data files in {}", paths.join(", ")),
    }
}

fn list_path(text: &str, format: Option<FileFormat>) -> Result<Vec<(SourceFile, FileFormat)>> {
    let local = local_path(text)?;
    let path = Path::new(&local);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => list_many(text, &walk(path, true)?, format),
        Ok(metadata) => {
            let format = match format {
                Some(format) => format,
                None => format_of(path)?,
            };
            if metadata.len() == 0 {
                return plan_err!("{text} is empty");
            }
            Ok(vec![(source_file(path, &metadata), format)])
        }
        Err(_) if is_glob(&local) => list_many(text, &expand_glob(&local)?, format),
        Err(error) => Err(io_error(text, &error)),
    }
}

fn local_path(text: &str) -> Result<String> {
    match text.split_once("://") {
        Some(("file", rest)) => Ok(rest.to_owned()),
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            not_impl_err!("reading from {scheme}:// ({text})")
        }
        _ => Ok(text.to_owned()),
    }
}

fn format_of(path: &Path) -> Result<FileFormat> {
    match FileFormat::of_name(&name_of(path))? {
        Some(format) => Ok(format),
        None => plan_err!(
            "the extension of {} does not tell its format; name it (STORED AS ...)",
            path.display()
        ),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn source_file(path: &Path, metadata: &std::fs::Metadata) -> SourceFile {
    SourceFile::new(Arc::new(LocalByteSource::new(path)), FileVersion::of_local(metadata))
}

/// Of the files a folder or a glob gave, those that are data of one format.
fn list_many(
    text: &str,
    paths: &[PathBuf],
    format: Option<FileFormat>,
) -> Result<Vec<(SourceFile, FileFormat)>> {
    let with_format = |path: &PathBuf| match FileFormat::of_name(&name_of(path)) {
        Ok(known) => Ok((path.clone(), known)),
        // Another format lies in the same folder: that is only fine when ours was named.
        Err(_) if format.is_some() => Ok((path.clone(), None)),
        Err(error) => Err(error.context(path.display().to_string())),
    };
    let paths = paths.iter().map(with_format).collect::<Result<Vec<_>>>()?;
    let named: Vec<_> = paths
        .iter()
        .filter_map(|(path, known)| Some((path.clone(), (*known)?)))
        .filter(|(_, known)| format.is_none_or(|format| format == *known))
        .collect();
    let chosen = match format {
        Some(format) if named.is_empty() => paths.into_iter().map(|(p, _)| (p, format)).collect(),
        _ => named,
    };
    let mut files = vec![];
    for (path, format) in chosen {
        let metadata = std::fs::metadata(&path);
        let metadata = metadata.map_err(|e| io_error(&path.display().to_string(), &e))?;
        if metadata.len() > 0 {
            files.push((source_file(&path, &metadata), format));
        }
    }
    if files.is_empty() {
        return plan_err!("no data files in {text}");
    }
    Ok(files)
}

/// The visible files below `folder`, by name.
fn walk(folder: &Path, refuse_partitions: bool) -> Result<Vec<PathBuf>> {
    let error = |e: &std::io::Error| io_error(&folder.display().to_string(), e);
    let mut entries = vec![];
    for entry in std::fs::read_dir(folder).map_err(|e| error(&e))? {
        entries.push(entry.map_err(|e| error(&e))?.path());
    }
    entries.sort();
    let mut files = vec![];
    for path in entries {
        let name = name_of(&path);
        if name.starts_with('.') || name.starts_with('_') || name.ends_with(".crc") {
            continue;
        }
        if path.is_dir() {
            if refuse_partitions && name.contains('=') {
                return not_impl_err!("partition folders ({})", path.display());
            }
            files.extend(walk(&path, refuse_partitions)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn expand_glob(pattern: &str) -> Result<Vec<PathBuf>> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let matcher = match glob {
        Ok(glob) => glob.compile_matcher(),
        Err(error) => return plan_err!("{pattern}: {error}"),
    };
    // Everything before the first component with a wildcard is a plain folder.
    let mut base = PathBuf::new();
    for component in Path::new(pattern).components() {
        match component {
            Component::Normal(name) if is_glob(&name.to_string_lossy()) => break,
            other => base.push(other),
        }
    }
    let start = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base.clone() };
    if !start.is_dir() {
        return plan_err!("{pattern}: {} is not a folder", start.display());
    }
    let mut files = walk(&start, false)?;
    if base.as_os_str().is_empty() {
        files = files
            .into_iter()
            .map(|f| f.strip_prefix(".").map(Path::to_path_buf).unwrap_or(f))
            .collect();
    }
    files.retain(|file| matcher.is_match(file));
    if files.is_empty() {
        return plan_err!("no file matches {pattern}");
    }
    Ok(files)
}
