//! A second working tree of a repository, for a fork of a branch: made once, and used by git after
//! that.
//!
//! git runs in the sandbox also when it makes one: what a repository checks out can start programs
//! that its own configuration names, and whoever could write the workspace could write that.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::Cancel;
use crate::call::Call;
use crate::error::{Blame, EffectError};
use crate::executor::Limits;
use crate::process::{Command, How};
use crate::sandbox::{Confines, Sandbox};

/// How long a checkout may take.
const TIME_MAX: Duration = Duration::from_secs(600);

/// Whether a folder is the top of a repository, so that it can have another working tree.
#[must_use]
pub fn is_repository(folder: &Path) -> bool {
    folder.join(".git").is_dir()
}

/// Checks a commit of the repository `from` out into `to`, which is not there yet, on no branch.
///
/// # Errors
/// There is no sandbox, no git, or no such commit; says which. Then nothing is left at `to`.
pub fn add(sandbox: Sandbox, from: &Path, to: &Path, commit: &str) -> Result<(), EffectError> {
    let machine = |what: String| {
        let action = "give the fork a copy of the workspace by hand";
        EffectError::new("workspace.worktree", Blame::Machine, what, action)
    };
    if commit.is_empty() || !commit.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(machine(format!("`{commit}` names no commit")));
    }
    let made = fs::create_dir_all(to).and_then(|()| Ok((from.canonicalize()?, to.canonicalize()?)));
    let (from, to) = made.map_err(|error| machine(format!("{}: {error}", to.display())))?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(|error| machine(error.to_string()))?;
    let place = to.display().to_string();
    let words = ["worktree", "add", "--force", "--detach", "--quiet", &place, commit];
    let command = Command {
        argv: super::git::ALWAYS.iter().chain(&words).map(|word| (*word).to_owned()).collect(),
        env: Vec::new(),
        input: Vec::new(),
        sandbox,
        confines: Confines {
            workspace: Some(from.clone()),
            writes: true,
            also_writes: vec![to.clone()],
            ..Confines::default()
        },
        memory_bytes: None,
    };
    let call = Call {
        action: String::new(),
        attempt: 1,
        effect: "git.worktree".to_owned(),
        args: Value::Null,
        idempotency_key: String::new(),
        timeout: TIME_MAX,
        workspace: Some(from),
        cancel: Cancel::new(),
    };
    let done = threads.block_on(command.run(&call, &Limits::default()));
    let failed = match done {
        Ok(done) if done.how == How::Exit(0) => return Ok(()),
        Ok(done) if done.how == How::TimedOut => {
            machine(format!("git worktree took longer than {} s", TIME_MAX.as_secs()))
        }
        Ok(done) => machine(format!("git worktree failed: {}", done.err.text().trim())),
        Err(error) => error,
    };
    // What is half made is no workspace of anybody.
    drop(fs::remove_dir_all(&to));
    Err(failed)
}

/// Where git keeps what belongs to a second working tree: the folder that all trees of the
/// repository share, and the one of this tree.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) common: PathBuf,
    pub(super) own: PathBuf,
}

/// The same for a workspace that is one. The workspace alone is not believed, or it could name any
/// folder: the repository, which nobody writes from there, has to know it.
pub(super) fn shared(workspace: &Path) -> Option<Shared> {
    let named = fs::read_to_string(workspace.join(".git")).ok()?;
    let own = Path::new(named.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let common = own.parent()?.parent()?.to_owned();
    let back = fs::read_to_string(own.join("gitdir")).ok()?;
    let known = Path::new(back.trim()).canonicalize().ok()?;
    let is_ours = known == workspace.canonicalize().ok()?.join(".git");
    let is_worktree = own.parent()?.ends_with(".git/worktrees");
    (is_ours && is_worktree).then_some(Shared { common, own })
}
