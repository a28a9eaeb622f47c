//! Why a command failed, as an exit code and a message.

use std::error::Error;
use std::io::{self, ErrorKind, Write};

use log::{AppendError, ImportError, LogError};
use serde_json::json;

/// A failure that a command ends with.
#[derive(Debug)]
pub(super) enum Failure {
    /// 1: it was tried and did not work.
    Failed(String),
    /// 2: the command line, or a line of the input, is wrong.
    Usage(String),
    /// 3: what was named is not there.
    NotFound(String),
    /// 4: the store is damaged.
    Damaged(String),
    /// 5: what was run again does something else.
    Diverged(String),
    /// 6: somebody else was first.
    Conflict(String),
    /// 1: what was compared differs, which has been told.
    Differs,
    /// A code of its own, by which a tool says what it knows; the rest is told on standard output.
    Told(u8),
    /// 130: the user stopped it.
    Interrupted,
    /// 0: whoever reads the output has seen enough.
    ReaderLeft,
}

/// Lets scripts run in a process of their own from now on.
pub(super) fn scripts_elsewhere() -> Result<(), Failure> {
    crate::scripts::run_elsewhere().map_err(|error| {
        Failure::Failed(format!(
            "the process that runs scripts cannot be started: {error}; only `starling run --trust` \
             runs scripts without it"
        ))
    })
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::ReaderLeft => 0,
            Failure::Failed(_) | Failure::Differs => 1,
            Failure::Usage(_) => 2,
            Failure::NotFound(_) => 3,
            Failure::Damaged(_) => 4,
            Failure::Diverged(_) => 5,
            Failure::Conflict(_) => 6,
            Failure::Told(code) => *code,
            Failure::Interrupted => 130,
        }
    }

    fn kind(&self) -> fn(String) -> Failure {
        match self {
            Failure::Usage(_) => Failure::Usage,
            Failure::NotFound(_) => Failure::NotFound,
            Failure::Damaged(_) => Failure::Damaged,
            Failure::Conflict(_) => Failure::Conflict,
            _ => Failure::Failed,
        }
    }

    fn message(&self) -> Option<&str> {
        match self {
            Failure::Failed(message)
            | Failure::Usage(message)
            | Failure::NotFound(message)
            | Failure::Damaged(message)
            | Failure::Diverged(message)
            | Failure::Conflict(message) => Some(message),
            Failure::Interrupted | Failure::ReaderLeft | Failure::Differs | Failure::Told(_) => {
                None
            }
        }
    }

    /// The same failure, told with other words.
    pub(super) fn reworded(self, reword: impl FnOnce(&str) -> String) -> Failure {
        match self.message() {
            None => self,
            Some(message) => self.kind()(reword(message)),
        }
    }

    /// Tells the failure and gives its exit code.
    pub(super) fn tell(&self, err: &mut dyn Write, as_json: bool) -> u8 {
        if let Some(message) = self.message() {
            let text = if as_json {
                json!({"error": message, "code": self.code()}).to_string()
            } else {
                format!("error: {message}")
            };
            // There is nobody left to tell that this did not work.
            drop(writeln!(err, "{text}"));
        }
        self.code()
    }
}

/// An error with its sources.
pub(super) fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = error.source();
    }
    words
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let kind = match &error {
            LogError::NoBranch { .. } | LogError::BeyondHead { .. } | LogError::Missing { .. } => {
                Failure::NotFound
            }
            LogError::Corrupt(_)
            | LogError::RolledBack { .. }
            | LogError::Replaced { .. }
            | LogError::Lost { .. }
            | LogError::Anchor { .. }
            | LogError::Blob { .. } => Failure::Damaged,
            LogError::BranchExists { .. } | LogError::Claimed { .. } | LogError::Exists { .. } => {
                Failure::Conflict
            }
            LogError::Event(_) | LogError::Name(_) => Failure::Usage,
            LogError::Io { source, .. } if source.kind() == ErrorKind::BrokenPipe => {
                return Failure::ReaderLeft;
            }
            _ => Failure::Failed,
        };
        kind(words(&error))
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Log(error) => error.into(),
            AppendError::TailMoved { .. }
            | AppendError::Superseded { .. }
            | AppendError::KeyConflict { .. } => Failure::Conflict(words(&error)),
            _ => Failure::Failed(words(&error)),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Log(error) => error.into(),
            ImportError::Append(error) => error.into(),
            ImportError::Differs { .. } | ImportError::KeyTwice { .. } => {
                Failure::Conflict(words(&error))
            }
            ImportError::Line(_) | ImportError::Gap { .. } => Failure::Usage(words(&error)),
            _ => Failure::Failed(words(&error)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            return Failure::ReaderLeft;
        }
        Failure::Failed(format!("standard output does not take what is written: {error}"))
    }
}
