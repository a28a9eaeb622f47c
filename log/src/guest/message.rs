//! What a guest and the owner of a store say to each other, as values.
//!
//! A guest begins with `Hello`, the owner answers with `Welcome`; then the guest sends `Request`s
//! and the owner `Notice`s, in any order. Names travel as text and events as records, so that the
//! side that receives them checks them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::events::Sent;
use super::fault::{Fault, Refusal};
use crate::branch::Branch;
use crate::id::{BranchId, Epoch, Hash, Head, LogId, Offset};
use crate::log::Appended;

/// The version of these messages. Another one is refused by name.
pub(super) const VERSION: u32 = 1;
/// How a guest's first message begins.
pub(super) const MAGIC: [u8; 8] = *b"starling";

/// The first message of a guest; its form never changes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) magic: [u8; 8],
    pub(super) version: u32,
}

/// The owner's answer: or why there is no talking.
pub(super) type Welcome = Result<Host, String>;

/// Whose guest one is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Host {
    pub(super) log: LogId,
    /// The owner's process, for messages.
    pub(super) owner: String,
}

/// A call and the number under which its answer comes back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) number: u64,
    pub(super) call: Call,
}

/// The calls of `Log`, and what becomes of deliveries.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Call {
    Branches,
    Branch(BranchId),
    Create(String),
    Fork {
        parent: BranchId,
        cut: Head,
        name: String,
        serving: String,
    },
    Claim {
        branch: BranchId,
        owner: String,
    },
    Release {
        branch: BranchId,
        epoch: Epoch,
    },
    Submit {
        branch: BranchId,
        expected: Head,
        epoch: Epoch,
        events: Sent,
    },
    Offer {
        branch: BranchId,
        expected: Option<Head>,
        events: Sent,
    },
    Blocks {
        branch: BranchId,
        from: Offset,
        bytes_max: u64,
    },
    FindKey {
        branch: BranchId,
        key: String,
    },
    PutBlob(Bytes),
    Blob(Hash),
    Blobs {
        after: Option<Hash>,
        count: u64,
    },
    Watch(BranchId),
    /// What became of a delivery; `None` when the engine let go of it. Not answered.
    Delivered {
        delivery: u64,
        result: Option<Result<Appended, Refusal>>,
    },
    /// The engine of this claim is gone: whoever runs the branch now is to have the events.
    Return {
        branch: BranchId,
        epoch: Epoch,
        delivery: u64,
        expected: Option<Head>,
        events: Sent,
    },
}

/// What the owner says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Notice {
    Answer { number: u64, answer: Answer },
    Head { branch: BranchId, head: Head },
    Delivery(Delivered),
}

/// Events from outside, on their way to the engine that claimed a branch.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Delivered {
    pub(super) branch: BranchId,
    pub(super) epoch: Epoch,
    pub(super) delivery: u64,
    pub(super) expected: Option<Head>,
    pub(super) events: Sent,
}

/// The answer to a call; each call has one form of it, or `Failed`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Branches(Vec<Branch>),
    Branch(Branch),
    Claimed(Epoch),
    Done,
    Appended(Result<Appended, Refusal>),
    /// Whoever owed the answer is gone.
    Gone,
    Blocks(Vec<(BranchId, Offset, Bytes)>),
    Key(Option<Offset>),
    Stored(Hash),
    Blob(Option<Bytes>),
    Blobs(Vec<Hash>),
    Watching(Head),
    Failed(Fault),
}
