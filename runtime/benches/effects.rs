//! What an effect costs: effects a second through an executor that does nothing, the same process
//! spawned through an effect and from a plain tokio program, and how long a store with ten thousand
//! effects that were out takes to be opened and told.
//!
//! `cargo bench -p starling-runtime --bench effects`; rows are chosen by words of their names.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use behaviors::{Behavior, Loaded, RustBehavior};
use effect::{Answer, Blame, Call, Class, EffectError, Executor, Limits, Pending, Seen};
use log::{BranchName, Change, Draft, EventId, Hash, Log, LogId, MemoryLog, RedbLog, Time};
use runtime::{Driver, Engine, Executors, Library, Start, Step, start_branch};
use serde_json::{Map, Value, json};

/// Does nothing, or starts `true`.
#[derive(Debug)]
struct Bench {
    spawns: bool,
    hangs: bool,
    concurrent: usize,
}

impl Executor for Bench {
    fn class(&self) -> Class {
        Class::ReadOnly
    }

    fn limits(&self) -> Limits {
        Limits { concurrent: self.concurrent, ..Limits::default() }
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        Ok(args.clone())
    }

    fn run<'a>(&'a self, _call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move {
            if self.hangs {
                return std::future::pending().await;
            }
            if self.spawns {
                spawn().await;
            }
            Answer::Succeeded { result: json!({}), fingerprint: None }
        })
    }

    fn look<'a>(&'a self, _call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        let error = EffectError::new("x.look", Blame::Tool, "nobody looks", "ask");
        Box::pin(async move { Seen::Unreachable(error) })
    }
}

async fn spawn() {
    let run = || std::process::Command::new("true").status();
    tokio::task::spawn_blocking(run).await.expect("it ends").expect("there is `true`");
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is no object") };
    map
}

/// A flock that asks for so many effects, each for one node.
fn flock(count: usize) -> (Start, Library) {
    let metadata = json!({"name": "ask", "match": "(wish:Wish)", "effects": ["tool:x"]});
    let behavior = RustBehavior::new(&metadata, |firing, out| {
        let n = firing.element("wish")?.integer("n");
        out.request("tool:x", json!({"n": n}), None);
        Ok(())
    });
    let behavior = behavior.expect("valid metadata");
    let source = metadata.to_string();
    let whole = Value::Object(behavior.metadata().to_json());
    let hash = Hash::of(source.as_bytes()).to_string();
    let payload = json!({"name": "ask", "path": "", "hash": hash, "metadata": whole});
    let mut library = Library::new();
    library.insert(Loaded::new(Arc::new(behavior), &source));
    let mut begin = Draft::new(EventId::ZERO, "wishes.made", "user:ann");
    begin.changes = (0..count)
        .map(|n| Change::Ensure {
            id: format!("wish:{n}").into(),
            type_name: "Wish".into(),
            properties: object(json!({"n": n})),
        })
        .collect();
    let start = Start {
        flock: object(json!({
            "name": "bench", "seed": 7, "schedule": "fifo", "settings": {},
            "grants": {"effects": ["*"]},
        })),
        seed: 7,
        behaviors: vec![("ask".into(), object(payload))],
        events: vec![begin],
        ..Start::default()
    };
    (start, library)
}

fn now() -> Time {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970");
    Time::from_ms(i64::try_from(since.as_millis()).expect("a time")).expect("a time")
}

/// Runs a flock until nothing is expected; gives the engine.
fn run(log: &Arc<dyn Log>, count: usize, world: Bench, until_out: Option<usize>) -> Duration {
    let (start, library) = flock(count);
    let known = log.branches().expect("it reads").into_iter().next();
    let branch = match known {
        Some(branch) => branch,
        None => start_branch(log, &BranchName::main(), &start, "bench").expect("it starts"),
    };
    let began = Instant::now();
    let mut engine = Engine::open(Arc::clone(log), branch.id, library, "bench").expect("it opens");
    let mut executors = Executors::new();
    executors.insert("tool:x", Arc::new(world) as Arc<dyn Executor>);
    let mut driver = Driver::new("main", executors).expect("threads");
    if let Some(out) = until_out {
        driver.allow_out(out);
    }
    loop {
        while matches!(engine.step().expect("it runs"), Step::Fired(_)) {}
        if driver.turn(&mut engine, now()).expect("it runs").landed > 0 {
            continue;
        }
        if until_out.is_some_and(|out| driver.out() >= out) || !driver.expects(&engine, now()) {
            break;
        }
        let bound = async { tokio::time::sleep(Duration::from_secs(5)).await };
        driver.wait(&mut engine, now(), bound);
    }
    engine.commit().expect("it is durable");
    began.elapsed()
}

fn store(folder: &Path) -> Arc<dyn Log> {
    Arc::new(RedbLog::create(&folder.join("store.log"), LogId::ZERO).expect("a store is made"))
}

fn row(name: &str, work: impl FnOnce() -> String) {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
        println!("{name:<58} {}", work());
    }
}

fn through(concurrent: usize, count: usize, durable: bool) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let log: Arc<dyn Log> =
        if durable { store(folder.path()) } else { Arc::new(MemoryLog::new(LogId::ZERO)) };
    let world = Bench { spawns: false, hangs: false, concurrent };
    let took = run(&log, count, world, None);
    let each = took / u32::try_from(count).expect("few");
    format!("{:>8.0} effects/s, {each:?} each", count as f64 / took.as_secs_f64())
}

/// The same process started by an effect and by a plain program, one after the other.
fn spawning(count: usize) -> String {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new(LogId::ZERO));
    let world = Bench { spawns: true, hangs: false, concurrent: 1 };
    let effects = run(&log, count, world, None);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(2).enable_all().build().expect("threads");
    let began = Instant::now();
    runtime.block_on(async {
        for _ in 0..count {
            tokio::spawn(spawn()).await.expect("it ends");
        }
    });
    let plain = began.elapsed();
    let each = |took: Duration| took.as_secs_f64() * 1e6 / count as f64;
    let (with, without) = (each(effects), each(plain));
    format!("{with:.0} µs with, {without:.0} µs without: {:.0} µs more", with - without)
}

/// Ten thousand attempts that were out when the process ended: until each has its outcome.
fn recovery(count: usize) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let log = store(folder.path());
    run(&log, count, Bench { spawns: false, hangs: true, concurrent: count }, Some(count));
    log.close().expect("it closes");
    let log = RedbLog::open(&folder.path().join("store.log")).expect("it opens");
    let log: Arc<dyn Log> = Arc::new(log);
    let world = Bench { spawns: false, hangs: false, concurrent: 256 };
    let took = run(&log, count, world, None);
    format!("{took:?} until every one of {count} has its outcome")
}

fn main() {
    row("a read that does nothing, 1 at a time, in memory", || through(1, 5_000, false));
    row("a read that does nothing, 64 at a time, in memory", || through(64, 20_000, false));
    row("a read that does nothing, 1 at a time, durable", || through(1, 500, true));
    row("a read that does nothing, 64 at a time, durable", || through(64, 10_000, true));
    row("`true` through an effect and from plain tokio", || spawning(500));
    // Four times as many take four times as long, or something looks at all of them over and over.
    row("10,000 open effects, opened again", || recovery(10_000));
    row("40,000 open effects, opened again", || recovery(40_000));
}
