//! Where results go: standard output, or a file that appears only when the run has succeeded.

use crate::error::{Result, Stop};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The target of all results of a run.
#[derive(Debug)]
pub(crate) struct Sink {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Stdout(BufWriter<Stdout>),
    /// A device or a pipe, which a rename would replace.
    Special(BufWriter<File>),
    /// A file beside the target, renamed at the end.
    File {
        part: BufWriter<NamedTempFile>,
        target: PathBuf,
    },
}

impl Sink {
    /// Standard output, or the file at `output`.
    pub(crate) fn open(output: Option<&Path>) -> Result<Sink> {
        let kind = match output {
            None => Kind::Stdout(BufWriter::new(io::stdout())),
            Some(path) => open_file(path).map_err(|e| cannot_write(path, &e))?,
        };
        Ok(Sink { kind })
    }

    /// The stream to write to.
    pub(crate) fn stream(&mut self) -> &mut dyn Write {
        match &mut self.kind {
            Kind::Stdout(out) => out,
            Kind::Special(out) => out,
            Kind::File { part, .. } => part,
        }
    }

    /// Ends a run that succeeded: all is written, and the file has its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.stream().flush()?;
        if let Kind::File { part, target } = self.kind {
            let failed = |e: io::Error| cannot_write(&target, &e);
            let part = part.into_inner().map_err(|e| failed(e.into_error()))?;
            part.persist(&target).map_err(|e| failed(e.error))?;
        }
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<Kind> {
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|m| m.is_dir()) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        let file = OpenOptions::new().write(true).open(&target)?;
        return Ok(Kind::Special(BufWriter::new(file)));
    }
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let part = new_part(folder, existing)?;
    Ok(Kind::File { part: BufWriter::new(part), target })
}

/// A new file with the rights that the target has, or that any new file would have.
#[cfg(unix)]
fn new_part(folder: &Path, existing: Option<fs::Metadata>) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let all = fs::Permissions::from_mode(0o666);
    let part = tempfile::Builder::new().prefix(".planish-").permissions(all).tempfile_in(folder)?;
    if let Some(metadata) = existing {
        part.as_file().set_permissions(metadata.permissions())?;
    }
    Ok(part)
}

#[cfg(not(unix))]
fn new_part(folder: &Path, _: Option<fs::Metadata>) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".planish-").tempfile_in(folder)
}

fn cannot_write(path: &Path, error: &io::Error) -> Stop {
    Stop::failed(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_appears_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        let mut sink = Sink::open(Some(&path)).unwrap();
        sink.stream().write_all(b"a\n").unwrap();
        assert!(!path.exists());
        sink.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
    }

    #[test]
    fn nothing_stays_of_a_run_that_failed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let mut sink = Sink::open(Some(&path)).unwrap();
        sink.stream().write_all(b"new").unwrap();
        drop(sink);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn faults_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("no/such/folder.csv")] {
            let text = Sink::open(Some(&path)).unwrap_err().to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
        }
    }
}
