//! Why an engine cannot go on.
#![allow(missing_docs, reason = "the fields are facts named by the message that shows them")]

use log::{AppendError, LogError, Offset};

/// Why a log could not be folded into an engine's state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    #[error("@{offset}: {what}")]
    Meaning { offset: Offset, what: String },
    #[error(
        "@{offset}: `taken` says {taken}, but nothing more was due; the log was written by other rules"
    )]
    NothingDue { offset: Offset, taken: u64 },
    #[error("@{offset}: {refusal}")]
    Refused { offset: Offset, refusal: Box<projection::Refusal> },
    #[error("a snapshot cannot be read: {what}; delete it, the log holds everything")]
    Snapshot { what: String },
    #[error(transparent)]
    Log(#[from] LogError),
}

impl FoldError {
    /// What a graph's refusal of the event at an offset comes to.
    pub(crate) fn refused(offset: Offset) -> impl Fn(projection::Refusal) -> FoldError {
        move |refusal| FoldError::Refused { offset, refusal: Box::new(refusal) }
    }
}

/// Why a run stopped before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("{0}")]
    Refused(String),
    /// The flock asks for what a branch that has begun cannot follow.
    #[error("{0}")]
    Changed(String),
    #[error(
        "the behavior `{name}` was loaded with the source {hash}, which is not at hand; run the flock \
         whose files have it, or remove the behavior"
    )]
    NoCode { name: String, hash: String },
}
