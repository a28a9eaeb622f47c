//! One owner, many guests: while a process holds a store, every other process uses it through that
//! one, over a socket beside the store.
//!
//! 1. `GuestLog` is a `Log` like any other: it passes the same contract suite, pipelines appends,
//!    and its claims deliver offers to it.
//! 2. A claim made by a guest is over when the guest is gone, however it went.
//! 3. A guest cannot hang the owner or exhaust its memory: messages have a greatest length and a
//!    time in which to arrive, and what waits for a slow guest is bounded.
//!
//! Who owns the store, and what happens when the owner leaves, is the business of `Store`.

mod claim;
mod connection;
mod events;
mod fault;
mod frame;
mod link;
mod message;
mod outbox;
mod server;
mod socket;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::block::Block;
use crate::branch::Branch;
use crate::claims::Heads;
use crate::error::{AppendError, LogError};
use crate::id::{BranchId, BranchName, Epoch, Hash, Head, LogId, Offset};
use crate::log::{Append, Appended, Claim, Log, Offer, Pending};
use events::Sent;
use link::{Link, Waiter};
use message::{Answer, Call};

pub(crate) use link::{OnLost, Unsettled, leave_unknown};
pub use server::Server;

/// A log that another process of this user owns.
///
/// When the owner leaves, every call says `Stopped`, and an append that waited for its answer says
/// `Unknown`.
#[derive(Debug)]
pub struct GuestLog {
    link: Arc<Link>,
}

impl GuestLog {
    /// Connects to the owner of the store at `path`; `None` when nobody serves it.
    ///
    /// # Errors
    /// Whoever listens there does not greet, speaks another version, or belongs to another user.
    pub fn connect(path: &Path) -> Result<Option<GuestLog>, LogError> {
        Self::connect_with(path, Arc::default(), Box::new(leave_unknown))
    }

    /// Connects, announcing heads to `heads`; `on_lost` gets what the end of the connection leaves.
    pub(crate) fn connect_with(
        path: &Path,
        heads: Arc<Heads>,
        on_lost: OnLost,
    ) -> Result<Option<GuestLog>, LogError> {
        let failed = |source| LogError::Io { doing: "calling the owner of the store", source };
        let place = match socket::place(path) {
            // Without its folder there is no store, and nobody to serve it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            place => place.map_err(failed)?,
        };
        let Some(stream) = socket::call(&place).map_err(failed)? else { return Ok(None) };
        Ok(Some(GuestLog { link: Link::open(path, stream, heads, on_lost)? }))
    }

    /// Who owns the store.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.link.host().owner
    }

    /// Whether the connection to the owner is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Sends an append or offer, whose answer comes back through its sender. What was not sent
    /// comes back at once, with the reason.
    pub(crate) fn hand_over(&self, asked: Unsettled) -> Result<(), Box<(Unsettled, LogError)>> {
        let call = match &asked {
            Unsettled::Append(Append { branch, batch, expected, epoch }, _) => Call::Submit {
                branch: *branch,
                expected: *expected,
                epoch: *epoch,
                events: Sent::of_batch(batch),
            },
            Unsettled::Offer(branch, offer, _, _) => match Sent::of_drafts(&offer.drafts) {
                Err(error) => return Err(Box::new((asked, error.into()))),
                Ok(events) => Call::Offer { branch: *branch, expected: offer.expected, events },
            },
        };
        match self.link.send(call, Waiter::Unsettled(asked)) {
            Ok(()) => Ok(()),
            Err(unsent) => match *unsent {
                (Waiter::Unsettled(asked), error) => Err(Box::new((asked, error))),
                _ => unreachable!("what comes back is what was sent"),
            },
        }
    }

    /// A head that the branch has surely reached, so that an offer made now can be looked for from
    /// there if its answer is lost.
    pub(crate) fn reached(&self, branch: BranchId) -> Result<Head, LogError> {
        if let Some(head) = self.link.known(branch) {
            return Ok(head);
        }
        let head = self.branch(branch)?.tip.head;
        self.link.reached(branch, head);
        Ok(head)
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        drop(self.link.close());
    }
}

