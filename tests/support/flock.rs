//! Small flocks: Rust reactions or script files, run by an engine over a log in memory.

use std::path::Path;
use std::sync::Arc;

use behaviors::{Behavior, Loaded, Reaction, RustBehavior};
use log::{Branch, BranchId, BranchName, Change, Derivation, Draft, Event, EventId, Hash, Head};
use log::{Log, LogId, MemoryLog};
use runtime::{Engine, Flock, Library, Overrides, Start, Step, start_branch};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;
use tempfile::TempDir;

/// A flock of Rust reactions.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    pub(crate) start: Start,
    pub(crate) library: Library,
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is no object") };
    map
}

fn changes(list: &Value) -> Vec<Change> {
    let list = list.as_array().expect("changes are a list").iter();
    list.map(|change| Change::from_json(change, "a test").expect("a change")).collect()
}

/// An event from outside; its id is derived from `name`.
pub(crate) fn said(name: &str, kind: &str, payload: Value, change: &Value) -> Draft {
    let id = Derivation::new().text("said").text(name).finish();
    let draft = Draft::new(id, kind, "user:ann");
    Draft { payload: object(payload), changes: changes(change), ..draft }
}

/// A behavior: its name, what the event says that loads it, and its code.
fn behavior(metadata: &Value, reaction: Reaction) -> (SmolStr, Map<String, Value>, Loaded) {
    let behavior = RustBehavior::new(metadata, reaction).expect("a test's metadata is valid");
    let source = metadata.to_string();
    let name: SmolStr = behavior.metadata().name.as_str().into();
    let whole = Value::Object(behavior.metadata().to_json());
    let hash = Hash::of(source.as_bytes()).to_string();
    let payload = json!({"name": name.as_str(), "path": "", "hash": hash, "metadata": whole});
    (name, object(payload), Loaded::new(Arc::new(behavior), &source))
}

impl Small {
    /// Without behaviors and start events.
    pub(crate) fn new(schedule: &str, budget: &Value) -> Small {
        let flock =
            object(json!({"name": "small", "seed": 7, "schedule": schedule, "budget": budget}));
        let start = Start { flock, seed: 7, ..Start::default() };
        Small { start, library: Library::new() }
    }

    /// Adds a behavior.
    pub(crate) fn with(mut self, metadata: &Value, reaction: Reaction) -> Small {
        let (name, payload, loaded) = behavior(metadata, reaction);
        self.library.insert(loaded);
        self.start.behaviors.push((name, payload));
        self.start.behaviors.sort_by(|(a, _), (b, _)| a.cmp(b));
        self
    }

    /// Sets a field of `flock.started`, such as `grants`.
    pub(crate) fn says(mut self, field: &str, value: Value) -> Small {
        self.start.flock.insert(field.to_owned(), value);
        self
    }

    /// Adds a start event.
    pub(crate) fn begins(mut self, kind: &str, change: &Value) -> Small {
        let draft = Draft::new(EventId::ZERO, kind, "user:ann");
        self.start.events.push(Draft { changes: changes(change), ..draft });
        self
    }

    /// Starts it on a log of its own.
    pub(crate) fn start(&self) -> Running {
        let log = memory();
        let branch = start_branch(&log, &BranchName::main(), &self.start, "test");
        let branch = branch.expect("it starts").id;
        Running::open(log, branch, self.library.clone())
    }

    /// Starts it and runs it to its end on so many threads.
    pub(crate) fn run(&self, threads: usize) -> Running {
        let mut running = self.start();
        running.engine.set_threads(threads);
        running.rest();
        running
    }
}

pub(crate) fn memory() -> Arc<dyn Log> {
    Arc::new(MemoryLog::new(LogId::ZERO))
}

/// A branch and the engine that runs it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) branch: BranchId,
    pub(crate) engine: Engine,
    library: Library,
}

impl Running {
    pub(crate) fn open(log: Arc<dyn Log>, branch: BranchId, library: Library) -> Running {
        let engine = Engine::open(Arc::clone(&log), branch, library.clone(), "test");
        Running { log, branch, engine: engine.expect("it opens"), library }
    }

    /// The same branch after a crash: what was not durable is lost.
    pub(crate) fn crash(self) -> Running {
        let Running { log, branch, engine, library } = self;
        drop(engine);
        Running::open(log, branch, library)
    }

    pub(crate) fn library(&self) -> Library {
        self.library.clone()
    }

    /// Runs until nothing is due or a bound is reached.
    pub(crate) fn rest(&mut self) -> Step {
        self.engine.run(|_| true).expect("a log in memory does not fail")
    }

    /// Lands an event from outside, without running.
    pub(crate) fn say(&mut self, name: &str, kind: &str, payload: Value, change: &Value) {
        let landed = self.engine.outside(said(name, kind, payload, change)).expect("it lands");
        assert!(!landed.repeated, "{name} is new");
    }

    /// Loads a behavior, or another version of it, while the branch is running.
    pub(crate) fn load(&mut self, metadata: &Value, reaction: Reaction) {
        let (name, payload, loaded) = behavior(metadata, reaction);
        self.library.insert(loaded.clone());
        self.engine.learn(loaded);
        let time = log::Time::default();
        let landed = self.engine.load(&name, payload, time).expect("it lands");
        assert!(!landed.repeated, "{name} is loaded anew");
    }

    /// The durable events.
    pub(crate) fn events(&self) -> Vec<Event> {
        events(&*self.log, self.branch)
    }

    /// The durable events of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Event> {
        let mut events = self.events();
        events.retain(|event| event.kind() == kind);
        events
    }

    /// The durable head and its link.
    pub(crate) fn tip(&self) -> (Head, Hash) {
        tip(&*self.log, self.branch)
    }

    /// A property of an element, as the engine sees it.
    pub(crate) fn property(&self, id: &str, name: &str) -> Value {
        let element = self.engine.graph().element(id);
        let property = element.and_then(|element| element.property(name));
        property.map_or(Value::Null, |value| value.to_json())
    }
}

pub(crate) fn events(log: &dyn Log, branch: BranchId) -> Vec<Event> {
    let events = log::read_all(log, branch).expect("it reads");
    events.map(|event| event.expect("it is whole")).collect()
}

pub(crate) fn tip(log: &dyn Log, branch: BranchId) -> (Head, Hash) {
    let tip = log.branch(branch).expect("the branch is there").tip;
    (tip.head, tip.link)
}

/// A flock of script files in a folder of its own.
pub(crate) fn scripts(settings: &str, files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("a file of a test");
    write(&folder.path().join("flock.toml"), settings);
    std::fs::create_dir(folder.path().join("behaviors")).expect("a folder for a test");
    for (name, text) in files {
        write(&folder.path().join("behaviors").join(name), text);
    }
    folder
}

/// Starts the flock of a folder on a log in memory.
pub(crate) fn start_folder(folder: &Path, overrides: &Overrides) -> Running {
    let flock = Flock::read(folder, overrides).expect("the flock is valid");
    let log = memory();
    let branch: Branch =
        runtime::start(&log, &BranchName::main(), &flock, "test").expect("it starts");
    let library = flock.library(&log);
    Running::open(log, branch.id, library)
}
