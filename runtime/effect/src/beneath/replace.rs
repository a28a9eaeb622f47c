//! One file from a base to a result, both known by hash, or not at all.
//!
//! The new content stands complete and durable under another name before it takes the place of the
//! old one, by an exchange: so what was replaced can be looked at afterwards, and is put back if
//! it was not the base.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, fchmod, fstat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::{Beneath, hash, open_at, read_all, refused};
use crate::error::{Blame, EffectError};

/// What one file becomes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Where.
    pub(crate) path: String,
    /// The hash of what is there; none if there is nothing.
    pub(crate) base: Option<String>,
    /// What will be there; none if nothing will.
    pub(crate) content: Option<Vec<u8>>,
}

/// Makes the change if the base is what is there.
///
/// # Errors
/// It is not, or the file cannot be written; then nothing has changed.
pub(crate) fn replace(beneath: &Beneath, change: &Change, action: &str) -> Result<(), EffectError> {
    let (folder, name) = beneath.parent(&change.path)?;
    let short: String = action.chars().take(16).collect();
    let aside = format!(".{}.{short}.starling", name.chars().take(100).collect::<String>());
    // One writer of a folder at a time: while a content stands that may be put back, nobody else of
    // us takes it for a base. A program that knows nothing of this is noticed by the exchange.
    let opened = open_at(folder.as_fd(), ".", OFlags::RDONLY, Mode::empty());
    let opened = opened.map_err(|errno| refused(&change.path, errno))?;
    rustix::fs::flock(&opened, FlockOperation::LockExclusive)
        .map_err(|errno| refused(&change.path, errno))?;
    // Whatever an attempt before this one left when it was killed; usually there is nothing.
    let _ = unlinkat(&folder, &aside, AtFlags::empty());
    let done = swap(&folder, &name, &aside, change);
    let _ = unlinkat(&folder, &aside, AtFlags::empty());
    done?;
    rustix::fs::fsync(&opened).map_err(|errno| refused(&change.path, errno))
}

fn swap(folder: &OwnedFd, name: &str, aside: &str, change: &Change) -> Result<(), EffectError> {
    let refuse = |errno| refused(&change.path, errno);
    let now = current(folder.as_fd(), name, &change.path)?;
    if now.as_ref().map(|(hash, _)| hash) != change.base.as_ref() {
        return Err(conflict(change, now.map(|(hash, _)| hash)));
    }
    let Some(content) = &change.content else {
        if now.is_some() {
            renameat_with(folder, name, folder, aside, RenameFlags::NOREPLACE).map_err(refuse)?;
            let back = RenameFlags::NOREPLACE;
            return settle(folder, (name, aside), change, back);
        }
        return Ok(());
    };
    let mode = now.map_or(Mode::from_raw_mode(0o666), |(_, mode)| mode);
    write_aside(folder.as_fd(), aside, content, mode).map_err(refuse)?;
    if change.base.is_none() {
        let moved = renameat_with(folder, aside, folder, name, RenameFlags::NOREPLACE);
        return match moved {
            Err(Errno::EXIST) => Err(conflict(change, None)),
            moved => moved.map_err(refuse),
        };
    }
    let moved = renameat_with(folder, aside, folder, name, RenameFlags::EXCHANGE);
    moved.map_err(refuse)?;
    settle(folder, (name, aside), change, RenameFlags::EXCHANGE)
}

/// What was put aside must be the base; otherwise it is put back.
fn settle(
    folder: &OwnedFd,
    (name, aside): (&str, &str),
    change: &Change,
    back: RenameFlags,
) -> Result<(), EffectError> {
    let was = current(folder.as_fd(), aside, &change.path)?.map(|(hash, _)| hash);
    if was == change.base {
        return Ok(());
    }
    let returned = renameat_with(folder, aside, folder, name, back);
    returned.map_err(|errno| refused(&change.path, errno))?;
    let ours = change.content.as_deref().map(hash);
    let came_back = current(folder.as_fd(), aside, &change.path)?.map(|(hash, _)| hash);
    if back == RenameFlags::EXCHANGE && came_back != ours {
        // Somebody wrote over what was only tried: theirs is the newest, and stays.
        renameat_with(folder, name, folder, aside, back)
            .map_err(|errno| refused(&change.path, errno))?;
    }
    Err(conflict(change, was))
}

/// The hash and the mode of what is under a name.
fn current(
    folder: BorrowedFd<'_>,
    name: &str,
    path: &str,
) -> Result<Option<(String, Mode)>, EffectError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match open_at(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            let what = format!("`{path}` is a link; what it leads to is not replaced");
            return Err(EffectError::new("path.link", Blame::Caller, what, "name the file itself"));
        }
        opened => File::from(opened.map_err(|errno| refused(path, errno))?),
    };
    let stat = fstat(&file).map_err(|errno| refused(path, errno))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Err(super::no_file(path));
    }
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
    Ok(Some((hash(&read_all(file, path)?), mode)))
}

fn write_aside(
    folder: BorrowedFd<'_>,
    aside: &str,
    content: &[u8],
    mode: Mode,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let mut file = File::from(open_at(folder, aside, flags, mode)?);
    let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(content).map_err(io)?;
    if mode != Mode::from_raw_mode(0o666) {
        // As the file that it replaces, whatever the mask of this process.
        fchmod(&file, mode)?;
    }
    rustix::fs::fsync(&file)
}

fn conflict(change: &Change, found: Option<String>) -> EffectError {
    let say = |hash: Option<&String>| {
        hash.map_or_else(|| "no file".to_owned(), |hash| hash.chars().take(12).collect())
    };
    let found = say(found.as_ref());
    EffectError::new(
        "write.conflict",
        Blame::Caller,
        format!(
            "`{}` is not at its base {}: found {found}",
            change.path,
            say(change.base.as_ref())
        ),
        "read the file again and write on what is there now",
    )
}
