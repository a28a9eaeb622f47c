//! What a script can say, and what it is told when it says something else.
#![allow(clippy::disallowed_methods, reason = "tests read the sources and use threads")]

mod limits;
mod loading;
mod proposing;
mod seeing;
mod style;

use behaviors::testing::{Scene, react, reply_text};
use script::{Limits, ScriptHost};
use serde_json::{Value, json};

/// A trip, a budget, two flights and an event: what the scripts of these tests see.
fn scene() -> Value {
    let flight = |id: &str, price: Value| {
        let properties = json!({"price": price, "class": "eco"});
        json!({"id": id, "type": "Flight", "properties": properties})
    };
    let trip = json!({
        "status": "compared", "id": "own", "type": "round", "tags": ["a"], "n": 3,
        "config": {"deep": {"k": 1}, "items": [1]},
    });
    json!({
        "event": {
            "kind": "trip.compared",
            "payload": {"a": {"b": 1}, "one": 1, "onef": 1.0, "big": u64::MAX, "small": i64::MIN},
            "key": "once",
        },
        "bound": {
            "b": {"id": "budget:1", "type": "Budget", "properties": {"amount": 3000}},
            "path": [{"id": "e:1", "type": "NEXT", "from": "x", "to": "y"}],
            "trip": {"id": "trip:1", "type": "Trip", "properties": trip},
        },
        "reads": {
            "flights": [flight("f1", 300.into()), flight("f2", 200.5.into())],
            "offers": [{"f": flight("f1", 300.into()), "o": {"id": "o:1", "type": "OFFER",
                "from": "trip:1", "to": "f1"}}],
        },
        "settings": {"margin": 0.1},
        "now": 1_767_603_600_000i64,
    })
}

/// The declaration of a behavior `b` that binds everything in the scene.
const DECLARED: &str = "behavior(name = \"b\", \
     match = \"(trip:Trip)-[path:NEXT*1..3]->(b:Budget)\", \
     reads = {\"flights\": \"(trip)-->(flights)\", \"offers\": \"(trip)-[o:OFFER]->(f)\"})\n";

/// What becomes of a script's first behavior in the scene; as an error if the script is not loaded.
fn outcome(script: &str, limits: Limits) -> String {
    match ScriptHost::new(limits).load("behaviors/b.star", script) {
        Err(error) => format!("not loaded: {error}"),
        Ok(loaded) => reply_text(&react(&**loaded[0].behavior(), &Scene::new(scene()))),
    }
}

/// Runs the body of a reaction that sees everything.
#[track_caller]
fn check(body: &str, expected: &str) {
    let parameters = "def b(event, trip, b, path, flights, offers, settings, rand, now):\n";
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let script = format!("{DECLARED}{parameters}{body}");
    let found = outcome(&script, Limits::default());
    assert_eq!(found.trim_end(), expected, "of:\n{script}");
}

/// Runs the body of a reaction that fails: the message, the place and the line under it.
#[track_caller]
fn check_error(body: &str, line: u32, column: u32, message: &str) {
    let text = body.lines().nth(line as usize - 1).expect("the body has the line");
    let (line, column) = (line + 2, column + 4);
    let caret = format!("{}^", " ".repeat(column as usize - 1));
    check(
        body,
        &format!(
            "error: behaviors/b.star:{line}:{column}: {message}\n{line} |     {text}\n  | {caret}"
        ),
    );
}

/// Loads a script that is refused.
#[track_caller]
fn check_refused(script: &str, expected: &str) {
    let found = outcome(script, Limits::default());
    assert_eq!(found.trim_end(), format!("not loaded: {expected}"), "of:\n{script}");
}
