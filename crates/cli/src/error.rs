//! Why a run ends early, and what it says then.

use datafusion_common::DataFusionError;
use std::fmt::{self, Display, Formatter};
use std::io;

/// The end of a run before its last statement.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something failed; the text for the user.
    Failed(String),
    /// Whoever read the results has gone: nothing to say.
    ReaderGone,
    /// Ctrl-C.
    Interrupted,
}

/// What may stop a run.
pub(crate) type Result<T> = std::result::Result<T, Stop>;

impl Stop {
    /// A failure with this text.
    pub(crate) fn failed(text: impl Into<String>) -> Stop {
        Stop::Failed(text.into())
    }

    /// The same, said to have happened at `place`.
    pub(crate) fn at(self, place: impl Display) -> Stop {
        match self {
            Stop::Failed(text) => Stop::Failed(format!("{place}: {text}")),
            other => other,
        }
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Failed(text) => f.write_str(text),
            Stop::ReaderGone => f.write_str("nobody reads the results"),
            Stop::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Stop {
        Stop::Failed(describe(&error))
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::ReaderGone,
            _ => Stop::Failed(format!("cannot write the results: {error}")),
        }
    }
}

/// The text of an error in one paragraph, without backtraces and without advice to report it to
/// another project.
fn describe(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::SQL(error, _) => error.to_string(),
        _ => error.strip_backtrace(),
    };
    let text = text.split("This issue was likely caused by a bug in DataFusion's code.").next();
    let text = text.unwrap_or_default().trim().trim_end_matches('.');
    // Kinds that tell the user nothing.
    let plain = ["Error during planning: ", "Execution error: ", "Schema error: "];
    let text = plain.iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text);
    match error.find_root() {
        DataFusionError::Internal(_) => format!("{text}. This is a bug in Planish"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_errors_are_ours() {
        let error = DataFusionError::Internal("a child is missing".to_owned());
        let text = Stop::from(error).to_string();
        assert_eq!(text, "Internal error: a child is missing. This is a bug in Planish");
    }

    #[test]
    fn kinds_that_tell_nothing_are_left_out() {
        let error = DataFusionError::Plan("table t not found".to_owned());
        assert_eq!(Stop::from(error).to_string(), "table t not found");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Stop::from(error), Stop::ReaderGone));
    }
}
