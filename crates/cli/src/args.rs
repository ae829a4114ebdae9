//! The command line.

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum};
use std::path::PathBuf;

/// What a run was asked to do.
#[derive(Debug, Parser)]
#[command(
    name = "planish",
    version,
    about = "Runs SQL over Parquet, CSV, JSON and Arrow files",
    after_help = "Without -c and -f, SQL is read from standard input.\n\
                  Exit code: 0, or 1 at the first statement that fails, or 2 for wrong usage."
)]
pub(crate) struct Args {
    /// Files and folders to query. A file becomes a table named by its stem; in a folder, each
    /// file, and each subfolder of files of one format, becomes a table
    #[arg(value_name = "DATA")]
    pub(crate) data: Vec<String>,

    /// Run these statements; may be given several times
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    command: Vec<String>,

    /// Run the statements of a file (`-`: standard input); may be given several times
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Vec<PathBuf>,

    /// How results are written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write results to a file, which appears when the whole run has succeeded
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Set a configuration option; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,

    /// The memory that queries may hold, e.g. 512MB or 2GB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<usize>,

    /// Print the time of each statement to standard error; results are then held in memory until
    /// the last row has come
    #[arg(long)]
    pub(crate) timing: bool,

    /// `-c` and `-f` in the order in which they were given.
    #[arg(skip)]
    pub(crate) inputs: Vec<Input>,
}

/// One piece of SQL on the command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Input {
    /// Statements.
    Command(String),
    /// A file of statements.
    File(PathBuf),
}

/// How results are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// A table for readers
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// Tab-separated values with a header line
    Tsv,
    /// An array of objects
    Json,
    /// One object per line
    Ndjson,
    /// A Markdown table
    Markdown,
}

impl Args {
    /// The arguments of this process. Prints help or a usage error and ends the process where
    /// clap would.
    pub(crate) fn of_process() -> Args {
        match Args::try_from_iter(std::env::args_os()) {
            Ok(args) => args,
            Err(e) => e.exit(),
        }
    }

    fn try_from_iter(
        words: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
    ) -> Result<Args, clap::Error> {
        let matches = Args::command().try_get_matches_from(words)?;
        let mut args = Args::from_arg_matches(&matches)?;
        args.inputs = args.ordered_inputs(&matches);
        Ok(args)
    }

    /// clap keeps each option's values apart; their indices tell the order among all of them.
    fn ordered_inputs(&self, matches: &ArgMatches) -> Vec<Input> {
        let indices = |id| matches.indices_of(id).into_iter().flatten();
        let commands = indices("command").zip(self.command.iter().cloned().map(Input::Command));
        let files = indices("file").zip(self.file.iter().cloned().map(Input::File));
        let mut inputs: Vec<_> = commands.chain(files).collect();
        inputs.sort_by_key(|(index, _)| *index);
        inputs.into_iter().map(|(_, input)| input).collect()
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

fn size(text: &str) -> Result<usize, String> {
    match planish::config::parse_size(text) {
        Ok(0) => Err("the size must be more than 0".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err("write 512MB, 1.5GB or a number of bytes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_from_iter(std::iter::once("planish").chain(words.iter().copied()))
    }

    #[test]
    fn inputs_keep_their_order() {
        let args = parse(&["-c", "1", "d", "-f", "x", "-c", "2", "--file=y", "e"]).unwrap();
        let command = |s: &str| Input::Command(s.to_owned());
        let file = |s: &str| Input::File(s.into());
        assert_eq!(args.inputs, [command("1"), file("x"), command("2"), file("y")]);
        assert_eq!(args.data, ["d", "e"]);
    }

    #[test]
    fn sizes() {
        assert_eq!(size("1.5MB"), Ok(1_572_864));
        for text in ["", "MB", "1 parsec", "0", "-1"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn settings() {
        let pair = |k: &str, v: &str| Ok((k.to_owned(), v.to_owned()));
        assert_eq!(setting("a.b=c"), pair("a.b", "c"));
        assert_eq!(setting("a = b=c"), pair("a", "b=c"));
        assert!(setting("a").is_err() && setting("=a").is_err());
    }

    #[test]
    fn wrong_usage() {
        assert!(parse(&["--format", "xml"]).is_err());
        assert!(parse(&["--set", "a"]).is_err());
        assert!(parse(&["-x"]).is_err());
    }
}
