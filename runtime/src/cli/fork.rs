//! `fork`: a branch that shares its parent's events up to an offset.

use log::{Address, BranchName, Log, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;

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
    let made = log.fork(parent.id, cut, &args.name, "")?;
    let from = format!("{}@{cut}", parent.name);
    shell.either(
        || json!({"branch": made.name.as_str(), "forked_from": from, "link": made.tip.link.to_string()}),
        || format!("{} forked from {from}: {} events shared, 0 copied", made.name, cut.count()),
    )?;
    shell.say(format_args!("next: starling append KIND --branch {}", made.name));
    Ok(())
}
