//! Waking: which events make a behavior fire, and which never do.

use log::Event;
use serde_json::{Value, json};

use crate::support::flock::{Running, Small};

/// A behavior that tells what it sees: `n.seen` with the match by name.
fn see(name: &str, pattern: &str) -> (Value, behaviors::Reaction) {
    (json!({"name": name, "match": pattern}), tell)
}

fn tell(
    firing: &behaviors::Firing<'_>,
    out: &mut behaviors::Proposals<'_>,
) -> Result<(), behaviors::ReactError> {
    let seen = firing.bound.iter().map(|(name, binding)| {
        let id = match binding {
            behaviors::Binding::Element(element) => json!(element.id),
            _ => json!(null),
        };
        ((*name).to_owned(), id)
    });
    out.emit("n.seen", Value::Object(seen.collect()));
    Ok(())
}

fn flock(pattern: &str) -> Small {
    let (metadata, reaction) = see("see", pattern);
    Small::new("fifo", &json!({})).with(&metadata, reaction)
}

/// Says each list of changes in an event of its own, rests after each, and gives what was seen by
/// each of them.
fn seen(running: &mut Running, events: &[Value]) -> Vec<Vec<Value>> {
    let count = |running: &Running| running.of_kind("n.seen").len();
    let mut seen = Vec::new();
    for changes in events {
        let (before, name) = (count(running), format!("said {}", running.engine.head()));
        running.say(&name, "thing.said", json!({}), changes);
        running.rest();
        let told = running.of_kind("n.seen").into_iter().skip(before);
        seen.push(told.map(|event| Value::Object(event.payload().to_json())).collect());
    }
    seen
}

fn node(id: &str, type_name: &str, properties: Value) -> Value {
    json!({"create": id, "type": type_name, "properties": properties})
}

fn set(id: &str, properties: Value) -> Value {
    json!({"set": id, "properties": properties})
}

fn link(id: &str, type_name: &str, from: &str, to: &str) -> Value {
    json!({"link": type_name, "id": id, "from": from, "to": to})
}

#[test]
fn a_standing_match_is_silent() {
    let mut running = flock("(n:N)-[:TO]->(m:M) WHERE n.x > 1").start();
    let seen = seen(
        &mut running,
        &[
            json!([
                node("n", "N", json!({"x": 2})),
                node("m", "M", json!({})),
                link("e", "TO", "n", "m")
            ]),
            // Written, and true before and after.
            json!([set("n", json!({"x": 3}))]),
            json!([
                set("n", json!({"other": 1})),
                set("m", json!({"y": 1})),
                set("e", json!({"z": 1}))
            ]),
            // False and true again within one event.
            json!([set("n", json!({"x": 0})), set("n", json!({"x": 5}))]),
            json!([json!({"remove": "e"}), link("e", "TO", "n", "m")]),
            // Another edge is another match.
            json!([link("e2", "TO", "n", "m")]),
        ],
    );
    let pair = json!({"n": "n", "m": "m"});
    assert_eq!(seen, [vec![pair.clone()], vec![], vec![], vec![], vec![], vec![pair]]);
}

#[test]
fn an_unrelated_event_wakes_nobody() {
    let mut running =
        flock("(n:N {x: 1})-[:TO]->(m:M) WHERE NOT EXISTS { (m)-[:OF]->(:K) }").start();
    let nothing = seen(
        &mut running,
        &[
            json!([]),
            json!([node("n", "N", json!({"x": 1})), node("m", "M", json!({}))]),
            json!([
                node("k", "K", json!({})),
                link("f", "OTHER", "n", "m"),
                link("g", "OF", "n", "k")
            ]),
            json!([link("back", "TO", "m", "n")]),
            json!([set("n", json!({"y": 1}))]),
        ],
    );
    assert!(nothing.iter().all(Vec::is_empty), "{nothing:?}");
    assert_eq!(running.engine.taken(), 0, "not even quietly");
}

#[test]
fn a_behavior_wakes_itself_only_if_it_says_so() {
    for (wakes_self, firings) in [(false, 1), (true, 9)] {
        let on = json!({"name": "echo", "on": "call.made", "wakes_self": wakes_self});
        let flock = Small::new("fifo", &json!({"firings": 9}))
            .with(&on, |_, out| {
                out.emit("call.made", json!({}));
                Ok(())
            })
            .begins("call.made", &json!([]));
        assert_eq!(flock.run(1).engine.taken(), firings, "by kind, wakes_self = {wakes_self}");

        let metadata = json!({"name": "grow", "match": "(n:N)", "wakes_self": wakes_self});
        let flock = Small::new("fifo", &json!({"firings": 9}))
            .with(&metadata, |_, out| {
                out.emit("n.made", json!({})).create("N", json!({}));
                Ok(())
            })
            .begins("n.made", &json!([{"create": "n", "type": "N", "properties": {}}]));
        let taken = flock.run(1).engine.taken();
        assert_eq!(taken, firings, "by pattern, wakes_self = {wakes_self}");
    }
}

