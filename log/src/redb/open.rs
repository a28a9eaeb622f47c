//! How a store file comes to be, and how it is opened again.
//!
//! A store is made in a temporary file and given its name once it is whole and on the disk, so a
//! crash leaves either a store or none. Opening never makes one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ::redb::backends::FileBackend;
use ::redb::{
    Builder, Database, ReadableDatabase, ReadableTable, StorageBackend, StorageError, TableError,
};

use super::anchor::{Anchor, folder_of, path_beside, sync_folder};
use super::rows::{read_branch, read_tip};
use super::shared::{Place, panic_text};
use super::state::State;
use super::tables::{
    BLOBS, BLOCKS, BRANCHES, KEYS, META, META_COMMITS, META_FORMAT, META_ID, TIPS,
};
use crate::block::FORMAT_VERSION;
use crate::error::LogError;
use crate::id::{BranchId, LogId};

/// How long a successor waits for the owner to let go of the store.
///
/// An owner that was killed may have been about to start a program: until that child is another
/// program it holds all that its parent had open, the lock of the store too.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How much of the file redb holds in memory; the system caches the rest.
const CACHE_BYTES: usize = 64 << 20;
/// What a redb file begins with.
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A store that was opened and read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: LogId,
    pub(super) database: Database,
    pub(super) state: State,
    pub(super) place: Option<Place>,
}

/// Makes a store at `path`, where there is none.
pub(super) fn create(path: &Path, id: LogId) -> Result<(), LogError> {
    let exists = || LogError::Exists { path: path.to_owned() };
    if path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let anchor_path = path_beside(path);
    if let Some(anchor) = Anchor::read(&anchor_path)? {
        let (path, anchored) = (path.to_owned(), anchor.commits);
        return Err(LogError::Lost { path, anchor: anchor_path, anchored });
    }
    let io = |doing| move |source| LogError::Io { doing, source };
    remove_leftovers(path)
        .map_err(io("looking for what an interrupted creation left in the folder"))?;
    let temporary = temporary_path(path, &id.to_string());
    let made = || -> Result<(), LogError> {
        let options = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary);
        let file = options.map_err(io("creating the store"))?;
        let handle = file.try_clone().map_err(io("creating the store"))?;
        let backend = FileBackend::new(handle).map_err(|error| store_error(path, error))?;
        initialize(path, backend, id)?.close().map_err(|error| store_error(path, error))?;
        file.sync_all().map_err(io("writing the new store"))?;
        match give_name(&temporary, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
            // Another process made the store at the same time, and took ours for a leftover.
            Err(_) if path.symlink_metadata().is_ok() => return Err(exists()),
            named => named.map_err(io("naming the new store"))?,
        }
        sync_folder(path).map_err(io("writing the folder of the new store"))
    };
    let result = made();
    if result.is_err() {
        // It is of no use; should it stay, the next creation removes it.
        drop(fs::remove_file(&temporary));
    }
    result
}

/// Moves a file to a name that nothing has.
fn give_name(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not know how; all can refuse a second link of the same name.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        moved => Ok(moved?),
    }
}

pub(super) fn temporary_path(path: &Path, id: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new-");
    name.push(id);
    name.into()
}

/// Removes the temporary files of those who died before they gave them the name of `path`; a file
/// that is still being written is locked.
pub(super) fn remove_leftovers(path: &Path) -> io::Result<()> {
    let prefix = temporary_path(path, "");
    let prefix = prefix.file_name().expect("a name was put at its end").to_owned();
    for entry in fs::read_dir(folder_of(path))? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            continue;
        }
        let dead = File::open(entry.path()).and_then(|file| Ok(file.try_lock()?));
        if dead.is_ok() {
            match fs::remove_file(entry.path()) {
                // A creation that went on meanwhile, or that another has removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

/// Writes the tables of an empty store.
pub(super) fn initialize(
    path: &Path,
    backend: impl StorageBackend,
    id: LogId,
) -> Result<Database, LogError> {
    let failed = |error: ::redb::Error| store_error(path, error);
    let database = builder().create_with_backend(backend).map_err(|error| failed(error.into()))?;
    let write = || -> Result<(), ::redb::Error> {
        let mut transaction = database.begin_write()?;
        transaction.set_two_phase_commit(true);
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert(META_FORMAT, u32::from(FORMAT_VERSION).to_le_bytes().as_slice())?;
            meta.insert(META_ID, id.as_bytes().as_slice())?;
            meta.insert(META_COMMITS, 0u64.to_le_bytes().as_slice())?;
            transaction.open_table(BRANCHES)?;
            transaction.open_table(TIPS)?;
            transaction.open_table(BLOCKS)?;
            transaction.open_table(KEYS)?;
            transaction.open_table(BLOBS)?;
        }
        transaction.commit()?;
        Ok(())
    };
    write().map_err(failed)?;
    Ok(database)
}

/// Opens the store at `path`, once it is free: whoever owns it may be leaving, for so long.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Opened, LogError> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match open_now(path) {
            Err(LogError::Owned { path, .. }) if began.elapsed() >= patience => {
                return Err(LogError::Owned { path, waited: patience });
            }
            Err(LogError::Owned { .. }) => {
                thread::sleep(pause);
                pause = (2 * pause).min(Duration::from_millis(20));
            }
            opened => return opened,
        }
    }
}

