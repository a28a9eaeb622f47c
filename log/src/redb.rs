//! A log in one file, durable through crashes and losses of power.
//!
//! The file is a redb database of six tables; `FORMAT.md` describes them. One thread writes, and
//! lands whatever waits for it in one commit. Readers use short transactions and never wait for it.
//! Beside the file stands its anchor, which notices when the file was replaced by an older copy.
//!
//! The log fails stop: after an error while writing, nobody can say what is on the disk before the
//! file was opened again, so nothing is read or written until then. Only a disk that is nearly full
//! is noticed in time: then writes are refused, reads go on, and writes work again once there is
//! space.

mod anchor;
mod keeper;
mod open;
mod recovery;
mod rows;
mod shared;
mod state;
mod tables;
mod writer;

use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ::redb::StorageBackend;
use bytes::Bytes;
use tokio::sync::watch;

use self::anchor::Anchor;
use self::keeper::Keeper;
use self::open::Opened;
use self::shared::Shared;
use self::tables::{BLOBS, BLOCKS, KEYS, last_block};
use self::writer::Request;
use crate::block::{Block, Compression};
use crate::branch::Branch;
use crate::claims::Claims;
use crate::error::{AppendError, LogError};
use crate::id::{BranchId, BranchName, Epoch, Hash, Head, LogId, Offset};
use crate::log::{Append, Appended, Claim, Delivery, Log, Offer, Pending};

/// A log in one file.
#[derive(Debug)]
pub struct RedbLog {
    shared: Arc<Shared>,
    claims: Claims,
    requests: Sender<Request>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
}

impl RedbLog {
    /// Makes a store at `path`, where there is none, and opens it. The caller mints `id` at the
    /// edge, so that nothing here is random.
    ///
    /// # Errors
    /// `Exists`; `Lost`, where an anchor remembers a store that is gone; or the folder cannot be
    /// written.
    pub fn create(path: &Path, id: LogId) -> Result<RedbLog, LogError> {
        open::create(path, id)?;
        RedbLog::open_within(path, Duration::ZERO)
    }

    /// Opens the store at `path`. Never makes one. Waits two seconds for an owner that leaves.
    ///
    /// # Errors
    /// `Missing`; `Owned`, where another process keeps it open; `RolledBack`, `Replaced` or
    /// `Anchor`, where it is not what its anchor remembers; or it is damaged or no store at all.
    pub fn open(path: &Path) -> Result<RedbLog, LogError> {
        RedbLog::open_within(path, open::PATIENCE)
    }

    /// The same for who waits in a way of its own.
    pub(crate) fn open_within(path: &Path, patience: Duration) -> Result<RedbLog, LogError> {
        let opened = open::open(path, patience)?;
        recovery::check_anchor(path, &opened)?;
        let anchor = anchor::path_beside(path);
        open::remove_leftovers(&anchor).map_err(|source| LogError::Io {
            doing: "looking for what an interrupted owner left in the folder",
            source,
        })?;
        if let Err(source) = Anchor::of(opened.id, &opened.state).write(&anchor) {
            // A full disk must not keep anybody from reading; the older anchor still holds.
            let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
            if !full.contains(&source.kind()) {
                return Err(LogError::Io { doing: "writing the anchor", source });
            }
            tracing::warn!(anchor = %anchor.display(), %source, "the anchor stays as it was");
        }
        RedbLog::start(opened, Some(Keeper::new(anchor)))
    }

    /// Makes a store in a storage of another kind, for tests that lose power or break disks. Such a
    /// store has no anchor, and its place on a disk is not watched.
    ///
    /// # Errors
    /// The storage fails.
    pub fn create_backend(backend: impl StorageBackend, id: LogId) -> Result<RedbLog, LogError> {
        let path = Path::new("the storage");
        let database = open::initialize(path, backend, id)?;
        RedbLog::start(Opened { id, database, state: state::State::default(), place: None }, None)
    }

    /// Opens a store in a storage of another kind, for tests; see `create_backend`.
    ///
    /// # Errors
    /// The storage fails, or what it holds is damaged or no store.
    pub fn open_backend(backend: impl StorageBackend) -> Result<RedbLog, LogError> {
        RedbLog::start(open::open_backend(Path::new("the storage"), backend)?, None)
    }

    fn start(opened: Opened, keeper: Option<Keeper>) -> Result<RedbLog, LogError> {
        let Opened { id, database, state, place } = opened;
        let shared = Arc::new(Shared::new(id, database, state, place, keeper));
        let failed = |source| LogError::Io { doing: "starting a thread of the log", source };
        shared.start_keeper().map_err(failed)?;
        let (requests, inbox) = mpsc::channel();
        let ours = Arc::clone(&shared);
        let writer = thread::Builder::new().name("log writer".to_owned());
        let writer = writer.spawn(move || writer::run(&ours, &inbox)).map_err(failed)?;
        Ok(RedbLog { shared, claims: Claims::default(), requests, writer: Some(writer).into() })
    }

    /// Asks the writer, and waits for its answer.
    fn ask<T>(
        &self,
        request: impl FnOnce(SyncSender<Result<T, LogError>>) -> Request,
    ) -> Result<T, LogError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let sent = self.requests.send(request(answer));
        sent.map_err(|_| self.shared.stopped_error())?;
        answered.recv().unwrap_or_else(|_| Err(self.shared.stopped_error()))
    }

    /// Hands a request to the writer, which answers when it is durable.
    fn hand_over(
        &self,
        request: impl FnOnce(writer::AppendAnswer) -> Request,
    ) -> Pending<Result<Appended, AppendError>> {
        let (answer, pending) = Pending::channel();
        match self.requests.send(request(answer)) {
            Ok(()) => pending,
            Err(_) => Pending::ready(Err(self.shared.stopped_error().into())),
        }
    }
}

