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

use log::{BranchName, Head, Log, Missing, Offset, Store};
use projection::Pattern;
use serde_json::json;

use self::effects::Effects;
use self::go::Going;
use self::live::{Live, tell_synced};
use self::tell::{tell, tell_fed, tell_open};
use super::failure::{Failure, scripts_elsewhere};
use super::shell::Shell;
use crate::clock::{Stopwatch, now};
use crate::effect::Serving;
use crate::engine::{Engine, EngineError, Reached};
use crate::flock::workspace::Fork;
use crate::flock::{self, Flock, FlockError, Looks, Overrides};
use crate::fork;
use crate::import;
use crate::snapshot::Snapshots;

const EXAMPLES: &str = "\
Examples:
  starling run examples/bridge                   to its end
  starling run examples/bridge --set ants=1      with another setting
  starling run examples/bridge --fresh --seed 7  from the start again, the old store is kept
  starling run examples/bridge --follow          goes on at rest: save a file, append an event
  starling run --branch idea --store examples/bridge   a fork, with the behaviors in its log
  starling run examples/life --until '(w:World) WHERE w.generation = 69'";

/// Runs a flock: a folder with a flock.toml and behaviors
#[derive(Debug, Default, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct Args {
    /// The folder of the flock; without one, that of the store
    #[arg(value_name = "FLOCK")]
    pub(super) flock: Option<PathBuf>,
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
    /// Go on at rest: with events that are appended, files that are saved, and whatever comes; a
    /// fork follows the files of the flock from now on
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
    if !args.trust {
        scripts_elsewhere()?;
    }
    let place = Place::of(&args, shell);
    let flock = place.flock(&args)?;
    if flock.is_none() || place.store.exists() && !args.fresh {
        let store = shell.open_path(place.store.clone(), Missing::Refuse)?;
        return go_on(&store, flock, &place, &args, shell);
    }
    confirm(flock.as_ref(), &args, shell)?;
    if args.fresh {
        set_aside(&place.store, shell)?;
    }
    let store = shell.open_path(place.store.clone(), Missing::Create)?;
    start_on(&store, flock, &place, &args, shell)
}

/// Runs a branch of a store that is open, as `starling run --branch NAME` would.
pub(super) fn run_fork(
    store: &Arc<Store>,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    if !args.trust {
        scripts_elsewhere()?;
    }
    let place = Place::of(args, shell);
    let flock = place.flock(args)?;
    go_on(store, flock, &place, args, shell)
}

fn confirm(flock: Option<&Flock>, args: &Args, shell: &mut Shell<'_>) -> Result<(), Failure> {
    flock.map_or(Ok(()), |flock| trust::confirm(flock, args.trust, shell))
}

/// Runs on a store that is there. What only hears what is recorded acts nowhere, so nobody is asked
/// what it may do.
fn go_on(
    store: &Arc<Store>,
    mut flock: Option<Flock>,
    place: &Place,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let acts = args.live || args.follow || !hears_only(store, &shell.branch_name())?;
    match &mut flock {
        Some(flock) if !acts => flock.acts = false,
        flock => confirm(flock.as_ref(), args, shell)?,
    }
    start_on(store, flock, place, args, shell)
}

/// Whether a branch is a fork that follows no folder and is only told what is recorded.
fn hears_only(store: &Store, name: &BranchName) -> Result<bool, Failure> {
    let known = store.branches()?.into_iter().find(|branch| branch.name == *name);
    let Some((branch, cut)) = known.and_then(|branch| Some((branch.id, branch.fork?))) else {
        return Ok(false);
    };
    let serving = Fork::read(&cut.serving).serving.unwrap_or(Serving::Recorded);
    let pinned = cut.cut.count() > 0 && !fork::follows(store, branch, name)?;
    Ok(pinned && serving == Serving::Recorded)
}

/// Where a run is at home.
struct Place {
    folder: PathBuf,
    store: PathBuf,
}

impl Place {
    fn of(args: &Args, shell: &Shell<'_>) -> Place {
        if let Some(folder) = &args.flock {
            return Place { folder: folder.clone(), store: shell.store_of(folder) };
        }
        let store = shell.store_path();
        let inside = store.parent().filter(|folder| folder.ends_with(".starling"));
        let folder = inside.and_then(Path::parent).unwrap_or(Path::new("."));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Place { folder: folder.to_owned(), store }
    }

    /// The flock there; none where nobody said that there is one and there is none.
    fn flock(&self, args: &Args) -> Result<Option<Flock>, Failure> {
        if args.flock.is_none() && !self.folder.join("flock.toml").is_file() {
            return Ok(None);
        }
        let mut flock = Flock::read(&self.folder, &args.overrides())?;
        flock.unset.clone_from(&args.unset);
        if args.no_sandbox {
            flock.without_sandbox();
        }
        Ok(Some(flock))
    }
}

