//! What a flock costs that is live: from a save until it is live while events flow, a thousand
//! behaviors at rest, and the size and time of a swap.
//!
//!     cargo bench -p starling-runtime --bench live            1,000 saves
//!     cargo bench -p starling-runtime --bench live -- short   100 saves

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use log::{BranchName, Derivation, Draft, Log, LogId, RedbLog, Time};
use runtime::{Engine, Flock, Follow, Looks, Overrides, Step, start, sync_live};

const TOML: &str = "name = \"live\"\n[settings]\n[[start]]\nkind = \"world.made\"\n";
/// How many events flow in a second; half of them are answers.
const FLOW_PER_S: u64 = 10_000;

/// A behavior that answers, at some version.
fn script(name: &str, kind: &str, version: usize) -> String {
    format!(
        "behavior(name = '{name}', description = 'Answers.', on = '{kind}',\n    \
         emits = ['{kind}.answered'], writes = [])\ndef {name}():\n    \
         emit('{kind}.answered', {{'version': {version}}})\n"
    )
}

fn flock(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("flock.toml"), TOML).expect("written");
    fs::create_dir(folder.path().join("behaviors")).expect("made");
    for n in 0..count {
        let text = script(&format!("b{n}"), &format!("k{n}"), 0);
        fs::write(folder.path().join(format!("behaviors/b{n}.star")), text).expect("written");
    }
    folder
}

/// An engine over a store on disk, and what follows its files.
fn open(folder: &Path) -> (Engine, Follow) {
    let overrides = Overrides::default();
    let flock = Flock::read(folder, &overrides).expect("a flock");
    let store = RedbLog::create(&folder.join("store.redb"), LogId::ZERO).expect("a store");
    let log: Arc<dyn Log> = Arc::new(store);
    let branch = start(&log, &BranchName::main(), &flock, "bench").expect("it starts");
    let library = flock.library(&log);
    let mut engine = Engine::open(log, branch.id, library, "bench").expect("it opens");
    engine.run(|_| true).expect("it runs");
    let follow = Follow::start(folder, &overrides, &flock, Looks::WhenTold).expect("it follows");
    (engine, follow)
}

/// Saves as editors do: another file takes the place of the old one.
fn save(folder: &Path, name: &str, text: &str) {
    let aside = folder.join(format!("behaviors/.{name}.swp"));
    fs::write(&aside, text).expect("written");
    fs::rename(aside, folder.join("behaviors").join(name)).expect("renamed");
}

fn percentile(sorted: &[Duration], part: f64) -> Duration {
    let place = (sorted.len() as f64 * part) as usize;
    sorted[place.min(sorted.len() - 1)]
}

fn told(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| percentile(&all, part));
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    format!("p50 {:>6.1} ms, p99 {:>6.1} ms, most {:>6.1} ms", ms(p50), ms(p99), ms(most))
}

/// So many saves of one file, while events flow: until the new version is live, and how long the
/// engine was held up by it.
fn saves(count: usize, behaviors: usize) {
    let folder = flock(behaviors);
    let (mut engine, mut follow) = open(folder.path());
    let (live, wait_live) = channel();
    let path = folder.path().to_owned();
    let saver = std::thread::spawn(move || {
        let mut took = Vec::with_capacity(count);
        for version in 1..=count {
            // Not in step with anything.
            std::thread::sleep(Duration::from_millis(5 + (version as u64 * 7919) % 40));
            let began = Instant::now();
            save(&path, "b0.star", &script("b0", "k0", version));
            let at: Instant = wait_live.recv().expect("it becomes live");
            took.push(at.duration_since(began));
        }
        took
    });
    let before = engine.head().count();
    let began = Instant::now();
    let swaps = flow(&mut engine, &mut follow, &live, count);
    let flowed = (engine.head().count() - before) as f64 / began.elapsed().as_secs_f64();
    let took = saver.join().expect("it saved");
    let name = format!("{count} saves, {behaviors} loaded, {flowed:.0} events/s");
    println!("{name:<46} {}", told(took));
    println!("{:<46} {}", "  of it, the engine is held up", told(swaps));
}

/// Lets events flow until so many versions went live; gives how long each swap took.
fn flow(
    engine: &mut Engine,
    follow: &mut Follow,
    live: &Sender<Instant>,
    count: usize,
) -> Vec<Duration> {
    let (mut swaps, mut said) = (Vec::new(), 0u64);
    let began = Instant::now();
    while swaps.len() < count {
        if follow.has_news() {
            let swap = Instant::now();
            let flock = follow.take().expect("news").expect("a flock");
            let synced = sync_live(engine, &flock, Time::default()).expect("it lands");
            for _ in synced.replaced {
                let now = Instant::now();
                swaps.push(now.duration_since(swap));
                // Who saved may be gone at the end.
                let _ = live.send(now);
            }
        }
        let due = began.elapsed().as_micros() as u64 * (FLOW_PER_S / 2) / 1_000_000;
        while said < due {
            said += 1;
            let id = Derivation::new().text("said").integer(said).finish();
            engine.outside(Draft::new(id, "k0", "user:ann")).expect("it lands");
        }
        while matches!(engine.step().expect("it runs"), Step::Fired(_)) {}
        std::thread::sleep(Duration::from_micros(500));
    }
    engine.commit().expect("it is durable");
    swaps
}

/// The size of one swap in the log, and of its source.
fn size() {
    let folder = flock(1);
    let (mut engine, mut follow) = open(folder.path());
    let text = script("b0", "k0", 1);
    save(folder.path(), "b0.star", &text);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(follow.changed());
    let before = engine.head();
    let flock = follow.take().expect("news").expect("a flock");
    sync_live(&mut engine, &flock, Time::default()).expect("it lands");
    let range = before.next()..engine.head().next();
    let events = log::read(&**engine.log(), engine.branch(), range).expect("it reads");
    let sizes: Vec<usize> = events.map(|event| event.expect("whole").record().len()).collect();
    println!(
        "{:<46} {} event, {} bytes, and the source once: {} bytes",
        "a swap in the log",
        sizes.len(),
        sizes.iter().sum::<usize>(),
        text.len()
    );
}

/// User and system time of a process in clock ticks, of which a second has a hundred.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let field = |nth: usize| fields[nth].parse::<u64>().expect("a number");
    field(11) + field(12)
}

/// A run at rest with so many behaviors: events and processor time in five seconds.
fn rest(count: usize) {
    let folder = flock(count);
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
    command.arg("run").arg(folder.path()).arg("--follow").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let at_rest = lines.map_while(Result::ok).find(|line| line.contains("at rest")).expect("rests");
    let opened = began.elapsed();
    // What is at rest from now on has looked at its files once.
    std::thread::sleep(Duration::from_secs(1));
    let before = ticks(child.id());
    std::thread::sleep(Duration::from_secs(5));
    let spent = ticks(child.id()) - before;
    child.kill().expect("it ends");
    child.wait().expect("it ended");
    let cpu = spent as f64 / 5.0;
    let name = format!("{count} behaviors at rest");
    let at = at_rest.split(':').next().unwrap_or_default();
    println!("{name:<46} {cpu:.1} % of a processor, still {at} after 6 s; begun in {opened:.1?}");
}

fn main() {
    let short = std::env::args().any(|word| word == "short");
    let count = if short { 100 } else { 1000 };
    saves(count, 1);
    saves(count / 10, 1000);
    size();
    rest(1000);
}
