//! `rerun`: the history after an address once more, with other behaviors: a fork, the swap, the run
//! and where the two histories part, in one command.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::{Address, BranchName, Log, Missing, Store};
use projection::{Difference, diff};
use serde_json::{Value, json};

use super::answer::command_line;
use super::failure::Failure;
use super::fork::{self, Served};
use super::shell::Shell;
use super::{run as running, world};
use crate::flock::Source;
use crate::fork::{Changes, Parting, parting};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling rerun main@600 --behaviors new/        what would these have done from there
  starling rerun main@600 --behaviors new/ --name trial --answers recorded-then-live";

/// How many differences between the worlds are told.
const TOLD_MAX: usize = 20;

/// Runs the history after an address again with other behaviors, and says where and why it parts
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// From where on: BRANCH@OFFSET, the event there included
    address: Address,
    /// The folder of behavior files that are in place of all that were loaded
    #[arg(long, value_name = "DIR")]
    behaviors: PathBuf,
    /// The name of the new branch; rerun-1 or the next that is free, if none is given
    #[arg(long)]
    name: Option<BranchName>,
    #[command(flatten)]
    served: Served,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let name = match args.name {
        Some(name) => name,
        None => free_name(&store)?,
    };
    // What is loaded there is known where the fork is cut, which may be elsewhere than asked for.
    let (parent, cut) = fork::cut(&store, &args.address, false, shell)?;
    let flock = store.path().parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let with = sources(flock, &args.behaviors)?;
    let state = Snapshots::beside(store.path()).fold_branch(&*store, parent.id, cut);
    let state = state.map_err(crate::engine::EngineError::from)?;
    let declared = |name: &str| {
        let all = with.iter().flat_map(|source| source.declared.iter().flatten());
        all.into_iter().any(|loaded| loaded.metadata().name == name)
    };
    let loaded = state.subscriptions.iter().map(|known| known.name.to_string());
    let without = loaded.filter(|name| !declared(name)).collect();
    // What is loaded already with the same source is no change.
    let same = |source: &Source| {
        let hash = source.hash.to_string();
        let mut names = source.declared.iter().flatten().map(crate::flock::name_of);
        names.all(|name| state.subscriptions.get(&name).is_some_and(|known| known.hash == hash))
    };
    let with: Vec<Source> = with.into_iter().filter(|source| !same(source)).collect();
    let changes = Changes { without, with, ..Changes::default() };
    let made = fork::make(&store, (&parent, cut), &name, &changes, &args.served, shell)?;
    shell.turn_to(&made.name);
    let run = running::Args::of_fork(args.served.trust, args.served.no_sandbox);
    running::run_fork(&store, &run, shell)?;
    tell(&store, &parent.name, &made.name, shell)
}

/// The behavior files of a folder, by name.
fn sources(flock: &Path, folder: &Path) -> Result<Vec<Source>, Failure> {
    let listed = fs::read_dir(folder);
    let listed = listed.map_err(|error| {
        Failure::NotFound(format!("{} cannot be read: {error}", folder.display()))
    })?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file() && is_behavior(file));
    files.sort();
    if files.is_empty() {
        let what =
            format!("{} has no behavior files: *.star, *.md or executables", folder.display());
        return Err(Failure::Usage(what));
    }
    files.iter().map(|file| fork::source(flock, file)).collect()
}

fn is_behavior(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let plain = !name.starts_with('.') && !name.ends_with(".toml");
    let written = name.ends_with(".star") || name.ends_with(".md");
    plain && (written || effect::is_executable(file))
}

fn free_name(store: &Store) -> Result<BranchName, Failure> {
    let taken: Vec<String> =
        store.branches()?.iter().map(|branch| branch.name.to_string()).collect();
    let mut names = (1..).map(|n| format!("rerun-{n}"));
    let free = names.find(|name| !taken.contains(name)).expect("a number is free");
    free.parse().map_err(|error: log::NameError| Failure::Failed(error.to_string()))
}

/// Says where the histories part, why, and how the worlds differ.
fn tell(
    store: &Arc<Store>,
    parent: &BranchName,
    name: &BranchName,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let (ours, theirs) = (shell.branch(&**store, parent)?, shell.branch(&**store, name)?);
    let parted = parting(&**store, &ours, &theirs)?;
    let head = |branch: &BranchName| format!("{branch}@head").parse::<Address>();
    let address = |branch: &BranchName| head(branch).expect("a branch has a head");
    let (before, ..) = world::at(store, &address(parent), shell)?;
    let (after, ..) = world::at(store, &address(name), shell)?;
    let differences = diff(&before, &after);
    if shell.json() {
        let parted = parted.as_ref().map(Parting::to_json);
        let ids: Vec<&str> = differences.iter().map(|difference| difference.id).collect();
        return shell.line(json!({
            "branch": name.as_str(), "parts": parted, "differences": ids.len(), "ids": ids,
        }));
    }
    match &parted {
        None => shell.line(format_args!("{name} does what {parent} did"))?,
        Some(parted) => shell.line(format_args!("{parted}"))?,
    }
    for difference in differences.iter().take(TOLD_MAX) {
        shell.line(format_args!("  {}", told(difference)))?;
    }
    shell.say(match differences.len() {
        0 => "the worlds are equal".to_owned(),
        count => {
            let diff = format!("diff {parent} {name}");
            let diff = command_line(&diff, shell.named_store().as_deref(), &BranchName::main());
            format!("{count} nodes and edges differ; {diff} shows all")
        }
    });
    Ok(())
}

/// One difference in a line.
fn told(difference: &Difference<'_>) -> String {
    match (difference.before, difference.after) {
        (Some(gone), None) => format!("- ({}) {}", gone.type_name(), gone.id()),
        (None, Some(new)) => {
            format!("+ ({}) {} {}", new.type_name(), new.id(), Value::Object(new.properties_json()))
        }
        _ => {
            let text = |value: Option<log::ValueRef<'_>>| {
                value.map_or("nothing".to_owned(), |value| value.to_json().to_string())
            };
            let changed = difference.properties().into_iter();
            let changed = changed
                .map(|(name, one, other)| format!("{name} {} -> {}", text(one), text(other)));
            format!("~ {}: {}", difference.id, changed.collect::<Vec<_>>().join(", "))
        }
    }
}
