//! `fork`: a branch that shares its parent's events up to an offset.

use std::path::Path;

use effect::Sandbox;
use effect::builtin::worktree;
use log::{Address, Branch, BranchName, Head, Log, Missing, Store};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;
use crate::effect::Serving;
use crate::engine::EngineError;
use crate::flock::workspace::{self, AtCut, Fork, Given, to_give};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling fork main@600 no-evaporation   shares events 0 to 600, copies none
  starling fork main@head~5 retry
  starling fork main@none empty           shares nothing";

/// Makes a branch that shares the events up to an address; copies nothing, repeats no effect
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// Where to cut: BRANCH@OFFSET, the event there included
    address: Address,
    /// The name of the new branch
    name: BranchName,
    /// Ask the world what the parent's log does not answer; without it such an effect waits
    #[arg(long)]
    live: bool,
    /// Let git check out a worktree of the workspace unconfined
    #[arg(long)]
    no_sandbox: bool,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let (parent, asked) = shell.resolve(&*log, &args.address)?;
    let cut = crate::engine::between_firings(&*log, parent.id, asked)?;
    if cut != asked {
        let name = &parent.name;
        shell.say(format_args!("{name}@{asked} lies inside of a firing; cut at {name}@{cut}"));
    }
    let serving = args.live.then_some(Serving::RecordedThenLive);
    let (given, why) = give_workspace(&log, &parent, cut, &args)?;
    let fork = Fork { serving, given };
    let made = log.fork(parent.id, cut, &args.name, &fork.record())?;
    let from = format!("{}@{cut}", parent.name);
    shell.either(
        || json!({"branch": made.name.as_str(), "forked_from": from, "link": made.tip.link.to_string()}),
        || format!("{} forked from {from}: {} events shared, 0 copied", made.name, cut.count()),
    )?;
    match fork.given {
        None => {}
        Some(Given::Copy) => {
            shell.say(format_args!("it works in a copy of the workspace: {why}"));
        }
        Some(Given::Worktree(commit)) => shell.say(format_args!(
            "it works in a git worktree of the workspace at {commit}, the commit that the log last \
             recorded before the cut"
        )),
        Some(Given::Nothing) => shell.say(format_args!(
            "it has no workspace, so what writes there is refused: {why}, and only a cut at the head, \
             with nothing under way, can be given a copy"
        )),
    }
    shell.say(format_args!("next: starling append KIND --branch {}", made.name));
    Ok(())
}

/// Gives a fork of a branch what it can have of the workspace that the flock declares, if it does;
/// and says why that is not a working tree of its repository.
fn give_workspace(
    log: &Store,
    parent: &Branch,
    cut: Head,
    args: &Args,
) -> Result<(Option<Given>, String), Failure> {
    let state = Snapshots::beside(log.path()).fold_branch(log, parent.id, cut);
    let state = state.map_err(EngineError::from)?;
    let Some(declared) = &state.settings.policy.workspace else { return Ok((None, String::new())) };
    let flock = log.path().parent().and_then(Path::parent).unwrap_or(Path::new("."));
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
    let to = workspace::of_branch(flock, &args.name);
    if to.symlink_metadata().is_ok() {
        let place = to.display();
        return Err(Failure::Failed(format!("{place} is there already; move it out of the way")));
    }
    let (mut given, why) = to_give(at);
    let mut why = why.to_owned();
    if let Given::Worktree(commit) = &given {
        let sandbox = if args.no_sandbox { Sandbox::Off } else { Sandbox::Required };
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
