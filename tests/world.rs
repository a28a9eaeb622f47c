//! The fold: the world at an offset is a function of the events up to it, however it is reached.

use log::{Event, Head};
use projection::Graph;
use runtime::Overrides;
use serde_json::json;

use crate::examples;
use crate::oracle;
use crate::recover::uninterrupted;
use crate::support::flock::{Running, start_folder};
use crate::support::{draft, long};

/// Logs with every change that the model and the examples know.
fn logs() -> Vec<Vec<Event>> {
    let cases = oracle::committed().into_iter().step_by(if long() { 1 } else { 8 });
    let mut logs: Vec<_> = cases.map(|case| uninterrupted(&case, 2048, 1).2.events).collect();
    let settings = ["generations=4"].map(str::to_owned).to_vec();
    let overrides = Overrides { settings, ..Overrides::default() };
    let mut life: Running = start_folder(&examples::folder("life"), &overrides);
    examples::live_until(&mut life, 4);
    logs.push(life.events());
    logs
}

fn fold(events: &[Event]) -> Graph {
    let mut graph = Graph::new();
    events.iter().for_each(|event| {
        graph.apply(event).expect("a log of the engine folds");
    });
    graph
}

#[test]
fn the_fold_of_every_prefix_is_the_graph_built_event_by_event() {
    for events in logs() {
        let mut graph = Graph::new();
        for (nth, event) in events.iter().enumerate() {
            graph.apply(event).unwrap();
            // Hashed at each event here, once there: what is rehashed lazily must not show.
            let whole = fold(&events[..=nth]);
            assert_eq!(graph.state_hash(), whole.state_hash(), "@{nth}");
            assert_eq!(graph.encode(), whole.encode(), "@{nth}");
            assert_eq!(graph.head(), Head::after(event.offset()));
        }
    }
}

#[test]
fn an_event_that_is_taken_back_leaves_the_graph_before_it() {
    for events in logs() {
        let mut graph = Graph::new();
        for event in &events {
            let (hash, bytes) = (graph.state_hash(), graph.encode());
            let delta = graph.apply(event).unwrap();
            graph.undo(delta);
            assert_eq!(graph.state_hash(), hash, "{event:?}");
            assert_eq!(graph.encode(), bytes, "{event:?}");
            graph.apply(event).unwrap();
        }
    }
}

#[test]
fn a_snapshot_and_the_tail_after_it_are_the_whole() {
    for events in logs() {
        let whole = fold(&events);
        let step = events.len().div_ceil(12);
        for cut in (0..=events.len()).step_by(step) {
            let bytes = fold(&events[..cut]).encode();
            let mut graph = Graph::decode(&bytes).unwrap();
            assert_eq!(graph.encode(), bytes, "decoding loses nothing");
            for event in &events[cut..] {
                graph.apply(event).unwrap();
            }
            assert_eq!(graph.state_hash(), whole.state_hash(), "cut {cut}");
            assert_eq!(graph.encode(), whole.encode(), "cut {cut}");
        }
    }
}

#[test]
fn two_restores_of_one_offset_share_nothing_that_can_be_changed() {
    for events in logs() {
        let cut = events.len() / 2;
        let origin = fold(&events[..cut]);
        let before = (origin.state_hash(), origin.encode());
        let (mut left, mut right) = (origin.clone(), Graph::decode(&before.1).unwrap());
        let mut twin = origin.clone();
        for event in &events[cut..] {
            left.apply(event).unwrap();
        }
        assert_eq!((right.state_hash(), right.encode()), before, "what is done to one is its own");
        assert_eq!((twin.state_hash(), twin.encode()), before);
        // The other one goes another way: everything in it is written or removed.
        let mut changes = Vec::new();
        for element in right.find_prefix("", usize::MAX).into_iter().filter(|e| e.ends().is_none())
        {
            let change = match changes.len() % 2 {
                0 => json!({"set": element.id(), "properties": {"p": "other"}}),
                _ => json!({"remove": element.id()}),
            };
            changes.push(log::Change::from_json(&change, "a test").unwrap());
        }
        let mut draft = draft(1, &json!({}));
        (draft.changes, draft.taken) = (changes, events[cut - 1].taken());
        let (event, _) = Event::encode(&draft, events[cut].offset()).unwrap();
        let after = (left.state_hash(), left.encode());
        for graph in [&mut right, &mut twin] {
            graph.apply(&event).unwrap();
            assert_ne!(graph.encode(), before.1);
        }
        assert_eq!(right.encode(), twin.encode(), "the same way leads to the same world");
        assert_eq!((left.state_hash(), left.encode()), after);
        assert_eq!((origin.state_hash(), origin.encode()), before);
    }
}

#[test]
fn the_engine_sees_the_world_that_its_log_folds_into() {
    let overrides = Overrides::default();
    let mut life = start_folder(&examples::folder("life"), &overrides);
    for generation in [1, 2, 5, 9] {
        examples::live_until(&mut life, generation);
        let folded = fold(&life.events());
        assert_eq!(folded.state_hash(), life.engine.graph().state_hash(), "{generation}");
    }
}
