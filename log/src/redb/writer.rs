//! The one thread that writes a store: it lands whatever requests wait, in one commit, and then
//! answers them all.
//!
//! A refused request has written nothing, so it does not disturb the others of its group. When a
//! commit fails, or redb panics, nobody can know what is on the disk: all of the group is answered
//! so, nothing of it becomes visible, and the log stops until it is opened again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

use ::redb::Durability;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::shared::{Shared, panic_text};
use super::tables::Group;
use crate::block::Packed;
use crate::branch::Branch;
use crate::error::{AppendError, LogError};
use crate::id::{BatchId, BranchId, BranchName, Epoch, Hash, Head};
use crate::log::{Append, Appended, Offer};
use crate::tables::{self, WriteTables};

/// A group takes no further request once it holds about so many bytes.
const GROUP_BYTES_MAX: usize = 16 << 20;
/// How long a group waits for those who were answered together to come back together.
const CROWD_WAIT: Duration = Duration::from_micros(300);

pub(super) type AppendAnswer = oneshot::Sender<Result<Appended, AppendError>>;
pub(super) type Answer<T> = SyncSender<Result<T, LogError>>;

/// What the writer is asked for.
pub(super) enum Request {
    Append { append: Append, packed: Option<Vec<Packed>>, answer: AppendAnswer },
    Offer { branch: BranchId, offer: Offer, answer: AppendAnswer },
    Create { name: BranchName, answer: Answer<Branch> },
    Fork { parent: BranchId, cut: Head, name: BranchName, serving: String, answer: Answer<Branch> },
    Claim { branch: BranchId, answer: Answer<Epoch> },
    Blob { hash: Hash, bytes: Bytes, answer: Answer<()> },
    Close { answer: Answer<()> },
}

/// What landing a request came to; nobody is told before it is durable.
enum Landing {
    Appended(BatchId, Result<Appended, AppendError>),
    Branch(Result<Branch, LogError>),
    Epoch(Result<Epoch, LogError>),
    Stored(Result<(), LogError>),
}

/// Serves requests until one says `Close` or nobody is left who could ask.
pub(super) fn run(shared: &Shared, requests: &Receiver<Request>) {
    let mut crowd = 0;
    while let Some((group, close)) = next_group(requests, crowd) {
        crowd = group.len();
        if !group.is_empty() {
            serve(shared, group);
        }
        if let Some(answer) = close {
            drop(answer.send(shared.close()));
            return;
        }
    }
    drop(shared.close());
}

/// Waits for a request, and takes all that wait with it. `crowd` requesters were just answered
/// together; where they were several, they are given a moment to come back, else half of them would
/// always find that the next commit has just begun.
fn next_group(
    requests: &Receiver<Request>,
    crowd: usize,
) -> Option<(Vec<Request>, Option<Answer<()>>)> {
    let mut group = Vec::new();
    let mut bytes = 0;
    let mut next = requests.recv().ok()?;
    loop {
        bytes += next.bytes();
        match next {
            Request::Close { answer } => return Some((group, Some(answer))),
            request => group.push(request),
        }
        if bytes >= GROUP_BYTES_MAX {
            return Some((group, None));
        }
        let more = match requests.try_recv() {
            Err(TryRecvError::Empty) if group.len() < crowd => {
                requests.recv_timeout(CROWD_WAIT).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                })
            }
            more => more,
        };
        match more {
            Ok(request) => next = request,
            Err(_) => return Some((group, None)),
        }
    }
}

/// Lands a group, or refuses all of it, or stops the log.
fn serve(shared: &Shared, group: Vec<Request>) {
    let bytes = group.iter().map(Request::bytes).sum();
    if let Err(refusal) = shared.may_write(bytes) {
        group.into_iter().for_each(|request| request.refuse(refusal.to_error()));
        return;
    }
    let mut landings = Vec::with_capacity(group.len());
    let outcome = catch_unwind(AssertUnwindSafe(|| land(shared, &group, &mut landings)));
    let outcome = outcome.unwrap_or_else(|panic| Err(panic_text(&*panic)));
    if let Err(what) = &outcome {
        shared.stop(what);
    }
    let mut landings = landings.into_iter();
    for request in group {
        let landing = landings.next();
        match (&outcome, landing) {
            (Ok(()), Some(landing)) => request.answer(landing),
            (Ok(()), None) => unreachable!("a group that landed has landed every request"),
            (Err(what), landing) => request.unknown(landing.as_ref(), what),
        }
    }
}