fn open_now(path: &Path) -> Result<Opened, LogError> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LogError::Missing { path: path.to_owned() });
        }
        opened => opened.map_err(|source| LogError::Io { doing: "opening the store", source })?,
    };
    let io = |source| LogError::Io { doing: "reading the store", source };
    let unusable = |what: &str| LogError::Store { path: path.to_owned(), what: what.to_owned() };
    let found = file.metadata().map_err(io)?;
    if found.len() == 0 {
        return Err(unusable("it is empty; restore a backup, or delete it to start anew"));
    }
    let mut magic = [0; MAGIC.len()];
    let whole = file.read_exact(&mut magic);
    if whole.is_err() || magic != *MAGIC {
        return Err(unusable("it is not a store of starling"));
    }
    file.rewind().map_err(io)?;
    let place = Place { path: path.to_owned(), device: found.dev(), inode: found.ino() };
    let backend = FileBackend::new(file).map_err(|error| store_error(path, error))?;
    let opened = Opened { place: Some(place), ..open_backend(path, backend)? };
    Ok(opened)
}

/// Opens what another kind of storage holds.
pub(super) fn open_backend(path: &Path, backend: impl StorageBackend) -> Result<Opened, LogError> {
    // redb would make an empty storage into a new database.
    if backend.len().map_err(|source| LogError::Io { doing: "opening the store", source })? == 0 {
        let what = "it is empty; restore a backup, or delete it to start anew".to_owned();
        return Err(LogError::Store { path: path.to_owned(), what });
    }
    let open = || -> Result<Opened, LogError> {
        let database = builder().create_with_backend(backend);
        let database = database.map_err(|error| store_error(path, error))?;
        let (id, state) = load(path, &database)?;
        Ok(Opened { id, database, state, place: None })
    };
    // redb can panic at damage that its check did not find.
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|panic| {
        let what = format!("it is damaged: {}; restore a backup", panic_text(&*panic));
        Err(LogError::Store { path: path.to_owned(), what })
    })
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    // Otherwise a flipped bit is served as data, or as a panic.
    builder.set_check_integrity_on_open(true);
    builder
}

/// Reads what is held in memory.
fn load(path: &Path, database: &Database) -> Result<(LogId, State), LogError> {
    let failed = |error: ::redb::Error| match error {
        ::redb::Error::TableDoesNotExist(_) | ::redb::Error::TableTypeMismatch { .. } => {
            let what = "it is a redb file, but not a store of starling".to_owned();
            LogError::Store { path: path.to_owned(), what }
        }
        error => store_error(path, error),
    };
    let damaged = |what: String| LogError::Store { path: path.to_owned(), what };
    let transaction = database.begin_read().map_err(|error| failed(error.into()))?;
    let table = |error: TableError| failed(error.into());
    let storage = |error: StorageError| failed(error.into());
    let meta = transaction.open_table(META).map_err(table)?;
    let read = |name: &str| -> Result<Vec<u8>, LogError> {
        let value = meta.get(name).map_err(storage)?;
        Ok(value.map(|value| value.value().to_vec()).unwrap_or_default())
    };
    let whole = |name: &'static str| damaged(format!("it is damaged: its `{name}` is not whole"));
    let format = read(META_FORMAT)?.try_into().map_err(|_| whole(META_FORMAT))?;
    let (found, known) = (u32::from_le_bytes(format), u32::from(FORMAT_VERSION));
    if found != known {
        return Err(LogError::Format { found, known });
    }
    let id = read(META_ID)?.try_into().map_err(|_| whole(META_ID))?;
    let commits = read(META_COMMITS)?.try_into().map_err(|_| whole(META_COMMITS))?;
    let records = transaction.open_table(BRANCHES).map_err(table)?;
    let tips = transaction.open_table(TIPS).map_err(table)?;
    let mut state = State::default();
    let mut tips = tips.iter().map_err(storage)?;
    for (number, row) in (0u32..).zip(records.iter().map_err(storage)?) {
        let (stored, record) = row.map_err(storage)?;
        let tip = tips.next().transpose().map_err(storage)?;
        let tip = tip.filter(|(branch, _)| branch.value() == number);
        let tip = tip.filter(|_| stored.value() == number);
        let missing = || damaged(format!("it is damaged: branch {number} is missing"));
        let (_, tip) = tip.ok_or_else(missing)?;
        let record = read_branch(BranchId::new(number), record.value());
        let bad = |what| damaged(format!("it is damaged: branch {number} has {what}"));
        state.push(record.map_err(bad)?, read_tip(tip.value()));
    }
    state.set_commits(u64::from_le_bytes(commits));
    Ok((LogId::from_bytes(id), state))
}

/// Tells what redb said about the file at `path`.
fn store_error(path: &Path, error: impl Into<::redb::Error>) -> LogError {
    let path = path.to_owned();
    match error.into() {
        ::redb::Error::DatabaseAlreadyOpen => LogError::Owned { path, waited: Duration::ZERO },
        ::redb::Error::Io(source) if source.kind() != io::ErrorKind::InvalidData => {
            LogError::Io { doing: "opening the store", source }
        }
        ::redb::Error::Corrupted(what) => {
            let what = format!("it is damaged: {what}; restore a backup");
            LogError::Store { path, what }
        }
        other => LogError::Store { path, what: format!("it cannot be opened: {other}") },
    }
}
