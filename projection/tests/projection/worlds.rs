//! Random histories: the graph is what the model says, can be taken back, copied, stored and
//! hashed.

use std::collections::BTreeMap;

use log::{Change, Event, ValueRef};
use projection::{ElementRef, Graph, World, diff};
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Map, Value, json};

use crate::model::Model;
use crate::random::{events, value};
use crate::{event, graph, node};

/// The events of a history that are not refused, and the model after each of them.
fn accepted(histories: Vec<Vec<Change>>) -> Vec<(Event, Model)> {
    let (mut model, mut accepted) = (Model::default(), Vec::new());
    for changes in histories {
        let offset = accepted.len() as u64;
        let event = event(7, offset, changes.clone());
        if let Some(after) = model.after(event.id(), offset, &changes) {
            model = after;
            accepted.push((event, model.clone()));
        }
    }
    accepted
}

fn folded(events: &[(Event, Model)]) -> Graph {
    let mut graph = Graph::new();
    let events: Vec<Event> = events.iter().map(|(event, _)| event.clone()).collect();
    graph.fold(&events).expect("the model accepts them");
    graph
}

/// Every way of reading the graph agrees with the model.
fn check_reads(world: &impl World, model: &Model) {
    let id = |element: ElementRef| world.at(element).expect("what is listed is there").id();
    let in_order = model.in_order();
    let nodes: Vec<&str> = world.nodes().map(|node| id(node.into())).collect();
    let expected = in_order.iter().filter(|(_, element)| element.ends.is_none());
    assert!(nodes.iter().eq(expected.map(|(id, _)| id)));
    let edges: Vec<&str> = world.edges().map(|edge| id(edge.into())).collect();
    let expected = in_order.iter().filter(|(_, element)| element.ends.is_some());
    assert!(edges.iter().eq(expected.map(|(id, _)| id)));
    for (name, element) in &in_order {
        let found = world.find(name).expect("the model has it");
        let view = world.at(found).expect("it was found");
        assert_eq!((view.id(), view.type_name()), (name.as_str(), element.type_name.as_str()));
        assert_eq!(view.properties_json(), element.properties);
        assert_eq!((view.version(), view.changed().get()), (element.version, element.changed));
        let born = (view.born().offset.get(), view.born().index as usize);
        assert_eq!(born, element.born);
        let ends = view.ends().map(|(from, to)| (id(from.into()), id(to.into())));
        let expected = element.ends.as_ref().map(|(from, to)| (from.as_str(), to.as_str()));
        assert_eq!(ends, expected);
    }
    assert!(
        ["a", "b", "c", "d", "e", "f", "r1", "r2"]
            .iter()
            .all(|name| { world.find(name).is_some() == model.0.contains_key(*name) })
    );
    check_types(world, model);
    check_edges_at_nodes(world, model);
}

fn check_types(world: &impl World, model: &Model) {
    let id = |element: ElementRef| world.at(element).expect("what is listed is there").id();
    for type_name in ["T", "U", "V", "R", "S"] {
        let in_order = model.in_order();
        let of_type = |is_edge: bool| {
            let same = in_order.iter().filter(move |(_, element)| {
                element.type_name == type_name && element.ends.is_some() == is_edge
            });
            same.map(|(id, _)| id.as_str()).collect::<Vec<_>>()
        };
        let Some(type_id) = world.type_id(type_name) else {
            assert!(of_type(true).is_empty() && of_type(false).is_empty());
            continue;
        };
        let nodes: Vec<_> = world.nodes_of_type(type_id).map(|node| id(node.into())).collect();
        let edges: Vec<_> = world.edges_of_type(type_id).map(|edge| id(edge.into())).collect();
        assert_eq!((nodes, edges), (of_type(false), of_type(true)));
    }
}

fn check_edges_at_nodes(world: &impl World, model: &Model) {
    let id = |element: ElementRef| world.at(element).expect("what is listed is there").id();
    let in_order = model.in_order();
    for node in world.nodes() {
        let name = id(node.into());
        for type_name in ["R", "S", "T"] {
            let Some(type_id) = world.type_id(type_name) else { continue };
            let mut expected = (Vec::new(), Vec::new());
            for (id, element) in &in_order {
                let Some((from, to)) = &element.ends else { continue };
                if element.type_name == type_name && from == name {
                    expected.0.push(id.as_str());
                }
                if element.type_name == type_name && to == name {
                    expected.1.push(id.as_str());
                }
            }
            let outward: Vec<_> = world.out_edges(node, Some(type_id)).collect();
            let inward: Vec<_> = world.in_edges(node, Some(type_id)).collect();
            assert!(outward.iter().map(|edge| id((*edge).into())).eq(expected.0));
            assert!(inward.iter().map(|edge| id((*edge).into())).eq(expected.1));
        }
    }
}