impl Args {
    /// The arguments with which a fork runs where it was made.
    pub(super) fn of_fork(trust: bool, no_sandbox: bool) -> Args {
        Args { trust, no_sandbox, ..Args::default() }
    }

    fn overrides(&self) -> Overrides {
        let (settings, until) = (self.set.clone(), self.until.clone());
        Overrides { seed: self.seed, settings, until }
    }
}

fn start_on(
    store: &Arc<Store>,
    flock: Option<Flock>,
    place: &Place,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let mut flock = match flock {
        Some(flock) => flock,
        None => recorded_flock(store, place, shell)?,
    };
    let Opened { mut engine, began, pinned } = open(store, &mut flock, args, shell)?;
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
    let live = args.live.then_some(Serving::RecordedThenLive);
    let mut effects = Effects::new(&flock, store, &branch, live)?;
    let people = args.wait || shell.shows_progress() && std::io::stdin().is_terminal();
    engine.note_undeclared();
    let looks = if args.poll { Looks::Always } else { Looks::WhenTold };
    // A branch keeps the seed it began with, whatever the file says.
    let overrides = Overrides { seed: Some(flock.seed), ..args.overrides() };
    let mut live = match pinned {
        true => Live::pinned(),
        false => Live::start(&place.folder, &overrides, &flock, looks, args.follow, shell),
    };
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
    tell_fed(effects.fed(), &branch, shell);
    tell_open(&engine, &effects, &flock, &branch, shell)?;
    match end {
        End::Interrupted => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

/// A branch whose flock has no folder runs by what its log says.
fn recorded_flock(store: &Store, place: &Place, shell: &Shell<'_>) -> Result<Flock, Failure> {
    let branch = shell.branch(store, &shell.branch_name())?;
    let first = log::read(store, branch.id, Offset::ZERO..Offset::new(1))?.next().transpose()?;
    let started = first.filter(|first| first.is_kind("flock.started"));
    let started = started.ok_or_else(|| {
        Failure::NotFound(format!(
            "{} is no flock, and {} was not begun by one: name the folder of a flock",
            place.folder.display(),
            branch.name
        ))
    })?;
    Ok(Flock::recorded(&place.folder, &started.payload().to_json()))
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

/// A branch that is ready to run.
struct Opened {
    engine: Engine,
    /// Whether it was just started.
    began: bool,
    /// Whether it keeps the behaviors in its log, whatever stands in a folder.
    pinned: bool,
}

/// Starts the branch or follows the flock on one that has begun; a fork follows none until it is
/// told to.
fn open(
    store: &Arc<Store>,
    flock: &mut Flock,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<Opened, Failure> {
    let log: Arc<dyn Log> = Arc::clone(store) as Arc<dyn Log>;
    let name = shell.branch_name();
    let known = log.branches()?.into_iter().find(|branch| branch.name == name);
    let begun = known.filter(|branch| branch.tip.head > Head::EMPTY);
    let (branch, began) = match begun {
        Some(branch) => (branch, false),
        None => {
            shell.check_no_tag(&*log, &name)?;
            (flock::start(&log, &name, flock, &shell.me())?, true)
        }
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
    if began {
        return Ok(Opened { engine, began, pinned: false });
    }
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
    let fork = branch.fork.is_some();
    let follows = !fork || fork::follows(&**store, branch.id, &name)?;
    let pinned = !flock.acts || !follows && !args.follow;
    if pinned {
        pin(&mut engine, flock, args, shell)?;
        return Ok(Opened { engine, began, pinned });
    }
    if !follows {
        engine.outside(fork::follows_draft(&name, now()))?;
        let folder = flock.folder.display();
        shell.say(format_args!("{name} follows the files of {folder} from now on"));
    }
    let synced = flock::sync(&mut engine, flock, now())?;
    tell_synced(&synced, shell);
    Ok(Opened { engine, began, pinned })
}

/// A pinned branch has the behaviors and settings in its log; of its flock's folder it uses what
/// does effects, and no program that is another than the log knows.
fn pin(
    engine: &mut Engine,
    flock: &mut Flock,
    args: &Args,
    shell: &mut Shell<'_>,
) -> Result<(), Failure> {
    let name = shell.branch_name();
    if !args.unset.is_empty() || args.follow {
        return Err(Failure::Usage(format!(
            "{name} is pinned to what its log says and follows no flock.toml; --set NAME=VALUE sets a \
             setting there"
        )));
    }
    flock.sources.retain(|source| {
        let mut declared = source.declared.iter().flatten();
        let hash = source.hash.to_string();
        declared.all(|loaded| engine.is_loaded_from(&loaded.metadata().name, &hash))
    });
    if let Some(draft) = engine.setting(&flock.set, engine.recorded_now()) {
        engine.outside(draft)?;
    }
    if flock.folder.join("flock.toml").is_file() {
        shell.say(format_args!(
            "{name} is pinned to the behaviors in its log; --follow lets it follow those in {}",
            flock.folder.display()
        ));
    }
    Ok(())
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
