//! The world before an event, seen through the graph after it, is the world before the event.

use log::ValueRef;
use projection::{Before, ElementRef, Graph, World};
use proptest::prelude::ProptestConfig;
use proptest::{prop_assert_eq, proptest};
use serde_json::Value;

use crate::event;
use crate::random::{events, value};

/// Everything that can be read, as text; numbers of elements included.
fn picture(world: &impl World, wanted: &Value) -> String {
    let mut lines = Vec::new();
    let mut writer = log::ValueWriter::default();
    writer.value(wanted, "value").expect("a small value");
    let wanted = ValueRef::from_checked(&writer.bytes);
    for node in world.nodes() {
        lines.push(format!("{node:?} {:?}", world.at(node.into())));
        for type_name in ["R", "S", "T"] {
            // A type that only the event brought in is known by name, and has nothing.
            let Some(type_id) = world.type_id(type_name) else { continue };
            let outward: Vec<_> = world.out_edges(node, Some(type_id)).collect();
            let inward: Vec<_> = world.in_edges(node, Some(type_id)).collect();
            if !(outward.is_empty() && inward.is_empty()) {
                lines.push(format!("{type_name} {outward:?} {inward:?}"));
            }
        }
        lines.push(format!("all {:?}", world.out_edges(node, None).collect::<Vec<_>>()));
        lines.push(format!("all {:?}", world.in_edges(node, None).collect::<Vec<_>>()));
    }
    for edge in world.edges() {
        let view = world.at(edge.into()).expect("it is listed");
        lines.push(format!("{edge:?} {view:?} {:?}", view.ends()));
    }
    for type_name in ["T", "U", "V", "R", "S"] {
        let Some(type_id) = world.type_id(type_name) else { continue };
        let nodes: Vec<_> = world.nodes_of_type(type_id).collect();
        let edges: Vec<_> = world.edges_of_type(type_id).collect();
        if !(nodes.is_empty() && edges.is_empty()) {
            lines.push(format!("{type_name} {nodes:?} {edges:?}"));
        }
        if let Some(nodes) = world.nodes_with(type_id, "p", wanted) {
            let nodes: Vec<_> = nodes.collect();
            let edges = world.edges_with(type_id, "p", wanted).expect("the same index");
            let edges: Vec<_> = edges.collect();
            if !(nodes.is_empty() && edges.is_empty()) {
                lines.push(format!("{type_name} with {nodes:?} {edges:?}"));
            }
        }
    }
    for id in ["a", "b", "c", "d", "e", "f", "r1", "r2"] {
        lines.push(format!("{id} {:?}", world.find(id)));
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_world_before_is_seen_through_the_graph_after(histories in events(), wanted in value()) {
        let mut graph = Graph::new();
        graph.declare_index("T", "p");
        graph.declare_index("R", "p");
        for changes in histories {
            let event = event(7, graph.head().next().get(), changes);
            let before = graph.clone();
            let Ok(delta) = graph.apply(&event) else { continue };
            let expected = picture(&before, &wanted);
            prop_assert_eq!(picture(&Before::new(&graph, &delta), &wanted), expected);
            for element in delta.touched() {
                let now = World::at(&graph, element).map(|view| format!("{view:?}"));
                let old = delta.before(&graph, element).map(|view| format!("{view:?}"));
                prop_assert_eq!(&old, &before.at(element).map(|view| format!("{view:?}")));
                prop_assert_eq!(delta.created(element), old.is_none());
                assert_ne!(now, old, "what is touched is another");
            }
            let untouched = |element: &ElementRef| delta.touched().all(|other| other != *element);
            let all = before.nodes().map(ElementRef::Node);
            for element in all.chain(before.edges().map(ElementRef::Edge)).filter(untouched) {
                let old = before.at(element).map(|view| format!("{view:?}"));
                prop_assert_eq!(World::at(&graph, element).map(|view| format!("{view:?}")), old);
            }
        }
    }
}
