//! The life of an action: from its request to its one outcome.

use std::sync::Arc;
use std::time::Duration;

use effect::Class;
use log::Cause;
use serde_json::json;

use super::{one, wishing};
use crate::support::effects::{Does, Scripted, World};

#[test]
fn a_request_leaves_once_and_ends_in_one_outcome() {
    let (mut world, tool) = one(Scripted::new(Class::Opaque, [Does::Succeeds(json!({"id": 7}))]));
    world.settle();
    assert_eq!(world.story(), "requested dispatched attempt.succeeded succeeded");
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(tool.calls()[0].args, json!({"n": 1}));
    let ended = &world.running.of_kind("effect.ended")[0];
    let requested = &world.running.of_kind("effect.requested")[0];
    assert_eq!(ended.cause(), Some(Cause::Action { action: requested.id() }));
    assert_eq!(requested.author(), Some("ask"));
    let payload = &world.payloads("effect.ended")[0];
    assert_eq!((&payload["result"], &payload["attempts"]), (&json!({"id": 7}), &json!(1)));
    let node = payload["node"].as_str().unwrap();
    assert_eq!(world.running.property(node, "status"), "succeeded");
    assert!(world.open().is_empty());
    world.settle();
    assert_eq!(tool.calls().len(), 1, "what has ended does not leave again");
}

/// Behaviors hear outcomes, and find them in the graph.
#[test]
fn an_outcome_wakes_behaviors_by_event_and_by_pattern() {
    let tool = Arc::new(Scripted::new(Class::ReadOnly, []));
    let matched = json!({
        "name": "see_outcome",
        "match": "(e:_Effect {status: 'succeeded'})-[:_OUTCOME]->(o:_Outcome)",
    });
    let heard = json!({
        "name": "hear_outcome", "on": "effect.ended", "where": {"effect": "tool:x"},
        "match": "(e:_Effect) WHERE id(e) = event.payload.node",
    });
    let flock = wishing(&[json!({"args": {}})])
        .with(&matched, |firing, out| {
            let result = firing.element("o")?.get("result").map(|result| result.to_json());
            out.emit("outcome.seen", json!({"result": result}));
            Ok(())
        })
        .with(&heard, |_, out| {
            out.emit("outcome.heard", json!({}));
            Ok(())
        });
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    assert_eq!(world.payloads("outcome.seen"), [json!({"result": {"done": true}})]);
    assert_eq!(world.payloads("outcome.heard").len(), 1);
}

/// R10: what nobody has is refused, and nothing is tried.
#[test]
fn an_effect_that_is_not_there_is_rejected_without_an_attempt() {
    let tool = Arc::new(Scripted::new(Class::ReadOnly, []));
    let mut world = World::new(&wishing(&[json!({"effect": "tool:xx"})]), &[("tool:x", &tool)]);
    world.settle();
    assert_eq!(world.story(), "requested rejected");
    let error = &world.payloads("effect.ended")[0]["error"];
    assert_eq!(error["kind"], "effect.unknown");
    assert_eq!(error["message"], "there is no effect `tool:xx`; did you mean `tool:x`?");
}

/// R39: the field that is wrong is named.
#[test]
fn arguments_that_do_not_fit_are_rejected_with_their_field() {
    let tool = Arc::new(Scripted::new(Class::ReadOnly, []));
    let flock = wishing(&[json!({"args": {"amount": "many"}})]);
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    assert_eq!(world.story(), "requested rejected");
    let error = &world.payloads("effect.ended")[0]["error"];
    assert_eq!(error["message"], "/args/amount: expected a number");
    assert!(tool.calls().is_empty());
}

/// What an executor understands the arguments to be is what leaves and what is recorded.
#[test]
fn normalised_arguments_are_a_revision_of_the_request() {
    let tool = Arc::new(Scripted::new(Class::ReadOnly, []));
    let flock = wishing(&[json!({"args": {"amount": 3, "currency": null}})]);
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    assert_eq!(world.story(), "requested rewritten dispatched attempt.succeeded succeeded");
    assert_eq!(tool.calls()[0].args, json!({"amount": 3, "currency": "EUR"}));
    assert_eq!(world.payloads("effect.dispatched")[0]["revision"], 1);
}

