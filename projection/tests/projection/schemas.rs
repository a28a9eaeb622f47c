//! A schema holds for every change alike, and is part of the fold.

use log::Change;
use projection::{Graph, Refusal, SCHEMA_DECLARED};
use serde_json::{Value, json};

use crate::{apply, changes, event_of_kind, node, property};

fn declare(graph: &mut Graph, payload: Value, changes: Vec<Change>) -> Result<(), Refusal> {
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    let offset = graph.head().next().get();
    let event = event_of_kind(SCHEMA_DECLARED, payload, 1, offset, changes);
    let before = graph.clone();
    let delta = graph.apply(&event).inspect_err(|_| assert_eq!(graph.encode(), before.encode()))?;
    let after = graph.encode();
    graph.undo(delta);
    assert_eq!(graph.encode(), before.encode());
    graph.apply(&event).expect("it was accepted before");
    assert_eq!(graph.encode(), after);
    Ok(())
}

fn positive() -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 0},
            "name": {"type": "string", "pattern": "^[a-z]+$"},
        },
        "required": ["n"],
    })
}

#[test]
fn every_change_is_checked() {
    let mut graph = Graph::new();
    declare(&mut graph, json!({"type": "T", "schema": positive()}), Vec::new()).expect("a schema");
    apply(&mut graph, json!([node("a", json!({"n": 1})), {"ensure": "b", "type": "U"}]))
        .expect("it fits");
    for bad in [
        json!([{"set": "a", "properties": {"n": -1}}]),
        json!([{"add": "a", "properties": {"n": -2}}]),
        json!([{"append": "a", "properties": {"name": "x"}}]),
        json!([{"unset": "a", "names": ["n"]}]),
        json!([{"create": null, "type": "T", "properties": {}}]),
        json!([node("c", json!({"n": 1.5}))]),
        json!([{"link": "T", "from": "a", "to": "b"}]),
    ] {
        let message = apply(&mut graph, bad).expect_err("it does not fit").to_string();
        assert!(message.contains("would not fit the schema of `T`"), "{message}");
        assert!(message.starts_with("change 0: "), "{message}");
    }
    // What counts is how an element is after the whole event.
    let passing = json!([
        {"set": "a", "properties": {"n": -5}}, {"add": "a", "properties": {"n": 7}},
    ]);
    apply(&mut graph, passing).expect("it fits in the end");
    assert_eq!(property(&graph, "a", "n"), json!(2));
    let restored = Graph::decode(&graph.encode()).expect("just encoded");
    assert_eq!(restored.schema("T"), Some(&positive()));
    let mut restored = restored;
    assert!(apply(&mut restored, json!([{"set": "a", "properties": {"n": -1}}])).is_err());
    declare(&mut graph, json!({"type": "T", "schema": null}), Vec::new()).expect("it is dropped");
    apply(&mut graph, json!([{"set": "a", "properties": {"n": -1}}])).expect("no schema");
}

#[test]
fn a_schema_is_declared_only_if_every_element_fits_it() {
    let mut graph = Graph::new();
    apply(&mut graph, json!([node("a", json!({"n": 1})), node("b", json!({}))]))
        .expect("no schema");
    let payload = json!({"type": "T", "schema": positive()});
    let message = declare(&mut graph, payload.clone(), Vec::new()).expect_err("b does not fit");
    assert!(message.to_string().starts_with("`b` would not fit the schema of `T`"), "{message}");
    assert_eq!(graph.schema("T"), None);
    let mended = changes(json!([{"set": "b", "properties": {"n": 0}}]));
    declare(&mut graph, payload, mended).expect("b fits after the same event");
    assert_eq!(graph.schema("T"), Some(&positive()));
}

#[test]
fn what_is_not_a_schema_is_refused() {
    let mut graph = Graph::new();
    for payload in [
        json!({"schema": {}}),
        json!({"type": "T"}),
        json!({"type": "T", "schema": 1}),
        json!({"type": "T", "schema": {"type": "nothing"}}),
        json!({"type": "T", "schema": {"$ref": "https://example.org/schema.json"}}),
        json!({"type": "T", "schema": {"$ref": "file:///etc/hostname"}}),
        json!({"type": "T", "schema": {"pattern": "("}}),
    ] {
        let message = declare(&mut graph, payload, Vec::new()).expect_err("refused").to_string();
        assert!(message.contains("cannot be used: "), "{message}");
    }
}

#[test]
fn a_long_text_is_checked_by_what_is_in_sight() {
    let mut graph = Graph::new();
    let schema = json!({"properties": {"text": {"type": "string", "pattern": "^x"}}});
    declare(&mut graph, json!({"type": "T", "schema": schema}), Vec::new()).expect("a schema");
    let long = "x".repeat(10_000);
    apply(&mut graph, json!([node("a", json!({"text": long}))])).expect("it begins with x");
    let other = "y".repeat(10_000);
    let refused = apply(&mut graph, json!([{"set": "a", "properties": {"text": other}}]));
    let message = refused.expect_err("it begins with y").to_string();
    assert!(message.contains(" at /text: "), "{message}");
}
