//! What it costs to ask a log: the world at an offset, differences, searches, authors, replay.
//!
//!     cargo bench -p starling-runtime --bench history            10^5 events and elements
//!     cargo bench -p starling-runtime --bench history -- full    10^6

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use behaviors::{Behavior, Loaded, RustBehavior};
use log::{
    BranchId, BranchName, Change, Derivation, Draft, Event, EventId, Head, Log, LogId, RedbLog,
    WriteOp,
};
use projection::{Graph, Pattern, diff};
use runtime::{
    Engine, Library, Part, Snapshots, Start, Turned, bisect, first_difference, first_true, refire,
    start_branch, verify, writers,
};
use serde_json::{Value, json};

/// A chain of firings, each of which makes an element.
fn grow(count: u64) -> RustBehavior {
    let metadata = json!({
        "name": "grow", "match": "(t:Token)", "wakes_self": true,
        "budget": {"firings": count},
    });
    RustBehavior::new(&metadata, |firing, out| {
        let token = firing.element("t")?.id.to_owned();
        let mut event = out.emit("token.passed", json!({}));
        event.remove(&token).create("Token", json!({"n": 1}));
        event.create("Leaf", json!({"n": 1}));
        Ok(())
    })
    .expect("valid metadata")
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

fn row(what: &str, took_ms: f64, more: &str) {
    println!("{what:<58}{took_ms:>12.3} ms  {more}");
}

fn set(number: u64, id: &str, at: log::Offset) -> Event {
    let id_of = Derivation::new().text("bench").integer(number).finish();
    let mut draft = Draft::new(id_of, "leaf.set", "user:bench");
    let properties = json!({"n": 2}).as_object().cloned().expect("an object");
    draft.changes.push(Change::Write {
        op: WriteOp::Set,
        id: id.into(),
        properties,
        if_version: None,
    });
    Event::encode(&draft, at).expect("a small event").0
}

fn main() {
    let full = std::env::args().any(|arg| arg == "full");
    let count: u64 = if full { 1_000_000 } else { 100_000 };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.redb");
    let log: Arc<dyn Log> = Arc::new(RedbLog::create(&path, LogId::ZERO).expect("a store"));
    let snapshots = Snapshots::beside(&path);
    let (main, library) = run(&log, &snapshots, count);
    let head = log.branch(main).expect("it is there").tip.head;

    for (what, cut) in [("the middle", count / 2), ("the end", head.count())] {
        let began = Instant::now();
        let world = snapshots.graph_at(&*log, main, Head::of_count(cut)).expect("it folds");
        row(
            &format!("the world at {what}"),
            ms(began),
            &format!("{} elements", world.node_count()),
        );
    }
    differences(&snapshots.graph_at(&*log, main, head).expect("it folds"));

    let began = Instant::now();
    let fork = log.fork(main, Head::of_count(count / 3), &"f".parse().expect("a name"), "");
    let fork = fork.expect("it forks");
    row("a fork at a third", ms(began), "");
    let began = Instant::now();
    let parted = first_difference(&*log, (main, head), (fork.id, fork.tip.head)).expect("it reads");
    row("where a fork parts", ms(began), &format!("{parted:?}"));

    let pattern = Pattern::parse(&format!("(l:Leaf {{id_is: {count}}})")).expect("a pattern");
    searches(&*log, &snapshots, main, head, &pattern);

    let world = snapshots.graph_at(&*log, main, head).expect("it folds");
    let leaf = world.find_prefix("Leaf#", 1)[0].id().to_owned();
    let wanted = BTreeSet::from([Part { id: leaf.into(), property: Some("n".into()) }]);
    let began = Instant::now();
    let found = writers(&*log, &snapshots, main, &world, wanted).expect("it reads");
    row("who wrote a property", ms(began), &format!("{} found", found.len()));

    let began = Instant::now();
    let sound = verify(&*log, &snapshots, main, head).expect("it is sound");
    let each = ms(began);
    let rate = head.count() as f64 / each * 1e3;
    row("verify", each, &format!("{rate:.0} events/s, {} snapshots", sound.snapshots));
    let began = Instant::now();
    let refired = refire(&*log, main, library).expect("it reads");
    assert!(refired.divergences.is_empty(), "the bench is deterministic");
    let each = ms(began);
    let rate = head.count() as f64 / each * 1e3;
    row("refire", each, &format!("{rate:.0} events/s"));
}

/// A run of so many firings, each of which makes a leaf.
fn run(log: &Arc<dyn Log>, snapshots: &Snapshots, count: u64) -> (BranchId, Library) {
    let behavior = grow(count);
    let name = behavior.metadata().name.clone();
    let metadata = Value::Object(behavior.metadata().to_json());
    let loaded = Loaded::new(Arc::new(behavior), "bench");
    let payload =
        json!({"name": name, "hash": loaded.hash().to_string(), "path": "", "metadata": metadata});
    let object = |value: Value| value.as_object().cloned().expect("an object");
    let flock = object(json!({
        "name": "bench", "seed": 1, "schedule": "fifo", "budget": {"depth": 1u64 << 40},
    }));
    let mut start = Start { flock, seed: 1, ..Start::default() };
    start.behaviors.push((name.into(), object(payload)));
    let mut first = Draft::new(EventId::ZERO, "token.made", "user:bench");
    let token = json!({"create": null, "type": "Token", "properties": {}});
    first.changes.push(Change::from_json(&token, "bench").expect("a change"));
    start.events.push(first);
    let mut library = Library::new();
    library.insert(loaded);
    let main = start_branch(log, &BranchName::main(), &start, "bench").expect("it starts").id;
    let engine =
        Engine::open_with(Arc::clone(log), main, library.clone(), "bench", snapshots.clone());
    let began = Instant::now();
    engine.expect("it opens").run(|_| true).expect("it runs");
    row("a run of so many firings, durable, with its snapshots", ms(began), &format!("{count}"));
    (main, library)
}

/// Ten changes in a large world, hashed before and not.
fn differences(world: &Graph) {
    let ids: Vec<String> =
        world.find_prefix("Leaf#", 10).iter().map(|leaf| leaf.id().to_owned()).collect();
    let change = |before: &Graph| {
        let mut after = before.clone();
        for (number, id) in ids.iter().enumerate() {
            let at = after.head().next();
            after.apply(&set(number as u64, id, at)).expect("it applies");
        }
        after
    };
    let began = Instant::now();
    let state = world.state_hash();
    row("the first state hash of a world", ms(began), &state.to_string()[..8]);
    let after = change(world);
    let began = Instant::now();
    let found = diff(world, &after).len();
    row("the difference of ten changes", ms(began), &format!("{found} elements"));
    assert_eq!(found, 10);
}

fn searches(log: &dyn Log, snapshots: &Snapshots, branch: BranchId, head: Head, never: &Pattern) {
    // True from the event on that made the last of them.
    let last = snapshots.graph_at(log, branch, Head::of_count(head.count() * 7 / 10));
    let last = last.expect("it folds");
    let newest = projection::World::nodes(&last).last().expect("there are nodes");
    let id = projection::World::at(&last, newest.into()).expect("it is there").id().to_owned();
    drop(last);
    let pattern = Pattern::parse(&format!("(l:Leaf) WHERE id(l) = '{id}'")).expect("a pattern");
    let range = (Head::EMPTY, head);
    for (what, search) in [("bisect", bisect as Search), ("bisect --first", first_true)] {
        let began = Instant::now();
        let found = search(log, snapshots, branch, range, &pattern).expect("it reads");
        let Turned::At(turning) = found else { panic!("{found:?}") };
        let more = format!("@{}, {} worlds", turning.event.offset(), turning.worlds);
        row(&format!("{what} over all of it"), ms(began), &more);
    }
    let began = Instant::now();
    let found = bisect(log, snapshots, branch, range, never).expect("it reads");
    assert!(matches!(found, Turned::Not), "{found:?}");
    row("bisect for what never was", ms(began), "");
}

type Search = fn(
    &dyn Log,
    &Snapshots,
    BranchId,
    (Head, Head),
    &Pattern,
) -> Result<Turned, runtime::EngineError>;
