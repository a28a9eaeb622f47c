//! What the graph costs, from a thousand events to a million: `cargo bench -p starling-projection`.
//!
//! One number after `--` limits the largest size. The events are like those of firings: a cause, a
//! small payload, one node created or written and one edge; about 350 bytes as JSON.

#![allow(clippy::disallowed_methods, reason = "a bench reads its own use of memory")]

use std::fmt::Write;
use std::hint::black_box;

use log::{BatchId, Block, BranchId, Cause, Change, Draft, Event, EventId, FORMAT_VERSION, Offset};
use log::{Bound, Hash, WriteOp, element_id};
use projection::{Delta, Graph, World};
use serde_json::{Map, Value, json};

fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let largest: u64 = numbers.max().unwrap_or(1_000_000);
    let sizes = || [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|n| *n <= largest);
    heading("elements", "bytes in memory: node | edge | of them id and properties: node | edge");
    sizes().for_each(memory);
    heading("events", "decode ns | fold ns | both, events/s | bytes/event in memory");
    sizes().for_each(fold);
    heading("nodes", "lookup ns | apply set ns | apply + undo ns");
    sizes().for_each(nodes);
    heading("nodes", "clone ns | first set after it us | 1000 sets after it, us each");
    sizes().for_each(clones);
    heading("nodes", "first hash ms | rehash us/change | diff of 1 us | encode ms | decode ms");
    sizes().for_each(hashes);
    heading("hub", "link ns | unlink ns | first link after a clone us");
    sizes().for_each(hub);
}

fn heading(size: &str, columns: &str) {
    println!("\n{size:>9} | {columns}");
}

fn row(size: u64, columns: &[f64]) {
    let mut line = format!("{size:>9}");
    for number in columns {
        let digits = if *number < 10.0 { 2 } else { 0 };
        write!(line, " | {number:>12.digits$}").expect("a String takes every write");
    }
    println!("{line}");
}

/// Nanoseconds per step that this thread was computing, so that a busy machine counts less.
fn timed(steps: u64, mut work: impl FnMut()) -> f64 {
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    let start = now();
    work();
    (now() - start) / steps as f64
}

/// Memory of this process, in bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * 4096.0
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn event_id(number: u64) -> EventId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    EventId::from_bytes(bytes)
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { unreachable!("an object was written") };
    map
}

fn event(number: u64, changes: Vec<Change>) -> Event {
    let mut draft = Draft::new(event_id(number), "task.done", "behavior:close_task@9f2c41d0");
    draft.cause = Some(Cause::Firing {
        event: event_id(number.saturating_sub(1)),
        behavior: "close_task".into(),
        row: vec![Bound::Element(format!("Task#{:032x}", number).into())],
    });
    draft.payload = object(json!({"by": "ann", "points": number % 13}));
    draft.changes = changes;
    draft.taken = number;
    Event::encode(&draft, Offset::new(number)).expect("a small event").0
}

/// Half of the events create a task, half write an earlier one; each links it to an earlier one.
fn firing(number: u64, numbers: &mut Numbers) -> Event {
    let earlier = |numbers: &mut Numbers| {
        let made_by = numbers.below(number / 2 + 1) * 2;
        element_id("Task", &event_id(made_by), 0)
    };
    let first = if number.is_multiple_of(2) {
        Change::Create {
            id: None,
            type_name: "Task".into(),
            properties: object(json!({"status": "open", "points": number % 13})),
        }
    } else {
        Change::Write {
            op: WriteOp::Set,
            id: earlier(numbers).into(),
            properties: object(json!({"status": "done", "closed": number})),
            if_version: None,
        }
    };
    let link = Change::Link {
        id: None,
        type_name: "FOLLOWS".into(),
        from: "#0".into(),
        to: if number == 0 { "#0".into() } else { earlier(numbers).into() },
        properties: Map::new(),
    };
    event(number, vec![first, link])
}

