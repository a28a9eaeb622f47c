//! Answers in forks: each of them recorded or said to be asked anew, none silently.

use std::collections::BTreeSet;
use std::sync::Arc;

use effect::Class;
use log::Event;
use serde_json::{Value, json};

use super::{Fork, kinds, splits_firing};
use crate::effects::wishing;
use crate::support::effects::{Does, Scripted, World};
use crate::support::flock::Small;

fn payload(event: &Event) -> Value {
    Value::Object(event.payload().to_json())
}

fn of<'e>(events: &'e [Event], kind: &'e str) -> impl Iterator<Item = Value> + 'e {
    events.iter().filter(move |event| event.is_kind(kind)).map(payload)
}

/// Wishes answered in every way, with retries, a timer, and a wish from a person in between.
fn varied() -> (World, Arc<Scripted>) {
    let wishes: Vec<Value> = (0..6).map(|n| json!({"args": {"n": n}})).collect();
    let flock = wishing(&wishes)
        .with(&json!({"name": "hear", "on": "effect.ended"}), |firing, out| {
            let payload = Value::Object(firing.event.payload.to_json());
            out.emit(
                "end.heard",
                json!({"status": payload["status"], "draw": firing.rand.below(99)}),
            );
            Ok(())
        })
        .with(&json!({"name": "later", "on": "end.heard", "after": "1s"}), |_, out| {
            out.emit("later.came", json!({}));
            Ok(())
        });
    let succeeds = |n: u64| Does::Succeeds(json!({"was": n}));
    let script = [succeeds(0), Does::Fails("no"), Does::Stumbles("busy"), succeeds(3), succeeds(4)];
    let tool = Arc::new(Scripted::new(Class::ReadOnly, script));
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    let more = json!([
        {"create": "wish:8", "type": "Wish", "properties": {"args": {"n": 8}}},
        {"create": "wish:9", "type": "Wish", "properties": {"effect": "timer", "args": {"after": "5s"}}},
    ]);
    world.running.say("more", "wishes.made", json!({}), &more);
    for _ in 0..30 {
        world.pass(1000);
    }
    (world, tool)
}

/// The peer served none of 35 answers to an unchanged fork: its ids are counters, so all shifted.
#[test]
fn an_unchanged_fork_is_served_every_answer_wherever_it_is_cut() {
    let (world, tool) = varied();
    let (whole, library) = (world.running.events(), world.running.library());
    let calls = tool.calls().len();
    assert!(kinds(&whole)["flock.ticked"] > 0 && calls >= 7, "{:?}", kinds(&whole));
    assert!(world.open().is_empty(), "all ended: {:?}", world.open());
    let log = Arc::clone(&world.running.log);
    let first = whole.iter().position(|event| event.is_kind("effect.requested")).unwrap();
    for cut in first..whole.len() {
        if splits_firing(&whole, cut) {
            continue;
        }
        let child = Fork::cut(&log, world.running.branch, cut, &format!("cut-{cut}"));
        let found = Fork::open(&log, child, &library).rest();
        assert_eq!(found, whole, "cut {cut}");
    }
    assert_eq!(tool.calls().len(), calls, "nobody was asked again");
}

/// The peer lost all answers when a behavior that does nothing was added.
#[test]
fn a_fork_that_only_adds_an_unrelated_behavior_is_served_every_answer() {
    let (world, _) = varied();
    let (whole, library) = (world.running.events(), world.running.library());
    let log = Arc::clone(&world.running.log);
    let first = whole.iter().position(|event| event.is_kind("effect.requested")).unwrap();
    let child = Fork::cut(&log, world.running.branch, first, "added");
    let mut fork = crate::support::flock::Running::open(Arc::clone(&log), child, library);
    fork.load(&json!({"name": "count", "on": "*"}), |firing, out| {
        if firing.event.kind != "fork.counted" {
            out.emit("fork.counted", json!({"of": firing.event.kind}));
        }
        Ok(())
    });
    fork.engine.commit().unwrap();
    let library = fork.library();
    drop(fork);
    let found = Fork::open(&log, child, &library).rest();
    let ends = |events: &[Event]| -> BTreeSet<String> {
        of(events, "effect.ended").map(|end| end.to_string()).collect()
    };
    assert_eq!(ends(&found), ends(&whole), "each action has its own answer");
    assert!(kinds(&found)["fork.counted"] > 20);
    assert!(
        of(&found, "effect.dispatched").all(|sent| sent["served"].as_str().is_some()),
        "every answer says where it is from"
    );
}

