//! `run`: a flock runs until nothing is due and nothing is expected.

mod effects;
mod go;
mod live;
mod stop;
mod tell;
mod trust;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use log::{Head, Log, Missing, Store};
use projection::Pattern;
use serde_json::json;

use self::effects::Effects;
use self::go::Going;
use self::live::{Live, tell_synced};
use self::tell::{tell, tell_open};
use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use crate::clock::{Stopwatch, now};
use crate::engine::{Engine, EngineError, Reached};
use crate::flock::{self, Flock, FlockError, Looks, Overrides};
use crate::import;
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling run examples/bridge                   to its end
  starling run examples/bridge --set ants=1      with another setting
  starling run examples/bridge --fresh --seed 7  from the start again, the old store is kept
  starling run examples/bridge --follow          goes on at rest: save a file, append an event
  starling run examples/life --until '(w:World) WHERE w.generation = 69'";

/// Runs a flock: a folder with a flock.toml and behaviors
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The folder of the flock; this one, if none is named
    #[arg(value_name = "FLOCK", default_value = ".")]
    flock: PathBuf,
    /// The seed of a new branch
    #[arg(long, value_name = "N")]
    seed: Option<i64>,
    /// Another value for a setting of flock.toml; the branch keeps it
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// The setting is as in flock.toml again
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
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
    /// Go on at rest: with events that are appended, files that are saved, and whatever comes
    #[arg(long)]
    follow: bool,
    /// Look at the files again and again, where the system does not tell of changes
    #[arg(long)]
    poll: bool,
    /// Ask the world, though the branch is a fork or answers are recorded
    #[arg(long)]
    live: bool,
    /// Confirm the programs and grants of the flock, which are listed on its first run, and run its
    /// scripts in this process: quicker, and a script that tears its process apart tears this one
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
    if !args.trust {
        scripts_elsewhere()?;
    }
    let mut flock = Flock::read(&args.flock, &overrides)?;
    flock.unset.clone_from(&args.unset);
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
    engine.note_undeclared();
    let looks = if args.poll { Looks::Always } else { Looks::WhenTold };
    // A branch keeps the seed it began with, whatever the file says.
    let overrides = Overrides { seed: Some(flock.seed), ..overrides };
    let mut live = Live::start(&args.flock, &overrides, &flock, looks, args.follow, shell);
    let mut going = Going {
        until: until.as_ref(),
        wall: flock.wall_seconds,
        watch,
        people,
        effects: &mut effects,
        live: &mut live,
    };
    let end = going.go(&mut engine, shell)?;
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
    let mut engine =
        Engine::open_with(Arc::clone(&log), branch.id, library, &shell.me(), snapshots)?;
    if engine.started().is_empty() && import::is_imported(&*log, branch.id)? {
        tell_synced(&flock::adopt(&mut engine, flock, now())?, shell);
        shell.say(format_args!("{name} was imported; the flock goes on from there"));
    }
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
