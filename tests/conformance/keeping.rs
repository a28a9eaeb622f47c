//! Keeping: what is accepted, by whom it is written, what it makes of the world, and that it stays.

use std::sync::Arc;

use log::{AppendError, Change, Event, Head, LogError, parse_object};
use projection::diff;
use runtime::{Engine, Flock, Overrides, Step};
use serde_json::{Value, json};

use super::{flock, script, story};
use crate::support::flock::{Running, Small, events, memory, said, scripts};
use crate::support::{append, append_here, name, numbered_range, numbers};

fn empty() -> Running {
    Small::new("fifo", &json!({})).start()
}

/// An id is drawn from no counter: it says from what it came, so it is the same wherever that
/// happens, and no other event of any branch has it.
#[test]
fn an_id_is_its_derivation_and_no_counter_is_behind_it() {
    let body = "emit(\"things.made\", {}, create(\"Task\"), create(\"Note\"), create(\"Task\"))";
    let made = || {
        let mut running = flock(&[script("make", "on = \"goal.stated\"", "", body)]);
        for goal in ["one", "two"] {
            running.say(goal, "goal.stated", json!({}), &json!([]));
            running.rest();
            running = running.crash();
        }
        let all = running.engine.graph().find_prefix("", usize::MAX).into_iter();
        all.map(|element| element.id().to_owned()).filter(|id| !id.starts_with('_')).collect()
    };
    let ids: Vec<String> = made();
    assert_eq!(ids, made(), "another run gives the same");
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
    for id in &ids {
        let (type_name, digits) = id.split_once('#').unwrap();
        assert!(["Task", "Note"].contains(&type_name), "{id}");
        assert!(digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    }
    let toml = "[[start]]\nkind = \"a.b\"\nchanges = [{ create = \"task#1\", type = \"Task\" }]\n";
    let chosen = scripts(toml, &[]);
    let refused = Flock::read(chosen.path(), &Overrides::default()).unwrap_err().to_string();
    assert!(refused.contains("`task#1` cannot be chosen as an id"), "{refused}");
}

/// What is stored is JSON, and is read as it was given. Elsewhere NaN goes into what is called
/// JSON.
#[test]
fn what_is_no_json_is_refused_with_its_place_and_the_rest_is_kept_as_it_was_given() {
    for (text, says) in [
        ("{\"a\": {\"b\": [1, NaN]}}", "NaN"),
        ("{\"a\": -Infinity}", "infinity"),
        ("{\"a\": 1, \"a\": 2}", "stands twice"),
        ("{\"a\": 99999999999999999999}", "fits neither"),
        ("[1]", ""),
    ] {
        let refused = parse_object(text).unwrap_err().to_string();
        assert!(refused.contains(says), "{text}: {refused}");
    }
    let text = "{\"é\": null, \"b\": [\"x\", 1, 12.5, -0.25], \"a\": {\"date\": \"2026-08-29\"}}";
    let given = Value::Object(parse_object(text).unwrap());
    let mut running = empty();
    running.say("given", "thing.said", given.clone(), &json!([]));
    running.engine.commit().unwrap();
    let kept = running.of_kind("thing.said").remove(0);
    assert_eq!(Value::Object(kept.payload().to_json()), given);
    let (again, _) = Event::encode(&kept.to_draft(), kept.offset()).unwrap();
    assert_eq!(again.record(), kept.record(), "there is one form of it");
}

#[test]
fn what_cannot_be_applied_leaves_neither_an_event_nor_a_change() {
    let body = "emit(\"thing.heard\", {})";
    let mut running = flock(&[script("hear", "on = \"thing.set\"", "", body)]);
    running.say("made", "thing.made", json!({}), &json!([{"create": "a", "type": "A"}]));
    running.rest();
    let (head, world) = (running.engine.head(), running.engine.graph().state_hash());
    for change in [
        json!({"set": "nobody", "properties": {"x": 1}}),
        json!({"link": "KNOWS", "from": "a", "to": "nobody"}),
        json!({"create": "a", "type": "A"}),
    ] {
        let both = json!([{"set": "a", "properties": {"x": 1}}, change]);
        let refused = running.engine.outside(said("bad", "thing.set", json!({}), &both));
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("nobody") || told.contains("`a`"), "{change}: {told}");
        assert_eq!(running.rest(), Step::Rest);
        assert_eq!(running.engine.head(), head);
        assert_eq!(running.engine.graph().state_hash(), world);
    }
}

#[test]
fn a_branch_has_one_writer_and_who_comes_too_late_learns_the_head() {
    let log = memory();
    let main = log.create(&name("main")).unwrap().id;
    append_here(&*log, main, &numbered_range(0..2));
    let late = append(&*log, main, Head::of_count(1), &numbered_range(7..8));
    let Err(AppendError::TailMoved { expected, actual, .. }) = late else { panic!("{late:?}") };
    assert_eq!((expected.count(), actual.count()), (1, 2));
    assert_eq!(numbers(&*log, main), [0, 1], "nothing changed");
    let running = empty();
    let (log, branch) = (Arc::clone(&running.log), running.branch);
    let second = Engine::open(log, branch, running.library(), "somebody else").unwrap_err();
    assert!(second.to_string().contains("being run by test"), "{second}");
}

