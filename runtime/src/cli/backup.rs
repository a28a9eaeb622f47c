//! `backup`: a whole copy of the store while it is being written.

use std::path::PathBuf;

use log::Missing;
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling backup lab-monday.redb
  starling log --store lab-monday.redb     a backup is a store like any other";

/// Copies all branches as they are at one moment, with all their texts, into a new store
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The file to make
    file: PathBuf,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Refuse)?;
    let copied = log::backup(&*log, &args.file)?;
    for branch in &copied {
        let (head, link) = (branch.tip.head, branch.tip.link);
        shell.either(
            || {
                json!({
                    "branch": branch.name.as_str(),
                    "head": head.last().map(log::Offset::get),
                    "link": link.to_string(),
                })
            },
            || format!("{}@{head}  last link {link}", branch.name),
        )?;
    }
    shell.say(format_args!("backed up {} branches to {}", copied.len(), args.file.display()));
    Ok(())
}
