//! `branches`: what lines of history there are, and where they part.

use log::{BranchName, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling branches
  starling branches --json";

/// Lists the branches: name, last offset, and where each was forked
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(_args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let branches = log::Log::branches(&*log)?;
    let name_of = |id: log::BranchId| -> BranchName { branches[id.get() as usize].name.clone() };
    let width = branches.iter().map(|b| b.name.as_str().len()).max().unwrap_or(0);
    for branch in &branches {
        let from = branch.fork.as_ref().map(|f| format!("{}@{}", name_of(f.parent), f.cut));
        let own = branch.fork.as_ref().map_or(0, |fork| fork.cut.count());
        let own = branch.tip.head.count() - own;
        shell.either(
            || {
                json!({
                    "branch": branch.name.as_str(),
                    "head": branch.tip.head.last().map(log::Offset::get),
                    "link": branch.tip.link.to_string(),
                    "own_events": own,
                    "forked_from": from,
                })
            },
            || {
                let forked = from.as_ref().map_or(String::new(), |from| format!("  from {from}"));
                format!(
                    "{:width$}  head {:>8}  {own:>8} of its own{forked}",
                    branch.name.as_str(),
                    branch.tip.head.to_string(),
                )
            },
        )?;
    }
    Ok(())
}
