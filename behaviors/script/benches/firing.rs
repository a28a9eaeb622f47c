//! How long one firing of a script takes, from its firing to its proposals, on one core.
//!
//! Each row is the best of five runs; `from message` adds what a host in another process does: it
//! reads the firing from its message and writes the reply.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use behaviors::testing::Scene;
use behaviors::{Behavior, Proposals};
use script::ScriptHost;
use serde_json::{Value, json};

const EMPTY: &str = r#"
behavior(name = "rest", match = "(cell:Cell)")
def rest(cell):
    pass
"#;

const SMALL: &str = r#"
behavior(name = "pay", match = "(trip:Trip)-[:WITHIN]->(b:Budget)")
def pay(trip, b):
    if trip.cost <= b.amount:
        emit("trip.paid", {"trip": trip.id},
             set(trip, status = "paid"), add(b, amount = -trip.cost))
"#;

const LIFE: &str = r#"
behavior(
    name = "live_or_die", on = "clock.ticked", match = "(cell:Cell)", each = True,
    reads = {"around": "(cell)-[:NEXT_TO]-(around:Cell)"},
)
def live_or_die(cell, around):
    alive = len([c for c in around if c.alive])
    lives = alive == 3 or (cell.alive and alive == 2)
    if lives != cell.alive:
        emit("cell.changed", {"cell": cell.id, "alive": lives},
             set(cell, alive = lives), add(cell, changes = 1))
"#;

const ANT: &str = r#"
behavior(
    name = "choose_branch", match = "(ant:Ant {at: 'nest'})",
    reads = {"branches": "(ant)-[:SEES]->(branches:Branch)"},
)
def choose_branch(ant, branches, rand):
    weights = [b.tau * b.tau for b in branches]
    draw = rand.uniform() * sum(weights)
    chosen = branches[0] if draw < weights[0] else branches[1]
    emit("path.chosen", {"ant": ant.id, "branch": chosen.id},
         set(ant, at = "way", branch = chosen.id, left = chosen.length))
"#;

fn cell(number: u64, alive: bool) -> Value {
    let properties = json!({"x": number, "y": number + 7, "alive": alive, "changes": 3});
    json!({"id": format!("Cell#{number:032x}"), "type": "Cell", "properties": properties})
}

fn scenes() -> Vec<(&'static str, &'static str, Value)> {
    let around: Vec<Value> = (1..9).map(|n| cell(n, n <= 3)).collect();
    let trip =
        json!({"id": "trip:1", "type": "Trip", "properties": {"status": "open", "cost": 70}});
    let budget = json!({"id": "budget:1", "type": "Budget", "properties": {"amount": 3000}});
    let branch = |name: &str, tau: u32, length: u32| {
        let properties = json!({"tau": tau, "length": length});
        json!({"id": name, "type": "Branch", "properties": properties})
    };
    let ant = json!({"id": "ant:7", "type": "Ant", "properties": {"at": "nest"}});
    vec![
        ("empty reaction", EMPTY, json!({"bound": {"cell": cell(0, false)}})),
        (
            "small: 2 elements, 1 event, 2 changes",
            SMALL,
            json!({"bound": {"b": budget, "trip": trip}}),
        ),
        (
            "life: 9 elements, 1 event, 2 changes",
            LIFE,
            json!({"bound": {"cell": cell(0, false)}, "reads": {"around": around}}),
        ),
        (
            "ant: 3 elements, 1 draw, 1 event, 1 change",
            ANT,
            json!({
                "bound": {"ant": ant},
                "reads": {"branches": [branch("short", 3, 1), branch("long", 2, 2)]},
            }),
        ),
    ]
}

/// Nanoseconds a call, best of five runs.
fn best(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    let mut run = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn react(behavior: &dyn Behavior, firing: &behaviors::Firing<'_>) -> usize {
    let mut out = Proposals::new(behavior.metadata(), firing);
    behavior.react(firing, &mut out).expect("the reaction succeeds");
    out.finish().expect("its proposals are in order").proposals.len()
}

fn main() {
    let host = ScriptHost::default();
    println!("{:<44} {:>10} {:>12} {:>16}", "script", "µs/firing", "firings/s", "from message, µs");
    for (name, source, scene) in scenes() {
        let loaded = host.load("behaviors/bench.star", source).expect("it loads");
        let behavior = &**loaded[0].behavior();
        let scene = Scene::new(scene);
        let firing = scene.firing(&behavior.metadata().name);
        let nanos = best(|| {
            black_box(react(behavior, &firing));
        });
        let message = firing.encode();
        let decoded = best(|| {
            let firing = behaviors::Firing::decode(&message).expect("a message");
            black_box(behaviors::encode_reply(&{
                let mut out = Proposals::new(behavior.metadata(), &firing);
                behavior.react(&firing, &mut out).and_then(|()| out.finish())
            }));
        });
        println!("{name:<44} {:>10.2} {:>12.0} {:>16.2}", nanos / 1e3, 1e9 / nanos, decoded / 1e3);
    }
}