#[test]
fn a_reply_that_is_lost_is_unknown_and_an_executor_that_breaks_off_too() {
    for does in [Does::Vanishes, Does::Panics] {
        let (mut world, tool) = one(Scripted::new(Class::Opaque, [does]));
        world.settle();
        assert_eq!(world.story(), "requested dispatched attempt.unknown unknown");
        assert_eq!(tool.calls().len(), 1);
        assert_eq!(world.open().len(), 1, "it stays open until it is settled");
    }
}

/// A slow reader that yields when its time is over once ended as cancelled, though nobody had
/// cancelled it: it and the driver have the same time, and the driver's was over first.
#[test]
fn what_yields_when_its_time_is_over_was_not_cancelled_and_is_tried_again() {
    let script = [Does::Yields, Does::Succeeds(json!({"n": 1}))];
    let tool = Scripted::new(Class::ReadOnly, script).within(Duration::from_millis(20));
    let (mut world, tool) = one(tool);
    world.settle_or(|world| !world.payloads("attempt.ended").is_empty());
    let ended = world.payloads("attempt.ended")[0].clone();
    assert_eq!(
        (&ended["status"], &ended["error"]["kind"]),
        (&json!("failed"), &json!("runtime.timeout"))
    );
    world.pass(100_000);
    assert_eq!(world.story(), "requested dispatched retry dispatched attempt.succeeded succeeded");
    assert_eq!(tool.calls().len(), 2);
}

/// Row 103 of the public failures: a tool that ignores its cancellation.
#[test]
fn a_tool_that_takes_too_long_is_unknown_and_its_late_receipt_settles_it() {
    let lag = Does::Lags(Duration::from_millis(300), json!({"late": true}));
    let tool = Scripted::new(Class::Opaque, [lag]).within(Duration::from_millis(20));
    let (mut world, _) = one(tool);
    world.settle_or(|world| world.story().ends_with("attempt.unknown unknown"));
    let story = "requested dispatched attempt.unknown unknown";
    assert_eq!(world.story(), story);
    world.listen();
    world.settle();
    assert_eq!(world.story(), format!("{story} late.succeeded reconciled.succeeded"));
}

/// What the world said is in the log to the last byte; a behavior sees its two ends and the lines
/// that tell of errors, and what it hands on is the whole.
#[test]
fn a_long_result_is_a_blob_with_an_excerpt_beside_it() {
    let lines: Vec<String> = (0..20_000)
        .map(|n| if n == 9_000 { "error: it broke here".to_owned() } else { format!("line {n}") })
        .collect();
    let text = lines.join("\n");
    let tool = Arc::new(Scripted::new(
        Class::Opaque,
        [Does::Succeeds(json!({"stdout": text, "exit": 0}))],
    ));
    let hand_on: behaviors::Reaction = |firing, out| {
        let result = firing.event.payload.get("result").map(|result| result.to_json());
        out.request("tool:y", json!({"text": result.unwrap_or_default()["stdout"]}), None);
        Ok(())
    };
    let metadata = json!({
        "name": "hand_on", "on": "effect.ended", "where": {"effect": "tool:x"}, "effects": ["tool:y"],
    });
    let next = Arc::new(Scripted::new(Class::Opaque, []));
    let flock = wishing(&[json!({"args": {"n": 1}})]).with(&metadata, hand_on);
    let mut world = World::new(&flock, &[("tool:x", &tool), ("tool:y", &next)]);
    world.settle();
    let ended = &world.payloads("effect.ended")[0];
    let blob = &ended["result"]["stdout"];
    assert_eq!(blob["size"], json!(text.len()));
    let hash = blob["$blob"].as_str().unwrap().parse().unwrap();
    assert_eq!(world.running.log.blob(&hash).unwrap().unwrap(), text.as_bytes());
    let excerpt = ended["excerpts"]["/result/stdout"].as_str().unwrap();
    assert!(excerpt.len() <= 4096 && excerpt.starts_with("line 0\n"), "{excerpt}");
    assert!(excerpt.contains("\nerror: it broke here\n") && excerpt.ends_with("line 19999"));
    assert_eq!(next.calls()[0].args["text"], json!(text), "what is handed on is whole");
}
