//! What a firing costs: chains and fan-outs, in Rust and in script, in memory and durable; an event
//! that wakes nobody; and the world at the middle of a log.
//!
//!     cargo bench -p starling-runtime --bench engine            10^3 to 10^5
//!     cargo bench -p starling-runtime --bench engine -- full    up to 10^6
//!     cargo bench -p starling-runtime --bench engine -- chain   only rows with this word

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use behaviors::{Behavior, Firing, Loaded, Metadata, Proposals, ReactError};
use log::{BranchName, Draft, EventId, Log, LogId, MemoryLog, RedbLog};
use runtime::{Engine, Library, Snapshots, Start, Step, start_branch};
use script::{Limits, ScriptHost};
use serde_json::{Map, Value, json};

type React = fn(&Firing<'_>, &mut Proposals<'_>) -> Result<(), ReactError>;

/// A behavior for benches: metadata as JSON, and a function.
struct Plain(Metadata, React);

impl Behavior for Plain {
    fn metadata(&self) -> &Metadata {
        &self.0
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        (self.1)(firing, out)
    }
}

fn plain(metadata: Value, react: React) -> Loaded {
    let map = metadata.as_object().expect("an object");
    let metadata = Metadata::from_json(map, "bench").expect("valid metadata");
    Loaded::new(Arc::new(Plain(metadata, react)), "bench")
}

fn scripted(source: &str) -> Loaded {
    let host = ScriptHost::new(Limits::default());
    host.load("behaviors/bench.star", source).expect("the script loads").remove(0)
}

