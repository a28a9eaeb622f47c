//! What a fork is given of the workspace that its flock declares.

use std::path::Path;

use effect::Sandbox;
use effect::builtin::worktree;
use log::{Branch, BranchName, Head, Offset, Store};

use crate::cli::failure::Failure;
use crate::engine::EngineError;
use crate::flock::workspace::{self, AtCut, Given, to_give};
use crate::snapshot::Snapshots;

/// Gives a fork of a branch what it can have of the workspace that the flock declares, if it does;
/// and says why that is not a working tree of its repository.
pub(super) fn give(
    log: &Store,
    parent: &Branch,
    cut: Head,
    name: &BranchName,
    no_sandbox: bool,
) -> Result<(Option<Given>, String), Failure> {
    let flock = log.path().parent().and_then(Path::parent).unwrap_or(Path::new("."));
    if !may_declare(log, parent, flock)? {
        return Ok((None, String::new()));
    }
    let state = Snapshots::beside(log.path()).fold_branch(log, parent.id, cut);
    let state = state.map_err(EngineError::from)?;
    let Some(declared) = &state.settings.policy.workspace else { return Ok((None, String::new())) };
    let declared = flock.join(declared);
    let Some(from) = workspace::of(log, flock, Some(&declared), parent)? else {
        return Ok((Some(Given::Nothing), "its parent has none".to_owned()));
    };
    let ledger = &state.effects.ledger;
    let at = AtCut {
        // A fork's own working tree is one of the same repository, of which git makes further ones.
        repository: worktree::is_repository(&declared),
        commit: ledger.commit.as_deref().map(|commit| (commit, ledger.uncommitted)),
        unchanged: cut == parent.tip.head && state.is_still(),
    };
    let to = workspace::of_branch(flock, name);
    if to.symlink_metadata().is_ok() {
        let place = to.display();
        return Err(Failure::Failed(format!("{place} is there already; move it out of the way")));
    }
    let (mut given, why) = to_give(at);
    let mut why = why.to_owned();
    if let Given::Worktree(commit) = &given {
        let sandbox = if no_sandbox { Sandbox::Off } else { Sandbox::Required };
        if let Err(error) = worktree::add(sandbox, &declared, &to, commit) {
            why = format!("no worktree can be made: {error}");
            given = if at.unchanged { Given::Copy } else { Given::Nothing };
        }
    }
    if given == Given::Copy {
        workspace::copy(&from, &to).map_err(|error| {
            Failure::Failed(format!("{} cannot be copied: {error}", from.display()))
        })?;
    }
    Ok((Some(given), why))
}

/// Whether a workspace may be declared at all; without one no world has to be folded. A fork that
/// was given nothing is lent nothing, so what is missed here costs a fork its workspace and never
/// lends it its parent's.
fn may_declare(log: &Store, parent: &Branch, flock: &Path) -> Result<bool, Failure> {
    let first = log::read(log, parent.id, Offset::ZERO..Offset::new(1))?.next().transpose()?;
    let begun = first.is_some_and(|first| first.payload().get("workspace").is_some());
    let file = std::fs::read_to_string(flock.join("flock.toml")).unwrap_or_default();
    Ok(begun || file.contains("workspace"))
}
