//! The trait of a log, and its promises. One contract suite (`tests/contract.rs`) runs against
//! every backend.
//!
//! 1. A batch lands whole, at exactly the head that was expected, or nothing lands and the caller
//!    learns why, or the outcome is unknown: then the log stops, and the batch is recognised by its
//!    id after reopening.
//! 2. What was acknowledged is durable. Nothing is visible before it is durable.
//! 3. A claim ends every older one: at most one engine writes a branch.
//! 4. A key takes effect once along a branch and its ancestors.
//! 5. What is read is what was written, or a `Corruption` names the offset.

use std::fmt::Debug;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use crate::batch::Batch;
use crate::block::Block;
use crate::branch::Branch;
use crate::error::{AppendError, LogError};
use crate::event::{Draft, Event};
use crate::id::{BranchId, BranchName, Epoch, Hash, Head, LogId, Offset};

/// A batch and the place where it is to land.
#[derive(Clone, Debug)]
pub struct Append {
    /// The branch.
    pub branch: BranchId,
    /// The events.
    pub batch: Batch,
    /// The head at which they were made; another one refuses them.
    pub expected: Head,
    /// The claim under which they were made.
    pub epoch: Epoch,
}

impl Append {
    /// Checks that the events say that they stand where they are to land.
    ///
    /// # Panics
    /// They do not; whoever made the batch has erred.
    pub(crate) fn check_place(&self) {
        let first = self.batch.events().next().map(Event::offset);
        let place = self.expected.next();
        assert!(
            first.is_none_or(|first| first == place),
            "the events of a batch stand at its place: {first:?}, not {place}"
        );
    }
}

/// What became of an accepted append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// The head now.
    pub head: Head,
    /// The link of the last event.
    pub link: Hash,
    /// For each event of the batch, where it stands.
    pub landed: Vec<Landed>,
}

/// Where one event of an accepted append stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// Its offset.
    pub offset: Offset,
    /// Whether its key was there before, so that nothing new was written.
    pub repeated: bool,
}

/// Events from outside any engine: from a person, a command or an API.
#[derive(Debug)]
pub struct Offer {
    /// The events; `taken` is stamped by whoever appends them.
    pub drafts: Vec<Draft>,
    /// Refuse unless this is the head.
    pub expected: Option<Head>,
}

/// An offer on its way to the engine that runs the branch.
#[derive(Debug)]
pub struct Delivery {
    /// The events.
    pub offer: Offer,
    /// Where the engine says what became of them, once that is durable.
    pub answer: oneshot::Sender<Result<Appended, AppendError>>,
}

/// The right to run a branch. While it lives, offers to the branch arrive in `inbox`.
#[derive(Debug)]
pub struct Claim {
    /// The epoch that appends carry.
    pub epoch: Epoch,
    /// Events from outside, to be appended by the engine.
    pub inbox: mpsc::UnboundedReceiver<Delivery>,
}

/// An answer that is on its way.
#[derive(Debug)]
pub struct Pending<T>(oneshot::Receiver<T>);

impl<T> Pending<T> {
    /// The two ends: where the answer is put, and where it is awaited.
    #[must_use]
    pub fn channel() -> (oneshot::Sender<T>, Pending<T>) {
        let (sender, receiver) = oneshot::channel();
        (sender, Pending(receiver))
    }

    /// An answer that is there.
    #[must_use]
    pub fn ready(answer: T) -> Pending<T> {
        let (sender, pending) = Self::channel();
        drop(sender.send(answer));
        pending
    }

    /// Waits for the answer on this thread; `None` when whoever owed it is gone.
    ///
    /// # Panics
    /// On a thread of an async runtime; there, await `into_future`.
    #[must_use]
    pub fn wait(self) -> Option<T> {
        self.0.blocking_recv().ok()
    }

    /// The answer as a future.
    pub async fn into_future(self) -> Option<T> {
        self.0.await.ok()
    }
}

/// An append-only log of events with branches. No call waits for another's disk but
/// `Pending::wait`.
pub trait Log: Send + Sync + Debug {
    /// What names this store.
    fn id(&self) -> LogId;

    /// All branches, by number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn branches(&self) -> Result<Vec<Branch>, LogError>;

    /// One branch by number.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    fn branch(&self, branch: BranchId) -> Result<Branch, LogError>;

    /// Makes an empty branch.
    ///
    /// # Errors
    /// The name is taken, or the store cannot be written.
    fn create(&self, name: &BranchName) -> Result<Branch, LogError>;

    /// Makes a branch that shares the events of `parent` before `cut.next()`: one record.
    ///
    /// # Errors
    /// The name is taken, the cut lies beyond the parent's head, or the store cannot be written.
    fn fork(
        &self,
        parent: BranchId,
        cut: Head,
        name: &BranchName,
        serving: &str,
    ) -> Result<Branch, LogError>;

    /// Claims a branch for an engine; `owner` says who it is, for messages.
    ///
    /// # Errors
    /// `Claimed` while another engine's claim lives, or the store cannot be written.
    fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError>;

    /// Gives a claim back; one that is over already is left alone.
    fn release(&self, branch: BranchId, epoch: Epoch);

    /// Hands a batch to the writer. Batches handed over by one thread land in that order.
    fn submit(&self, append: Append) -> Pending<Result<Appended, AppendError>>;

    /// Appends events from outside: through the engine that runs the branch, else directly, `taken`
    /// being that of the last event.
    fn offer(&self, branch: BranchId, offer: Offer) -> Pending<Result<Appended, AppendError>>;

    /// The stored blocks that hold the events from `from` on, in order, through the ancestors, the
    /// first of them holding `from`; at least one if there is one, and about `bytes_max` bytes.
    ///
    /// # Errors
    /// The store is damaged or cannot be read.
    fn blocks(
        &self,
        branch: BranchId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, LogError>;

    /// Where the event with this key stands, on the branch or an ancestor below the cut.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError>;

    /// Stores a text or file by its hash, once.
    ///
    /// # Errors
    /// The store cannot be written.
    fn put_blob(&self, bytes: Bytes) -> Result<Hash, LogError>;

    /// What was stored under this hash.
    ///
    /// # Errors
    /// The store is damaged or cannot be read.
    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError>;

    /// The hashes of what is stored, in order, `count` of those after `after`: for whoever copies a
    /// store.
    ///
    /// # Errors
    /// The store cannot be read.
    fn blobs(&self, after: Option<Hash>, count: usize) -> Result<Vec<Hash>, LogError>;

    /// Follows the durable head of a branch.
    ///
    /// # Errors
    /// There is no such branch.
    fn watch(&self, branch: BranchId) -> Result<watch::Receiver<Head>, LogError>;

    /// Writes what is outstanding and lets go of the store. Every later call says `Stopped`.
    ///
    /// # Errors
    /// Something could not be written.
    fn close(&self) -> Result<(), LogError>;
}
