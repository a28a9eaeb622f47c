//! Killing the host at the six points around an effect, with a ledger outside that remembers every
//! start: nothing starts twice unless its class allows it, and every call ends.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use behaviors::Stream;
use effect::{Answer, Blame, Call, Class, EffectError, Executor, Limits, Pending, Seen};
use log::{BranchName, Event, EventId, Log, LogId, RedbLog, read_all};
use runtime::{Driver, Engine, Executors, OpenEffect, Step, start_branch};
use serde_json::{Value, json};

use super::wishing;
use crate::support::long;

/// In the process that is killed: the folder, the class and the point.
const HOST: &str = "STARLING_TEST_EFFECT_HOST";
const TEST: &str = "effects::kills::kill_9_at_six_points_starts_nothing_twice";

/// Where the host dies. The ledger tells the points after the start apart from those before.
const POINTS: [&str; 6] =
    ["before_intent", "after_intent", "after_spawn", "mid_run", "after_exit", "before_outcome"];

/// Whether this process is being killed.
static DYING: AtomicBool = AtomicBool::new(false);

/// A provider: it writes each start to a ledger that no crash of the host can take back.
#[derive(Debug)]
struct Ledger {
    folder: PathBuf,
    class: Class,
    dies: String,
}

fn die() -> ! {
    // Once: a second child would hold what is open here until it is another program.
    if DYING.swap(true, Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
    let me = std::process::id().to_string();
    Command::new("kill").args(["-9", &me]).status().expect("there is kill");
    loop {
        std::thread::park();
    }
}

impl Ledger {
    fn lines(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn write(&self, line: &str) {
        let file = OpenOptions::new().create(true).append(true).open(self.folder.join("ledger"));
        let mut file = file.expect("the ledger opens");
        // In one piece: appending to a file is atomic.
        file.write_all(format!("{line}\n").as_bytes()).expect("the ledger takes it");
    }

    fn dies_at(&self, point: &str) {
        if self.dies == point {
            die();
        }
    }
}

impl Executor for Ledger {
    fn class(&self) -> Class {
        self.class
    }

    fn limits(&self) -> Limits {
        Limits { timeout: Duration::from_secs(20), ..Limits::default() }
    }

    fn check(&self, args: &Value) -> Result<Value, EffectError> {
        Ok(args.clone())
    }

    fn run<'a>(&'a self, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move {
            self.dies_at("after_intent");
            let key = &call.idempotency_key;
            let known = Ledger::lines(&self.folder)
                .iter()
                .any(|l| l.starts_with("done") && l.ends_with(key.as_str()));
            self.write(&format!("start {} {} {key}", call.action, call.attempt));
            self.dies_at("after_spawn");
            tokio::task::yield_now().await;
            self.dies_at("mid_run");
            if self.class != Class::Keyed || !known {
                self.write(&format!("done {} {} {key}", call.action, call.attempt));
            }
            self.dies_at("after_exit");
            Answer::Succeeded { result: json!({"key": key}), fingerprint: None }
        })
    }

    fn look<'a>(&'a self, call: &'a Call, _intent: &'a Value) -> Pending<'a, Seen> {
        Box::pin(async move {
            if self.class == Class::Opaque {
                let error = EffectError::new("x.look", Blame::Tool, "nobody can look", "ask");
                return Seen::Unreachable(error);
            }
            let done = format!("done {}", call.action);
            let found = Ledger::lines(&self.folder).iter().any(|line| line.starts_with(&done));
            if found { Seen::Found(json!({"found": true})) } else { Seen::Absent }
        })
    }
}

fn open(folder: &Path) -> Arc<dyn Log> {
    let path = folder.join("store.log");
    let log =
        if path.exists() { RedbLog::open(&path) } else { RedbLog::create(&path, LogId::ZERO) };
    Arc::new(log.expect("the store opens"))
}

fn engine(log: &Arc<dyn Log>) -> Engine {
    let flock = wishing(&[json!({"args": {"n": 1}}), json!({"args": {"n": 2}})]);
    let known = log.branches().unwrap().into_iter().find(|branch| branch.tip.head.count() > 0);
    let branch = match known {
        Some(branch) => branch,
        None => start_branch(log, &BranchName::main(), &flock.start, "test").expect("it starts"),
    };
    Engine::open(Arc::clone(log), branch.id, flock.library, "test").expect("it opens")
}

