//! A whole copy of a store, made while it is being written.
//!
//! The heads of all branches are taken at one moment; what lies before them never changes again, so
//! copying it takes as long as it may. A copy holds the same branches, events, keys, texts and
//! files, hence the same links, under the same id. It does not know of claims.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use bytes::Bytes;

use crate::batch::Batch;
use crate::branch::Branch;
use crate::error::{AppendError, Corruption, LogError};
use crate::id::{BranchId, Epoch, Hash, Head, Offset};
use crate::log::{Append, Log};
use crate::read::read;
use crate::redb::RedbLog;
use crate::value::Blobs;

/// A batch of a copy holds so many events, or about so many bytes.
const BATCH_EVENTS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;
/// How many blobs are copied at the same time.
const BLOB_THREADS: usize = 16;
/// How many blobs are listed at once.
const BLOBS_LISTED: usize = 1024;

/// Copies `log` into a new store at `path`, which appears once it is whole and on the disk. Gives
/// the branches as they were copied.
///
/// # Errors
/// There is something at `path`, `log` is damaged, or a disk fails.
pub fn backup(log: &dyn Log, path: &Path) -> Result<Vec<Branch>, LogError> {
    if path.symlink_metadata().is_ok() {
        return Err(LogError::Exists { path: path.to_owned() });
    }
    let unfinished = beside(path, ".partial");
    let anchor = beside(&unfinished, ".anchor");
    let io = |doing| move |source| LogError::Io { doing, source };
    remove(&unfinished)
        .and_then(|()| remove(&anchor))
        .map_err(io("removing an unfinished backup"))?;
    let copy = RedbLog::create(&unfinished, log.id())?;
    let copied = copy_all(log, &copy);
    let closed = copy.close();
    let named = copied.and_then(|branches| {
        closed?;
        // A second name fails where the file exists, which a renaming would replace.
        fs::hard_link(&unfinished, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => LogError::Exists { path: path.to_owned() },
            _ => LogError::Io { doing: "naming the backup", source: error },
        })?;
        Ok(branches)
    });
    remove(&unfinished)
        .and_then(|()| remove(&anchor))
        .map_err(io("removing an unfinished backup"))?;
    let branches = named?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")));
    folder.and_then(|folder| folder.sync_all()).map_err(io("writing the folder of the backup"))?;
    Ok(branches)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies everything into `copy`, which is empty.
fn copy_all(log: &dyn Log, copy: &dyn Log) -> Result<Vec<Branch>, LogError> {
    let branches = log.branches()?;
    copy_blobs(log, copy)?;
    let mut copied = Vec::with_capacity(branches.len());
    for branch in &branches {
        let made = match &branch.fork {
            None => copy.create(&branch.name)?,
            Some(fork) => copy.fork(fork.parent, fork.cut, &branch.name, &fork.serving)?,
        };
        assert_eq!(made.id, branch.id, "branches are numbered in order");
        copy_events(log, copy, branch, made.tip.head)?;
        let made = copy.branch(branch.id)?;
        if made.tip.link != branch.tip.link || made.tip.head != branch.tip.head {
            let what = "the copy ends with another link; verify the store".to_owned();
            let offset = branch.tip.head.next();
            return Err(Corruption { branch: branch.id, offset, what }.into());
        }
        copied.push(made);
    }
    Ok(copied)
}

/// Blobs are stored before the events that name them, so the list holds all that are needed.
fn copy_blobs(log: &dyn Log, copy: &dyn Log) -> Result<(), LogError> {
    let mut after = None;
    loop {
        let listed = log.blobs(after, BLOBS_LISTED)?;
        let Some(last) = listed.last() else { return Ok(()) };
        after = Some(*last);
        // Each is durable before `put_blob` returns; those of several threads share a commit.
        thread::scope(|scope| {
            let part = listed.len().div_ceil(BLOB_THREADS);
            let copy_part =
                |part: &'_ [Hash]| part.iter().try_for_each(|h| copy_blob(log, copy, h));
            let parts: Vec<_> =
                listed.chunks(part).map(|part| scope.spawn(move || copy_part(part))).collect();
            let mut done = parts.into_iter().map(|part| part.join().expect("copying panics not"));
            done.try_for_each(|part| part)
        })?;
    }
}

fn copy_blob(log: &dyn Log, copy: &dyn Log, hash: &Hash) -> Result<(), LogError> {
    let bytes: Option<Bytes> = log.blob(hash)?;
    let gone = || LogError::Blob { hash: *hash, what: "it is listed but not there" };
    let stored: Hash = copy.put_blob(bytes.ok_or_else(gone)?)?;
    assert_eq!(stored, *hash, "a blob is named by its hash");
    Ok(())
}

fn copy_events(log: &dyn Log, copy: &dyn Log, branch: &Branch, from: Head) -> Result<(), LogError> {
    let mut at = from;
    let (mut batch, mut bytes) = (Batch::new(), 0);
    for event in read(log, branch.id, from.next()..branch.tip.head.next())? {
        let event = event?;
        bytes += event.record().len();
        batch.push(event, Blobs::default());
        if batch.len() >= BATCH_EVENTS || bytes >= BATCH_BYTES {
            at = land(copy, branch.id, std::mem::take(&mut batch), at)?;
            bytes = 0;
        }
    }
    land(copy, branch.id, batch, at)?;
    Ok(())
}

fn land(copy: &dyn Log, branch: BranchId, batch: Batch, expected: Head) -> Result<Head, LogError> {
    if batch.is_empty() {
        return Ok(expected);
    }
    let after: Offset = expected.next().plus(batch.len() as u64);
    let pending = copy.submit(Append { branch, batch, expected, epoch: Epoch::UNCLAIMED });
    let stopped = |what: String| LogError::Stopped { what };
    match pending.wait().ok_or_else(|| stopped("the copy went away".to_owned()))? {
        Ok(appended) => {
            assert_eq!(appended.head.next(), after, "a key stands once, so nothing is left out");
            Ok(appended.head)
        }
        Err(AppendError::Log(error)) => Err(error),
        Err(error) => Err(stopped(error.to_string())),
    }
}
