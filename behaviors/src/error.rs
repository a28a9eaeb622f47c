//! What can go wrong with a behavior, told with the facts that a caller needs to act.
#![allow(missing_docs, reason = "the fields are facts named by the message that shows them")]

use std::fmt;

/// What a behavior says about itself cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {what}")]
pub struct MetadataError {
    /// Where: the place that the caller named, and the field.
    pub at: String,
    /// The field: `match`, `reads.flights`.
    pub field: String,
    /// What is wrong and how to mend it.
    pub what: String,
}

/// A reaction failed. It proposed nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReactError {
    /// What went wrong and how to mend it.
    pub message: String,
    /// The file, relative to the flock.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    pub column: Option<u32>,
    /// The line itself.
    pub line_text: Option<String>,
    /// Whether the machine ended it, for memory or time: run again it may do something else, so
    /// what the log says of it holds.
    pub stopped: bool,
}

impl ReactError {
    /// An error that has no place in a file.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        ReactError { message: message.into(), ..ReactError::default() }
    }
}

impl std::error::Error for ReactError {}

impl fmt::Display for ReactError {
    /// `file:line:column: message`, then the line and a caret under the column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if let Some(column) = self.column {
            write!(f, "{column}:")?;
        }
        if self.file.is_some() || self.line.is_some() {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)?;
        let Some(text) = &self.line_text else { return Ok(()) };
        let number = self.line.map_or(String::new(), |line| line.to_string());
        write!(f, "\n{number} | {text}")?;
        let Some(column) = self.column else { return Ok(()) };
        // A tab stays a tab, so that the caret stands under its column in any terminal.
        let before = text.chars().take(column.saturating_sub(1) as usize);
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "\n{:width$} | {indent}^", "", width = number.len())
    }
}

/// A message between the runtime and a host in another process cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message from another process cannot be read: {what}")]
pub struct MessageError {
    /// What is wrong.
    pub what: String,
}