/// The index gives what a scan of the model gives.
fn check_index(world: &impl World, model: &Model, value: &Value) {
    let mut writer = log::ValueWriter::default();
    writer.value(value, "value").expect("a small value");
    let wanted = ValueRef::from_checked(&writer.bytes);
    let equal = |found: &Value| match (found.as_f64(), value.as_f64()) {
        (Some(left), Some(right)) => left == right,
        _ => !found.is_null() && found == value,
    };
    for type_name in ["T", "R"] {
        let Some(type_id) = world.type_id(type_name) else { continue };
        let id = |element: ElementRef| world.at(element).expect("what is listed is there").id();
        let nodes = world.nodes_with(type_id, "p", wanted).expect("the index is declared");
        let edges = world.edges_with(type_id, "p", wanted).expect("the index is declared");
        let nodes = nodes.map(|node| id(node.into()));
        let found: Vec<_> = nodes.chain(edges.map(|edge| id(edge.into()))).collect();
        let mut expected = Vec::new();
        for is_edge in [false, true] {
            for (id, element) in model.in_order() {
                let has_it = element.properties.get("p").is_some_and(equal);
                let here = element.ends.is_some() == is_edge && element.type_name == type_name;
                if has_it && here {
                    expected.push(id.as_str());
                }
            }
        }
        assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_graph_is_what_the_model_says(
        histories in events(), wanted in value(), declared in 0usize..30,
    ) {
        let (mut graph, mut model) = (Graph::new(), Model::default());
        for (nth, changes) in histories.into_iter().enumerate() {
            if nth == declared {
                graph.declare_index("T", "p");
                graph.declare_index("R", "p");
            }
            let offset = graph.head().next().get();
            let event = event(7, offset, changes.clone());
            let before = (graph.encode(), graph.state_hash());
            let after = model.after(event.id(), offset, &changes);
            let applied = graph.apply(&event);
            prop_assert_eq!(applied.is_ok(), after.is_some(), "{:?} {:?}", applied, changes);
            match after {
                Some(after) => model = after,
                None => prop_assert_eq!((graph.encode(), graph.state_hash()), before),
            }
            prop_assert_eq!(graph.to_json(), model.to_json());
            check_reads(&graph, &model);
            if nth >= declared {
                check_index(&graph, &model, &wanted);
            }
        }
    }

    /// Only every third state is hashed, so that notes of several events meet in one update.
    #[test]
    fn an_event_taken_back_leaves_no_trace(histories in events(), wanted in value()) {
        let mut graph = Graph::new();
        graph.declare_index("T", "p");
        graph.declare_index("R", "p");
        let mut states: Vec<(Vec<u8>, Model)> = vec![(graph.encode(), Model::default())];
        let mut deltas = Vec::new();
        for (nth, (event, model)) in accepted(histories).into_iter().enumerate() {
            let delta = graph.apply(&event).expect("the model accepts it");
            let empty = delta.is_empty();
            graph.undo(delta);
            let (bytes, before) = states.last().expect("the first state is there");
            prop_assert_eq!(&graph.encode(), bytes);
            check_reads(&graph, before);
            check_index(&graph, before, &wanted);
            if nth % 3 == 0 {
                let fresh = Graph::decode(bytes).expect("just encoded");
                prop_assert_eq!(graph.state_hash(), fresh.state_hash());
            }
            deltas.push(graph.apply(&event).expect("it was accepted before"));
            prop_assert_eq!(empty, model.to_json() == before.to_json());
            states.push((graph.encode(), model));
        }
        while let Some(delta) = deltas.pop() {
            states.pop();
            graph.undo(delta);
            let (bytes, before) = states.last().expect("the first state is there");
            prop_assert_eq!(&graph.encode(), bytes);
            check_reads(&graph, before);
            check_index(&graph, before, &wanted);
            if deltas.len() % 3 == 0 {
                let fresh = Graph::decode(bytes).expect("just encoded");
                prop_assert_eq!(graph.state_hash(), fresh.state_hash());
            }
        }
    }

    #[test]
    fn clones_do_not_see_each_other(
        histories in events(), other in events(), hash in any::<bool>(),
    ) {
        let mut graph = Graph::new();
        let mut kept = Vec::new();
        for (event, model) in accepted(histories) {
            if hash {
                let _ = graph.state_hash();
            }
            kept.push((graph.clone(), graph.encode(), graph.state_hash()));
            graph.apply(&event).expect("the model accepts it");
            prop_assert_eq!(graph.to_json(), model.to_json());
        }
        let (bytes, state_hash) = (graph.encode(), graph.state_hash());
        for (mut copy, bytes, state_hash) in kept {
            prop_assert_eq!(copy.encode(), bytes);
            prop_assert_eq!(copy.state_hash(), state_hash);
            for changes in &other {
                let event = event(9, copy.head().next().get(), changes.clone());
                let _ = copy.apply(&event);
            }
        }
        prop_assert_eq!(graph.encode(), bytes);
        prop_assert_eq!(graph.state_hash(), state_hash);
    }

    #[test]
    fn a_fold_goes_on_from_a_snapshot_as_if_it_had_not_stopped(
        histories in events(), cut in any::<proptest::sample::Index>(),
    ) {
        let events = accepted(histories);
        prop_assert!(!events.is_empty());
        let (first, rest) = events.split_at(cut.index(events.len()));
        let mut restored = Graph::decode(&folded(first).encode()).expect("just encoded");
        let mut graph = folded(first);
        prop_assert_eq!(restored.encode(), graph.encode());
        for (event, model) in rest {
            graph.apply(event).expect("the model accepts it");
            restored.apply(event).expect("the model accepts it");
            prop_assert_eq!(restored.encode(), graph.encode());
            prop_assert_eq!(restored.state_hash(), graph.state_hash());
            check_reads(&restored, model);
        }
    }

    /// The world is built again from nothing in one event, in another order.
    #[test]
    fn the_state_hash_does_not_depend_on_the_way(histories in events(), backward in any::<bool>()) {
        let events = accepted(histories);
        let there = folded(&events);
        let (_, model) = events.last().expect("the first event is accepted");
        let mut parts = model.in_order();
        if backward {
            parts.reverse();
        }
        parts.sort_by_key(|(_, element)| element.ends.is_some());
        let made = parts.iter().map(|(id, element)| made(id, element)).collect();
        let mut again = Graph::new();
        again.apply(&event(3, 0, made)).expect("all ids are different");
        prop_assert_eq!(again.state_hash(), there.state_hash());
        prop_assert!(diff(&again, &there).is_empty());
    }

    #[test]
    fn a_difference_is_what_a_comparison_of_everything_finds(
        histories in events(), cut in any::<proptest::sample::Index>(),
    ) {
        let events = accepted(histories);
        let cut = cut.index(events.len());
        let (first, second) = (folded(&events[..cut]), folded(&events));
        let before = if cut == 0 { Model::default() } else { events[cut - 1].1.clone() };
        let after = &events.last().expect("the first event is accepted").1;
        let found: Vec<&str> = diff(&first, &second).iter().map(|found| found.id).collect();
        let same = |id: &String| match (before.0.get(id), after.0.get(id)) {
            (Some(left), Some(right)) => {
                let of = |e: &crate::model::Element| {
                    (e.type_name.clone(), e.ends.clone(), Value::from(e.properties.clone()))
                };
                of(left) == of(right)
            }
            _ => false,
        };
        let all: BTreeMap<&String, bool> = before.0.iter().chain(&after.0)
            .map(|(id, element)| (id, element.ends.is_some())).collect();
        let mut expected: Vec<(bool, &str)> = all.into_iter()
            .filter(|(id, _)| !same(id)).map(|(id, is_edge)| (is_edge, id.as_str())).collect();
        // An id may be a node's in one world and an edge's in the other: the first world decides.
        for (is_edge, id) in &mut expected {
            *is_edge = before.0.get(*id).or(after.0.get(*id)).is_some_and(|e| e.ends.is_some());
        }
        expected.sort_unstable();
        prop_assert_eq!(found, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        let equal = first.state_hash() == second.state_hash();
        prop_assert_eq!(equal, diff(&first, &second).is_empty());
    }
}

fn made(id: &str, element: &crate::model::Element) -> Change {
    let (id, type_name) = (Some(id.into()), element.type_name.as_str().into());
    let properties = element.properties.clone();
    match &element.ends {
        None => Change::Create { id, type_name, properties },
        Some((from, to)) => {
            let (from, to) = (from.into(), to.into());
            Change::Link { id, type_name, from, to, properties }
        }
    }
}

/// A tree of many branches takes notes of many events and is still what a fresh one is.
#[test]
fn a_large_hash_tree_is_kept_up_to_date() {
    let mut graph = Graph::new();
    let create = |n: u64| Change::Create {
        id: Some(format!("n{n}").into()),
        type_name: "T".into(),
        properties: Map::new(),
    };
    graph.apply(&event(1, 0, (0..3_000).map(create).collect())).expect("new ids");
    let _ = graph.state_hash();
    for offset in 1..400u64 {
        let id = |n: u64| format!("n{}", (n * 7_919) % 3_000).into();
        let write = Change::Write {
            op: log::WriteOp::Add,
            id: id(offset),
            properties: [("p".to_owned(), json!(1))].into_iter().collect(),
            if_version: None,
        };
        let changes = vec![write, Change::Remove { id: id(offset + 500) }];
        let _ = graph.apply(&event(1, offset, changes));
        if graph.head().next().get() != offset + 1 {
            // The element was removed before: something else happens at this offset.
            graph.apply(&event(2, offset, vec![create(10_000 + offset)])).expect("a new id");
        }
        if offset % 16 == 0 {
            let fresh = Graph::decode(&graph.encode()).expect("just encoded");
            assert_eq!(graph.state_hash(), fresh.state_hash());
            assert_eq!(diff(&graph, &fresh).len(), 0);
        }
    }
    assert!(graph.node_count() < 3_000, "some were removed");
}

#[test]
fn a_hub_gains_and_loses_edges_without_a_scan() {
    let mut graph = graph(vec![json!([node("hub", json!({})), node("leaf", json!({}))])]);
    let link = |n: u64| Change::Link {
        id: Some(format!("e{n}").into()),
        type_name: if n.is_multiple_of(2) { "R".into() } else { "S".into() },
        from: "hub".into(),
        to: "leaf".into(),
        properties: Map::new(),
    };
    for block in 0..10u64 {
        let changes = (block * 1_000..(block + 1) * 1_000).map(link).collect();
        graph.apply(&event(1, block + 1, changes)).expect("new ids");
    }
    let hub = graph.node("hub").and_then(|view| view.reference().node()).expect("a node");
    let even = graph.type_id("R").expect("it was linked");
    assert_eq!((graph.out_degree(hub, None), graph.out_degree(hub, Some(even))), (10_000, 5_000));
    let full = graph.clone();
    let remove = (0..10_000).step_by(3).map(|n| Change::Remove { id: format!("e{n}").into() });
    let delta = graph.apply(&event(1, 11, remove.collect())).expect("all are there");
    assert_eq!(graph.out_degree(hub, None), 6_666);
    let kept: Vec<_> = graph.out_edges(hub, Some(even)).collect();
    assert!(kept.is_sorted() && kept.len() == 3_333);
    graph.undo(delta);
    assert_eq!(graph.encode(), full.encode());
    let fall = graph.apply(&event(1, 11, vec![Change::Remove { id: "leaf".into() }]));
    assert_eq!(fall.expect("it is there").touched().count(), 10_001);
    assert_eq!((graph.edge_count(), graph.out_degree(hub, None)), (0, 0));
    assert_eq!(full.edge_count(), 10_000);
}

#[test]
fn a_damaged_snapshot_is_not_believed() {
    let graph =
        graph(vec![json!([node("a", json!({"x": [1, {"y": "é"}]})), node("b", json!({}))])]);
    let bytes = graph.encode();
    assert!(Graph::decode(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Graph::decode(&damaged).is_err(), "byte {at}");
        assert!(Graph::decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    let mut newer = bytes;
    newer[0] = 9;
    let message = Graph::decode(&newer).expect_err("another version").to_string();
    let known = format!("reads {}", projection::SNAPSHOT_VERSION);
    assert!(message.contains("format 9") && message.contains(&known), "{message}");
}
