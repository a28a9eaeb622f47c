//! What can go wrong in a log, told with the facts that a caller needs to act.
#![allow(missing_docs, reason = "the fields are facts named by the message that shows them")]

use std::path::PathBuf;
use std::time::Duration;

use crate::id::{BatchId, BranchId, BranchName, Epoch, Hash, Head, Offset};

/// A name or number that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    #[error(
        "`{text}` is not a branch name: use 1 to 100 of a-z A-Z 0-9 . _ / - beginning with a letter \
         or digit"
    )]
    Branch { text: String },
    #[error("`{text}` is not a {what}: it has {digits} lower-case hexadecimal digits")]
    Hex { what: &'static str, digits: usize, text: String },
    #[error(
        "`{text}` is not a time: write RFC 3339 in whole milliseconds, such as 2026-01-05T09:00:00Z"
    )]
    Time { text: String },
    #[error("`{text}` is not an address: write BRANCH@OFFSET, such as main@42 or main@head~5")]
    Address { text: String },
}

/// Why an event cannot be written. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    #[error("{at}: {number} is not a JSON number; NaN and infinity cannot be stored")]
    NotFinite { at: String, number: &'static str },
    #[error("{at}: the integer {digits} fits neither i64 nor u64; write it as a string")]
    IntegerRange { at: String, digits: String },
    #[error("{at}: nested more than {limit} deep; flatten it or store it as a string")]
    TooDeep { at: String, limit: usize },
    #[error("{at}: the key `{key}` stands twice; keep one of them")]
    DuplicateKey { at: String, key: String },
    #[error(
        "the event `{kind}` takes {bytes} bytes, the limit is {limit} after strings over 4 KiB have \
         moved to blobs; split it or move its text into one string"
    )]
    TooLarge { kind: String, bytes: usize, limit: usize },
    #[error("{at}: {what}")]
    Shape { at: String, what: String },
    #[error("not JSON: {message}")]
    Json { message: String },
    #[error("the {field} is {bytes} bytes long, it may have 1 to {limit}")]
    FieldLength { field: &'static str, bytes: usize, limit: usize },
    #[error("names the blob {hash}, which this store does not hold; give the text itself")]
    NoBlob { hash: Hash },
    #[error("says another size or beginning of the blob {hash} than it has; give the text itself")]
    BlobDiffers { hash: Hash },
}

/// Why stored bytes were not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{branch}@{offset}: {what}")]
pub struct Corruption {
    /// The branch that was read.
    pub branch: BranchId,
    /// The first offset that cannot be trusted.
    pub offset: Offset,
    /// What is wrong there.
    pub what: String,
}

/// Why a log could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    #[error("there is no branch `{name}`")]
    NoBranch { name: String },
    #[error("the branch `{name}` exists already; choose another name")]
    BranchExists { name: BranchName },
    #[error("{branch} ends at {head}, so it cannot be cut after {asked}")]
    BeyondHead { branch: BranchId, head: Head, asked: Head },
    #[error("{branch} is being run by {owner}; only one process runs a branch at a time")]
    Claimed { branch: BranchId, owner: String },
    #[error("damaged: {0}; restore a backup, or fork the branch before that offset")]
    Corrupt(#[from] Corruption),
    #[error("{path} cannot be used: {what}", path = path.display())]
    Store { path: PathBuf, what: String },
    #[error(
        "{path} was rolled back: the anchor beside it has seen commit {anchored}, the store is at \
         commit {found}; restore the newer file, or delete {anchor} to accept the loss",
        path = path.display(), anchor = anchor.display()
    )]
    RolledBack { path: PathBuf, anchor: PathBuf, anchored: u64, found: u64 },
    #[error(
        "{path} is not the store that {anchor} remembers; put the right file back, or delete \
         {anchor} to use this one",
        path = path.display(), anchor = anchor.display()
    )]
    Replaced { path: PathBuf, anchor: PathBuf },
    #[error(
        "{path} is gone, but {anchor} remembers it at commit {anchored}; put the file back, or \
         delete {anchor} to start anew",
        path = path.display(), anchor = anchor.display()
    )]
    Lost { path: PathBuf, anchor: PathBuf, anchored: u64 },
    #[error(
        "{anchor} is damaged: {what}; delete it to open the store without knowing whether it was \
         rolled back",
        anchor = anchor.display()
    )]
    Anchor { anchor: PathBuf, what: String },
    #[error("{path} exists already", path = path.display())]
    Exists { path: PathBuf },
    #[error(
        "{path} is open in another process, and was not let go within {waited:?}; end that process, \
         or use the store through it",
        path = path.display()
    )]
    Owned { path: PathBuf, waited: Duration },
    #[error(
        "{path} cannot grow: {free} bytes are free on its disk and {needed} are needed; nothing was \
         written, so free some space and try again",
        path = path.display()
    )]
    Full { path: PathBuf, free: u64, needed: u64 },
    #[error("the blob {hash} is damaged: {what}; restore a backup")]
    Blob { hash: Hash, what: &'static str },
    #[error("{path} is owned by another process that does not answer: {what}", path = path.display())]
    Busy { path: PathBuf, what: String },
    #[error("{path} does not exist; `run`, `append` and `import` create a store", path = path.display())]
    Missing { path: PathBuf },
    #[error("written by format {found}, this program reads up to {known}; use a newer starling")]
    Format { found: u32, known: u32 },
    #[error("the log has stopped after a failure: {what}; open it again to see what was kept")]
    Stopped { what: String },
    #[error("input or output failed while {doing}")]
    Io { doing: &'static str, source: std::io::Error },
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(
        "{what} takes {bytes} bytes, and the process that owns the store exchanges at most {limit} at \
         once; send less, or stop that process"
    )]
    Message { what: &'static str, bytes: usize, limit: usize },
    #[error("the process that owns the store said: {0}")]
    Owner(String),
}

/// Why a batch did not land, or may not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    #[error(
        "{branch} moved on: its head is {actual}, not {expected}; read on from there and retry"
    )]
    TailMoved { branch: BranchId, expected: Head, actual: Head },
    #[error("{branch} was claimed again: {held} is over, {current} is in force")]
    Superseded { branch: BranchId, held: Epoch, current: Epoch },
    #[error(
        "the key `{key}` stands at offset {first} of {branch} with other content; use another key, or \
         send exactly what was sent then"
    )]
    KeyConflict { branch: BranchId, key: String, first: Offset },
    #[error(
        "the outcome of batch {batch} is unknown: {what}; open the log again and look the batch up"
    )]
    Unknown { batch: BatchId, what: String },
    #[error("the engine that runs the branch refused the events: {what}")]
    Refused { what: String },
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<EventError> for AppendError {
    fn from(error: EventError) -> Self {
        AppendError::Log(LogError::Event(error))
    }
}

impl From<Corruption> for AppendError {
    fn from(error: Corruption) -> Self {
        AppendError::Log(LogError::Corrupt(error))
    }
}
