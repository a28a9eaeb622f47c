//! The folder that a flock works in, and what a fork of a branch gets of it: a copy as it was at
//! the cut, or nothing, so that no write of a fork ever reaches its parent's files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use log::{Branch, BranchName, Log, LogError};

use crate::effect::Serving;

/// The word of a fork record for a workspace that was copied.
const COPIED: &str = "workspace:copy";
/// The word for one that could not be: writes are refused.
const REFUSED: &str = "workspace:refused";

/// What a fork record says: how answers are served, and what became of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fork {
    /// How answers are served; recorded ones only, unless said otherwise.
    pub(crate) serving: Option<Serving>,
    /// Whether the workspace was copied; none if there was none.
    pub(crate) copied: Option<bool>,
}

impl Fork {
    pub(crate) fn read(record: &str) -> Fork {
        let mut fork = Fork::default();
        for word in record.split_whitespace() {
            match word {
                COPIED => fork.copied = Some(true),
                REFUSED => fork.copied = Some(false),
                word => fork.serving = Serving::from_name(word),
            }
        }
        fork
    }

    pub(crate) fn record(self) -> String {
        let serving = self.serving.map(Serving::as_str);
        let copied = self.copied.map(|copied| if copied { COPIED } else { REFUSED });
        let words: Vec<&str> = serving.into_iter().chain(copied).collect();
        words.join(" ")
    }
}

/// Where the copy for a branch stands.
pub(crate) fn of_branch(flock: &Path, branch: &BranchName) -> PathBuf {
    flock.join(".starling").join("workspaces").join(branch.as_str())
}

/// The folder that a branch works in: the flock's own, a fork's copy, or none.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn of(
    log: &dyn Log,
    flock: &Path,
    workspace: Option<&Path>,
    branch: &Branch,
) -> Result<Option<PathBuf>, LogError> {
    let Some(workspace) = workspace else { return Ok(None) };
    let mut at = branch.clone();
    loop {
        let Some(fork) = at.fork.clone() else { return Ok(Some(workspace.to_owned())) };
        match Fork::read(&fork.serving).copied {
            Some(true) => return Ok(Some(of_branch(flock, &at.name))),
            Some(false) => return Ok(None),
            // Forked before the flock declared a workspace: nothing was copied, so nothing is lent.
            None if fork.cut.count() > 0 => return Ok(None),
            None => at = log.branch(fork.parent)?,
        }
    }
}

/// Copies a folder, without the stores of Starling in it. Links stay links.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == ".starling" {
            continue;
        }
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_record_survives_its_words() {
        for serving in [None, Some(Serving::Live), Some(Serving::RecordedThenLive)] {
            for copied in [None, Some(true), Some(false)] {
                let fork = Fork { serving, copied };
                assert_eq!(Fork::read(&fork.record()), fork);
            }
        }
    }

    #[test]
    fn a_copy_has_everything_but_the_stores() {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("deep/er")).expect("it is made");
        fs::create_dir_all(from.join(".starling")).expect("it is made");
        fs::write(from.join("deep/er/a"), "1").expect("it is written");
        fs::write(from.join(".starling/store.redb"), "2").expect("it is written");
        copy(&from, &to).expect("it is copied");
        assert_eq!(fs::read_to_string(to.join("deep/er/a")).expect("it is there"), "1");
        assert!(!to.join(".starling").exists());
        fs::write(to.join("deep/er/a"), "3").expect("it is written");
        assert_eq!(fs::read_to_string(from.join("deep/er/a")).expect("it is there"), "1");
    }
}