/// The answer, if it is of the form that the call has.
macro_rules! expect_answer {
    ($answer:expr, $form:pat => $value:expr) => {
        match $answer? {
            $form => Ok($value),
            _ => Err(LogError::Owner("something else than was asked for".to_owned())),
        }
    };
}

impl Log for GuestLog {
    fn id(&self) -> LogId {
        self.link.host().log
    }

    fn branches(&self) -> Result<Vec<Branch>, LogError> {
        expect_answer!(self.link.call(Call::Branches), Answer::Branches(branches) => branches)
    }

    fn branch(&self, branch: BranchId) -> Result<Branch, LogError> {
        expect_answer!(self.link.call(Call::Branch(branch)), Answer::Branch(branch) => branch)
    }

    fn create(&self, name: &BranchName) -> Result<Branch, LogError> {
        let call = Call::Create(name.to_string());
        expect_answer!(self.link.call(call), Answer::Branch(branch) => branch)
    }

    fn fork(
        &self,
        parent: BranchId,
        cut: Head,
        name: &BranchName,
        serving: &str,
    ) -> Result<Branch, LogError> {
        let (name, serving) = (name.to_string(), serving.to_owned());
        let call = Call::Fork { parent, cut, name, serving };
        expect_answer!(self.link.call(call), Answer::Branch(branch) => branch)
    }

    fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError> {
        if let Some(epoch) = self.link.inboxes.abandoned(branch) {
            self.release(branch, epoch);
        }
        self.link.claim(branch, owner)
    }

    fn release(&self, branch: BranchId, epoch: Epoch) {
        self.link.inboxes.release(branch, epoch);
        drop(self.link.send(Call::Release { branch, epoch }, Waiter::Nobody));
    }

    fn submit(&self, append: Append) -> Pending<Result<Appended, AppendError>> {
        append.check_place();
        let (sender, pending) = Pending::channel();
        let sent = self.hand_over(Unsettled::Append(append, sender));
        sent.unwrap_or_else(|unsent| unsent.0.answer(Err(unsent.1.into())));
        pending
    }

    fn offer(&self, branch: BranchId, offer: Offer) -> Pending<Result<Appended, AppendError>> {
        let since = match self.reached(branch) {
            Ok(since) => since,
            Err(error) => return Pending::ready(Err(error.into())),
        };
        let (sender, pending) = Pending::channel();
        let sent = self.hand_over(Unsettled::Offer(branch, offer, since, sender));
        sent.unwrap_or_else(|unsent| unsent.0.answer(Err(unsent.1.into())));
        pending
    }

    fn blocks(
        &self,
        branch: BranchId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, LogError> {
        let call = Call::Blocks { branch, from, bytes_max: bytes_max as u64 };
        let stored = expect_answer!(self.link.call(call), Answer::Blocks(stored) => stored)?;
        let read = |(branch, first, bytes)| Ok(Block::read(branch, first, bytes)?);
        stored.into_iter().map(read).collect()
    }

    fn find_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        let call = Call::FindKey { branch, key: key.to_owned() };
        expect_answer!(self.link.call(call), Answer::Key(offset) => offset)
    }

    fn put_blob(&self, bytes: Bytes) -> Result<Hash, LogError> {
        expect_answer!(self.link.call(Call::PutBlob(bytes)), Answer::Stored(hash) => hash)
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        expect_answer!(self.link.call(Call::Blob(*hash)), Answer::Blob(bytes) => bytes)
    }

    fn blobs(&self, after: Option<Hash>, count: usize) -> Result<Vec<Hash>, LogError> {
        let call = Call::Blobs { after, count: count as u64 };
        expect_answer!(self.link.call(call), Answer::Blobs(hashes) => hashes)
    }

    fn watch(&self, branch: BranchId) -> Result<watch::Receiver<Head>, LogError> {
        // Followed first, so that no head is missed in between.
        let mut heads = self.link.heads.follow(branch, Head::EMPTY);
        let head =
            expect_answer!(self.link.call(Call::Watch(branch)), Answer::Watching(head) => head)?;
        self.link.reached(branch, head);
        heads.mark_unchanged();
        Ok(heads)
    }

    fn close(&self) -> Result<(), LogError> {
        self.link.close()
    }
}
