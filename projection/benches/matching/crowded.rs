//! Where much matches, and where much hangs on one node: what a change costs there.

use log::Change;
use projection::Graph;
use serde_json::json;

use crate::{create, events, link, measure, pattern_for, print_cost, print_head, set, world_of};

pub(crate) fn run() {
    println!("\n(d) 20 % of all nodes match; each change makes a match or undoes one");
    for text in ["(n:N {on: true})", "(n:N {on: true})-[:NEXT]->(m:N)"] {
        println!("{text}");
        print_head("nodes");
        for nodes in [1_000, 10_000, 100_000, 1_000_000] {
            let mut world = row_of_nodes(nodes);
            let pattern = pattern_for(text, &mut world);
            // Every fifth is on; a node is turned, and the next change turns it back.
            let turn = |n: u64| {
                let node = (n / 2) * 7919 % nodes;
                let on = node.is_multiple_of(5) == (n % 2 == 1);
                set(format!("n{node}"), json!({"on": on}))
            };
            let changes: Vec<Change> = (0..4_000).map(turn).collect();
            let events = events(world.head().count(), changes);
            print_cost(&nodes.to_string(), &measure(&pattern, &world, &events));
        }
    }
    hub();
}

/// Nodes in a row, every fifth of which is on.
fn row_of_nodes(nodes: u64) -> Graph {
    world_of((0..nodes).map(|n| {
        let node = create(format!("n{n}"), "N", json!({"on": n.is_multiple_of(5)}));
        let edge = |before: u64| link("NEXT", format!("n{before}"), format!("n{n}"));
        [node].into_iter().chain(n.checked_sub(1).map(edge)).collect()
    }))
}

fn hub() {
    const SPOKES: u64 = 100_000;
    let spoke = |n: u64| {
        [create(format!("a{n}"), "A", json!({})), link("AT", format!("a{n}"), "hub".to_owned())]
    };
    let first = vec![create("hub".to_owned(), "Hub", json!({"open": true}))];
    let mut world = world_of([first].into_iter().chain((0..SPOKES).map(|n| spoke(n).into())));
    for text in ["(a:A {new: 1})-[:AT]->(h:Hub {open: true})", "(a:A)-[:AT]->(h:Hub {open: true})"]
    {
        println!("\n(d) a hub of 10^5 edges: {text}");
        print_head("change");
        let pattern = pattern_for(text, &mut world);
        let changes = |changes: Vec<Change>| events(world.head().count(), changes);
        let spokes = SPOKES..SPOKES + 500;
        let cases = [
            ("a spoke is added", changes(spokes.flat_map(spoke).collect())),
            (
                "a spoke is written",
                changes(
                    (0..1000).map(|n| set(format!("a{}", n * 97), json!({"new": 1}))).collect(),
                ),
            ),
            (
                "a spoke is removed",
                changes(
                    (0..1000)
                        .map(|n| Change::Remove { id: format!("a{}", n * 89).into() })
                        .collect(),
                ),
            ),
            (
                "the hub is written",
                changes((0..1000).map(|n| set("hub".to_owned(), json!({"other": n}))).collect()),
            ),
            (
                "the hub is closed, opened",
                changes(
                    (0..4).map(|n| set("hub".to_owned(), json!({"open": n % 2 == 1}))).collect(),
                ),
            ),
        ];
        for (about, events) in cases {
            print_cost(about, &measure(&pattern, &world, &events));
        }
    }
}
