//! A folder beyond which no path leads: files are opened by the kernel's own rule, never by
//! comparing strings, so that a link that is swapped at the wrong moment leads nowhere either.

mod replace;

pub(crate) use replace::{Change, replace};

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;

use crate::error::{Blame, EffectError};

/// The largest file that is read whole.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// Names of a flock that decide how it runs, and those that git runs.
const RULES: [&str; 5] = ["flock.toml", "behaviors", "tools", ".starling", "answers.jsonl"];

/// A folder, and the flock whose rules in it are not to be written.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    path: PathBuf,
    flock: PathBuf,
}

impl Beneath {
    /// Opens the folder.
    pub(crate) fn open(root: &Path, flock: &Path) -> Result<Self, EffectError> {
        let opened = || {
            let path = root.canonicalize()?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = rustix::fs::open(&path, flags, Mode::empty())?;
            Ok((fd, path))
        };
        let (root, path) = opened().map_err(|error: io::Error| {
            EffectError::new(
                "workspace.missing",
                Blame::Machine,
                format!("the workspace {} cannot be opened: {error}", root.display()),
                "make the folder that the flock's `workspace` names",
            )
        })?;
        let flock = flock.canonicalize().unwrap_or_else(|_| flock.to_owned());
        Ok(Beneath { root, path, flock })
    }

    /// Where it is, for a walk whose finds are opened through `self`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what a path names, with links followed only as long as they stay beneath.
    pub(crate) fn at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, EffectError> {
        let given = if path.is_empty() { "." } else { path };
        open_at(self.root.as_fd(), given, flags, Mode::empty())
            .map_err(|errno| refused(path, errno))
    }

    /// Opens a regular file for reading.
    pub(crate) fn file(&self, path: &str) -> Result<File, EffectError> {
        // Without waiting: a pipe by that name has perhaps no writer.
        let file = File::from(self.at(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        if is_file { Ok(file) } else { Err(no_file(path)) }
    }

    /// The content of a file; nothing if there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, EffectError> {
        match self.file(path) {
            Ok(file) => read_all(file, path).map(Some),
            Err(error) if error.kind == "path.missing" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder of a path that may be written, made if it is missing, and the last name.
    fn parent(&self, path: &str) -> Result<(OwnedFd, String), EffectError> {
        let refuse = |errno| refused(path, errno);
        let mut names = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => {
                    names.push(name.to_str().ok_or_else(|| refuse(Errno::ILSEQ))?.to_owned());
                }
                Component::CurDir => {}
                _ => return Err(refuse(Errno::XDEV)),
            }
        }
        let last = names.pop().ok_or_else(|| refuse(Errno::INVAL))?;
        if path.contains('\0') || path.ends_with('/') {
            return Err(refuse(Errno::INVAL));
        }
        let folder = OFlags::PATH | OFlags::DIRECTORY;
        let mut so_far = String::from(".");
        let mut at = open_at(self.root.as_fd(), ".", folder, Mode::empty()).map_err(refuse)?;
        for name in names {
            so_far = format!("{so_far}/{name}");
            at = match open_at(self.root.as_fd(), &so_far, folder, Mode::empty()) {
                Err(Errno::NOENT) => {
                    self.writable(at.as_fd(), &name, path)?;
                    mkdirat(&at, &name, Mode::from_raw_mode(0o777)).map_err(refuse)?;
                    open_at(self.root.as_fd(), &so_far, folder, Mode::empty()).map_err(refuse)?
                }
                found => found.map_err(refuse)?,
            };
        }
        self.writable(at.as_fd(), &last, path)?;
        Ok((at, last))
    }

    /// Refuses what the rules of the flock, or what git runs by itself, are made of. It goes by
    /// where the open folder is, whatever links led there.
    fn writable(&self, folder: BorrowedFd<'_>, name: &str, path: &str) -> Result<(), EffectError> {
        let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let real = std::fs::read_link(link).map_err(|_| refused(path, Errno::ACCESS))?.join(name);
        let rules = RULES.iter().any(|rule| real.starts_with(self.flock.join(rule)));
        let inside = real.strip_prefix(&self.path).unwrap_or(&real);
        if !rules && !inside.components().any(|part| part.as_os_str() == ".git") {
            return Ok(());
        }
        Err(EffectError::new(
            "path.protected",
            Blame::Policy,
            format!("`{path}` decides what runs; a tool does not write it"),
            "let a person change it",
        ))
    }
}

/// Opens beneath a folder. The kernel gives up when something is renamed meanwhile; it is asked
/// again, a bounded number of times.
fn open_at(
    folder: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    let mut tries = 64;
    loop {
        match openat2(folder, path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries > 0 => tries -= 1,
            done => return done,
        }
    }
}

/// Reads a file to its end, up to a bound.
pub(crate) fn read_all(file: File, path: &str) -> Result<Vec<u8>, EffectError> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(EffectError::new(
            "path.too_large",
            Blame::Caller,
            format!("`{path}` is larger than {FILE_BYTES_MAX} bytes"),
            "work on a smaller file",
        ));
    }
    Ok(bytes)
}

fn no_file(path: &str) -> EffectError {
    EffectError::new(
        "path.no_file",
        Blame::Caller,
        format!("`{path}` is no regular file"),
        "name a file",
    )
}

/// Why a path was refused.
pub(crate) fn refused(path: &str, errno: Errno) -> EffectError {
    let path = path.escape_debug();
    let error = |kind: &str, blame, what: &str, action: &str| {
        EffectError::new(kind, blame, format!("`{path}` {what}"), action)
    };
    let inside = "name a path inside the workspace, from its root";
    match errno {
        Errno::NOENT | Errno::NOTDIR => {
            error("path.missing", Blame::Caller, "is not there", "look what is there with fs.list")
        }
        Errno::XDEV | Errno::LOOP => {
            error("path.outside", Blame::Policy, "leads out of the workspace", inside)
        }
        Errno::INVAL | Errno::NAMETOOLONG | Errno::ILSEQ => {
            error("path.name", Blame::Caller, "is no path of a file", inside)
        }
        Errno::ISDIR => error("path.no_file", Blame::Caller, "is a folder", "name a file"),
        Errno::AGAIN => {
            error("path.busy", Blame::Tool, "is being moved all the time", "try again").retryable()
        }
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            error("path.denied", Blame::Machine, "may not be opened", "look at its permissions")
        }
        Errno::NOSPC | Errno::DQUOT => {
            error("disk.full", Blame::Machine, "finds no room", "make room on the disk").retryable()
        }
        other => error("path.io", Blame::Machine, &format!("fails: {other}"), "see the disk"),
    }
}

/// The name of a content: blake3 in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