/// Runs the flock until nothing more is to come; dies where it is told to.
fn host(folder: &Path, class: Class, dies: &str) -> (Arc<dyn Log>, Vec<Event>) {
    let log = open(folder);
    let mut engine = engine(&log);
    if dies == "before_intent" {
        // What was requested is durable, and nothing has left.
        engine.run(|_| true).expect("it runs");
        die();
    }
    let ledger = Ledger { folder: folder.to_owned(), class, dies: dies.to_owned() };
    let mut executors = Executors::new();
    executors.insert("tool:x", Arc::new(ledger) as Arc<dyn Executor>);
    let mut driver = Driver::new("main", executors).expect("threads");
    let now = || {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970");
        log::Time::from_ms(i64::try_from(since.as_millis()).unwrap()).unwrap()
    };
    loop {
        while matches!(engine.step().expect("it runs"), Step::Fired(_)) {}
        let bound = || async { tokio::time::sleep(Duration::from_secs(5)).await };
        let answers = |open: &OpenEffect| open.waits_for.starts_with("the answer to attempt");
        if dies == "before_outcome" && engine.open_effects().iter().any(answers) {
            // Its answer is here, and no event says so.
            while !driver.has_news() {
                driver.wait(&mut engine, now(), bound());
            }
            die();
        }
        if driver.turn(&mut engine, now()).expect("it runs").landed > 0 {
            continue;
        }
        engine.commit().expect("it runs");
        if !driver.expects(&engine, now()) {
            break;
        }
        driver.wait(&mut engine, now(), bound());
    }
    let branch = engine.branch();
    drop((driver, engine));
    let events = read_all(&*log, branch).unwrap().collect::<Result<_, _>>().unwrap();
    (log, events)
}

fn class_of(name: &str) -> Class {
    serde_json::from_value(json!(name)).expect("a class")
}

/// What the ledger must say after the host was killed at a point and another one ran on.
fn check(folder: &Path, class: Class, point: &str) {
    let began = Instant::now();
    let (log, events) = host(folder, class, "never");
    assert!(began.elapsed() < Duration::from_secs(5), "{class} {point}: {:?}", began.elapsed());
    let lines = Ledger::lines(folder);
    let actions: Vec<EventId> =
        events.iter().filter(|e| e.kind() == "effect.requested").map(Event::id).collect();
    assert_eq!(actions.len(), 2, "{class} {point}");
    for action in &actions {
        let of = |word: &str| {
            let start = format!("{word} {action} ");
            lines.iter().filter(|line| line.starts_with(&start)).count()
        };
        let ended = events.iter().filter(|event| {
            let payload = Value::Object(event.payload().to_json());
            event.kind() == "effect.ended" && payload["action"] == action.to_string()
        });
        let told = format!("{class} {point} {action}: {lines:?}");
        assert_eq!(ended.count(), 1, "one outcome: {told}");
        match class {
            Class::ReadOnly => assert!(of("start") <= 2, "{told}"),
            // Many attempts, one effect.
            Class::Keyed => assert!(of("done") == 1, "{told}"),
            Class::Queryable | Class::CompareAndSet => assert_eq!(of("done"), 1, "{told}"),
            Class::Opaque => assert!(of("start") <= 1, "{told}"),
        }
    }
    drop(log);
}

/// The six points of a crash, each class, and in the long form a thousand kills.
#[test]
fn kill_9_at_six_points_starts_nothing_twice() {
    if let Ok(said) = std::env::var(HOST) {
        let mut parts = said.split('\n');
        let mut next = || parts.next().expect("folder, class, point").to_owned();
        let (folder, class, point) = (next(), next(), next());
        host(Path::new(&folder), class_of(&class), &point);
        std::process::exit(0);
    }
    let classes = ["read_only", "compare_and_set", "keyed", "queryable", "opaque"];
    let all = classes.iter().flat_map(|class| POINTS.iter().map(move |point| (*class, *point)));
    let mut all: Vec<(&str, &str)> = all.collect();
    if long() {
        let chance = Stream::of_firing(1, EventId::ZERO, "kills", Vec::new());
        let more = (all.len()..1000).map(|_| {
            let point = chance.below(POINTS.len() as u64) as usize;
            (classes[chance.below(5) as usize], POINTS[point])
        });
        all.extend(more.collect::<Vec<_>>());
    }
    let program = std::env::current_exe().expect("this test is a program");
    for (class, point) in all {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let said = format!("{}\n{class}\n{point}", folder.path().display());
        let child = Command::new(&program)
            .args([TEST, "--exact", "--nocapture"])
            .env(HOST, said)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("a program can be started");
        // Killed where it was told to, not ended by a mistake of its own.
        assert_eq!(child.signal(), Some(9), "{class} {point}");
        check(folder.path(), class_of(class), point);
    }
}