impl Log for RedbLog {
    fn id(&self) -> LogId {
        self.shared.id
    }

    fn branches(&self) -> Result<Vec<Branch>, LogError> {
        self.shared.live_state()?.branches()
    }

    fn branch(&self, branch: BranchId) -> Result<Branch, LogError> {
        self.shared.live_state()?.branch(branch)
    }

    fn create(&self, name: &BranchName) -> Result<Branch, LogError> {
        self.ask(|answer| Request::Create { name: name.clone(), answer })
    }

    fn fork(
        &self,
        parent: BranchId,
        cut: Head,
        name: &BranchName,
        serving: &str,
    ) -> Result<Branch, LogError> {
        let (name, serving) = (name.clone(), serving.to_owned());
        self.ask(|answer| Request::Fork { parent, cut, name, serving, answer })
    }

    fn claim(&self, branch: BranchId, owner: &str) -> Result<Claim, LogError> {
        self.claims.claim(branch, owner, || self.ask(|answer| Request::Claim { branch, answer }))
    }

    fn release(&self, branch: BranchId, epoch: Epoch) {
        self.claims.release(branch, epoch);
    }

    fn submit(&self, append: Append) -> Pending<Result<Appended, AppendError>> {
        append.check_place();
        // Packing takes longer than the rest of the writer's work. Whoever has the time does it.
        let busy = self.shared.waiting.fetch_add(1, Ordering::Relaxed) > 0;
        let pack = || crate::tables::pack(append.batch.parts().0, Compression::WherePays);
        let packed = busy.then(pack);
        self.hand_over(|answer| Request::Append { append, packed, answer })
    }

    fn offer(&self, branch: BranchId, offer: Offer) -> Pending<Result<Appended, AppendError>> {
        let (answer, pending) = Pending::channel();
        match self.claims.deliver(branch, Delivery { offer, answer }) {
            Ok(()) => pending,
            Err(Delivery { offer, .. }) => {
                self.hand_over(|answer| Request::Offer { branch, offer, answer })
            }
        }
    }

    fn blocks(
        &self,
        branch: BranchId,
        from: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Block>, LogError> {
        let (head, lineage) = {
            let state = self.shared.live_state()?;
            (state.branch(branch)?.tip.head, state.lineage(branch)?)
        };
        if from >= head.next() {
            return Ok(Vec::new());
        }
        self.shared.read(|transaction| {
            let table = transaction.open_table(BLOCKS)?;
            let failed = |error| self.shared.reading_failed(error);
            let own_block = |branch, at| match last_block(&table, branch, at).map_err(failed)? {
                None => Ok(None),
                Some((first, bytes)) => Ok(Some(Block::read(branch, first, bytes)?)),
            };
            Ok(crate::tables::blocks(&lineage, head, from, bytes_max, own_block)?)
        })
    }

    fn find_key(&self, branch: BranchId, key: &str) -> Result<Option<Offset>, LogError> {
        let lineage = self.shared.live_state()?.lineage(branch)?;
        self.shared.read(|transaction| {
            let keys = transaction.open_table(KEYS)?;
            let failed = |error| self.shared.reading_failed(error);
            let own_key = |branch: BranchId| {
                let found = keys.get((branch.get(), key)).map_err(failed)?;
                Ok(found.map(|offset| Offset::new(offset.value())))
            };
            Ok(crate::tables::find_key(&lineage, own_key)?)
        })
    }

    fn put_blob(&self, bytes: Bytes) -> Result<Hash, LogError> {
        let hash = Hash::of(&bytes);
        self.ask(|answer| Request::Blob { hash, bytes, answer })?;
        Ok(hash)
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Bytes>, LogError> {
        let row = self.shared.read(|transaction| {
            let row = transaction.open_table(BLOBS)?.get(hash.as_bytes())?;
            Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
        })?;
        let damaged = |what| LogError::Blob { hash: *hash, what };
        row.map(|row| rows::read_blob(hash, &row).map_err(damaged)).transpose()
    }

    fn blobs(&self, after: Option<Hash>, count: usize) -> Result<Vec<Hash>, LogError> {
        self.shared.read(|transaction| {
            type Key<'a> = &'a [u8; 32];
            let after = after.as_ref().map(Hash::as_bytes);
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let range: (Bound<Key<'_>>, Bound<Key<'_>>) = (from, Bound::Unbounded);
            let rows = transaction.open_table(BLOBS)?.range::<Key<'_>>(range)?.take(count);
            let hashes = rows.map(|row| row.map(|(hash, _)| Hash::from_bytes(*hash.value())));
            Ok(hashes.collect::<Result<_, _>>()?)
        })
    }

    fn watch(&self, branch: BranchId) -> Result<watch::Receiver<Head>, LogError> {
        // Heads are announced after the state has changed, so none is missed while it is held.
        let state = self.shared.live_state()?;
        let head = state.branch(branch)?.tip.head;
        Ok(self.shared.heads.follow(branch, head))
    }

    fn close(&self) -> Result<(), LogError> {
        let closed = self.ask(|answer| Request::Close { answer });
        let writer = self.writer.lock().expect("no thread panics while it holds the writer").take();
        if let Some(writer) = writer {
            // Its panics are caught where they happen.
            drop(writer.join());
        }
        closed
    }
}

impl Drop for RedbLog {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        drop(self.close());
    }
}
