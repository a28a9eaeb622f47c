//! What each change does, and why it is refused.

use log::element_id;
use projection::{Operation, Refusal, World, check_chosen_id};
use serde_json::{Value, json};

use crate::{apply, changes, event, graph, node, property};

/// The message of a refusal.
fn refused(before: Value, changes: Value) -> String {
    let mut graph = graph(vec![before]);
    apply(&mut graph, changes).expect_err("the changes do not fit").to_string()
}

#[test]
fn a_derived_id_names_the_event_and_the_change() {
    let event = event(
        5,
        0,
        changes(json!([
            node("a", json!({})),
            {"create": null, "type": "Task", "properties": {"n": 1}},
            {"link": "OWNS", "from": "a", "to": "#1"},
            {"ensure_link": "OWNS", "from": "a", "to": "#1"},
            {"set": "#2", "properties": {"since": 1}},
        ])),
    );
    let mut graph = projection::Graph::new();
    let delta = graph.apply(&event).expect("the changes fit");
    let task = element_id("Task", &event.id(), 1);
    assert_eq!(property(&graph, &task, "n"), json!(1));
    let link = element_id("OWNS", &event.id(), 2);
    assert_eq!(property(&graph, &link, "since"), json!(1));
    let ensured = log::ensured_edge_id("OWNS", "a", &task);
    assert!(graph.edge(&ensured).is_some() && graph.node(&ensured).is_none());
    assert_eq!((graph.node_count(), graph.edge_count()), (2, 2));
    assert_eq!(delta.target(4), delta.target(2));
    assert_eq!(graph.find_prefix(&link[..9], 10).len(), 1);
    assert_eq!(graph.find_prefix("OWNS#", 1).len(), 1);
}

#[test]
fn an_equal_write_leaves_everything_alone() {
    let mut graph = graph(vec![json!([node("a", json!({"x": 1, "l": [1]}))])]);
    let before = (graph.state_hash(), graph.to_json());
    let equal = json!([
        {"set": "a", "properties": {"x": 1}}, {"add": "a", "properties": {"x": 0}},
        {"unset": "a", "names": ["y"]}, {"set": "a", "properties": {}},
        node("a", json!({"x": 2})), {"remove": "b"},
    ]);
    let delta = apply(&mut graph, equal).expect("the changes fit");
    assert!(delta.is_empty());
    assert_eq!((graph.state_hash(), graph.to_json()), before);
    // A float is another value than a whole number, and null another than a missing one.
    let other = json!([{"set": "a", "properties": {"x": 1.0, "y": null}}]);
    assert_eq!(apply(&mut graph, other).expect("the changes fit").touched().count(), 1);
    let view = graph.node("a").expect("it is there");
    assert_eq!((view.version(), view.changed().get()), (2, 2));
    assert_ne!(graph.state_hash(), before.0);
}

#[test]
fn numbers_are_added_exactly_and_items_appended() {
    let mut graph = graph(vec![json!([node("a", json!({"big": 9007199254740993i64, "n": null}))])]);
    let add = json!([
        {"add": "a", "properties": {"big": 2, "n": 3, "missing": 1.5, "mixed": 1}},
        {"add": "a", "properties": {"mixed": 0.5}},
        {"append": "a", "properties": {"list": {"x": 1}}},
        {"append": "a", "properties": {"list": 2}},
    ]);
    apply(&mut graph, add).expect("the changes fit");
    let found = ["big", "n", "missing", "mixed", "list"].map(|name| property(&graph, "a", name));
    let expected =
        [json!(9007199254740995i64), json!(3), json!(1.5), json!(1.5), json!([{"x": 1}, 2])];
    assert_eq!(found, expected);
    let long: Vec<u32> = (0..200).collect();
    apply(&mut graph, json!([{"set": "a", "properties": {"list": long}}])).expect("it fits");
    apply(&mut graph, json!([{"append": "a", "properties": {"list": 200}}])).expect("it fits");
    assert_eq!(property(&graph, "a", "list"), json!((0..201).collect::<Vec<u32>>()));
}

#[test]
fn what_cannot_be_added_or_appended_is_refused_by_name() {
    let there = json!([node("a", json!({"n": i64::MAX, "f": 1e308, "t": "x", "l": []}))]);
    let add = |name: &str, value: Value| json!([{"add": "a", "properties": {name: value}}]);
    let message = refused(there.clone(), add("n", json!(1)));
    assert!(
        message
            .starts_with("change 0: adding 1 to `n` of `a`, which is 9223372036854775807, overf")
    );
    let message = refused(there.clone(), add("f", json!(1e308)));
    assert!(message.contains("which is 1e+308, gives a number that is not finite"), "{message}");
    let message = refused(there.clone(), add("t", json!(1)));
    assert!(message.contains("it takes numbers, and the property is a text, \"x\""), "{message}");
    let message = refused(there.clone(), add("n", json!("1")));
    assert!(message.contains("what is added is a text"), "{message}");
    assert!(refused(there.clone(), add("n", json!(true))).contains("a truth value"));
    let append = |name: &str, value: Value| json!([{"append": "a", "properties": {name: value}}]);
    let message = refused(there.clone(), append("n", json!(1)));
    assert!(message.contains("it takes a list, and the property is a number"), "{message}");
    let deep = (0..62).fold(json!(1), |inner, _| json!([inner]));
    let mut deepest = graph(vec![there.clone()]);
    apply(&mut deepest, append("l", deep.clone())).expect("63 deep");
    assert_eq!(
        projection::Graph::decode(&deepest.encode()).expect("valid").to_json(),
        deepest.to_json()
    );
    assert!(refused(there, append("l", json!([deep]))).contains("nest more than 64 deep"));
}

