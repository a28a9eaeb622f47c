//! `run`: a flock runs until nothing is due and nothing is expected.

mod effects;
mod stop;
mod trust;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use log::{Branch, Head, Log, Missing, Store};
use projection::Pattern;
use serde_json::{Value, json};

use self::effects::Effects;
use self::stop::Stop;
use super::answer::command_line;
use super::failure::Failure;
use super::shell::Shell;
use crate::clock::{Stopwatch, now};
use crate::effect::OpenEffect;
use crate::engine::{Engine, EngineError, Reached, Step};
use crate::flock::{self, Flock, FlockError, Overrides, Report, Synced};
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling run examples/bridge                   to its end
  starling run examples/bridge --set ants=1      with another setting
  starling run examples/bridge --fresh --seed 7  from the start again, the old store is kept
  starling run examples/life --until '(w:World) WHERE w.generation = 69'";

/// Runs a flock: a folder with a flock.toml and behaviors
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The folder of the flock
    #[arg(value_name = "FLOCK")]
    flock: PathBuf,
    /// The seed of a new branch
    #[arg(long, value_name = "N")]
    seed: Option<i64>,
    /// Another value for a setting of flock.toml
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// End as soon as this pattern has a match
    #[arg(long, value_name = "PATTERN")]
    until: Option<String>,
    /// Begin a new store; the old one is set aside
    #[arg(long)]
    fresh: bool,
    /// Evaluate rounds on so many threads; the log is the same for any number
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Wait for people as well: approvals, answers and settlements
    #[arg(long)]
    wait: bool,
    /// Ask the world, though the branch is a fork or answers are recorded
    #[arg(long)]
    live: bool,
    /// Confirm the programs and grants of the flock, which are listed on its first run
    #[arg(long)]
    trust: bool,
    /// Run the programs of the flock without a sandbox
    #[arg(long)]
    no_sandbox: bool,
    /// Show what behaviors print
    #[arg(long, short)]
    verbose: bool,
}

/// Why a run ended.
enum End {
    Rest,
    Until,
    Bound(Reached),
    Wall(u64),
    Interrupted,
}

/// How often the line of progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// How many open effects are told at the end.
const OPEN_TOLD: usize = 8;

pub(super) fn run(args: Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    let overrides =
        Overrides { seed: args.seed, settings: args.set.clone(), until: args.until.clone() };
    let mut flock = Flock::read(&args.flock, &overrides)?;
    if args.no_sandbox {
        flock.without_sandbox();
    }
    trust::confirm(&flock, args.trust, shell)?;
    let path = shell.store_of(&args.flock);
    if args.fresh {
        set_aside(&path, shell)?;
    }
    let store = shell.open_path(path, Missing::Create)?;
    let watch = Stopwatch::start();
    let (mut engine, began) = open(&store, &mut flock, &args, shell)?;
    if let Some(threads) = args.threads.or_else(all_threads) {
        engine.set_threads(threads.max(1));
    }
    if args.verbose {
        engine.keep_printed();
    }
    let until = flock.until.as_deref().map(Pattern::parse).transpose();
    let until = until.map_err(|error| Failure::Usage(error.to_string()))?;
    let before = (engine.head(), engine.taken());
    let branch = store.branch(engine.branch())?;
    let live = args.live.then_some(crate::effect::Serving::RecordedThenLive);
    let mut effects = Effects::new(&flock, &store, &branch, live)?;
    let people = args.wait || shell.shows_progress() && std::io::stdin().is_terminal();
    let clock = Clock { watch, people };
    let end = go(&mut engine, &flock, until.as_ref(), &clock, &mut effects, shell)?;
    let branch = store.branch(engine.branch())?;
    tell(&engine, &flock, &branch, &end, (before, began), watch, shell)?;
    tell_open(&engine, &effects, &flock, &branch, shell)?;
    match end {
        End::Interrupted => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

fn all_threads() -> Option<usize> {
    std::thread::available_parallelism().ok().map(std::num::NonZero::get)
}

/// Renames a store, so that nothing is lost and a new one can begin.
fn set_aside(path: &Path, shell: &mut Shell<'_>) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let aside = (1..).map(|n| path.with_extension(format!("{n}.redb")));
    let aside = aside.into_iter().find(|aside| !aside.exists()).expect("a number is free");
    let failed =
        |error| Failure::Failed(format!("{} cannot be set aside: {error}", path.display()));
    let anchor = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".anchor");
        PathBuf::from(name)
    };
    if anchor(path).exists() {
        std::fs::rename(anchor(path), anchor(&aside)).map_err(failed)?;
    }
    std::fs::rename(path, &aside).map_err(failed)?;
    shell.say(format_args!("the old store is {}", aside.display()));
    Ok(())
}