/// An engine on a new branch with these behaviors and one node to begin with.
fn engine(log: &Arc<dyn Log>, loaded: Vec<Loaded>, kind: &str, snapshots: Snapshots) -> Engine {
    let flock =
        json!({"name": "bench", "seed": 1, "schedule": "fifo", "budget": {"depth": 1u64 << 40}});
    let mut start = Start { flock: map(&flock), seed: 1, ..Start::default() };
    let mut library = Library::new();
    for one in loaded {
        let metadata = Value::Object(one.metadata().to_json());
        let name = one.metadata().name.clone();
        let payload = json!({"name": name, "hash": one.hash().to_string(), "path": "b", "metadata": metadata});
        start.behaviors.push((name.into(), map(&payload)));
        library.insert(one);
    }
    let mut first = Draft::new(EventId::ZERO, kind, "user:bench");
    let change = json!({"create": "token", "type": "Token", "properties": {"state": 0}});
    first.changes.push(log::Change::from_json(&change, "bench").expect("a change"));
    start.events.push(first);
    let branch = start_branch(log, &BranchName::main(), &start, "bench").expect("it starts");
    Engine::open_with(Arc::clone(log), branch.id, library, "bench", snapshots).expect("it opens")
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn memory() -> Arc<dyn Log> {
    Arc::new(MemoryLog::new(LogId::ZERO))
}

fn disk(folder: &Path) -> Arc<dyn Log> {
    Arc::new(RedbLog::create(&folder.join("bench.redb"), LogId::ZERO).expect("a store"))
}

/// Fires `count` times; the seconds it took, made durable.
fn run(engine: &mut Engine, count: u64) -> f64 {
    let until = engine.taken() + count;
    let began = Instant::now();
    while engine.taken() < until && engine.step().expect("it runs") != Step::Rest {}
    engine.commit().expect("it commits");
    began.elapsed().as_secs_f64()
}

fn on_kind() -> Loaded {
    let metadata = json!({"name": "pass_on", "description": "d", "on": "ball", "wakes_self": true});
    plain(metadata, |firing, out| {
        let n = firing.event.payload.get("n").and_then(|n| n.as_i64()).unwrap_or(0);
        out.emit("ball", json!({"n": n + 1}));
        Ok(())
    })
}

fn on_pattern() -> Vec<Loaded> {
    let metadata = |name: &str, state: u8| json!({"name": name, "description": "d", "match": format!("(t:Token {{state: {state}}})")});
    let ping: React = |firing, out| {
        let token = firing.element("t")?;
        out.emit("token.passed", json!({})).set(token.id, json!({"state": 1}));
        Ok(())
    };
    let pong: React = |firing, out| {
        let token = firing.element("t")?;
        out.emit("token.passed", json!({})).set(token.id, json!({"state": 0}));
        Ok(())
    };
    vec![plain(metadata("ping", 0), ping), plain(metadata("pong", 1), pong)]
}

const SCRIPT_CHAIN: &str = r#"
behavior(name = "pass_on", description = "d", on = "ball", wakes_self = True)
def pass_on(event):
    n = event.payload.n
    emit("ball", {"n": 1 if n == None else n + 1})
"#;

fn fan_out() -> Vec<Loaded> {
    let throw = json!({"name": "throw", "description": "d", "on": "round", "wakes_self": true});
    let throw = plain(throw, |firing, out| {
        for n in 0..1000 {
            out.emit("ball", json!({"n": n}));
        }
        if firing.event.payload.get("last").is_none() {
            out.emit("round", json!({}));
        }
        Ok(())
    });
    let catch = json!({"name": "catch", "description": "d", "on": "ball"});
    let catch = plain(catch, |_, out| {
        out.emit("caught", json!({}));
        Ok(())
    });
    vec![throw, catch]
}

const SCRIPT_CATCH: &str = r#"
behavior(name = "catch", description = "d", on = "ball")
def catch(event):
    emit("caught", {"n": event.payload.n})
"#;

fn fan_out_script() -> Vec<Loaded> {
    let mut loaded = fan_out();
    loaded.truncate(1);
    loaded.push(scripted(SCRIPT_CATCH));
    loaded
}

/// The word after `--` that a row must have, if there is one.
fn only() -> Option<String> {
    std::env::args().skip(1).find(|word| word != "full" && !word.starts_with('-'))
}

/// One row: firings a second at each size.
fn row(name: &str, sizes: &[u64], mut make: impl FnMut() -> Engine) {
    if only().is_some_and(|word| !name.contains(&word)) {
        return;
    }
    print!("{name:<44}");
    for size in sizes {
        let best = (0..3).map(|_| run(&mut make(), *size)).fold(f64::MAX, f64::min);
        print!("{:>12.0}", *size as f64 / best);
    }
    println!();
}

/// Microseconds that one event takes which no behavior hears, with so many behaviors loaded.
fn idle(count: usize) -> f64 {
    let deaf = |n: usize| {
        let metadata = json!({
            "name": format!("deaf_{n:04}"), "description": "d",
            "match": format!("(t:Type{n} {{state: 1}})-[:NEXT]->(u:Type{n})"),
        });
        plain(metadata, |_, _| Ok(()))
    };
    let log = memory();
    let mut engine = engine(&log, (0..count).map(deaf).collect(), "begun", Snapshots::none());
    let times = 20_000u64;
    let began = Instant::now();
    for n in 0..times {
        let id = log::Derivation::new().integer(n).finish();
        let mut draft = Draft::new(id, "noise.heard", "user:bench");
        let change = json!({"set": "token", "properties": {"state": n + 7}});
        draft.changes.push(log::Change::from_json(&change, "bench").expect("a change"));
        engine.outside(draft).expect("it lands");
    }
    began.elapsed().as_secs_f64() / times as f64 * 1e6
}

/// Events a second from disk: read, checked and decoded on one core, folded into the graph on the
/// other; the log as the chain on a pattern and as a world that grows by two elements an event.
fn from_disk(folder: &Path, size: u64) -> [f64; 2] {
    let log = disk(folder);
    let mut small = engine(&log, on_pattern(), "b", Snapshots::none());
    run(&mut small, size);
    let small = small.branch();
    let growing = log.create(&"growing".parse().expect("a name")).expect("a branch");
    grow(&log, growing.id, size);
    [small, growing.id].map(|branch| {
        let head = log.branch(branch).expect("a branch").tip.head;
        let time = || {
            let began = Instant::now();
            let graph = Snapshots::none().graph_at(&*log, branch, head).expect("it folds");
            assert_eq!(graph.head(), head);
            began.elapsed().as_secs_f64()
        };
        head.count() as f64 / (0..3).map(|_| time()).fold(f64::MAX, f64::min)
    })
}

/// Appends events that each make a node and join it to an earlier one.
fn grow(log: &Arc<dyn Log>, branch: log::BranchId, size: u64) {
    let claim = log.claim(branch, "bench").expect("nobody else runs it");
    let mut expected = log::Head::EMPTY;
    while expected.count() < size {
        let mut batch = log::Batch::new();
        let first = expected.count();
        for number in first..size.min(first + 5_000) {
            let id = log::Derivation::new().text("grow").integer(number).finish();
            let mut draft = Draft::new(id, "task.found", "user:bench");
            let earlier = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % number.max(1);
            for change in [
                json!({"ensure": format!("task:{number}"), "type": "Task",
                       "properties": {"points": number % 13}}),
                json!({"link": "FOLLOWS", "from": format!("task:{number}"),
                       "to": format!("task:{earlier}")}),
            ] {
                draft.changes.push(log::Change::from_json(&change, "bench").expect("a change"));
            }
            let (event, blobs) =
                log::Event::encode(&draft, log::Offset::new(number)).expect("a small event");
            batch.push(event, blobs);
        }
        let append = log::Append { branch, batch, expected, epoch: claim.epoch };
        let landed = log.submit(append).wait().expect("the writer is there");
        expected = landed.expect("it lands").head;
    }
    log.release(branch, claim.epoch);
}

/// Microseconds that one event and the firing that it wakes take, with so many behaviors loaded of
/// which one matches. All watch the same type; `pattern` gives the n-th its own.
fn wakes_one(count: usize, pattern: fn(usize) -> String) -> f64 {
    let watcher = |n: usize| {
        let metadata = json!({
            "name": format!("watch_{n:04}"), "description": "d", "match": pattern(n),
        });
        plain(metadata, |_, out| {
            out.emit("token.seen", json!({}));
            Ok(())
        })
    };
    let log = memory();
    let loaded = (0..count).map(watcher).collect();
    let mut engine = engine(&log, loaded, "begun", Snapshots::none());
    let times = 10_000u64;
    let taken = engine.taken();
    let began = Instant::now();
    for n in 0..2 * times {
        let id = log::Derivation::new().integer(n).finish();
        let mut draft = Draft::new(id, "token.written", "user:bench");
        let change =
            json!({"set": "token", "properties": {"state": 7 * (n % 2), "level": 10 * (n % 2)}});
        draft.changes.push(log::Change::from_json(&change, "bench").expect("a change"));
        engine.outside(draft).expect("it lands");
        while engine.step().expect("it runs") != Step::Rest {}
    }
    let us = began.elapsed().as_secs_f64() / times as f64 * 1e6;
    assert!(engine.taken() >= taken + times, "one of them fires at every other event");
    us
}

/// Milliseconds to the world at the middle of a log of so many events.
fn at_the_middle(folder: &Path, size: u64) -> (f64, f64) {
    let log = disk(folder);
    let snapshots = Snapshots::beside(&folder.join("bench.redb"));
    let mut engine = engine(&log, on_pattern(), "b", snapshots.clone());
    run(&mut engine, size);
    let middle = log::Head::of_count(size / 2);
    let time = |from: &Snapshots| {
        let began = Instant::now();
        let graph = from.graph_at(&*log, engine.branch(), middle).expect("it folds");
        assert_eq!(graph.head(), middle);
        began.elapsed().as_secs_f64() * 1e3
    };
    let best = |from: &Snapshots| (0..3).map(|_| time(from)).fold(f64::MAX, f64::min);
    (best(&Snapshots::none()), best(&snapshots))
}

fn main() {
    let full = std::env::args().any(|argument| argument == "full");
    let sizes: &[u64] =
        if full { &[1_000, 10_000, 100_000, 1_000_000] } else { &[1_000, 10_000, 100_000] };
    print!("{:<44}", "firings a second");
    sizes.iter().for_each(|size| print!("{size:>12}"));
    println!();
    let none = Snapshots::none;
    let chain = || vec![on_kind()];
    row("chain on a kind, Rust, memory", sizes, || engine(&memory(), chain(), "ball", none()));
    row("chain on a pattern, Rust, memory", sizes, || engine(&memory(), on_pattern(), "b", none()));
    row("1 to 1,000, Rust, memory", sizes, || engine(&memory(), fan_out(), "round", none()));
    let script = || vec![scripted(SCRIPT_CHAIN)];
    row("chain on a kind, script, memory", sizes, || engine(&memory(), script(), "ball", none()));
    row("1 to 1,000, script, memory", sizes, || {
        engine(&memory(), fan_out_script(), "round", none())
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        let inside = folder.path().join(number.to_string());
        std::fs::create_dir(&inside).expect("a folder");
        disk(&inside)
    };
    row("chain on a kind, Rust, durable", sizes, || engine(&fresh(), chain(), "ball", none()));
    row("chain on a kind, script, durable", sizes, || engine(&fresh(), script(), "ball", none()));
    row("1 to 1,000, Rust, durable", sizes, || engine(&fresh(), fan_out(), "round", none()));
    if only().is_some() {
        return;
    }
    println!("\ndecode and fold from disk, events a second: a small world, one that grows");
    for size in sizes {
        let inside = folder.path().join(format!("disk-{size}"));
        std::fs::create_dir(&inside).expect("a folder");
        let [small, growing] = from_disk(&inside, *size);
        println!("{:<44}{small:>12.0}{growing:>12.0}", format!("{size} events"));
    }
    println!("\nthe world at the middle of a log, milliseconds: folded, and from a snapshot");
    for size in sizes {
        let inside = folder.path().join(format!("at-{size}"));
        std::fs::create_dir(&inside).expect("a folder");
        let (folded, near) = at_the_middle(&inside, *size);
        println!("{:<44}{folded:>12.1}{near:>12.1}", format!("{size} events"));
    }
    println!("\nan event that wakes nobody, microseconds");
    for count in [0, 1, 10, 100, 1000] {
        println!("{:<44}{:>12.2}", format!("{count} behaviors"), idle(count));
    }
    println!("\ntwo events and the firing that one of them wakes, microseconds");
    let by_value = |n: usize| format!("(t:Token {{state: {}}})", n + 7);
    let by_property = |n: usize| match n {
        0 => "(t:Token) WHERE t.level > 5".to_owned(),
        _ => format!("(t:Token) WHERE t.level{n} > 5"),
    };
    let by_type = |n: usize| match n {
        0 => "(t:Token) WHERE t.level > 5".to_owned(),
        _ => format!("(t:Type{n}) WHERE t.level > 5"),
    };
    println!("{:<44}{:>12}{:>12}{:>12}", "told apart by", "a value", "a property", "a type");
    for count in [1, 10, 100, 1000] {
        print!("{:<44}", format!("{count} behaviors, one matches"));
        for pattern in [by_value as fn(usize) -> String, by_property, by_type] {
            let least = (0..3).map(|_| wakes_one(count, pattern)).fold(f64::MAX, f64::min);
            print!("{least:>12.2}");
        }
        println!();
    }
}
