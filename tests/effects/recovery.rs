//! After a crash: what the log can know, what may be done again, and who decides.

use std::sync::Arc;

use effect::{Class, Seen};
use runtime::Scope;
use serde_json::json;

use super::{one, wishing};
use crate::support::effects::{Does, Scripted, World, error};

/// An attempt is out, and the process dies.
fn crashed(class: Class, seen: impl IntoIterator<Item = Seen>) -> (World, Arc<Scripted>) {
    let (mut world, tool) = one(Scripted::new(class, [Does::Hangs]).seeing(seen));
    world.until_called(&tool);
    assert_eq!(world.story(), "requested dispatched");
    (world.crash(), tool)
}

const LOST: &str = "requested dispatched attempt.unknown unknown";

#[test]
fn what_was_requested_and_not_dispatched_never_happened_and_leaves() {
    let (mut world, tool) = one(Scripted::new(Class::Opaque, []));
    world.running.rest();
    let mut world = world.crash();
    assert!(tool.calls().is_empty());
    world.settle();
    assert_eq!(world.story(), "requested dispatched attempt.succeeded succeeded");
    assert_eq!(tool.calls().len(), 1);
}

#[test]
fn what_only_reads_is_run_again_as_a_new_attempt() {
    let (mut world, tool) = crashed(Class::ReadOnly, []);
    world.settle();
    let again = "dispatched attempt.succeeded reconciled.succeeded";
    assert_eq!(world.story(), format!("{LOST} {again}"));
    let attempts: Vec<u32> = tool.calls().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2]);
}

/// The same key leaves again: the provider sees one payment, however many attempts.
#[test]
fn what_has_a_key_is_sent_again_with_the_same_key() {
    let (mut world, tool) = crashed(Class::Keyed, []);
    world.settle();
    assert_eq!(world.story(), format!("{LOST} dispatched attempt.succeeded reconciled.succeeded"));
    let keys: Vec<String> = tool.calls().into_iter().map(|call| call.idempotency_key).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn a_key_that_the_provider_has_forgotten_is_looked_up_instead() {
    let found = Seen::Found(json!({"id": 1}));
    let (mut world, tool) = crashed(Class::Keyed, [found]);
    world.pass(25 * 3_600_000);
    assert_eq!(world.story(), format!("{LOST} reconciled.succeeded"));
    assert_eq!((tool.calls().len(), tool.looks()), (1, 1));
}

/// What can be asked is looked at before anything is decided.
#[test]
fn what_can_be_queried_is_looked_at_first() {
    for class in [Class::Queryable, Class::CompareAndSet] {
        let found = Seen::Found(json!({"id": 1}));
        let (mut world, tool) = crashed(class, [found]);
        world.settle();
        assert_eq!(world.story(), format!("{LOST} reconciled.succeeded"), "{class}");
        assert_eq!(tool.calls().len(), 1);

        let (mut world, tool) = crashed(class, [Seen::Absent]);
        world.settle();
        let sent = "looked.absent dispatched attempt.succeeded reconciled.succeeded";
        assert_eq!(world.story(), format!("{LOST} {sent}"), "{class}");
        assert_eq!(tool.calls().len(), 2);

        let (mut world, tool) = crashed(class, [Seen::Conflict(error("fs.conflict"))]);
        world.settle();
        assert_eq!(world.story(), format!("{LOST} looked.conflict"), "{class}");
        world.pass(3_600_000);
        assert_eq!((tool.calls().len(), tool.looks()), (1, 1), "a person decides");
        assert_eq!(world.open()[0].commands.len(), 2);
    }
}

/// It was sent again to settle a doubt, and cancelled while it was out: the doubt remembered that
/// nobody had cancelled it, and it was sent a third time.
#[test]
fn what_is_cancelled_while_it_is_sent_again_is_not_sent_once_more() {
    let script = Scripted::new(Class::ReadOnly, [Does::Hangs, Does::Hangs]);
    let (mut world, tool) = one(script);
    world.until_called(&tool);
    let mut world = world.crash();
    world.settle_or(|_| tool.calls().len() == 2);
    let at = log::Time::default();
    world.running.engine.cancel(Scope::Branch, "user:ann", "enough", at).unwrap();
    world.settle();
    assert_eq!(tool.calls().len(), 2, "{}", world.story());
    assert!(world.story().ends_with("reconciled.cancelled"), "{}", world.story());
}

/// Absent now and there later: what is pending is neither repeated nor assumed.
#[test]
fn what_is_under_way_is_waited_for() {
    let seen = [Seen::Pending, Seen::Pending, Seen::Found(json!({}))];
    let (mut world, tool) = crashed(Class::Queryable, seen);
    world.settle();
    assert_eq!(world.story(), format!("{LOST} looked.pending"));
    let mut world = world.crash();
    world.settle();
    assert_eq!(tool.looks(), 1, "how long to wait survives a restart");
    world.pass(60_000);
    world.pass(60_000);
    assert_eq!(world.story(), format!("{LOST} looked.pending looked.pending reconciled.succeeded"));
    assert_eq!(tool.calls().len(), 1);
}

#[test]
fn what_declares_nothing_waits_for_a_person() {
    for (succeeded, word) in [(true, "succeeded"), (false, "failed")] {
        let (mut world, tool) = crashed(Class::Opaque, []);
        world.settle();
        assert_eq!(world.story(), LOST);
        world.pass(3_600_000);
        assert_eq!((tool.calls().len(), tool.looks()), (1, 0), "nothing is automatic");
        world.says(json!({"say": "settle", "succeeded": succeeded, "result": {"n": 1}})).unwrap();
        world.settle();
        assert_eq!(world.story(), format!("{LOST} reconciled.{word}"));
        let settled = &world.payloads("effect.reconciled")[0];
        assert_eq!((&settled["by"], &settled["how"]), (&json!("user:ann"), &json!("person")));
    }
}

/// Row 25 of the public failures: the outcome is recorded, and its subscriber has not seen it.
#[test]
fn an_outcome_is_delivered_once_whenever_the_process_dies() {
    let tool = Arc::new(Scripted::new(Class::Opaque, []));
    let heard = json!({"name": "hear", "on": "effect.ended"});
    let flock = wishing(&[json!({})]).with(&heard, |_, out| {
        out.emit("outcome.heard", json!({}));
        Ok(())
    });
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle_or(|world| tool.calls().len() == 1 && world.open().is_empty());
    world.running.engine.commit().unwrap();
    let mut world = world.crash();
    assert!(world.payloads("outcome.heard").is_empty());
    world.settle();
    assert_eq!(world.payloads("outcome.heard").len(), 1);
    let mut world = world.crash();
    world.settle();
    assert_eq!(world.payloads("outcome.heard").len(), 1);
    assert_eq!(tool.calls().len(), 1);
}

/// Row 23 of the public failures: starting again and again piled up jobs.
#[test]
fn ten_restarts_change_nothing_about_what_waits() {
    let (mut world, tool) = crashed(Class::Opaque, []);
    world.settle();
    let before = world.running.events();
    for _ in 0..10 {
        world = world.crash();
        world.settle();
    }
    assert_eq!(world.running.events(), before);
    assert_eq!(tool.calls().len(), 1);
}
