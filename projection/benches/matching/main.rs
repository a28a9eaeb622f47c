//! What delta matching costs: `cargo bench -p starling-projection --bench matching`.
//!
//! Time is that of the thread, of whole streams of changes: what the fold and the pattern cost
//! together, and without the fold. A step is one element looked at. `-- full` adds the large
//! railways, up to size 512.
#![allow(clippy::disallowed_methods, reason = "a bench reads its arguments")]

mod claims;
mod crowded;
#[path = "../../tests/projection/train.rs"]
mod train;
mod trains;

use log::{Change, Draft, Event, EventId, Offset, WriteOp};
use projection::{Delta, Env, Graph, Pattern, Steps};
use serde_json::{Map, Value};

fn main() {
    let full = std::env::args().any(|argument| argument == "full");
    claims::run();
    crowded::run();
    trains::run(if full { 512 } else { 32 });
}

/// What a stream of changes took.
struct Cost {
    /// Microseconds a change, fold and matching.
    us: f64,
    /// Of these, matching.
    matching_us: f64,
    steps: f64,
    rows: f64,
}

/// Runs a stream on copies of a world: once with matching, once without, each three times; the
/// least of each counts.
fn measure(pattern: &Pattern, world: &Graph, events: &[Event]) -> Cost {
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    let (mut steps, mut rows) = (0, 0);
    for _ in 0..3 {
        let mut graph = world.clone();
        let mut delta = Delta::default();
        let start = thread_ns();
        for event in events {
            graph.apply_into(event, &mut delta).unwrap_or_else(|refusal| panic!("{refusal}"));
        }
        without = without.min(thread_ns() - start);

        let mut graph = world.clone();
        (steps, rows) = (0, 0);
        let start = thread_ns();
        for event in events {
            graph.apply_into(event, &mut delta).unwrap_or_else(|refusal| panic!("{refusal}"));
            let counter = Steps::up_to(1_000_000);
            let found = pattern.delta(&graph, &delta, &Env::EMPTY, &counter);
            let found = found.unwrap_or_else(|exhausted| panic!("{exhausted}"));
            rows += found.risen.len() + found.fallen.len();
            steps += counter.taken();
        }
        with = with.min(thread_ns() - start);
    }
    let count = events.len() as f64;
    let us = |ns: f64| ns / count / 1000.0;
    Cost {
        us: us(with),
        matching_us: us((with - without).max(0.0)),
        steps: steps as f64 / count,
        rows: rows as f64 / count,
    }
}

fn print_head(first: &str) {
    println!("{first:>26} | µs/change | matching |    steps |     rows");
}

fn print_cost(first: &str, cost: &Cost) {
    let Cost { us, matching_us, steps, rows } = cost;
    println!("{first:>26} | {us:>9.3} | {matching_us:>8.3} | {steps:>8.2} | {rows:>8.2}");
}

/// Nanoseconds that this thread was computing.
fn thread_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// A pattern, with its indexes declared in a world.
fn pattern_for(text: &str, world: &mut Graph) -> Pattern {
    let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{error}"));
    for (type_name, property) in pattern.indexes_for_delta() {
        world.declare_index(&type_name, &property);
    }
    pattern
}

fn create(id: String, type_name: &str, properties: Value) -> Change {
    let properties = object(properties);
    Change::Create { id: Some(id.into()), type_name: type_name.into(), properties }
}

fn link(type_name: &str, from: String, to: String) -> Change {
    let (type_name, from, to) = (type_name.into(), from.into(), to.into());
    Change::Link { id: None, type_name, from, to, properties: Map::new() }
}

fn set(id: String, properties: Value) -> Change {
    let (id, properties) = (id.into(), object(properties));
    Change::Write { op: WriteOp::Set, id, properties, if_version: None }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// The events of some changes, one each, that follow a head.
fn events(head: u64, changes: impl IntoIterator<Item = Change>) -> Vec<Event> {
    let changes = changes.into_iter().zip(head..);
    changes.map(|(change, offset)| event(offset, vec![change])).collect()
}

fn event(offset: u64, changes: Vec<Change>) -> Event {
    let mut id = [1u8; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), "claim.changed", "user:bench");
    draft.changes = changes;
    Event::encode(&draft, Offset::new(offset)).expect("a small event").0
}

/// A world made by one event for each list of changes.
fn world_of(lists: impl Iterator<Item = Vec<Change>>) -> Graph {
    let mut graph = Graph::new();
    for changes in lists {
        let event = event(graph.head().count(), changes);
        graph.apply(&event).unwrap_or_else(|refusal| panic!("{refusal}"));
    }
    graph
}