/// Starts the branch or follows the flock on one that has begun. Tells whether it was started.
fn open(
    store: &Arc<Store>,
    flock: &mut Flock,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<(Engine, bool), Failure> {
    let log: Arc<dyn Log> = Arc::clone(store) as Arc<dyn Log>;
    let name = shell.branch_name();
    let known = log.branches()?.into_iter().find(|branch| branch.name == name);
    let begun = known.filter(|branch| branch.tip.head > Head::EMPTY);
    let (branch, began) = match begun {
        Some(branch) => (branch, false),
        None => (flock::start(&log, &name, flock, &shell.me())?, true),
    };
    let library = flock.library(&log);
    let snapshots = Snapshots::beside(store.path());
    let mut engine = Engine::open_with(log, branch.id, library, &shell.me(), snapshots)?;
    if engine.started().is_empty() {
        return Err(Failure::Failed(format!(
            "{name} was not begun by a flock: its first event is no flock.started; run on another \
             branch with --branch NAME"
        )));
    }
    if !began {
        if args.seed.is_some_and(|seed| engine.started()["seed"] != json!(seed)) {
            return Err(Failure::Usage(format!(
                "{name} began with the seed {}; another seed is another run: --fresh, or --branch NAME",
                engine.started()["seed"]
            )));
        }
        if args.seed.is_none() {
            // A branch keeps the seed it began with, which may not be the one in the file.
            flock.seed = engine.started()["seed"].as_i64().unwrap_or(flock.seed);
        }
        let synced = flock::sync(&mut engine, flock, now())?;
        tell_synced(&synced, shell);
    }
    Ok((engine, began))
}

fn tell_synced(synced: &Synced, shell: &mut Shell<'_>) {
    let Synced { added, replaced, removed, rejected, settings } = synced;
    added.iter().for_each(|name| shell.say(format_args!("+ {name} is loaded")));
    replaced.iter().for_each(|name| shell.say(format_args!("~ {name} is replaced")));
    removed.iter().for_each(|name| shell.say(format_args!("- {name} is removed")));
    for (path, error) in rejected {
        shell.say(format_args!(
            "! {path} is not loaded; its last good version, if there is one, stays:\n{error}"
        ));
    }
    settings
        .iter()
        .for_each(|field| shell.say(format_args!("~ {field} has changed in flock.toml")));
}

/// How long the run takes, and whether it waits for people.
struct Clock {
    watch: Stopwatch,
    people: bool,
}

/// Runs until the end, and makes everything durable.
fn go(
    engine: &mut Engine,
    flock: &Flock,
    until: Option<&Pattern>,
    clock: &Clock,
    effects: &mut Effects<'_>,
    shell: &mut Shell<'_>,
) -> Result<End, Failure> {
    let mut stop = Stop::on_signals();
    let shows = shell.shows_progress();
    let (mut shown, mut steps) = (Duration::ZERO, 0u64);
    let wall = flock.wall_seconds.map(Duration::from_secs);
    let end = loop {
        let between = !engine.in_round();
        if between && until.is_some_and(|pattern| engine.holds(pattern)) {
            break End::Until;
        }
        if between && stop.is_wanted() {
            break End::Interrupted;
        }
        if between && (effects.has_news() || steps % 64 == 63) {
            effects.turn(engine)?;
        }
        let elapsed = clock.watch.elapsed();
        match engine.step()? {
            Step::Fired(_) => {}
            Step::Rest => {
                let left = wall.map(|wall| wall.saturating_sub(elapsed));
                let over = left.is_some_and(|left| left.is_zero());
                if effects.turn(engine)? > 0 {
                    continue;
                }
                if !over {
                    engine.commit()?;
                    if effects.wait(engine, clock.people, left, &mut stop)? {
                        continue;
                    }
                    break End::Rest;
                }
                break End::Wall(flock.wall_seconds.unwrap_or(0));
            }
            Step::Stopped(reached) => break End::Bound(reached),
        }
        for line in engine.take_printed() {
            shell.say(line);
        }
        steps += 1;
        if steps.is_multiple_of(64) {
            if let Some(wall) = flock.wall_seconds.filter(|wall| elapsed.as_secs() >= *wall) {
                break End::Wall(wall);
            }
            if shows && elapsed >= shown + PROGRESS_EVERY {
                shown = elapsed;
                shell.progress(progress(engine, elapsed));
            }
        }
    };
    effects.stop(engine)?;
    engine.commit()?;
    if shows {
        shell.progress("");
    }
    Ok(end)
}

/// Says which effects are open, and with which commands people answer those that wait for them.
fn tell_open(
    engine: &Engine,
    effects: &Effects<'_>,
    flock: &Flock,
    branch: &Branch,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let open = engine.open_effects();
    if open.is_empty() || shell.json() {
        return Ok(());
    }
    shell.line(format_args!("{} effects are open:", open.len()))?;
    for open in open.iter().take(OPEN_TOLD) {
        let why = effects.waits(&open.action).unwrap_or(open.waits_for.as_str());
        shell
            .line(format_args!("  {} asked by {} waits for: {why}", open.effect, open.behavior))?;
        for command in &open.commands {
            let line = command_line(command, Some(&flock.folder), &branch.name);
            shell.line(format_args!("    {line}"))?;
        }
    }
    if open.len() > OPEN_TOLD {
        let store = flock.folder.display();
        shell.say(format_args!("all of them: starling effects --store {store}"));
    }
    Ok(())
}

fn progress(engine: &Engine, elapsed: Duration) -> String {
    let (events, seconds) = (engine.head().count(), elapsed.as_secs_f64());
    format!("{events} events, {} firings, {seconds:.1} s", engine.taken())
}

fn tell(
    engine: &Engine,
    flock: &Flock,
    branch: &Branch,
    end: &End,
    (before, began): ((Head, u64), bool),
    watch: Stopwatch,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let tables: Vec<(String, Vec<Vec<Value>>)> =
        flock.report.iter().map(|report| (report.title.clone(), rows(engine, report))).collect();
    let (events, firings) = (engine.head().count() - before.0.count(), engine.taken() - before.1);
    if shell.json() {
        let report: Vec<Value> =
            tables.iter().map(|(title, rows)| json!({"title": title, "rows": rows})).collect();
        return shell.line(json!({
            "flock": flock.name, "branch": branch.name.as_str(), "head": engine.head().count(),
            "link": branch.tip.link.to_string(), "events": events, "firings": firings,
            "nodes": engine.graph().node_count(), "edges": engine.graph().edge_count(),
            "ended": end_word(end), "waiting": engine.waiting(), "report": report,
            "open": open_json(engine),
        }));
    }
    let quiet = !began && events == 0 && firings == 0;
    shell.line(format!(
        "{}@{}: {} ({events} events and {firings} firings in {:.1} s; {} nodes, {} edges)",
        branch.name,
        engine.head(),
        end_sentence(end, quiet, engine.waiting()),
        watch.elapsed().as_secs_f64(),
        engine.graph().node_count(),
        engine.graph().edge_count(),
    ))?;
    for ((title, rows), report) in tables.iter().zip(&flock.report) {
        shell.line(title)?;
        for row in rows {
            let columns = report.columns.iter().map(|(_, property)| property).zip(row);
            let cells: Vec<String> =
                columns.map(|(name, value)| format!("{name} {value}")).collect();
            shell.line(format_args!("  {}", cells.join("  ")))?;
        }
    }
    tell_next(flock, quiet, shell);
    Ok(())
}

fn open_json(engine: &Engine) -> Vec<Value> {
    engine.open_effects().iter().map(OpenEffect::to_json).collect()
}

fn rows(engine: &Engine, report: &Report) -> Vec<Vec<Value>> {
    let variables = report.pattern.variables();
    let place = |name: &str| variables.iter().position(|v| v.name.as_deref() == Some(name));
    let value = |row: &projection::Row, (variable, property): &(String, String)| {
        let log::Bound::Element(id) = row.bound.get(place(variable)?)? else { return None };
        Some(engine.graph().element(id)?.property(property)?.to_json())
    };
    let all = engine.rows(&report.pattern).into_iter();
    let columns =
        |row| report.columns.iter().map(|c| value(&row, c).unwrap_or(Value::Null)).collect();
    all.map(columns).collect()
}

fn end_word(end: &End) -> &'static str {
    match end {
        End::Rest => "rest",
        End::Until => "until",
        End::Bound(_) => "bound",
        End::Wall(_) => "wall",
        End::Interrupted => "interrupted",
    }
}

