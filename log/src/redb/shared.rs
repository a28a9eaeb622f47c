//! What the writer, the readers and the keeper of the anchor share.

use std::any::Any;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};

use ::redb::{Database, ReadTransaction, ReadableDatabase};

use super::keeper::Keeper;
use super::state::State;
use super::tables::Changes;
use super::writer::Refusal;
use crate::claims::Heads;
use crate::error::LogError;
use crate::id::LogId;

/// How much of a disk is left free, so that a commit which has begun does not run out of it.
const FREE_MIN: u64 = 1 << 20;

/// A store that is open.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: LogId,
    pub(super) heads: Heads,
    /// How many appends wait for the writer, about: it only decides who packs their records.
    pub(super) waiting: AtomicUsize,
    place: Option<Place>,
    /// Gone once the log has stopped.
    database: RwLock<Option<Database>>,
    state: RwLock<State>,
    stopped: OnceLock<String>,
    keeper: Option<Keeper>,
}

/// Which file it is that is open.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
}

const HELD: &str = "no thread panics while it holds this lock";

impl Shared {
    pub(super) fn new(
        id: LogId,
        database: Database,
        state: State,
        place: Option<Place>,
        keeper: Option<Keeper>,
    ) -> Self {
        Shared {
            id,
            heads: Heads::default(),
            waiting: AtomicUsize::new(0),
            place,
            database: RwLock::new(Some(database)),
            state: RwLock::new(state),
            stopped: OnceLock::new(),
            keeper,
        }
    }

    /// Begins to keep the anchor, where there is one.
    pub(super) fn start_keeper(self: &Arc<Self>) -> std::io::Result<()> {
        self.keeper.as_ref().map_or(Ok(()), |keeper| keeper.start(self))
    }

    /// The store's file, for messages.
    pub(super) fn path(&self) -> &Path {
        self.place.as_ref().map_or(Path::new("the store"), |place| &place.path)
    }

    pub(super) fn database(&self) -> RwLockReadGuard<'_, Option<Database>> {
        self.database.read().expect(HELD)
    }

    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect(HELD)
    }

    /// The state, unless the log has stopped.
    pub(super) fn live_state(&self) -> Result<RwLockReadGuard<'_, State>, LogError> {
        match self.stopped.get() {
            None => Ok(self.state()),
            Some(what) => Err(LogError::Stopped { what: what.clone() }),
        }
    }

    pub(super) fn why_stopped(&self) -> String {
        self.stopped.get().cloned().unwrap_or_else(|| "it was closed".to_owned())
    }

    pub(super) fn stopped_error(&self) -> LogError {
        LogError::Stopped { what: self.why_stopped() }
    }

    /// Makes what was committed visible, and announces it.
    pub(super) fn publish(&self, changes: Changes) {
        let moved = changes.apply(&mut self.state.write().expect(HELD));
        for (branch, tip) in moved {
            self.heads.announce(branch, tip.head);
        }
        if let Some(keeper) = &self.keeper {
            keeper.note();
        }
    }

    /// Stops the log: nothing is written or read until it is opened again. The file is let go.
    pub(super) fn stop(&self, what: &str) {
        if self.stopped.set(what.to_owned()).is_ok() {
            tracing::error!(store = %self.path().display(), what, "the log has stopped");
        }
        if let Some(keeper) = &self.keeper {
            keeper.stop();
        }
        let database = self.database.write().expect(HELD).take();
        // redb writes nothing after a failure; should it panic again, that changes nothing either.
        drop(catch_unwind(AssertUnwindSafe(|| drop(database))));
    }

    /// Lets go of the file in good order.
    pub(super) fn close(&self) -> Result<(), LogError> {
        let stopped = self.stopped.set("it was closed".to_owned());
        let database = self.database.write().expect(HELD).take();
        if let (Err(_), _) | (_, None) = (stopped, &database) {
            return Err(self.stopped_error());
        }
        let database = database.expect("checked above");
        let closed = catch_unwind(AssertUnwindSafe(|| database.close()));
        let what = match closed {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(panic_text(&*panic)),
        };
        if let Some(what) = what {
            let path = self.path().to_owned();
            return Err(LogError::Store { path, what: format!("closing it failed: {what}") });
        }
        self.keeper.as_ref().map_or(Ok(()), |keeper| keeper.close(self))
    }

    /// Whether a group of about so many bytes may be written now.
    pub(super) fn may_write(&self, bytes: usize) -> Result<(), Refusal> {
        if self.stopped.get().is_some() {
            return Err(Refusal::Stopped(self.why_stopped()));
        }
        let Some(place) = &self.place else { return Ok(()) };
        self.check_place(place)?;
        check_space(place, bytes)
    }

    /// Refuses to write a file that is no longer at its path: others would write another one there.
    fn check_place(&self, place: &Place) -> Result<(), Refusal> {
        let what = match fs::metadata(&place.path) {
            Ok(found) if (found.dev(), found.ino()) == (place.device, place.inode) => return Ok(()),
            Ok(_) => "another file was put in its place while it was open".to_owned(),
            Err(error) => format!("it was moved or deleted while it was open ({error})"),
        };
        self.stop(&what);
        Err(Refusal::Store(place.path.clone(), what))
    }

    /// Reads within one short transaction.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, ReadError>,
    ) -> Result<T, LogError> {
        let database = self.database();
        let database = database.as_ref().ok_or_else(|| self.stopped_error())?;
        // A page that rots while the store is open can make redb panic.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let transaction = database.begin_read().map_err(::redb::Error::from)?;
            read(&transaction)
        }));
        match result {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(ReadError::Log(error))) => Err(error),
            Ok(Err(ReadError::Store(error))) => Err(self.reading_failed(error)),
            Err(panic) => {
                let what = format!("it is damaged: {}", panic_text(&*panic));
                Err(LogError::Store { path: self.path().to_owned(), what })
            }
        }
    }

    /// Tells what redb said while reading.
    pub(super) fn reading_failed(&self, error: impl Into<::redb::Error>) -> LogError {
        let what = format!("reading it failed: {}", error.into());
        LogError::Store { path: self.path().to_owned(), what }
    }
}

/// Refuses what might not fit the disk, before redb finds out halfway.
fn check_space(place: &Place, bytes: usize) -> Result<(), Refusal> {
    let Ok(disk) = rustix::fs::statvfs(&place.path) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // A value may take twice its size, since redb rounds it up to a power of two.
    let needed = FREE_MIN + 2 * bytes as u64;
    if free >= needed {
        return Ok(());
    }
    Err(Refusal::Full { path: place.path.clone(), free, needed })
}

/// What can go wrong while reading.
pub(super) enum ReadError {
    Log(LogError),
    Store(::redb::Error),
}

impl From<LogError> for ReadError {
    fn from(error: LogError) -> Self {
        ReadError::Log(error)
    }
}

impl<E: Into<::redb::Error>> From<E> for ReadError {
    fn from(error: E) -> Self {
        ReadError::Store(error.into())
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a message"))
}
