//! Errors on the wire: those that a caller acts on keep their form, the others their words.

use serde::{Deserialize, Serialize};

use crate::error::{AppendError, Corruption, EventError, LogError};
use crate::id::{BatchId, BranchId, Epoch, Hash, Head, Offset};

/// A `LogError`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Fault {
    NoBranch { name: String },
    BranchExists { name: String },
    BeyondHead { branch: BranchId, head: Head, asked: Head },
    Claimed { branch: BranchId, owner: String },
    Corrupt { branch: BranchId, offset: Offset, what: String },
    Stopped { what: String },
    NoBlob { hash: Hash },
    TooLarge { kind: String, bytes: u64, limit: u64 },
    Other(String),
}

/// An `AppendError`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Refusal {
    TailMoved { branch: BranchId, expected: Head, actual: Head },
    Superseded { branch: BranchId, held: Epoch, current: Epoch },
    KeyConflict { branch: BranchId, key: String, first: Offset },
    Unknown { batch: BatchId, what: String },
    Refused { what: String },
    Log(Fault),
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        match error {
            LogError::NoBranch { name } => Fault::NoBranch { name },
            LogError::BranchExists { name } => Fault::BranchExists { name: name.to_string() },
            LogError::BeyondHead { branch, head, asked } => {
                Fault::BeyondHead { branch, head, asked }
            }
            LogError::Claimed { branch, owner } => Fault::Claimed { branch, owner },
            LogError::Corrupt(Corruption { branch, offset, what }) => {
                Fault::Corrupt { branch, offset, what }
            }
            LogError::Stopped { what } => Fault::Stopped { what },
            LogError::Event(EventError::NoBlob { hash }) => Fault::NoBlob { hash },
            LogError::Event(EventError::TooLarge { kind, bytes, limit }) => {
                Fault::TooLarge { kind, bytes: bytes as u64, limit: limit as u64 }
            }
            other => Fault::Other(words(&other)),
        }
    }
}

impl From<Fault> for LogError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoBranch { name } => LogError::NoBranch { name },
            Fault::BranchExists { name } => match name.parse() {
                Ok(name) => LogError::BranchExists { name },
                Err(error) => LogError::Name(error),
            },
            Fault::BeyondHead { branch, head, asked } => {
                LogError::BeyondHead { branch, head, asked }
            }
            Fault::Claimed { branch, owner } => LogError::Claimed { branch, owner },
            Fault::Corrupt { branch, offset, what } => {
                LogError::Corrupt(Corruption { branch, offset, what })
            }
            Fault::Stopped { what } => LogError::Stopped { what },
            Fault::NoBlob { hash } => LogError::Event(EventError::NoBlob { hash }),
            Fault::TooLarge { kind, bytes, limit } => {
                let (bytes, limit) = (bytes as usize, limit as usize);
                LogError::Event(EventError::TooLarge { kind, bytes, limit })
            }
            Fault::Other(words) => LogError::Owner(words),
        }
    }
}

impl From<AppendError> for Refusal {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::TailMoved { branch, expected, actual } => {
                Refusal::TailMoved { branch, expected, actual }
            }
            AppendError::Superseded { branch, held, current } => {
                Refusal::Superseded { branch, held, current }
            }
            AppendError::KeyConflict { branch, key, first } => {
                Refusal::KeyConflict { branch, key, first }
            }
            AppendError::Unknown { batch, what } => Refusal::Unknown { batch, what },
            AppendError::Refused { what } => Refusal::Refused { what },
            AppendError::Log(error) => Refusal::Log(error.into()),
        }
    }
}

impl From<Refusal> for AppendError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TailMoved { branch, expected, actual } => {
                AppendError::TailMoved { branch, expected, actual }
            }
            Refusal::Superseded { branch, held, current } => {
                AppendError::Superseded { branch, held, current }
            }
            Refusal::KeyConflict { branch, key, first } => {
                AppendError::KeyConflict { branch, key, first }
            }
            Refusal::Unknown { batch, what } => AppendError::Unknown { batch, what },
            Refusal::Refused { what } => AppendError::Refused { what },
            Refusal::Log(fault) => AppendError::Log(fault.into()),
        }
    }
}

/// An error with its sources.
fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}