/// Blocks of about a thousand events, as the log stores them uncompressed.
fn blocks(count: u64) -> Vec<(Offset, Vec<u8>)> {
    let varint = |bytes: &mut Vec<u8>, mut number: usize| {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    };
    let mut numbers = Numbers(1);
    let block = |first: u64| {
        let (mut records, events) = (Vec::new(), first..count.min(first + 1_000));
        let length = (events.end - events.start) as usize;
        for number in events {
            let event = firing(number, &mut numbers);
            varint(&mut records, event.record().len());
            records.extend_from_slice(event.record());
        }
        let mut bytes = vec![FORMAT_VERSION, 0];
        varint(&mut bytes, length);
        varint(&mut bytes, records.len());
        bytes.extend_from_slice(BatchId::ZERO.as_bytes());
        bytes.extend_from_slice(&[0; 64]);
        bytes.extend_from_slice(&records);
        (Offset::new(first), bytes)
    };
    (0..count).step_by(1_000).map(block).collect()
}

fn fold(count: u64) {
    let blocks = blocks(count);
    let read = |(first, bytes): &(Offset, Vec<u8>)| {
        let block = Block::read(BranchId::default(), *first, bytes.clone().into());
        block.and_then(|block| block.events()).expect("the block was just written")
    };
    let decode = timed(count, || blocks.iter().for_each(|block| drop(black_box(read(block)))));
    let (mut graph, mut both) = (Graph::new(), 0.0);
    let before = resident();
    for block in &blocks {
        both += timed(count, || graph.fold(&read(block)).expect("the events fit"));
    }
    let bytes = (resident() - before) / count as f64;
    assert_eq!(graph.head().count(), count);
    row(count, &[decode, both - decode, 1e9 / both, bytes]);
}

/// A graph of `count` nodes `task:n`, made by events of a hundred.
fn of_nodes(count: u64) -> Graph {
    let mut graph = Graph::new();
    for (offset, first) in (0..count).step_by(100).enumerate() {
        let create = |number: u64| Change::Ensure {
            id: format!("task:{number}").into(),
            type_name: "Task".into(),
            properties: object(json!({"status": "open", "points": number % 13})),
        };
        let event = event(offset as u64, (first..first + 100).map(create).collect());
        graph.apply(&event).expect("new ids");
    }
    graph
}

/// Events that each set one property of one random node; all are next for the same graph.
fn sets(graph: &Graph, count: u64, steps: u64, consecutive: bool) -> Vec<Event> {
    let (mut numbers, next) = (Numbers(7), graph.head().next().get());
    let set = |number: u64| {
        let write = Change::Write {
            op: WriteOp::Set,
            id: format!("task:{}", numbers.below(count)).into(),
            properties: object(json!({"status": format!("s{number}")})),
            if_version: None,
        };
        event(if consecutive { next + number } else { next }, vec![write])
    };
    (0..steps).map(set).collect()
}

/// What is told is what the process grew by, so the sizes must grow too.
fn memory(count: u64) {
    let before = resident();
    let mut graph = of_nodes(count);
    let node_bytes = (resident() - before) / count as f64;
    let (mut delta, mut offset) = (Delta::default(), graph.head().next().get());
    let before = resident();
    for first in (0..count).step_by(100) {
        let link = |number: u64| Change::Link {
            id: None,
            type_name: "FOLLOWS".into(),
            from: format!("task:{number}").into(),
            to: format!("task:{}", (number * 7_919) % count).into(),
            properties: Map::new(),
        };
        let links = event(offset, (first..first + 100).map(link).collect());
        graph.apply_into(&links, &mut delta).expect("the nodes are there");
        offset += 1;
    }
    let edge_bytes = (resident() - before) / count as f64;
    let own = |view: Option<projection::ElementView<'_>>| {
        view.map_or(0, |view| view.id().len() + view.properties().as_bytes().len()) as f64
    };
    let node = own(graph.nodes().last().and_then(|node| graph.at(node.into())));
    let edge = own(graph.edges().last().and_then(|edge| graph.at(edge.into())));
    row(count, &[node_bytes, edge_bytes, node, edge]);
}

