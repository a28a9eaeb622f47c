//! Starling: an event is applied to the graph, then the pattern is asked what it changed.

use std::time::Instant;

use log::{Draft, Event, EventId, Offset, WriteOp};
use projection::{Delta, Env, Graph, Pattern, Steps};
use serde_json::{Map, json};

use crate::{CHANGES, CLAIMS, Change, ROUNDS, Run, changes};

pub fn run(query: &str, before: u64) -> Run {
    let pattern = Pattern::parse(query).expect("the query is a pattern");
    let mut graph = Graph::new();
    let mut delta = Delta::default();
    for claim in 0..before {
        for event in events(&graph, claim) {
            graph.apply_into(&event, &mut delta).expect("nothing is in its way");
        }
    }
    // Matching is told apart in rounds of its own: a look at the clock costs what it costs.
    let mut claims = before..;
    let mut stream = |rows: &mut usize, only_matching: bool| {
        let mut us = 0.0;
        for claim in claims.by_ref().take(CLAIMS as usize) {
            let events = events(&graph, claim);
            let start = Instant::now();
            for event in &events {
                graph.apply_into(event, &mut delta).expect("nothing is in its way");
                let start = only_matching.then(Instant::now);
                let steps = Steps::up_to(1_000_000);
                let changed = pattern.delta(&graph, &delta, &Env::EMPTY, &steps);
                let changed = changed.expect("few steps");
                *rows += changed.risen.len() + changed.fallen.len();
                us += start.map_or(0.0, |start| start.elapsed().as_secs_f64() * 1e6);
            }
            if !only_matching {
                us += start.elapsed().as_secs_f64() * 1e6;
            }
        }
        us / (CLAIMS * CHANGES) as f64
    };
    let runs = (0..ROUNDS).map(|_| {
        let mut rows = 0;
        let us = stream(&mut rows, false);
        Run { rows, us, matching_us: stream(&mut 0, true) }
    });
    Run::least(runs)
}

fn events(graph: &Graph, claim: u64) -> Vec<Event> {
    let first = graph.head().count();
    (first..).zip(changes(claim)).map(|(offset, change)| event(offset, change)).collect()
}

fn event(offset: u64, change: Change) -> Event {
    let properties = |value: serde_json::Value| -> Map<String, serde_json::Value> {
        value.as_object().cloned().unwrap_or_default()
    };
    let change = match change {
        Change::Claim(claim) => log::Change::Create {
            id: Some(format!("c{claim}").into()),
            type_name: "Claim".into(),
            properties: properties(json!({"confidence": 0.5})),
        },
        Change::Evidence(claim, n) => log::Change::Create {
            id: Some(format!("e{claim}.{n}").into()),
            type_name: "Evidence".into(),
            properties: properties(json!({"n": n})),
        },
        Change::Supports(claim, n) => log::Change::Link {
            id: Some(format!("s{claim}.{n}").into()),
            type_name: "SUPPORTS".into(),
            from: format!("e{claim}.{n}").into(),
            to: format!("c{claim}").into(),
            properties: Map::new(),
        },
        Change::Confidence(claim) => log::Change::Write {
            op: WriteOp::Set,
            id: format!("c{claim}").into(),
            properties: properties(json!({"confidence": 0.9})),
            if_version: None,
        },
    };
    let mut id = [1u8; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), "claim.changed", "user:bench");
    draft.changes.push(change);
    Event::encode(&draft, Offset::new(offset)).expect("a small event").0
}
