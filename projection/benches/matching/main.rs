//! What a pattern costs for each event: `cargo bench -p starling-projection --bench matching`.
//!
//! The world is of claims with five pieces of evidence each, from a thousand elements to a million.
//! The stream adds further claims: five inserts of evidence and one update of the claim. Steps and
//! time are those of delta matching alone, averaged over all events of the stream. One number after
//! `--` limits the largest size.

use std::fmt::Write;
use std::hint::black_box;

use log::{Change, Draft, Event, EventId, Offset, WriteOp};
use projection::{Delta, Env, Graph, Pattern, Steps};
use serde_json::{Map, Value, json};

/// Each pattern with what it is about.
const PATTERNS: [(&str, &str); 9] = [
    ("one node", "(c:Claim {state: 'ready'})"),
    ("one node, another property", "(c:Claim) WHERE c.weight > 3"),
    ("another type", "(t:Token {state: 'ready'})"),
    ("one edge", "(e:Evidence)-[:SUPPORTS]->(c:Claim) WHERE c.confidence > 0.7"),
    (
        "two edges",
        "(e:Evidence)-[:SUPPORTS]->(c:Claim)<-[:SUPPORTS]-(f:Evidence) WHERE c.confidence > 0.7",
    ),
    ("two hops", "(e:Evidence)-[:SUPPORTS]->(c:Claim {state: 'ready'})-[:ABOUT]->(t:Topic)"),
    ("an equality", "(c:Claim {state: 'ready'}), (t:Topic) WHERE t.name = c.topic"),
    ("not exists", "(c:Claim) WHERE NOT EXISTS { (c)<-[:SUPPORTS]-(e:Evidence) }"),
    ("a path", "(e:Evidence)-[p*1..2]->(t:Topic)"),
];

fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let largest: u64 = numbers.max().unwrap_or(1_000_000);
    let sizes: Vec<u64> =
        [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|n| *n <= largest).collect();
    let mut worlds: Vec<Graph> = sizes.iter().map(|size| world(*size)).collect();
    for (about, text) in PATTERNS {
        let pattern = Pattern::parse(text).unwrap_or_else(|error| panic!("{error}"));
        for graph in &mut worlds {
            for (type_name, property) in pattern.indexes_for_delta() {
                graph.declare_index(&type_name, &property);
            }
        }
        println!("\n{about}: {text}");
        println!("{:>9} | {:>10} | {:>10} | {:>10}", "elements", "ns/event", "steps", "rows");
        for (size, graph) in sizes.iter().zip(&worlds) {
            measure(*size, &pattern, graph.clone());
        }
    }
}

/// Runs the stream on a copy of the world and prints one line.
fn measure(size: u64, pattern: &Pattern, mut graph: Graph) {
    const CLAIMS: u64 = 300;
    const REPEATS: u32 = 16;
    let (mut ns, mut steps, mut rows, mut events) = (0.0, 0, 0, 0u32);
    let mut delta = Delta::default();
    for claim in 0..CLAIMS {
        for event in stream(size + claim, graph.head().count()) {
            graph.apply_into(&event, &mut delta).unwrap_or_else(|refusal| panic!("{refusal}"));
            let start = thread_ns();
            for _ in 0..REPEATS {
                let counter = Steps::up_to(1_000_000);
                let found = pattern.delta(&graph, &delta, &Env::EMPTY, &counter);
                let found = black_box(found).unwrap_or_else(|exhausted| panic!("{exhausted}"));
                rows += found.risen.len() + found.fallen.len();
                steps += counter.taken();
            }
            ns += thread_ns() - start;
            events += 1;
        }
    }
    let calls = f64::from(events * REPEATS);
    let mut line = format!("{size:>9}");
    for number in [ns / calls, steps as f64 / calls, rows as f64 / calls] {
        write!(line, " | {number:>10.2}").expect("a String takes every write");
    }
    println!("{line}");
}

/// Nanoseconds that this thread was computing.
fn thread_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// A world of about so many elements.
fn world(size: u64) -> Graph {
    let mut graph = Graph::new();
    let mut apply = |changes| {
        let event = event(graph.head().count(), changes);
        graph.apply(&event).unwrap_or_else(|refusal| panic!("{refusal}"));
    };
    apply((0..10).map(|n| create(format!("t{n}"), "Topic", json!({"name": n}))).collect());
    for claim in 0..size / 12 {
        let mut changes = claim_changes(claim, "idle", 0.5);
        for number in 0..5 {
            changes.extend(evidence(claim, number));
        }
        apply(changes);
    }
    graph
}

/// A claim with five inserts and one update, as events.
fn stream(claim: u64, head: u64) -> Vec<Event> {
    let mut all = vec![claim_changes(claim, "idle", 0.5)];
    all.extend((0..5).map(|number| evidence(claim, number).to_vec()));
    let properties = object(json!({"confidence": 0.9, "state": "ready"}));
    let id = format!("c{claim}").into();
    all.push(vec![Change::Write { op: WriteOp::Set, id, properties, if_version: None }]);
    all.into_iter().zip(head..).map(|(changes, offset)| event(offset, changes)).collect()
}

fn claim_changes(claim: u64, state: &str, confidence: f64) -> Vec<Change> {
    let properties =
        json!({"confidence": confidence, "state": state, "topic": claim % 10, "weight": 1});
    let id = format!("c{claim}");
    let topic = format!("t{}", claim % 10);
    vec![create(id.clone(), "Claim", properties), link("ABOUT", id, topic)]
}

fn evidence(claim: u64, number: u64) -> [Change; 2] {
    let id = format!("e{claim}.{number}");
    [
        create(id.clone(), "Evidence", json!({"n": number})),
        link("SUPPORTS", id, format!("c{claim}")),
    ]
}

fn create(id: String, type_name: &str, properties: Value) -> Change {
    let properties = object(properties);
    Change::Create { id: Some(id.into()), type_name: type_name.into(), properties }
}

fn link(type_name: &str, from: String, to: String) -> Change {
    let (type_name, from, to) = (type_name.into(), from.into(), to.into());
    Change::Link { id: None, type_name, from, to, properties: Map::new() }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

fn event(offset: u64, changes: Vec<Change>) -> Event {
    let mut id = [1u8; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), "claim.changed", "user:bench");
    draft.changes = changes;
    Event::encode(&draft, Offset::new(offset)).expect("a small event").0
}
