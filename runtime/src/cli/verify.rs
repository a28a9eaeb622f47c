//! `verify`: every event and every link of the hash chain, from the first to the last.

use log::{BranchName, Log, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling verify          all branches
  starling verify main     one of them";

/// Checks the hash chain of every event; exit code 4 and the offset where it is broken
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The branch; all of them if none is named
    #[arg(value_name = "BRANCH")]
    name: Option<BranchName>,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let branches = match &args.name {
        Some(name) => vec![shell.branch(&*log, name)?],
        None => log.branches()?,
    };
    for branch in branches {
        let name = branch.name.as_str();
        let (head, link) = log::verify(&*log, branch.id).map_err(|error| {
            let id = branch.id.to_string();
            Failure::from(error)
                .reworded(|words| words.replace(&format!("{id}@"), &format!("{name}@")))
        })?;
        shell.either(
            || json!({"branch": name, "events": head.count(), "link": link.to_string()}),
            || format!("{name}: {} events, all whole; last link {link}", head.count()),
        )?;
    }
    Ok(())
}