#[test]
fn an_equal_write_wakes_no_pattern_and_changes_no_version() {
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "see_shape", "match": "(n:N {x: 1})"}), |_, out| {
            out.emit("shape.seen", json!({}));
            Ok(())
        })
        .with(&json!({"name": "see_kind", "on": "n.written"}), |_, out| {
            out.emit("kind.seen", json!({}));
            Ok(())
        })
        .begins("n.made", &json!([{"create": "n", "type": "N", "properties": {"x": 1}}]));
    let mut running = flock.run(1);
    let element = |running: &Running| {
        let element = running.engine.graph().element("n").unwrap();
        (element.version(), element.changed(), running.engine.graph().state_hash())
    };
    let before = element(&running);
    for nth in 0..3 {
        let change = json!([{"set": "n", "properties": {"x": 1}}]);
        running.say(&format!("{nth}"), "n.written", json!({}), &change);
        running.rest();
    }
    assert_eq!(running.of_kind("shape.seen").len(), 1, "only when it was made");
    assert_eq!(running.of_kind("kind.seen").len(), 3, "kinds are heard all the same");
    assert_eq!(element(&running), before);
}

#[test]
fn one_event_wakes_every_match_that_it_makes_once_each_and_in_order() {
    let mut running = flock("(a:A)-[:TO]-(b:B)").start();
    let changes = json!([
        node("b1", "B", json!({})),
        node("a1", "A", json!({})),
        node("a2", "A", json!({})),
        link("e2", "TO", "a2", "b1"),
        link("e1", "TO", "b1", "a1"),
        link("e3", "TO", "a2", "b1"),
    ]);
    let seen = seen(&mut running, &[changes]);
    let pair = |a: &str| json!({"a": a, "b": "b1"});
    assert_eq!(seen, [[pair("a1"), pair("a2"), pair("a2")]], "as their elements were created");
}

#[test]
fn a_property_that_only_a_negation_reads_wakes() {
    let mut running =
        flock("(t:Task) WHERE NOT EXISTS { (t)-[:NEEDS]->(u) WHERE u.status <> 'done' }").start();
    let seen = seen(
        &mut running,
        &[
            json!([
                node("t", "Task", json!({})),
                node("u", "Note", json!({"status": "open"})),
                node("v", "Note", json!({"status": "done"})),
                link("e", "NEEDS", "t", "u"),
                link("f", "NEEDS", "t", "v"),
            ]),
            json!([set("v", json!({"status": "well done"}))]),
            json!([set("u", json!({"status": "done"}))]),
            json!([set("v", json!({"status": "done"}))]),
            json!([set("v", json!({"status": "open"}))]),
            json!([{"remove": "v"}]),
        ],
    );
    let t = json!({"t": "t"});
    assert_eq!(seen, [vec![], vec![], vec![], vec![t.clone()], vec![], vec![t]]);
}

#[test]
fn a_match_that_falls_takes_back_what_waits_and_at_most_one_waits() {
    let mut running = flock("(n:N {on: true})").start();
    running.say("made", "n.made", json!({}), &json!([node("n", "N", json!({"on": false}))]));
    for (nth, on) in [true, false, true, true, false, true].into_iter().enumerate() {
        let change = json!([set("n", json!({"on": on, "nth": nth}))]);
        running.say(&format!("{nth}"), "n.turned", json!({}), &change);
        assert_eq!(running.engine.waiting(), usize::from(on), "{nth}");
    }
    running.say("gone", "n.gone", json!({}), &json!([{"remove": "n"}]));
    assert_eq!(running.engine.waiting(), 0, "removed before it fired");
    running.rest();
    assert_eq!((running.engine.taken(), running.of_kind("n.seen").len()), (0, 0));
}

/// A behavior that tells of what vanished: the elements as they were before the event.
fn farewell() -> Small {
    let metadata = json!({"name": "mourn", "vanishes": "(n:N {on: true})-[e:TO]->(m:M)"});
    Small::new("fifo", &json!({})).with(&metadata, |firing, out| {
        let (n, m) = (firing.element("n")?, firing.element("m")?);
        let x = |element: behaviors::ElementView<'_>| element.integer("x");
        out.emit("n.seen", json!({"n": n.id, "x": x(n), "m": m.id, "y": x(m)}));
        Ok(())
    })
}

