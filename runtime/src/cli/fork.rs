//! `fork`: a branch that shares its parent's events up to an offset.

use std::path::Path;

use log::{Address, Branch, BranchName, Head, Log, Missing, Store};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;
use crate::effect::Serving;
use crate::engine::EngineError;
use crate::flock::workspace::{self, Fork};
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
    let copied = copy_workspace(&log, &parent, cut, &args.name)?;
    let fork = Fork { serving, copied };
    let made = log.fork(parent.id, cut, &args.name, &fork.record())?;
    let from = format!("{}@{cut}", parent.name);
    shell.either(
        || json!({"branch": made.name.as_str(), "forked_from": from, "link": made.tip.link.to_string()}),
        || format!("{} forked from {from}: {} events shared, 0 copied", made.name, cut.count()),
    )?;
    match copied {
        None => {}
        Some(true) => shell.say("it works in a copy of the workspace"),
        Some(false) => shell.say(
            "it has no workspace, so what writes there is refused: only a cut at the head, with \
             nothing under way, can be given a copy",
        ),
    }
    shell.say(format_args!("next: starling append KIND --branch {}", made.name));
    Ok(())
}

/// Copies the workspace that the flock of a branch declares, if it has one. It is what it was at
/// the cut only if the cut is the head and nothing is under way; else there is no copy.
fn copy_workspace(
    log: &Store,
    parent: &Branch,
    cut: Head,
    child: &BranchName,
) -> Result<Option<bool>, Failure> {
    let state = Snapshots::beside(log.path()).fold_branch(log, parent.id, cut);
    let state = state.map_err(EngineError::from)?;
    let Some(declared) = &state.settings.policy.workspace else { return Ok(None) };
    let flock = log.path().parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let declared = flock.join(declared);
    let from = workspace::of(log, flock, Some(&declared), parent)?;
    let (true, true, Some(from)) = (cut == parent.tip.head, state.is_still(), from) else {
        return Ok(Some(false));
    };
    let to = workspace::of_branch(flock, child);
    workspace::copy(&from, &to).map_err(|error| {
        Failure::Failed(format!("{} cannot be copied: {error}", from.display()))
    })?;
    Ok(Some(true))
}
