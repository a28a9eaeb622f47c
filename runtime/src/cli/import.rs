//! `import`: lines of JSON into a branch, event for event.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use log::{Log, Missing};
use serde_json::json;

use super::failure::Failure;
use super::shell::Shell;
use crate::engine::EngineError;
use crate::import::{ActivegraphError, Options, import_activegraph};

const EXAMPLES: &str = "\
Examples:
  starling import main.jsonl
  starling import - --branch copy < main.jsonl
  starling import main.jsonl      again after an interruption: goes on, repeats nothing
  starling import --from activegraph trace.jsonl     the trace of a run, ids and causes as they are
  starling import --from activegraph activegraph.db  all runs of a file, forks as forks";

/// Reads what `export` wrote into a branch, which ends with the same hash; or another system's log
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The file, or `-` for standard input
    file: PathBuf,
    /// The system that wrote it
    #[arg(long, value_name = "SYSTEM", value_enum)]
    from: Option<System>,
    /// Of a file of another system, only this run and those it was forked from
    #[arg(long, value_name = "ID", requires = "from")]
    run: Option<String>,
    /// Leave out rows of another system that cannot be read, and say which
    #[arg(long, requires = "from")]
    skip_corrupt: bool,
}

/// Another system whose logs can be read.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum System {
    /// ActiveGraph: a trace in JSON lines, or its SQLite file
    Activegraph,
}

#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    if let Some(System::Activegraph) = args.from {
        return from_activegraph(args, shell);
    }
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
        None => {
            shell.check_no_tag(&*log, &name)?;
            log.create(&name)?
        }
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

fn from_activegraph(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let log = shell.open(Missing::Create)?;
    let options = Options {
        file: args.file,
        branch: shell.branch_name(),
        run: args.run,
        skip: args.skip_corrupt,
        owner: shell.me(),
    };
    let (imported, left_out) = import_activegraph(&*log, &options)?;
    for bad in &left_out {
        shell.say(format_args!("left out {bad}"));
    }
    for run in &imported {
        let name = run.branch.as_str();
        shell.either(
            || {
                json!({
                    "branch": name, "run": run.run, "forked_from": run.forked_from,
                    "appended": run.appended, "found": run.found, "notices": run.notices,
                    "left_out": left_out.len(),
                })
            },
            || {
                let from = run.forked_from.as_ref();
                let from = from.map_or(String::new(), |from| format!(", forked from {from}"));
                let (appended, found) = (run.appended, run.found);
                format!("{name}{from}: {appended} events appended, {found} were there")
            },
        )?;
        for notice in run.notices.iter().filter(|_| !shell.json()).cloned().collect::<Vec<_>>() {
            shell.say(format_args!("{name}: {notice}"));
        }
    }
    Ok(())
}

impl From<ActivegraphError> for Failure {
    fn from(error: ActivegraphError) -> Self {
        match error {
            ActivegraphError::Log(error) => error.into(),
            ActivegraphError::Append(error) => error.into(),
            ActivegraphError::Fold(error) => EngineError::from(error).into(),
            ActivegraphError::Differs { .. } => Failure::Conflict(error.to_string()),
            ActivegraphError::NoRun { .. } | ActivegraphError::Unreadable { .. } => {
                Failure::NotFound(error.to_string())
            }
            other => Failure::Usage(other.to_string()),
        }
    }
}
