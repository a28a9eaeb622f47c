//! The folder that a flock works in, and what a fork of a branch gets of it: another working tree
//! of its repository or a copy, as it was at the cut, or nothing, so that no write of a fork ever
//! reaches its parent's files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use log::{Branch, BranchName, Head, Log, LogError};

use crate::effect::Serving;

/// What a fork got of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// A copy of the whole folder.
    Copy,
    /// Another working tree of its repository, at this commit.
    Worktree(String),
    /// Nothing: writes are refused.
    Nothing,
}

/// What a fork record says: how answers are served, and what became of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fork {
    /// How answers are served; recorded ones only, unless said otherwise.
    pub(crate) serving: Option<Serving>,
    /// What was given of the workspace; none if there was none.
    pub(crate) given: Option<Given>,
    /// How far the parent went when the fork was made: what it is told later is its own.
    pub(crate) until: Option<Head>,
    /// How many of its first events are what the fork itself changes.
    pub(crate) changes: u64,
}

impl Given {
    fn word(&self) -> String {
        match self {
            Given::Copy => "workspace:copy".to_owned(),
            Given::Worktree(commit) => format!("workspace:worktree@{commit}"),
            Given::Nothing => "workspace:refused".to_owned(),
        }
    }

    fn of_word(word: &str) -> Option<Given> {
        match word.strip_prefix("workspace:")? {
            "copy" => Some(Given::Copy),
            "refused" => Some(Given::Nothing),
            other => other.strip_prefix("worktree@").map(|commit| Given::Worktree(commit.into())),
        }
    }
}

impl Fork {
    pub(crate) fn read(record: &str) -> Fork {
        let mut fork = Fork::default();
        for word in record.split_whitespace() {
            let number = |name: &str| -> Option<u64> { word.strip_prefix(name)?.parse().ok() };
            if let Some(given) = Given::of_word(word) {
                fork.given = Some(given);
            } else if let Some(count) = number("until:") {
                fork.until = Some(Head::of_count(count));
            } else if let Some(count) = number("changes:") {
                fork.changes = count;
            } else {
                fork.serving = Serving::from_name(word);
            }
        }
        fork
    }

    pub(crate) fn record(&self) -> String {
        let serving = self.serving.map(|serving| serving.as_str().to_owned());
        let until = self.until.map(|until| format!("until:{}", until.count()));
        let given = self.given.as_ref().map(Given::word);
        let changes = (self.changes > 0).then(|| format!("changes:{}", self.changes));
        let words: Vec<String> = [serving, until, given, changes].into_iter().flatten().collect();
        words.join(" ")
    }
}

/// What is known of a workspace at the cut of a fork.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtCut<'c> {
    /// Whether its folder is the top of a git repository.
    pub(crate) repository: bool,
    /// The commit that the log last recorded, and how many writes it recorded after that.
    pub(crate) commit: Option<(&'c str, u64)>,
    /// Whether the folder is as it was: the cut is the head, and nothing is under way.
    pub(crate) unchanged: bool,
}

/// What a fork can be given, and why it is not more.
pub(crate) fn to_give(at: AtCut<'_>) -> (Given, &'static str) {
    let rest = if at.unchanged { Given::Copy } else { Given::Nothing };
    match at.commit {
        Some((commit, 0)) if at.repository => (Given::Worktree(commit.to_owned()), ""),
        Some(_) if at.repository => {
            (rest, "the log recorded writes after its last commit, which no commit holds")
        }
        None if at.repository => (rest, "the log recorded no commit of it"),
        _ => (rest, "it is no git repository"),
    }
}

/// Where what a branch was given stands.
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
        match Fork::read(&fork.serving).given {
            Some(Given::Copy | Given::Worktree(_)) => {
                return Ok(Some(of_branch(flock, &at.name)));
            }
            Some(Given::Nothing) => return Ok(None),
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
            let tree = Given::Worktree("0a1b".into());
            for given in [None, Some(Given::Copy), Some(tree), Some(Given::Nothing)] {
                for until in [None, Some(Head::of_count(7))] {
                    let fork = Fork {
                        serving,
                        given: given.clone(),
                        until,
                        changes: until.map_or(0, |_| 7),
                    };
                    assert_eq!(Fork::read(&fork.record()), fork);
                }
            }
        }
    }

    #[test]
    fn a_fork_is_given_what_was_there_at_its_cut_or_nothing() {
        let tree = || Given::Worktree("0a1b".into());
        for (repository, commit, unchanged, expected) in [
            (true, Some(("0a1b", 0)), true, tree()),
            (true, Some(("0a1b", 0)), false, tree()),
            (true, Some(("0a1b", 2)), true, Given::Copy),
            (true, Some(("0a1b", 2)), false, Given::Nothing),
            (true, None, true, Given::Copy),
            (true, None, false, Given::Nothing),
            (false, Some(("0a1b", 0)), true, Given::Copy),
            (false, None, false, Given::Nothing),
        ] {
            let at = AtCut { repository, commit, unchanged };
            assert_eq!(to_give(at).0, expected, "{at:?}");
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
