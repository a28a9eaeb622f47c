//! `try`: a behavior file on a world that nobody else sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use behaviors::{KindPattern, Loaded};
use log::{Address, Branch, Event, Head, Log, Missing, Offset, Store, Time};
use serde_json::{Value, json};

use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use super::subject::{Subject, failure, lines, proposal};
use crate::engine::EngineError;
use crate::engine::trial::Trial;
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling try behaviors/greet_guest.star               on the world as it is now
  starling try behaviors/greet_guest.star --at main@40  as it was after event 40
  starling try behaviors/count_words.py --run           and let the executable answer";

/// Fires a behavior file on a throw-away copy of the world, and shows what would follow
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The file, in the folder `behaviors` of a flock
    file: PathBuf,
    /// The world: BRANCH@OFFSET; now if it is left out
    #[arg(long, value_name = "ADDRESS")]
    at: Option<Address>,
    /// Run the file if it is an executable; else what it would be told is shown
    #[arg(long)]
    run: bool,
}

/// How many firings are tried.
const FIRINGS_MAX: u64 = 1000;
/// How far back an event is looked for that wakes a behavior.
const LOOK_BACK: u64 = 100_000;

/// What came of one behavior.
struct Tried {
    behavior: String,
    at: String,
    fired: u64,
    more: bool,
    proposals: Vec<Value>,
    failed: Vec<String>,
    printed: Vec<String>,
}

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    scripts_elsewhere()?;
    let subject = Subject::read(&args.file)?;
    let store = world(&subject.flock.folder, args.at.as_ref(), shell)?;
    let mut all = Vec::new();
    for loaded in &subject.declared {
        let tried = match &store {
            Some((store, branch, cut)) => {
                on_branch(&subject, loaded, (store, branch, *cut), &args)?
            }
            None => on_start(&subject, loaded, &args)?,
        };
        all.push(tried);
    }
    for tried in &all {
        tell(tried, shell)?;
    }
    shell.say("nothing was written");
    Ok(())
}

/// The world that is meant: none if the flock has not run yet.
fn world(
    folder: &Path,
    at: Option<&Address>,
    shell: &mut Shell<'_>,
) -> Result<Option<(Arc<Store>, Branch, Head)>, Failure> {
    let path = shell.store_of(folder);
    if at.is_none() && !path.exists() {
        return Ok(None);
    }
    let store = shell.open_path(path, Missing::Refuse)?;
    let address = shell.address(at.cloned());
    let (branch, cut) = shell.resolve(&*store, &address)?;
    Ok(Some((store, branch, cut)))
}

fn failed(what: String) -> Failure {
    Failure::Failed(what)
}

fn on_branch(
    subject: &Subject,
    loaded: &Loaded,
    (store, branch, cut): (&Arc<Store>, &Branch, Head),
    args: &Args,
) -> Result<Tried, Failure> {
    let log: &dyn Log = &**store;
    let fold = |cut: Head| {
        let state = Snapshots::beside(store.path()).fold_branch(log, branch.id, cut);
        state.map_err(EngineError::from)
    };
    let at = |cut: Head| cut.last().map_or("none".to_owned(), |last| last.to_string());
    if loaded.metadata().trigger.on.is_none() {
        let mut trial = Trial::on(fold(cut)?, log, branch.id);
        trial.load(loaded, Time::default()).map_err(failed)?;
        let at = format!("{}@{}", branch.name, at(cut));
        return finish(trial, subject, loaded, at, args);
    }
    let Some(event) = last_heard(log, branch, cut, loaded)? else {
        let on = loaded.metadata().trigger.on.as_ref().map_or("*", KindPattern::as_str);
        let at = format!(
            "{}@{}, where no event wakes it: it hears `{on}`; `starling append KIND PAYLOAD` says one, or \
             give it one in its test",
            branch.name,
            at(cut)
        );
        return finish(Trial::new(), subject, loaded, at, args);
    };
    let before = Head::of_count(event.offset().get());
    let mut trial = Trial::on(fold(before)?, log, branch.id);
    trial.hear(loaded, &event).map_err(failed)?;
    let at = format!("{}@{} {}", branch.name, event.offset(), event.kind());
    finish(trial, subject, loaded, at, args)
}

