//! Where the owner of a store listens, and who may talk there.
//!
//! The socket stands beside the store: `lab.redb.sock` beside `lab.redb`, mode 0600. The address of
//! a socket has room for about 100 bytes; for a longer path it stands in the folder `starling-UID`,
//! mode 0700, in the system's folder for temporary files, under a hash of the path. Then owner and
//! guest must agree on `TMPDIR`.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::id::Hash;

/// What every system takes: some have room for 104 bytes, the last of them zero.
const ADDRESS_MAX: usize = 103;

/// Where the owner of the store at `path` listens.
pub(super) fn place(path: &Path) -> io::Result<PathBuf> {
    let mut beside = true_path(path)?.into_os_string();
    beside.push(".sock");
    if beside.as_bytes().len() <= ADDRESS_MAX {
        return Ok(beside.into());
    }
    let name = Hash::of(beside.as_bytes()).to_string();
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("starling-{user}"));
    Ok(folder.join(format!("{}.sock", &name[..32])))
}

/// The path without links, so that two names of one store lead to one socket.
fn true_path(path: &Path) -> io::Result<PathBuf> {
    if let Ok(path) = fs::canonicalize(path) {
        return Ok(path);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    Ok(fs::canonicalize(parent.unwrap_or(Path::new(".")))?.join(name))
}

/// Listens at `place`. Only the owner of the store does so: a socket that is there was left behind
/// by a process that is gone.
pub(super) fn listen(place: &Path, store: &Path) -> io::Result<UnixListener> {
    let folder = place.parent().ok_or(ErrorKind::InvalidInput)?;
    if Some(folder) != true_path(store)?.parent() {
        private_folder(folder)?;
    }
    match fs::remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(place)?;
    fs::set_permissions(place, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Makes a folder that is this user's alone, or sees that it is.
fn private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let ours = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let what = format!("{} is not a folder of this user's alone", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

/// Calls the owner at `place`; `None` when nobody listens there.
pub(super) fn call(place: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(place) {
        Ok(stream) => {
            same_user(&stream)?;
            Ok(Some(stream))
        }
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Refuses a peer of another user, whatever the permissions of the socket let through.
#[cfg(target_os = "linux")]
pub(super) fn same_user(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::getuid() {
        return Ok(());
    }
    let what = format!("the process {} belongs to another user", peer.pid.as_raw_nonzero());
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

/// Where the system does not tell who the peer is, the permissions of the socket decide.
#[cfg(not(target_os = "linux"))]
pub(super) fn same_user(_stream: &UnixStream) -> io::Result<()> {
    Ok(())
}
