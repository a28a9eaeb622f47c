//! Behaviors that cannot answer by themselves: they ask, and the answer wakes them again.

use std::sync::Arc;
use std::time::Duration;

use behaviors::{Behavior, Firing, Loaded, Metadata, Proposals, ReactError};
use effect::Class;
use log::{Hash, Time};
use serde_json::{Map, Value, json};

use crate::support::effects::{Does, Scripted, World};
use crate::support::flock::Small;

/// Asks `exec:b` on each open trip, and closes the trip when it is answered.
struct Asking(Metadata);

impl Behavior for Asking {
    fn metadata(&self) -> &Metadata {
        &self.0
    }

    fn asks(&self) -> Option<&str> {
        Some("exec:b")
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        let Some(answer) = firing.answer else {
            out.request(
                "exec:b",
                json!({"hash": self.0.version, "event": firing.event.kind}),
                None,
            );
            return Ok(());
        };
        let said = answer.get("result").map_or(Value::Null, |result| result.to_json());
        let payload = json!({"said": said, "event": firing.event.kind, "now": firing.now.ms()});
        let mut event = out.emit("trip.closed", payload);
        if let Ok(trip) = firing.element("trip") {
            event.set(trip.id, json!({"status": "closed"}));
        }
        Ok(())
    }
}

/// What loads a version of it.
fn version(trigger: &Value, version: &str) -> (Map<String, Value>, Loaded) {
    let mut fields = trigger.as_object().unwrap().clone();
    fields.insert("name".to_owned(), json!("b"));
    fields.insert("version".to_owned(), json!(version));
    fields.insert("effects".to_owned(), json!(["exec:b"]));
    let metadata = Metadata::from_json(&fields, "b").unwrap();
    let whole = Value::Object(metadata.to_json());
    let hash = Hash::of(version.as_bytes()).to_string();
    let payload = json!({
        "name": "b", "path": "", "hash": hash, "metadata": whole, "asks": "exec:b",
    });
    let loaded = Loaded::new(Arc::new(Asking(metadata)), version);
    (payload.as_object().unwrap().clone(), loaded)
}

fn open_trips() -> Value {
    json!({"match": "(trip:Trip {status: 'open'})", "writes": ["Trip.status"]})
}

fn flock(trigger: &Value) -> Small {
    let trip = json!([{"create": "t", "type": "Trip", "properties": {"status": "open"}}]);
    let mut flock = Small::new("fifo", &json!({})).begins("trip.opened", &trip);
    let (payload, loaded) = version(trigger, "1");
    flock.library.insert(loaded);
    flock.start.behaviors.push(("b".into(), payload));
    flock
}

fn program(script: impl IntoIterator<Item = Does>) -> Arc<Scripted> {
    Arc::new(Scripted::new(Class::ReadOnly, script))
}

fn slow() -> Does {
    Does::Lags(Duration::from_millis(50), json!("late"))
}

#[test]
fn the_answer_wakes_who_asked_on_its_match_without_a_grant() {
    let world = program([Does::Succeeds(json!("yes"))]);
    let mut world_of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    world_of.settle();
    assert_eq!(world_of.story(), "requested dispatched attempt.succeeded succeeded");
    let closed = world_of.payloads("trip.closed");
    assert_eq!(closed.len(), 1);
    assert_eq!((&closed[0]["said"], &closed[0]["event"]), (&json!("yes"), &json!("trip.opened")));
    assert_eq!(closed[0]["now"], 1, "its time is that of the answer");
    assert_eq!(world_of.running.property("t", "status"), "closed");
    let refired = runtime::refire(
        &*world_of.running.log,
        world_of.running.branch,
        world_of.running.library(),
    );
    assert_eq!(refired.unwrap().divergences, []);
}

#[test]
fn an_event_behavior_hears_its_own_answer_and_no_other() {
    let two = program([Does::Succeeds(json!(1)), Does::Succeeds(json!(2))]);
    let mut world = World::new(&flock(&json!({"on": "trip.opened"})), &[("exec:b", &two)]);
    world.running.say("again", "trip.opened", json!({}), &json!([]));
    world.settle();
    let said: Vec<Value> =
        world.payloads("trip.closed").iter().map(|p| p["said"].clone()).collect();
    assert_eq!(said, [1, 2]);
}

#[test]
fn nobody_else_may_ask_it_without_a_grant() {
    let other: behaviors::Reaction = |_, out| {
        out.request("exec:b", json!({"hash": "x"}), None);
        Ok(())
    };
    let metadata = json!({"name": "other", "on": "trip.opened", "effects": ["exec:*"]});
    let world = program([]);
    let flock = flock(&json!({"on": "never.said"})).with(&metadata, other);
    let mut of = World::new(&flock, &[("exec:b", &world)]);
    of.settle();
    assert_eq!(of.payloads("effect.ended")[0]["error"]["message"], "nobody grants `exec:b`");
    assert!(world.calls().is_empty());
}

#[test]
fn an_answer_about_a_world_that_is_no_more_changes_nothing_and_is_told() {
    let world = program([slow()]);
    let mut of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    of.until_called(&world);
    let change = json!([{"set": "t", "properties": {"status": "cancelled"}}]);
    of.running.say("person", "trip.cancelled", json!({}), &change);
    of.settle();
    assert_eq!(of.running.property("t", "status"), "cancelled");
    assert_eq!(of.payloads("trip.closed").len(), 0);
    let failed = of.payloads("behavior.failed");
    let says = failed[0]["error"].as_str().unwrap();
    assert!(
        says.starts_with("the answer came when the match that it is about no longer stood"),
        "{says}"
    );
}

#[test]
fn a_question_that_is_out_when_the_process_dies_is_asked_again() {
    let world = program([slow(), Does::Succeeds(json!("again"))]);
    let mut of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    of.until_called(&world);
    let mut of = of.crash();
    of.settle();
    let closed = of.payloads("trip.closed");
    assert_eq!((closed.len(), &closed[0]["said"]), (1, &json!("again")));
}

#[test]
fn a_new_version_asks_again_and_the_old_answer_is_not_heard() {
    let world = program([slow(), Does::Succeeds(json!("new"))]);
    let mut of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    of.until_called(&world);
    let (payload, loaded) = version(&open_trips(), "2");
    of.running.engine.learn(loaded);
    of.running.engine.load(&"b".into(), payload, Time::default()).unwrap();
    of.settle();
    let closed = of.payloads("trip.closed");
    assert_eq!((closed.len(), &closed[0]["said"]), (1, &json!("new")));
    assert_eq!(world.calls().len(), 2);
    assert_eq!(world.calls()[1].args["hash"], "2");
}

#[test]
fn a_behavior_that_is_removed_hears_no_answer() {
    let world = program([slow()]);
    let mut of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    of.until_called(&world);
    of.running.engine.unload(&"b".into(), Time::default()).unwrap();
    of.settle();
    assert_eq!(of.story(), "requested dispatched attempt.succeeded succeeded");
    assert_eq!(of.payloads("trip.closed").len() + of.payloads("behavior.failed").len(), 0);
}

#[test]
fn what_failed_is_a_failure_of_who_asked() {
    let world = program([Does::Fails("process.exit")]);
    let mut of = World::new(&flock(&open_trips()), &[("exec:b", &world)]);
    of.settle();
    // This reaction takes whatever comes; those of files refuse what did not succeed.
    assert_eq!(of.payloads("trip.closed")[0]["said"], Value::Null);
}
