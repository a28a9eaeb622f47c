//! Rounds: all firings of a round see one world and land in one order, on any number of threads.

use log::Event;
use serde_json::{Value, json};

use crate::support::flock::{Running, Small, said};

/// So many nodes of type `Ant`, and one `Pot`.
fn ants(count: usize) -> Value {
    let mut changes: Vec<Value> = (0..count)
        .map(|n| json!({"create": format!("ant:{n}"), "type": "Ant", "properties": {}}))
        .collect();
    changes.push(json!({"create": "pot", "type": "Pot", "properties": {"sum": 0}}));
    Value::Array(changes)
}

/// Runs a flock on 1, 2 and 4 threads, which must not matter.
fn run(flock: &Small) -> Running {
    let one = flock.run(1);
    for threads in [2, 4] {
        let many = flock.run(threads);
        assert_eq!(many.events(), one.events(), "{threads} threads");
        assert_eq!(many.tip(), one.tip(), "{threads} threads");
    }
    one
}

#[test]
fn a_hundred_and_twenty_eight_deposits_of_one_round_add_up() {
    let metadata =
        json!({"name": "deposit", "match": "(ant:Ant)", "reads": {"pots": "(pots:Pot)"}});
    let flock = Small::new("rounds", &json!({}))
        .with(&metadata, |firing, out| {
            let behaviors::Binding::Element(pot) = &firing.read("pots")?.bindings[0] else {
                return Err(behaviors::ReactError::new("there is a pot"));
            };
            let sum = pot.get("sum").map(|sum| sum.to_json());
            out.emit("pot.filled", json!({"saw": sum})).add(pot.id, json!({"sum": 1}));
            Ok(())
        })
        .begins("ants.came", &ants(128));
    let running = run(&flock);
    assert_eq!(running.property("pot", "sum"), 128);
    let filled = running.of_kind("pot.filled");
    assert_eq!(filled.len(), 128);
    assert!(filled.iter().all(|event| event.payload().to_json()["saw"] == 0), "one world");
    assert!(running.of_kind("behavior.conflicted").is_empty());
}

#[test]
fn a_hundred_and_twenty_eight_ants_of_one_tick_draw_different_numbers() {
    let metadata =
        json!({"name": "draw", "on": "clock.ticked", "match": "(ant:Ant)", "each": true});
    let flock = Small::new("rounds", &json!({}))
        .with(&metadata, |firing, out| {
            out.emit("ant.drew", json!({"number": firing.rand.below(1 << 48)}));
            Ok(())
        })
        .begins("ants.came", &ants(128))
        .begins("clock.ticked", &json!([]));
    let running = run(&flock);
    let drawn = running.of_kind("ant.drew").into_iter();
    let drawn: Vec<u64> =
        drawn.map(|event| event.payload().to_json()["number"].as_u64().unwrap()).collect();
    assert_eq!(drawn.len(), 128);
    let different: std::collections::BTreeSet<&u64> = drawn.iter().collect();
    assert_eq!(different.len(), 128);
}

/// A refused or repeated event used to end the round it came into, and no event told of that.
#[test]
fn an_outside_event_that_leaves_no_trace_leaves_the_round_as_it_is() {
    let metadata =
        json!({"name": "deposit", "match": "(ant:Ant)", "reads": {"pots": "(pots:Pot)"}});
    let flock = Small::new("rounds", &json!({}))
        .with(&metadata, |firing, out| {
            let pot = firing.read("pots")?.elements().next();
            let sum = pot.and_then(|pot| pot.integer("sum"));
            out.emit("pot.filled", json!({"saw": sum})).add("pot", json!({"sum": 1}));
            Ok(())
        })
        .begins("ants.came", &ants(20));
    let run = |disturbed: bool| {
        let mut running = flock.start();
        let mut once = said("once", "note.added", json!({}), &json!([]));
        once.key = Some("once".into());
        running.engine.outside(once.clone()).unwrap();
        for _ in 0..5 {
            running.engine.step().unwrap();
        }
        assert!(running.engine.in_round());
        if disturbed {
            let nobody = json!([{"set": "nobody", "properties": {"x": 1}}]);
            let refused = said("refused", "note.added", json!({}), &nobody);
            running.engine.outside(refused).expect_err("there is nobody");
            assert!(running.engine.outside(once).unwrap().repeated);
            running.engine.commit().unwrap();
            running = running.crash();
        }
        running.rest();
        running.events()
    };
    assert_eq!(run(true), run(false));
}

/// Two writers, called as said, and forty who look on so that the round is worth several threads.
fn writers(first: &str, second: &str) -> Running {
    let metadata = |name: &str| json!({"name": name, "match": "(pot:Pot)"});
    let flock = Small::new("rounds", &json!({}))
        .with(&metadata(first), |_, out| {
            out.emit("pot.set", json!({"to": "red"})).set("pot", json!({"colour": "red"}));
            Ok(())
        })
        .with(&metadata(second), |_, out| {
            out.emit("pot.set", json!({"to": "blue"})).set("pot", json!({"colour": "blue"}));
            Ok(())
        })
        .with(&json!({"name": "look_on", "match": "(ant:Ant)"}), |_, _| Ok(()))
        .begins("ants.came", &ants(40));
    run(&flock)
}

#[test]
fn two_writers_of_one_property_conflict_once_and_the_later_name_has_the_last_word() {
    for (red, blue, last) in [("a", "b", "blue"), ("b", "a", "red")] {
        let running = writers(red, blue);
        let conflicts = running.of_kind("behavior.conflicted");
        assert_eq!(conflicts.iter().map(Event::author).collect::<Vec<_>>(), [Some("b")]);
        let set = running.of_kind("pot.set");
        assert_eq!(set.iter().map(Event::author).collect::<Vec<_>>(), [Some("a"), Some("b")]);
        assert_eq!(running.property("pot", "colour"), last, "{red} and {blue}");
    }
}

/// A refused firing is tried again at the end of its round, alone: N writers cost N-1 conflicts.
#[test]
fn many_writers_of_one_property_conflict_once_each() {
    let flock = Small::new("rounds", &json!({}))
        .with(&json!({"name": "write", "match": "(ant:Ant)"}), |firing, out| {
            let ant = firing.element("ant")?.id;
            out.emit("pot.set", json!({})).set("pot", json!({"last": ant}));
            Ok(())
        })
        .begins("ants.came", &ants(50));
    let running = run(&flock);
    assert_eq!(running.of_kind("behavior.conflicted").len(), 49);
    assert_eq!(running.of_kind("pot.set").len(), 50);
    assert_eq!(running.property("pot", "last"), "ant:49");
}
