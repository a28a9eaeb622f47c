//! Claims and the evidence for them: what a change costs does not grow with the world.
//!
//! A claim has two pieces of evidence. The stream adds further claims, each by five inserts (the
//! claim, two pieces of evidence, two edges) and one update that makes its condition true.

use log::Change;
use projection::Graph;
use serde_json::json;

use crate::{create, events, link, measure, pattern_for, print_cost, print_head, set, world_of};

const PATTERNS: [(&str, &str); 6] = [
    ("(a) one edge", "(e:Evidence)-[:SUPPORTS]->(c:Claim) WHERE c.confidence > 0.7"),
    (
        "(a) two joined",
        "(e:Evidence)-[:SUPPORTS]->(c:Claim)<-[:SUPPORTS]-(f:Evidence) WHERE c.confidence > 0.7",
    ),
    (
        "(b) NOT EXISTS",
        "(c:Claim) WHERE c.confidence > 0.7 AND NOT EXISTS { (c)<-[:SUPPORTS]-(e:Evidence) WHERE e.n > 1 }",
    ),
    ("(b) *1..3", "(e:Evidence)-[:SUPPORTS*1..3]->(c:Claim) WHERE c.confidence > 0.7"),
    (
        "an equality, indexed",
        "(c:Claim), (e:Evidence) WHERE e.about = c.number AND c.confidence > 0.7",
    ),
    ("another type", "(t:Token {state: 'ready'})"),
];

/// The elements of one claim.
const ELEMENTS: u64 = 5;
const CLAIMS: u64 = 2_000;

pub(crate) fn run() {
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let mut worlds: Vec<Graph> = sizes.iter().map(|size| world(size / ELEMENTS)).collect();
    for (about, text) in PATTERNS {
        println!("\n{about}: {text}");
        print_head("elements");
        for (size, world) in sizes.iter().zip(&mut worlds) {
            let pattern = pattern_for(text, world);
            let claims = size / ELEMENTS..size / ELEMENTS + CLAIMS;
            let changes = claims.flat_map(|claim| inserts(claim).into_iter().chain([raise(claim)]));
            let events = events(world.head().count(), changes);
            print_cost(&size.to_string(), &measure(&pattern, world, &events));
        }
    }
}

fn world(claims: u64) -> Graph {
    world_of((0..claims).map(|claim| inserts(claim).into()))
}

fn inserts(claim: u64) -> [Change; 5] {
    let evidence =
        |n: u64| create(format!("e{claim}.{n}"), "Evidence", json!({"n": n, "about": claim}));
    let supports = |n: u64| link("SUPPORTS", format!("e{claim}.{n}"), format!("c{claim}"));
    let properties = json!({"confidence": 0.5, "number": claim});
    [
        create(format!("c{claim}"), "Claim", properties),
        evidence(0),
        evidence(1),
        supports(0),
        supports(1),
    ]
}

fn raise(claim: u64) -> Change {
    set(format!("c{claim}"), json!({"confidence": 0.9}))
}