#[test]
fn all_changes_or_none() {
    let mut graph = graph(vec![json!([node("a", json!({"x": 1})), node("b", json!({}))])]);
    let before = (graph.state_hash(), graph.encode());
    let refused = apply(
        &mut graph,
        json!([
            {"set": "a", "properties": {"x": 2}},
            {"create": null, "type": "New", "properties": {}},
            {"link": "R", "from": "a", "to": "#1"},
            {"remove": "b"},
            {"set": "a", "properties": {"x": 3}, "if_version": 1},
        ]),
    );
    let expected = Refusal::Version { change: 4, id: "a".into(), expected: 1, actual: 2 };
    assert_eq!(refused.err(), Some(expected));
    assert_eq!((graph.state_hash(), graph.encode()), before);
    assert_eq!(graph.type_id("New"), None);
}

#[test]
fn a_write_to_what_is_not_there_is_refused() {
    for change in [
        json!({"set": "x", "properties": {"n": 1}}),
        json!({"add": "x", "properties": {"n": 1}}),
        json!({"append": "x", "properties": {"n": 1}}),
        json!({"unset": "x", "names": ["n"]}),
    ] {
        let message = refused(json!([]), json!([change]));
        assert!(
            message.contains("`x`: there is no such node or edge; create it first"),
            "{message}"
        );
    }
}

#[test]
fn ends_must_be_nodes_that_are_there() {
    let there = json!([node("a", json!({})), {"link": "R", "id": "e", "from": "a", "to": "a"}]);
    for operation in ["link", "ensure_link"] {
        let message = refused(there.clone(), json!([{operation: "R", "from": "a", "to": "x"}]));
        assert!(
            message.contains("a `R` edge cannot go to `x`: there is no such node"),
            "{message}"
        );
        let message = refused(there.clone(), json!([{operation: "R", "from": "e", "to": "a"}]));
        assert!(message.contains("cannot go from `e`: that is an edge"), "{message}");
        let message = refused(there.clone(), json!([{operation: "R", "from": "#0", "to": "a"}]));
        assert!(message.contains("`#0` must name an earlier change"), "{message}");
    }
}

#[test]
fn an_id_is_given_once() {
    let there = json!([node("a", json!({})), {"link": "R", "id": "e", "from": "a", "to": "a"}]);
    let message = refused(there.clone(), json!([{"create": "a", "type": "T", "properties": {}}]));
    assert!(message.contains("`a` exists already") && message.contains("`ensure`"), "{message}");
    let again = json!([{"link": "R", "id": "e", "from": "a", "to": "a"}]);
    assert!(refused(there.clone(), again).contains("`ensure_link`"));
    let mut graph = graph(vec![there]);
    let ensured = json!([{"ensure_link": "R", "from": "a", "to": "a"}]);
    apply(&mut graph, ensured.clone()).expect("a new edge");
    assert_eq!(graph.edge_count(), 2);
    assert!(apply(&mut graph, ensured).expect("it is there").is_empty());
    // What was removed may come again; it is another element.
    apply(&mut graph, json!([{"remove": "a"}, node("a", json!({}))])).expect("it is free");
    let view = graph.node("a").expect("it is there again");
    assert_eq!((view.version(), view.born().offset.get(), view.born().index), (1, 3, 1));
    assert_eq!(graph.edge_count(), 0);
}

#[test]
fn ids_that_came_with_an_import_are_accepted_and_cannot_be_chosen() {
    let graph = graph(vec![json!([node("T#0123", json!({}))])]);
    assert!(graph.node("T#0123").is_some());
    for id in ["", "T#0123", "#1", "a\nb", &"x".repeat(201)] {
        let message = check_chosen_id(id).expect_err("not to be chosen").to_string();
        assert!(message.contains("cannot be chosen"), "{message}");
    }
    for id in ["trip:shenzhen", "é", "a b", &"x".repeat(200)] {
        assert!(check_chosen_id(id).is_ok());
    }
}

#[test]
fn events_are_applied_in_order() {
    let mut graph = graph(vec![json!([])]);
    for offset in [0, 2] {
        let refused = graph.apply(&event(1, offset, Vec::new())).expect_err("not its turn");
        assert!(refused.to_string().contains(&format!("offset {offset}")), "{refused}");
    }
    assert!(graph.apply(&event(1, 1, Vec::new())).is_ok());
}

#[test]
fn a_delta_tells_what_was_written() {
    let mut graph = graph(vec![json!([node("a", json!({"x": 1})), node("b", json!({}))])]);
    let event = event(
        1,
        1,
        changes(json!([
            {"set": "a", "properties": {"x": 1, "y": 2}},
            {"unset": "a", "names": ["z"]},
            node("a", json!({"w": 1})),
            node("c", json!({"v": 1})),
            {"add": "#3", "properties": {"v": 1}},
            {"remove": "b"},
            {"append": "a", "properties": {"l": 1}},
        ])),
    );
    let delta = graph.apply(&event).expect("the changes fit");
    let written = delta.written(&event).map(|written| {
        let view = graph.at(written.element).expect("it is there");
        (written.change, view.id(), written.property, written.operation)
    });
    let written: Vec<_> = written.collect();
    assert_eq!(
        written,
        [
            (0, "a", "x", Operation::Set),
            (0, "a", "y", Operation::Set),
            (1, "a", "z", Operation::Unset),
            (3, "c", "v", Operation::Set),
            (4, "c", "v", Operation::Add),
            (6, "a", "l", Operation::Append),
        ]
    );
}