#[test]
fn a_write_that_expects_another_version_is_refused_and_an_equal_one_is_no_write() {
    let mut running = empty();
    let version = |running: &Running| running.engine.graph().element("a").unwrap().version();
    running.say("made", "thing.made", json!({}), &json!([{"create": "a", "type": "A"}]));
    let set =
        |x: i64, version: u64| json!([{"set": "a", "properties": {"x": x}, "if_version": version}]);
    running.say("first", "thing.set", json!({}), &set(1, 1));
    assert_eq!(version(&running), 2);
    let second = said("second", "thing.set", json!({}), &set(2, 1));
    let refused = running.engine.outside(second).unwrap_err().to_string();
    assert!(refused.contains("version 2") && refused.contains('1'), "{refused}");
    assert_eq!((version(&running), running.property("a", "x")), (2, json!(1)));
    running.say("equal", "thing.set", json!({}), &set(1, 2));
    assert_eq!(version(&running), 2);
    let unknown = Change::from_json(&json!({"replace": "a", "properties": {}}), "a test");
    assert!(unknown.is_err(), "there is no such change");
}

#[test]
fn what_is_removed_takes_its_edges_along_and_the_log_names_only_it() {
    let mut running = empty();
    let changes = json!([
        {"create": "a", "type": "A"}, {"create": "b", "type": "A"},
        {"link": "KNOWS", "from": "a", "to": "b", "id": "out"},
        {"link": "KNOWS", "from": "b", "to": "a", "id": "in"},
    ]);
    running.say("made", "things.made", json!({}), &changes);
    running.say("gone", "thing.removed", json!({}), &json!([{"remove": "a"}]));
    running.engine.commit().unwrap();
    let graph = running.engine.graph();
    assert_eq!((graph.node_count(), graph.edge_count()), (1, 0));
    assert_eq!(running.of_kind("thing.removed")[0].changes().iter().count(), 1);
}

#[test]
fn opening_a_log_again_gives_its_world_fires_nothing_and_writes_nothing() {
    let body = "emit(\"thing.heard\", {}, create(\"Heard\"))";
    let mut running = flock(&[script("hear", "on = \"thing.said\"", "", body)]);
    for n in 0..3 {
        running.say(&format!("{n}"), "thing.said", json!({}), &json!([]));
        running.rest();
    }
    let (tip, world) = (running.tip(), running.engine.graph().state_hash());
    let mut again = running.crash();
    assert_eq!(again.engine.graph().state_hash(), world);
    assert_eq!((again.engine.waiting(), again.rest()), (0, Step::Rest));
    assert_eq!(again.tip(), tip);
}

/// Elsewhere a fork copies its events, and two that do the same are told to differ.
#[test]
fn a_fork_shares_its_past_and_differs_by_what_is_different() {
    let body = "emit(\"thing.kept\", {}, create(\"Thing\", n = event.payload.n))";
    let mut parent = flock(&[script("keep", "on = \"thing.said\"", "event", body)]);
    let say = |running: &mut Running, n: u64| {
        running.say(&format!("say {n}"), "thing.said", json!({"n": n}), &json!([]));
        running.rest();
    };
    say(&mut parent, 1);
    let (log, cut) = (Arc::clone(&parent.log), parent.engine.head());
    let fork = |from: &Running, at: Head, to: &str| log.fork(from.branch, at, &name(to), "");
    let child = fork(&parent, cut, "child").unwrap().id;
    let mut child = Running::open(Arc::clone(&log), child, parent.library());
    assert_eq!(events(&*log, child.branch), parent.events(), "the same events");
    say(&mut parent, 2);
    say(&mut child, 2);
    let worlds = |a: &Running, b: &Running| -> Vec<String> {
        let found = diff(a.engine.graph(), b.engine.graph());
        found.iter().map(|difference| difference.id.to_owned()).collect()
    };
    assert_eq!(worlds(&parent, &child), [""; 0], "both did the same");
    assert_eq!(parent.tip(), child.tip(), "to the last byte");
    say(&mut parent, 3);
    say(&mut child, 4);
    assert_eq!(worlds(&parent, &child).len(), 2, "one thing of each");
    let before = parent.events();
    let grandchild = fork(&child, child.engine.head(), "grandchild").unwrap().id;
    let mut grandchild = Running::open(Arc::clone(&log), grandchild, child.library());
    say(&mut grandchild, 5);
    assert_eq!(grandchild.of_kind("thing.kept").len(), 4);
    assert_eq!((child.of_kind("thing.kept").len(), parent.events()), (3, before), "alone");
    let beyond = fork(&parent, Head::of_count(1000), "beyond").unwrap_err();
    assert!(matches!(beyond, LogError::BeyondHead { .. }), "{beyond}");
}

/// However it is cut into steps, waves and lives, the log is the same.
#[test]
fn any_portions_of_a_run_give_the_same_bytes() {
    let start = || {
        let body = "n = event.payload.n\nkind = \"count.down\" if n > 0 else \"count.ended\"\n\
                    emit(kind, {\"n\": n - 1})";
        let fields = "on = \"count.down\", wakes_self = True";
        let mut running = flock(&[script("count", fields, "event", body)]);
        running.say("begin", "count.down", json!({"n": 30}), &json!([]));
        running.engine.commit().unwrap();
        running
    };
    let mut whole = start();
    whole.rest();
    for portion in [1, 2, 7] {
        let mut running = start();
        for _ in 0..31 {
            running.engine.set_wave(portion);
            for _ in 0..portion {
                running.engine.step().unwrap();
            }
            running.engine.commit().unwrap();
            running = running.crash();
        }
        assert_eq!(running.engine.waiting(), 0);
        assert_eq!(running.tip(), whole.tip(), "{portion} at a time");
    }
    assert_eq!(story(&whole).len(), 32);
    assert_eq!(log::verify(&*whole.log, whole.branch).unwrap().0, whole.tip().0);
}