fn end_sentence(end: &End, quiet: bool, waiting: usize) -> String {
    match end {
        End::Rest if quiet => "was at rest already, nothing is due".to_owned(),
        End::Rest if waiting > 0 => format!("at rest; {waiting} wait for later events"),
        End::Rest => "at rest, nothing is due".to_owned(),
        End::Until if quiet => "had come to its end already".to_owned(),
        End::Until => "came to its end".to_owned(),
        End::Bound(reached) => format!("stopped: {reached}"),
        End::Wall(seconds) => {
            format!("stopped: budget.wall = {seconds} s is over; run again to go on")
        }
        End::Interrupted => "interrupted; run again to go on".to_owned(),
    }
}

fn tell_next(flock: &Flock, quiet: bool, shell: &mut Shell<'_>) {
    let folder = flock.folder.display();
    if quiet {
        shell.say(format_args!(
            "it can go on with: an event (starling append KIND --store {folder}), a new behavior file \
             in {folder}/behaviors, or from the start again (starling run {folder} --fresh)"
        ));
        return;
    }
    shell.say("next:");
    shell.say(format_args!("  starling log -n 8 --store {folder}        what happened last"));
    shell.say(format_args!("  starling graph --store {folder}           the world it left"));
    shell.say(format_args!(
        "  starling replay --refire --store {folder} every firing again, byte for byte"
    ));
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Log(error) => error.into(),
            EngineError::Append(error) => error.into(),
            EngineError::Fold(crate::engine::FoldError::Log(error)) => error.into(),
            EngineError::Changed(what) => Failure::Usage(what),
            other => Failure::Failed(other.to_string()),
        }
    }
}

impl From<FlockError> for Failure {
    fn from(error: FlockError) -> Self {
        match error {
            FlockError::NoFlock { .. } => Failure::NotFound(error.to_string()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}
