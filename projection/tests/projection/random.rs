//! Random events: few ids and types, so that changes meet.

use log::{Change, WriteOp};
use proptest::prelude::{Just, Strategy, any, prop};
use proptest::prop_oneof;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

/// An id that may or may not be there, or a reference to an earlier change.
fn id() -> impl Strategy<Value = SmolStr> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]).prop_map(SmolStr::from),
        1 => prop::sample::select(vec!["r1", "r2"]).prop_map(SmolStr::from),
        2 => (0usize..4).prop_map(|index| format!("#{index}").into()),
    ]
}

fn edge_id() -> impl Strategy<Value = Option<SmolStr>> {
    prop_oneof![
        3 => Just(None),
        1 => prop::sample::select(vec!["r1", "r2", "a"]).prop_map(|id| Some(id.into())),
    ]
}

fn node_type() -> impl Strategy<Value = SmolStr> {
    prop::sample::select(vec!["T", "U", "V"]).prop_map(SmolStr::from)
}

fn edge_type() -> impl Strategy<Value = SmolStr> {
    prop::sample::select(vec!["R", "S", "T"]).prop_map(SmolStr::from)
}

/// A value that often meets one that was there.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0i64..3).prop_map(Value::from),
        1 => prop::sample::select(vec![0.5, 1.0, 2.0]).prop_map(Value::from),
        1 => prop::sample::select(vec![
            json!(null), json!("x"), json!([]), json!([1]), json!(i64::MAX), json!(1e308),
            json!(true), json!({"x": 1}), json!("a text that is longer than a few bytes"),
        ]),
    ]
}

fn properties() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop::sample::select(vec!["p", "q", "name"]).prop_map(str::to_owned);
    prop::collection::btree_map(name, value(), 0..3)
        .prop_map(|entries| entries.into_iter().collect())
}

fn change() -> impl Strategy<Value = Change> {
    let op = prop::sample::select(vec![WriteOp::Set, WriteOp::Set, WriteOp::Add, WriteOp::Append]);
    let version = prop_oneof![6 => Just(None), 1 => (1u64..4).prop_map(Some)];
    let names = prop::sample::subsequence(vec!["p", "q", "name"], 0..3);
    prop_oneof![
        1 => (node_type(), properties()).prop_map(|(type_name, properties)| {
            Change::Create { id: None, type_name, properties }
        }),
        1 => (id(), node_type(), properties()).prop_map(|(id, type_name, properties)| {
            Change::Create { id: Some(id), type_name, properties }
        }),
        4 => (id(), node_type(), properties()).prop_map(|(id, type_name, properties)| {
            Change::Ensure { id, type_name, properties }
        }),
        3 => (edge_id(), edge_type(), id(), id(), properties()).prop_map(
            |(id, type_name, from, to, properties)| {
                Change::Link { id, type_name, from, to, properties }
            }
        ),
        2 => (edge_type(), id(), id(), properties()).prop_map(
            |(type_name, from, to, properties)| {
                Change::EnsureLink { type_name, from, to, properties }
            }
        ),
        4 => (op, id(), properties(), version).prop_map(|(op, id, properties, if_version)| {
            Change::Write { op, id, properties, if_version }
        }),
        1 => (id(), names).prop_map(|(id, names)| {
            Change::Unset { id, names: names.into_iter().map(SmolStr::from).collect() }
        }),
        2 => id().prop_map(|id| Change::Remove { id }),
    ]
}

/// The changes of one event after the other. Some will be refused.
pub(crate) fn events() -> impl Strategy<Value = Vec<Vec<Change>>> {
    // A first event fills the world, so that fewer are refused.
    let fill = any::<bool>().prop_map(|filled| {
        let ids = if filled { &["a", "b", "c", "d", "e"][..] } else { &[] };
        let ensure = |id: &&str| Change::Ensure {
            id: (*id).into(),
            type_name: "T".into(),
            properties: Map::new(),
        };
        ids.iter().map(ensure).collect::<Vec<_>>()
    });
    let rest = prop::collection::vec(prop::collection::vec(change(), 1..5), 1..40);
    (fill, rest).prop_map(|(fill, mut events)| {
        events.insert(0, fill);
        events
    })
}