/// The last event up to a cut that wakes a behavior.
fn last_heard(
    log: &dyn Log,
    branch: &Branch,
    cut: Head,
    loaded: &Loaded,
) -> Result<Option<Event>, Failure> {
    let trigger = &loaded.metadata().trigger;
    let from = Offset::new(cut.count().saturating_sub(LOOK_BACK));
    let mut last = None;
    for event in log::read(log, branch.id, from..cut.next())? {
        let event = event?;
        if trigger.hears(&event) {
            last = Some(event);
        }
    }
    Ok(last)
}

/// A flock that has not run yet: the world is that of its start events.
fn on_start(subject: &Subject, loaded: &Loaded, args: &Args) -> Result<Tried, Failure> {
    let mut trial = Trial::new();
    begin(&mut trial, subject, loaded).map_err(failed)?;
    finish(trial, subject, loaded, "the start of the flock, which has not run yet".into(), args)
}

fn begin(trial: &mut Trial<'_>, subject: &Subject, loaded: &Loaded) -> Result<(), String> {
    let flock = &subject.flock;
    super::check_test::begin(trial, flock.payload(), flock.start)?;
    trial.load(loaded, flock.start)?;
    for (nth, event) in flock.events.iter().enumerate() {
        trial.say(super::check_test::given(event.clone(), nth, flock.start))?;
    }
    Ok(())
}

fn finish(
    mut trial: Trial<'_>,
    subject: &Subject,
    loaded: &Loaded,
    at: String,
    args: &Args,
) -> Result<Tried, Failure> {
    let mut fired = trial.run(FIRINGS_MAX).map_err(failed)?;
    if args.run {
        while let Some(asked) = trial.open().into_iter().find(|asked| {
            asked.effect.starts_with("exec:") && trial.asks(&asked.behavior, &asked.effect)
        }) {
            let ending = subject.run_program(&asked)?;
            trial.answer(&asked.id, &ending).map_err(failed)?;
            fired += trial.run(FIRINGS_MAX).map_err(failed)?;
        }
    }
    let name = loaded.metadata().name.clone();
    let asks = loaded.behavior().asks();
    // What was asked and answered here is no news.
    let answered = |said: &Value| args.run && asks.is_some_and(|effect| said["request"] == effect);
    let mut proposals: Vec<Value> = trial.events.iter().filter_map(proposal).collect();
    proposals.retain(|said| !answered(said));
    Ok(Tried {
        at,
        fired,
        more: trial.is_due(),
        proposals,
        failed: trial.events.iter().filter_map(failure).collect(),
        printed: trial.printed,
        behavior: name,
    })
}

fn tell(tried: &Tried, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let Tried { behavior, at, fired, more, proposals, failed, printed } = tried;
    if shell.json() {
        return shell.line(json!({
            "behavior": behavior, "at": at, "fired": fired, "more": more,
            "proposals": proposals, "failed": failed, "printed": printed,
        }));
    }
    let times = match fired {
        0 => "not at all",
        1 => "once",
        _ => &format!("{fired} times"),
    };
    shell.line(format_args!("{behavior} fires {times} at {at}"))?;
    for line in printed {
        shell.line(format_args!("  print: {line}"))?;
    }
    for line in proposals.iter().flat_map(lines) {
        shell.line(format_args!("  would {line}"))?;
    }
    for what in failed {
        shell.line(format_args!("  would fail: {what}"))?;
    }
    if *more {
        shell.line(format_args!("  … more is due after {FIRINGS_MAX} firings"))?;
    }
    Ok(())
}