fn pair(x: i64) -> Value {
    json!([
        node("n", "N", json!({"on": true, "x": x})),
        node("m", "M", json!({"x": 7})),
        link("e", "TO", "n", "m"),
    ])
}

#[test]
fn what_vanishes_is_seen_as_it_was_before_the_event() {
    let mut running = farewell().start();
    let both = seen(
        &mut running,
        &[
            pair(1),
            json!([set("n", json!({"x": 2}))]),
            json!([set("n", json!({"on": false, "x": 3}))]),
            json!([set("n", json!({"on": true, "x": 4}))]),
            // The edge falls with the node.
            json!([{"remove": "m"}]),
        ],
    );
    let gone = |x: i64| vec![json!({"n": "n", "x": x, "m": "m", "y": 7})];
    assert_eq!(both, [vec![], vec![], gone(2), vec![], gone(4)]);
}

#[test]
fn what_returns_before_its_farewell_is_taken_back() {
    let mut running = farewell().start();
    running.say("made", "n.made", json!({}), &pair(1));
    for (nth, on) in [false, true, false, true].into_iter().enumerate() {
        running.say(
            &format!("{nth}"),
            "n.turned",
            json!({}),
            &json!([set("n", json!({"on": on}))]),
        );
        assert_eq!(running.engine.waiting(), usize::from(!on));
    }
    running.rest();
    assert!(running.of_kind("n.seen").is_empty());
}

#[test]
fn a_behavior_loaded_late_sees_what_stands_once_each() {
    for schedule in ["fifo", "rounds", "random"] {
        let mut running = Small::new(schedule, &json!({})).start();
        for n in 0..5 {
            let id = format!("n{n}");
            running.say(&id, "n.made", json!({}), &json!([node(&id, "N", json!({"x": n}))]));
        }
        running.rest();
        let (metadata, reaction) = see("see", "(n:N) WHERE n.x > 1");
        running.load(&metadata, reaction);
        assert_eq!(running.engine.waiting(), 3, "{schedule}");
        running.rest();
        let ids = |running: &Running| {
            let seen = running.of_kind("n.seen").into_iter();
            let mut ids: Vec<Value> =
                seen.map(|event| event.payload().to_json()["n"].clone()).collect();
            ids.sort_by_key(Value::to_string);
            ids
        };
        assert_eq!(ids(&running), ["n2", "n3", "n4"], "{schedule}");
        let caused = |event: &Event| event.cause().is_some();
        assert!(running.of_kind("n.seen").iter().all(caused), "by the load");

        // Neither opening the log again nor another version with the same trigger fires them again.
        running = running.crash();
        let again = json!({"name": "see", "match": "(n:N) WHERE n.x > 1", "description": "again"});
        running.load(&again, tell);
        running.rest();
        assert_eq!(ids(&running).len(), 3, "{schedule}");
        // Another trigger fires what it alone stands on.
        let (metadata, reaction) = see("see", "(n:N) WHERE n.x > 0");
        running.load(&metadata, reaction);
        running.rest();
        assert_eq!(ids(&running), ["n1", "n2", "n3", "n4"], "{schedule}");
        let change = json!([set("n0", json!({"x": 9}))]);
        running.say("late", "n.turned", json!({}), &change);
        running.rest();
        assert_eq!(ids(&running), ["n0", "n1", "n2", "n3", "n4"], "{schedule}: and what comes");
    }
}

#[test]
fn a_condition_fires_for_every_match_that_stands_after_its_event() {
    let metadata = json!({
        "name": "see", "on": "bell.rang", "match": "(n:N) WHERE n.room = event.payload.room"
    });
    let flock = Small::new("fifo", &json!({})).with(&metadata, tell);
    let mut running = flock.start();
    let rooms = json!([
        node("a", "N", json!({"room": 1})),
        node("b", "N", json!({"room": 2})),
        node("c", "N", json!({"room": 1})),
    ]);
    running.say("made", "n.made", json!({}), &rooms);
    running.rest();
    assert_eq!(running.engine.taken(), 0, "a condition alone wakes nobody");
    for nth in 0..2 {
        running.say(&format!("{nth}"), "bell.rang", json!({"room": 1}), &json!([]));
    }
    assert_eq!(running.engine.waiting(), 4, "one for each event and match");
    running.rest();
    assert_eq!(running.of_kind("n.seen").len(), 4);
}

