//! `fork`: a branch that shares its parent's events up to an offset, and what is changed there.

mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use log::{Address, Branch, BranchName, Head, Log, LogError, Missing, Store};
use serde_json::{Value, json};

use super::answer::command_line;
use super::failure::Failure;
use super::shell::{Shell, counted};
use super::{append, run as running};
use crate::effect::Serving;
use crate::flock::Source;
use crate::flock::workspace::{Fork, Given};
use crate::fork::{Changes, ForkError};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling fork main@600 same --run                     goes on as main did, byte for byte
  starling fork main@600 dry --without leave_pheromone --run   had that behavior not been there
  starling fork main@600 new --with choose_branch.star  with another version of it
  starling fork main@600 idea --set ticks=300           with another setting
  starling fork main@600 idea --set effect:5f3a='{\"price\": 900}'   had it been answered so
  starling fork main@600 idea --inject events.jsonl     had this been said then
  starling fork main@head~5 retry --answers live        asks the world anew
  starling fork main@none empty                         shares nothing";

/// Makes a branch that shares the events up to an address; copies nothing, repeats no effect
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// Where to cut: BRANCH@OFFSET, the event there included
    address: Address,
    /// The name of the new branch
    name: BranchName,
    /// Cut inside of a firing if the address lies there; what is left of the firing is lost
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    changed: Changed,
    #[command(flatten)]
    served: Served,
    /// Run it at once
    #[arg(long)]
    run: bool,
}

/// What is changed at the cut.
#[derive(Debug, clap::Args)]
struct Changed {
    /// Go on without this behavior
    #[arg(long, value_name = "BEHAVIOR")]
    without: Vec<String>,
    /// Go on with this behavior file; what has a name of its behaviors is replaced
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Another value for a setting, or with effect:ID=OUTCOME another answer to an effect
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Append these events, one JSON object a line as for `starling append -`
    #[arg(long, value_name = "FILE")]
    inject: Vec<PathBuf>,
}

/// How outside answers come to the fork, and what it may run.
#[derive(Debug, clap::Args)]
pub(super) struct Served {
    /// Where answers come from, and all else that its parent was told after the cut
    #[arg(long, value_enum, default_value = "recorded")]
    pub(super) answers: Answers,
    /// Confirm what the flock would run, as `starling run --trust` does
    #[arg(long)]
    pub(super) trust: bool,
    /// Let git check out a worktree of the workspace, and programs run, unconfined
    #[arg(long)]
    pub(super) no_sandbox: bool,
}

/// Where answers come from.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Answers {
    /// The parent's log; what is not there waits
    Recorded,
    /// The world: nothing that the parent was told is told again
    Live,
    /// The parent's log, else the world; each answer says which
    RecordedThenLive,
}

impl Answers {
    fn serving(self) -> Option<Serving> {
        match self {
            Answers::Recorded => None,
            Answers::Live => Some(Serving::Live),
            Answers::RecordedThenLive => Some(Serving::RecordedThenLive),
        }
    }
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let store = shell.open(Missing::Refuse)?;
    let changes = args.changed.read(store.path())?;
    let (parent, at) = cut(&store, &args.address, args.exact, shell)?;
    let made = make(&store, (&parent, at), &args.name, &changes, &args.served, shell)?;
    if !args.run {
        let line = command_line("run", shell.named_store().as_deref(), &made.name);
        shell.say(format_args!("next: {line}"));
        return Ok(());
    }
    shell.turn_to(&made.name);
    let run = running::Args::of_fork(args.served.trust, args.served.no_sandbox);
    running::run_fork(&store, &run, shell)
}