/// Lands a group in one commit, and makes it visible.
fn land(shared: &Shared, group: &[Request], landings: &mut Vec<Landing>) -> Result<(), String> {
    let database = shared.database();
    let database = database.as_ref().ok_or_else(|| shared.why_stopped())?;
    let mut transaction = database.begin_write().map_err(|error| error.to_string())?;
    transaction.set_durability(Durability::Immediate).map_err(|error| error.to_string())?;
    // With one phase, a crash after a failed fsync, or one flipped bit, can roll back a commit that
    // was acknowledged.
    transaction.set_two_phase_commit(true);
    let changes = {
        let state = shared.state();
        let tables = Group::open(&transaction, &state);
        let mut tables = tables.map_err(|error| error.to_string())?;
        for request in group {
            landings.push(request.land(&mut tables));
            if matches!(request, Request::Append { .. }) {
                shared.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if let Some(what) = tables.failure() {
            return Err(what);
        }
        tables.finish(&transaction).map_err(|error| error.to_string())?
    };
    let Some(changes) = changes else {
        return transaction.abort().map_err(|error| error.to_string());
    };
    transaction.commit().map_err(|error| error.to_string())?;
    shared.publish(changes);
    Ok(())
}

impl Request {
    /// About how much it writes.
    fn bytes(&self) -> usize {
        match self {
            Request::Append { append, .. } => append.batch.bytes(),
            Request::Blob { bytes, .. } => bytes.len(),
            Request::Offer { offer, .. } => 256 * offer.drafts.len(),
            _ => 256,
        }
    }

    /// Lands it among the group's tables. Even a refusal waits for the commit, since it may rest on
    /// what another request of the group has written.
    fn land(&self, tables: &mut Group<'_>) -> Landing {
        match self {
            Request::Append { append, packed, .. } => {
                let batch = append.batch.id(append.branch, append.expected);
                Landing::Appended(batch, tables::land(tables, append, batch, packed.as_deref()))
            }
            Request::Offer { branch, offer, .. } => {
                let mut batch = BatchId::ZERO;
                let result = tables::land_offer(tables, *branch, offer, &mut batch);
                Landing::Appended(batch, result)
            }
            Request::Create { name, .. } => Landing::Branch(tables::create(tables, name)),
            Request::Fork { parent, cut, name, serving, .. } => {
                Landing::Branch(tables::fork(tables, *parent, *cut, name, serving))
            }
            Request::Claim { branch, .. } => Landing::Epoch(tables::claim(tables, *branch)),
            Request::Blob { hash, bytes, .. } => {
                let known = tables.has_blob(hash);
                Landing::Stored(
                    known.and_then(
                        |known| {
                            if known { Ok(()) } else { tables.put_blob(hash, bytes) }
                        },
                    ),
                )
            }
            Request::Close { .. } => unreachable!("a close ends its group"),
        }
    }

    /// Tells what it came to. Nobody may be waiting any more.
    fn answer(self, landing: Landing) {
        match (self, landing) {
            (
                Request::Append { answer, .. } | Request::Offer { answer, .. },
                Landing::Appended(_, result),
            ) => drop(answer.send(result)),
            (
                Request::Create { answer, .. } | Request::Fork { answer, .. },
                Landing::Branch(result),
            ) => drop(answer.send(result)),
            (Request::Claim { answer, .. }, Landing::Epoch(result)) => drop(answer.send(result)),
            (Request::Blob { answer, .. }, Landing::Stored(result)) => drop(answer.send(result)),
            _ => unreachable!("a landing answers its own request"),
        }
    }

    /// Tells that nobody can know what it came to.
    fn unknown(self, landing: Option<&Landing>, what: &str) {
        let batch = match (&self, landing) {
            (_, Some(Landing::Appended(batch, _))) => *batch,
            (Request::Append { append, .. }, _) => append.batch.id(append.branch, append.expected),
            _ => BatchId::ZERO,
        };
        match self {
            Request::Append { answer, .. } | Request::Offer { answer, .. } => {
                drop(answer.send(Err(AppendError::Unknown { batch, what: what.to_owned() })));
            }
            other => other.refuse(LogError::Stopped { what: what.to_owned() }),
        }
    }

    /// Tells that nothing of it was written.
    fn refuse(self, error: LogError) {
        match self {
            Request::Append { answer, .. } | Request::Offer { answer, .. } => {
                drop(answer.send(Err(error.into())));
            }
            Request::Create { answer, .. } | Request::Fork { answer, .. } => {
                drop(answer.send(Err(error)));
            }
            Request::Claim { answer, .. } => drop(answer.send(Err(error))),
            Request::Blob { answer, .. } => drop(answer.send(Err(error))),
            Request::Close { .. } => unreachable!("a close ends its group"),
        }
    }
}

/// Why a group is refused before anything of it is written.
pub(super) enum Refusal {
    Stopped(String),
    Store(PathBuf, String),
    Full { path: PathBuf, free: u64, needed: u64 },
}

impl Refusal {
    fn to_error(&self) -> LogError {
        match self {
            Refusal::Stopped(what) => LogError::Stopped { what: what.clone() },
            Refusal::Store(path, what) => {
                LogError::Store { path: path.clone(), what: what.clone() }
            }
            Refusal::Full { path, free, needed } => {
                LogError::Full { path: path.clone(), free: *free, needed: *needed }
            }
        }
    }
}