fn nodes(count: u64) {
    let mut graph = of_nodes(count);
    let mut numbers = Numbers(3);
    let steps = 200_000;
    let ids: Vec<String> = (0..steps).map(|_| format!("task:{}", numbers.below(count))).collect();
    let lookup = timed(steps, || {
        for id in &ids {
            assert!(black_box(graph.find(id)).is_some());
        }
    });
    let again = sets(&graph, count, steps, false);
    let undo = timed(steps, || {
        for event in &again {
            let delta = graph.apply(event).expect("the node is there");
            graph.undo(black_box(delta));
        }
    });
    let mut delta = Delta::default();
    let events = sets(&graph, count, steps, true);
    let apply = timed(steps, || {
        for event in &events {
            graph.apply_into(event, &mut delta).expect("the node is there");
        }
    });
    row(count, &[lookup, apply, undo]);
}

fn clones(count: u64) {
    let mut graph = of_nodes(count);
    let clone = timed(1_000, || (0..1_000).for_each(|_| drop(black_box(graph.clone()))));
    let events = sets(&graph, count, 101_000, true);
    let mut delta = Delta::default();
    let mut apply = |graph: &mut Graph, event: &Event| {
        graph.apply_into(event, &mut delta).expect("the node is there");
    };
    let mut first = 0.0;
    for event in &events[..1_000] {
        let kept = graph.clone();
        first += timed(1_000_000, || apply(&mut graph, event));
        drop(kept);
    }
    let mut thousand = 0.0;
    for block in events[1_000..].chunks(1_000) {
        let kept = graph.clone();
        thousand += timed(100_000_000, || block.iter().for_each(|event| apply(&mut graph, event)));
        drop(kept);
    }
    row(count, &[clone, first, thousand]);
}

fn hashes(count: u64) {
    let mut graph = of_nodes(count);
    let first = timed(1_000_000, || assert_ne!(graph.state_hash(), Hash::ZERO));
    let steps = 65_536.min(count);
    let events = sets(&graph, count, steps, true);
    let before = graph.clone();
    for event in &events {
        graph.apply(event).expect("the node is there");
    }
    let rehash = timed(steps * 1_000, || assert_ne!(graph.state_hash(), Hash::ZERO));
    let mut other = before.clone();
    other.apply(&events[0]).expect("the node is there");
    let (_, _) = (other.state_hash(), before.state_hash());
    let diff = timed(1_000, || assert_eq!(projection::diff(&before, &other).len(), 1));
    let mut bytes = Vec::new();
    let encode = timed(1_000_000, || bytes = graph.encode());
    let decode = timed(1_000_000, || drop(black_box(Graph::decode(&bytes).expect("encoded"))));
    row(count, &[first, rehash, diff, encode, decode]);
}

fn hub(count: u64) {
    let mut graph = of_nodes(100);
    let mut delta = Delta::default();
    let link = |number: u64| Change::Link {
        id: Some(format!("edge:{number}").into()),
        type_name: "FOLLOWS".into(),
        from: "task:0".into(),
        to: format!("task:{}", number % 100).into(),
        properties: Map::new(),
    };
    for first in (0..count).step_by(1_000) {
        let offset = graph.head().next().get();
        let links = event(offset, (first..first + 1_000).map(link).collect());
        graph.apply_into(&links, &mut delta).expect("new ids");
    }
    let next = graph.head().next().get();
    let steps = 10_000;
    let links: Vec<Event> = (0..steps).map(|n| event(next + n, vec![link(count + n)])).collect();
    let mut numbers = Numbers(5);
    let mut removed: Vec<u64> = (0..steps).map(|_| numbers.below(count)).collect();
    removed.sort_unstable();
    removed.dedup();
    let remove = |(nth, number): (usize, &u64)| {
        let id = format!("edge:{number}").into();
        event(next + steps + nth as u64, vec![Change::Remove { id }])
    };
    let removes: Vec<Event> = removed.iter().enumerate().map(remove).collect();
    let mut all = |graph: &mut Graph, events: &[Event]| {
        for event in events {
            graph.apply_into(event, &mut delta).expect("it fits");
        }
    };
    let linked = timed(steps, || all(&mut graph, &links));
    let unlinked = timed(removes.len() as u64, || all(&mut graph, &removes));
    let offset = graph.head().next().get();
    let mut first = 0.0;
    for n in 0..100 {
        let kept = graph.clone();
        let event = event(offset + n, vec![link(1_000_000_000 + n)]);
        first += timed(100_000, || all(&mut graph, std::slice::from_ref(&event)));
        drop(kept);
    }
    row(count, &[linked, unlinked, first]);
}