/// Suspended is what costs too much; the rest goes on.
fn check_suspended(mut running: Running, event: &Value) -> Running {
    running.say("too much", "thing.said", json!({}), event);
    running.rest();
    let suspended = running.of_kind("behavior.suspended");
    assert_eq!(suspended.len(), 1);
    let payload = suspended[0].payload().to_json();
    assert_eq!(payload["name"], "costly");
    let why = payload["why"].as_str().unwrap();
    let pattern = payload["pattern"].as_str().unwrap();
    assert!(!pattern.is_empty() && why.contains(pattern) && why.contains("1000000"), "{why}");

    let tip = running.tip();
    running = running.crash();
    running.rest();
    assert_eq!(running.tip(), tip, "it is said once");
    running.say("more", "thing.said", json!({}), &json!([node("more", "N", json!({"x": 1}))]));
    running.rest();
    assert_eq!(running.of_kind("n.seen").last().unwrap().payload().to_json()["n"], "more");
    running
}

/// A hub: adding one edge costs the matches it makes, and a change of the hub itself too many.
#[test]
fn a_pattern_that_costs_too_much_at_a_hub_is_named_and_suspended() {
    const SPOKES: usize = 100_000;
    let (watch, reaction) = see("watch", "(n:N {x: 1})");
    let one = json!({"name": "spoke", "match": "(a:A {new: true})-[:AT]->(h:Hub)"});
    let mut running = Small::new("fifo", &json!({}))
        .with(&watch, reaction)
        .with(&one, tell)
        .begins("hub.made", &json!([node("hub", "Hub", json!({"open": false}))]))
        .start();
    for chunk in 0..SPOKES / 1000 {
        let spokes = (0..1000).flat_map(|n| {
            let (id, edge) = (format!("a{chunk}.{n}"), format!("at{chunk}.{n}"));
            [node(&id, "A", json!({})), link(&edge, "AT", &id, "hub")]
        });
        let spokes = Value::Array(spokes.collect());
        running.say(&format!("{chunk}"), "spokes.made", json!({}), &spokes);
    }
    running.load(
        &json!({"name": "costly", "match": "(a:A)-[:AT]->(h:Hub {open: true})<-[:AT]-(b:A)"}),
        |_, _| Ok(()),
    );
    running.rest();
    let spoke = json!([node("new", "A", json!({"new": true})), link("at", "AT", "new", "hub")]);
    running.say("spoke", "spokes.made", json!({}), &spoke);
    running.rest();
    assert!(running.of_kind("behavior.suspended").is_empty(), "one edge at a hub costs little");
    assert_eq!(running.of_kind("n.seen").len(), 1, "and wakes whom it concerns");
    check_suspended(running, &json!([set("hub", json!({"open": true}))]));
}

/// A clique of a hundred nodes has about a hundred million paths of four edges.
fn clique() -> Value {
    let node = |n: usize| node(&format!("k{n}"), "K", json!({}));
    let edges = (0..100).flat_map(|a| (0..100).filter(move |b| *b != a).map(move |b| (a, b)));
    let edge = |(a, b): (usize, usize)| {
        link(&format!("{a}.{b}"), "TO", &format!("k{a}"), &format!("k{b}"))
    };
    Value::Array((0..100).map(node).chain(edges.map(edge)).collect())
}

#[test]
fn a_pattern_that_costs_too_much_in_a_dense_clique_is_named_and_suspended() {
    let (watch, reaction) = see("watch", "(n:N {x: 1})");
    let costly = json!({"name": "costly", "match": "(a:K)-[:TO*1..4]->(b:K)"});
    let quiet: behaviors::Reaction = |_, _| Ok(());
    let flock = Small::new("fifo", &json!({})).with(&watch, reaction).with(&costly, quiet);
    let mut running = check_suspended(flock.start(), &clique());

    // Saved again it looks at what stands, and is suspended again instead of stalling.
    running.load(&json!({"name": "costly", "match": "(a:K)-[:TO*1..4]->(b)"}), quiet);
    running.rest();
    assert_eq!(running.of_kind("behavior.suspended").len(), 2);
    // Narrowed, it is back.
    running.load(&json!({"name": "costly", "match": "(a:K {first: true})-[:TO]->(b:K)"}), quiet);
    let taken = running.engine.taken();
    running.say("first", "thing.said", json!({}), &json!([set("k0", json!({"first": true}))]));
    running.rest();
    assert_eq!(running.engine.taken(), taken + 99);
    assert_eq!(running.of_kind("behavior.suspended").len(), 2);
}
