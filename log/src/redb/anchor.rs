//! The anchor: what a store looked like a moment ago, in a file beside it.
//!
//! A store file that was replaced by an older copy of itself is a perfect store. Only something
//! that is not in it can tell: its anchor remembers the commit counter and the head and link of
//! every branch. It is written when the store is opened and closed, and about once a second while
//! events are written, so the loss of up to about the last second's commits goes unnoticed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::open::temporary_path;
use super::rows::{read_hash, read_u64};
use super::state::State;
use crate::error::LogError;
use crate::id::{BranchId, Hash, Head, LogId};
use crate::value::read_bytes;

const MAGIC: &[u8; 8] = b"STARANCH";
const VERSION: u8 = 1;

/// What the anchor file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) id: LogId,
    pub(super) commits: u64,
    pub(super) heads: Vec<(BranchId, Head, Hash)>,
}

/// Where the anchor of the store at `path` is: `STORE.anchor`.
pub(super) fn path_beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".anchor");
    name.into()
}

impl Anchor {
    /// What there is to remember of a store.
    pub(super) fn of(id: LogId, state: &State) -> Anchor {
        let heads = state.tips().enumerate().map(|(number, tip)| {
            let number = u32::try_from(number).expect("branch numbers have 32 bits");
            (BranchId::new(number), tip.head, tip.link)
        });
        Anchor { id, commits: state.commits(), heads: heads.collect() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(80 + 44 * self.heads.len());
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        bytes.extend_from_slice(self.id.as_bytes());
        bytes.extend_from_slice(&self.commits.to_le_bytes());
        for (branch, head, link) in &self.heads {
            bytes.extend_from_slice(&branch.get().to_le_bytes());
            bytes.extend_from_slice(&head.count().to_le_bytes());
            bytes.extend_from_slice(link.as_bytes());
        }
        let checksum = Hash::of(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Anchor, &'static str> {
        let (body, checksum) = bytes.split_last_chunk::<32>().ok_or("it is cut off")?;
        let mut rest = body;
        if read_bytes(&mut rest, MAGIC.len())? != MAGIC {
            return Err("it is not an anchor");
        }
        if Hash::of(body).as_bytes() != checksum {
            return Err("its checksum is wrong");
        }
        if read_bytes(&mut rest, 1)? != [VERSION] {
            return Err("it was written by a newer program");
        }
        let id = read_bytes(&mut rest, 16)?.try_into().expect("16 bytes were read");
        let commits = read_u64(&mut rest)?;
        let mut heads = Vec::with_capacity(rest.len() / 44);
        while !rest.is_empty() {
            let branch = read_bytes(&mut rest, 4)?.try_into().expect("four bytes were read");
            let branch = BranchId::new(u32::from_le_bytes(branch));
            let head = Head::of_count(read_u64(&mut rest)?);
            heads.push((branch, head, read_hash(&mut rest)?));
        }
        Ok(Anchor { id: LogId::from_bytes(id), commits, heads })
    }

    /// Reads the anchor at `path`, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Anchor>, LogError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LogError::Io { doing: "reading the anchor", source }),
        };
        let damaged =
            |what: &str| LogError::Anchor { anchor: path.to_owned(), what: what.to_owned() };
        Anchor::from_bytes(&bytes).map(Some).map_err(damaged)
    }

    /// Puts the anchor at `path`, durably, in place of what is there.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        // An owner that leaves may write its last anchor while the next one writes its first.
        static NTH: AtomicU64 = AtomicU64::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let temporary = temporary_path(path, &format!("{}-{nth}", std::process::id()));
        let mut file = File::create(&temporary)?;
        file.lock()?;
        file.write_all(&self.to_bytes())?;
        file.sync_all()?;
        match fs::rename(&temporary, path) {
            // The next owner took it for a leftover: from now on it keeps the anchor.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| sync_folder(path)),
        }
    }
}

/// Makes a name that was just given in the folder of `path` durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder that holds `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> Anchor {
        let heads = (0..3).map(|n| {
            (BranchId::new(n), Head::of_count(7 + u64::from(n)), Hash::from_bytes([n as u8; 32]))
        });
        Anchor { id: LogId::from_bytes([9; 16]), commits: 77, heads: heads.collect() }
    }

    #[test]
    fn an_anchor_is_read_as_it_was_written() {
        assert_eq!(Anchor::from_bytes(&anchor().to_bytes()), Ok(anchor()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = anchor().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Anchor::from_bytes(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Anchor::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
    }
}
