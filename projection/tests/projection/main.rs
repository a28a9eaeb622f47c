//! The projection against a naive model, and claim by claim.

mod absences;
mod before;
mod changes;
mod fuzzed;
mod model;
mod oracle;
mod railways;
mod random;
mod schemas;
#[path = "../../../tests/fuzz/src/target.rs"]
mod target;
mod train;
mod worlds;

use log::{Change, Draft, Event, EventId, Offset};
use projection::{Delta, Graph, Refusal};
use serde_json::{Map, Value, json};

/// The event number `offset` of a branch, with an id that depends on `salt`.
fn event(salt: u8, offset: u64, changes: Vec<Change>) -> Event {
    event_of_kind("test.happened", Map::new(), salt, offset, changes)
}

fn event_of_kind(
    kind: &str,
    payload: Map<String, Value>,
    salt: u8,
    offset: u64,
    changes: Vec<Change>,
) -> Event {
    let mut id = [salt; 16];
    id[..8].copy_from_slice(&offset.to_le_bytes());
    let mut draft = Draft::new(EventId::from_bytes(id), kind, "user:test");
    draft.payload = payload;
    draft.changes = changes;
    Event::encode(&draft, Offset::new(offset)).expect("a test event fits").0
}

/// Changes as people write them.
fn changes(json: Value) -> Vec<Change> {
    let Value::Array(items) = json else { panic!("a list of changes, found {json}") };
    let read = |item: &Value| Change::from_json(item, "changes").expect("a change");
    items.iter().map(read).collect()
}

/// Applies changes as the next event of the graph.
fn apply(graph: &mut Graph, json: Value) -> Result<Delta, Refusal> {
    let event = event(1, graph.head().next().get(), changes(json));
    let before = graph.encode();
    let validated = graph.validate(&event);
    assert_eq!(graph.encode(), before, "validation has no effect");
    let applied = graph.apply(&event);
    assert_eq!(applied.as_ref().err(), validated.as_ref().err());
    if applied.is_err() {
        assert_eq!(graph.encode(), before, "a refused event has no effect");
    }
    applied
}

/// A graph after one event per list of changes.
fn graph(events: Vec<Value>) -> Graph {
    let mut graph = Graph::new();
    for changes in events {
        apply(&mut graph, changes).expect("the changes fit");
    }
    graph
}

/// One property of an element as JSON; null when it is missing.
fn property(graph: &Graph, id: &str, name: &str) -> Value {
    let view = graph.element(id).expect("the element is there");
    view.property(name).map_or(Value::Null, log::ValueRef::to_json)
}

/// `{"ensure": id, "type": "T", "properties": …}`
fn node(id: &str, properties: Value) -> Value {
    let mut node = json!({"ensure": id, "type": "T"});
    node["properties"] = properties;
    node
}
