//! `import`: lines of JSON into a branch, event for event.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use log::{Log, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  starling import main.jsonl
  starling import - --branch copy < main.jsonl
  starling import main.jsonl      again after an interruption: goes on, repeats nothing";

/// Reads what `export` wrote into a branch, which ends with the same hash
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The file, or `-` for standard input
    file: PathBuf,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let mut lines: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        shell.take_input()
    } else {
        let unread =
            |error| Failure::NotFound(format!("{} cannot be read: {error}", args.file.display()));
        Box::new(BufReader::with_capacity(1 << 20, File::open(&args.file).map_err(unread)?))
    };
    let log = shell.open(Missing::Create)?;
    let name = shell.branch_name();
    let found = log.branches()?.into_iter().find(|branch| branch.name == name);
    let branch = match found {
        Some(branch) => branch,
        None => log.create(&name)?,
    };
    let me = shell.me();
    let shows = shell.shows_progress();
    let mut progress = |head| {
        if shows {
            shell.progress(format_args!("{name}@{head}"));
        }
    };
    let done = log::import(&*log, branch.id, &mut *lines, &me, &mut progress);
    if shows {
        shell.progress("");
    }
    let done = done?;
    shell.either(
        || {
            json!({
                "branch": name.as_str(),
                "appended": done.appended,
                "found": done.found,
                "head": done.head.last().map(log::Offset::get),
                "link": done.link.to_string(),
            })
        },
        || {
            let (head, link) = (done.head, done.link);
            let (appended, found) = (done.appended, done.found);
            format!(
                "{name}@{head}: {appended} events appended, {found} were there; last link {link}"
            )
        },
    )
}