/// The peer served a recorded failure as a success without a result.
#[test]
fn a_recorded_failure_is_served_as_the_failure_that_it_was() {
    let tool = Arc::new(Scripted::new(Class::Opaque, [Does::Fails("card.refused")]));
    let mut world = World::new(&wishing(&[json!({"args": {"n": 1}})]), &[("tool:x", &tool)]);
    world.settle();
    let (whole, library) = (world.running.events(), world.running.library());
    let log = Arc::clone(&world.running.log);
    let cut = whole.iter().position(|event| event.is_kind("effect.requested")).unwrap();
    let child = Fork::cut(&log, world.running.branch, cut, "child");
    let found = Fork::open(&log, child, &library).rest();
    let end = of(&found, "effect.ended").next().unwrap();
    assert_eq!((&end["status"], &end["error"]["kind"]), (&json!("failed"), &json!("card.refused")));
}

/// A fork without the guard that refused is not bound by the refusal; what nobody answered waits.
#[test]
fn a_refusal_of_a_guard_that_the_fork_does_not_have_is_not_told_to_it() {
    let guard = json!({"name": "guard_all", "guard": true, "on": "effect.requested"});
    let flock = wishing(&[json!({"args": {"n": 1}})]).with(&guard, |_, out| {
        out.deny("never");
        Ok(())
    });
    let tool = Arc::new(Scripted::new(Class::Opaque, []));
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    let (whole, library) = (world.running.events(), world.running.library());
    assert_eq!(of(&whole, "effect.ended").next().unwrap()["status"], "rejected");
    let log = Arc::clone(&world.running.log);
    let cut = whole.iter().position(|event| event.is_kind("effect.requested")).unwrap();
    let child = Fork::cut(&log, world.running.branch, cut, "child");
    let mut engine =
        runtime::Engine::open(Arc::clone(&log), child, library.clone(), "test").unwrap();
    engine.unload(&"guard_all".into(), log::Time::default()).unwrap();
    engine.commit().unwrap();
    drop(engine);
    let mut fork = Fork::open(&log, child, &library);
    fork.run(u64::MAX, usize::MAX);
    assert_eq!(fork.engine.open_effects().len(), 1, "it is asked for, and no answer is recorded");
}

/// Rows 94 and 97 of the public failures: what the parent has under way stays with it and is seen
/// to be under way there; the fork has nothing that looks as if it ran for ever.
#[test]
fn what_is_open_at_the_cut_and_never_answered_is_cancelled_by_the_fork() {
    let tool = Arc::new(Scripted::new(Class::Keyed, [Does::Hangs]));
    let mut world = World::new(&wishing(&[json!({"args": {"n": 1}})]), &[("tool:x", &tool)]);
    world.until_called(&tool);
    world.running.engine.commit().unwrap();
    let (whole, library) = (world.running.events(), world.running.library());
    let log = Arc::clone(&world.running.log);
    let child = Fork::cut(&log, world.running.branch, whole.len(), "child");
    let found = Fork::open(&log, child, &library).rest();
    let end = of(&found, "effect.ended").next().unwrap();
    assert_eq!((&end["status"], &end["by"]), (&json!("cancelled"), &json!("fork")));
    assert_eq!(world.open().len(), 1, "the parent's is out still");
}

/// A behavior that asks what another asks gets no answer that belongs to the other: of two requests
/// and one answer, the one without an answer of its own waits.
#[test]
fn the_same_question_of_a_new_behavior_is_answered_from_what_nobody_here_owns() {
    let wishes = [json!({"args": {"n": 1}}), json!({"args": {"n": 1}, "key": "other"})];
    let answers = [Does::Succeeds(json!({"was": 1})), Does::Succeeds(json!({"was": 2}))];
    let tool = Arc::new(Scripted::new(Class::ReadOnly, answers));
    let mut world = World::new(&wishing(&wishes), &[("tool:x", &tool)]);
    world.settle();
    let (whole, library) = (world.running.events(), world.running.library());
    let log = Arc::clone(&world.running.log);
    let cut = whole.iter().position(|event| event.is_kind("effect.requested")).unwrap();
    let child = Fork::cut(&log, world.running.branch, cut, "child");
    let mut changed = crate::support::flock::Running::open(Arc::clone(&log), child, library);
    let asks = json!({"name": "ask_too", "match": "(wish:Wish {key: 'other'})", "effects": ["*"]});
    changed.load(&asks, |_, out| {
        out.request("tool:x", json!({"n": 1}), None);
        Ok(())
    });
    changed.engine.commit().unwrap();
    let library = changed.library();
    drop(changed);
    let mut fork = Fork::open(&log, child, &library);
    fork.run(u64::MAX, usize::MAX);
    let open = fork.engine.open_effects();
    assert_eq!(open.len(), 1, "one asked more often than there are answers: {open:?}");
    assert_eq!(open[0].behavior, "ask_too");
}

/// A flock of nobody: only to be told apart from one with answers.
#[test]
fn a_branch_that_is_no_fork_has_nothing_to_be_told() {
    let running = Small::new("fifo", &json!({})).start();
    let feed =
        runtime::Feed::of(&*running.log, running.branch, &runtime::Snapshots::none()).unwrap();
    assert!(feed.is_empty() && feed.is_done());
    assert_eq!(running.log.branches().unwrap().len(), 1);
}