/// Makes a fork and says what it is.
pub(super) fn make(
    store: &Arc<Store>,
    (parent, cut): (&Branch, Head),
    name: &BranchName,
    changes: &Changes,
    served: &Served,
    shell: &mut Shell<'_>,
) -> Result<Branch, Failure> {
    shell.check_no_tag(&**store, name)?;
    if store.branches()?.iter().any(|branch| branch.name == *name) {
        return Err(LogError::BranchExists { name: name.clone() }.into());
    }
    let log: Arc<dyn Log> = Arc::clone(store) as Arc<dyn Log>;
    let snapshots = Snapshots::beside(store.path());
    // The workspace is given last: nothing of a fork that cannot be is left behind.
    let prepared = changes.prepare(&*log, &snapshots, (parent, cut))?;
    let (given, why) = workspace::give(store, parent, cut, name, served.no_sandbox)?;
    let until = (cut < parent.tip.head).then_some(parent.tip.head);
    let fork =
        Fork { serving: served.answers.serving(), given, until: until.or(Some(cut)), changes: 0 };
    let (record, me) = (fork.record(), shell.me());
    let said = (record.as_str(), me.as_str());
    let (made, first) = prepared.fork(&log, name, said)?;
    let from = format!("{}@{cut}", parent.name);
    shell.either(
        || {
            json!({
                "branch": made.name.as_str(), "forked_from": from, "first_events": first,
                "link": made.tip.link.to_string(),
            })
        },
        || format!("{} forked from {from}: {} events shared, 0 copied", made.name, cut.count()),
    )?;
    if first > 0 {
        let events = counted(first as u64, "event");
        shell.say(format_args!("what it changes begins it: {events}"));
    }
    tell_workspace(fork.given, &why, shell);
    Ok(made)
}

/// The branch to be cut and where; says so if that is not where it was asked for.
pub(super) fn cut(
    store: &Arc<Store>,
    address: &Address,
    exact: bool,
    shell: &mut Shell<'_>,
) -> Result<(Branch, Head), Failure> {
    let (parent, wanted) = shell.resolve(&**store, address)?;
    let cut = crate::engine::between_firings(&**store, parent.id, wanted)?;
    if cut == wanted {
        return Ok((parent, cut));
    }
    let split = log::read_one(&**store, parent.id, wanted.next())?;
    let (name, place_of) = (&parent.name, format!("{}@{wanted}", parent.name));
    let split = match split.author() {
        Some(author) => format!("a firing of `{author}`, which begins at {name}@{}", cut.count()),
        None => format!("the start of {name}, which ends at {name}@{cut}"),
    };
    if exact
        && wanted.count() > 0
        && log::read_one(&**store, parent.id, wanted.next())?.author().is_some()
    {
        shell.say(format_args!(
            "{place_of} lies inside of {split}: the fork has the first part of it and not the rest"
        ));
        return Ok((parent, wanted));
    }
    shell.say(format_args!("{place_of} lies inside of {split}; cut at {name}@{cut}"));
    Ok((parent, cut))
}

impl Changed {
    fn read(&self, store: &Path) -> Result<Changes, Failure> {
        let mut changes = Changes { without: self.without.clone(), ..Changes::default() };
        for line in &self.set {
            match line.strip_prefix("effect:").and_then(|answer| answer.split_once('=')) {
                Some((id, outcome)) => changes.answers.push((id.to_owned(), value(outcome))),
                None => changes.set.push(line.clone()),
            }
        }
        let flock = store.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        changes.with =
            self.with.iter().map(|file| source(flock, file)).collect::<Result<_, _>>()?;
        for file in &self.inject {
            changes.inject.extend(append::drafts_of(file)?);
        }
        Ok(changes)
    }
}

/// What a person wrote: JSON, or else a text.
fn value(text: &str) -> Value {
    let wrapped = log::parse_object(&format!("{{\"v\":{text}}}"));
    let parsed = wrapped.ok().and_then(|mut map| map.remove("v"));
    parsed.unwrap_or_else(|| json!(text))
}

/// A behavior file: by its path in the flock if it is in it, else as if it were saved there.
pub(super) fn source(flock: &Path, file: &Path) -> Result<Source, Failure> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, full) = (whole(flock), whole(file));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let inside = full.strip_prefix(&folder).ok().filter(|path| path.starts_with("behaviors"));
    let path = inside.map_or(format!("behaviors/{name}"), |path| path.display().to_string());
    Source::of_file(file, &path).map_err(Failure::Usage)
}

fn tell_workspace(given: Option<Given>, why: &str, shell: &mut Shell<'_>) {
    match given {
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
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Engine(error) => error.into(),
            ForkError::Refused(what) => Failure::Usage(what),
        }
    }
}
