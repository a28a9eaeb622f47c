//! Forging: a script can propose, and nothing it proposes is taken for a word of the runtime.

use runtime::{Overrides, Step};
use serde_json::{Value, json};

use crate::support::flock::{Running, scripts, start_folder};

const FLOCK: &str = "name = \"forge\"\n";

/// A behavior that hears `forge.asked` and does what `body` says, from line 7 on.
fn script(body: &str) -> String {
    format!(
        "# Says what it must not say.\n\
         behavior(\n    name = \"forge\", description = \"Forges.\",\n    on = \"forge.asked\",\n)\n\
         def forge(event):\n    {body}\n"
    )
}

/// Runs the script on one event: it must fail whole, at this line, for this reason.
fn check(body: &str, line: u64, says: &str) {
    let text = script(body);
    let folder = scripts(FLOCK, &[("forge.star", &text)]);
    let mut running = start_folder(folder.path(), &Overrides::default());
    running.say("ask", "forge.asked", json!({}), &json!([]));
    running.engine.commit().unwrap();
    let before = running.events();
    let world = running.engine.graph().state_hash();
    assert_eq!(running.rest(), Step::Rest);

    let events = running.events();
    assert_eq!(events.len(), before.len() + 1, "{body}: one event tells of the failure");
    let failed = &events[before.len()];
    assert_eq!((failed.kind(), failed.author()), ("behavior.failed", Some("forge")));
    assert_eq!(failed.changes().iter().count(), 0);
    assert_eq!(running.engine.graph().state_hash(), world, "{body}: nothing landed");
    let payload = Value::Object(failed.payload().to_json());
    assert_eq!(payload["file"], "behaviors/forge.star", "{payload}");
    assert_eq!(payload["line"], json!(line), "{payload}");
    assert!(payload["error"].as_str().unwrap().contains(says), "{payload}");
    still_works(&mut running);
}

/// A failure stops nobody: the next event is heard as well.
fn still_works(running: &mut Running) {
    running.say("again", "forge.asked", json!({}), &json!([]));
    running.rest();
    assert_eq!(running.of_kind("behavior.failed").len(), 2);
}

#[test]
fn a_script_that_writes_an_outcome_fails_whole() {
    check(
        "emit(\"effect.ended\", {\"action\": \"x\", \"status\": \"succeeded\"})",
        7,
        "`effect.ended` is written by the runtime only",
    );
    check(
        "emit(\"thing.done\", {}, create(\"_Outcome\", status = \"succeeded\"))",
        7,
        "`_Outcome` are written by the runtime only",
    );
}

#[test]
fn a_script_that_gives_a_grant_or_loads_a_behavior_fails_whole() {
    check(
        "emit(\"grant.given\", {\"effects\": [\"*\"]})",
        7,
        "`grant.given` is written by the runtime",
    );
    check(
        "emit(\"behavior.loaded\", {\"name\": \"x\"})",
        7,
        "`behavior.loaded` is written by the runtime",
    );
    check(
        "emit(\"flock.changed\", {\"budget\": {}})",
        7,
        "`flock.changed` is written by the runtime",
    );
    check("emit(\"thing.done\", {}, ensure(\"_Grant\", id = \"g\"))", 7, "`_Grant` are written by");
}

#[test]
fn what_a_script_said_before_it_forged_does_not_land() {
    let body = "emit(\"thing.done\", {}, create(\"Thing\"))\n    \
                emit(\"attempt.ended\", {})";
    check(body, 8, "`attempt.ended` is written by the runtime");
}

#[test]
fn of_two_events_of_which_the_second_cannot_apply_neither_lands() {
    let body = "emit(\"thing.made\", {}, ensure(\"Thing\", id = \"thing\"))\n    \
                emit(\"thing.set\", {}, set(\"nobody\", x = 1))";
    let text = script(body);
    let folder = scripts(FLOCK, &[("forge.star", &text)]);
    let mut running = start_folder(folder.path(), &Overrides::default());
    running.say("ask", "forge.asked", json!({}), &json!([]));
    let (world, head) = (running.engine.graph().state_hash(), running.engine.head().count());
    running.rest();
    let failed = running.of_kind("behavior.failed");
    assert_eq!((failed.len(), running.engine.head().count()), (1, head + 1));
    let error = failed[0].payload().to_json()["error"].to_string();
    assert!(error.contains("nobody"), "it names what is missing: {error}");
    assert_eq!(running.engine.graph().state_hash(), world);
    assert!(running.engine.graph().element("thing").is_none(), "the first is taken back as well");
    assert!(running.of_kind("thing.made").is_empty());
}
