//! Executables: asked once, confined, held to what they declare; and as guards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{FLOCK, Place, program};

/// A program that answers with what it was told: its input, whole, as a payload.
const ECHO: &str = r#"#!/bin/sh
# /// starling
# description = "Says what it was told."
# on = "note.added"
# match = "(note:Note)"
# each = true
# reads = { others = "(others:Note)" }
# emits = ["note.echoed"]
# writes = ["Note.seen"]
# ///
echo "a line of its log" >&2
told=$(cat)
seen='[{"set": "note:1", "properties": {"seen": true}}]'
at=$(date +%N)
echo "{\"emit\": \"note.echoed\", \"payload\": {\"told\": $told, \"at\": \"$at\"}, \"changes\": $seen}"
"#;

#[test]
fn an_executable_answers_once_and_is_never_asked_again() {
    let place = Place::new(FLOCK, &[("behaviors/echo.sh", ECHO)]);
    place.ok(&["run", ".", "--trust"]);
    let echoed = place.of_kind("note.echoed");
    assert_eq!(echoed.len(), 1);
    let told = &echoed[0]["told"];
    assert_eq!(told["event"]["payload"]["text"], "three small words");
    assert_eq!(told["match"]["note"]["id"], "note:1");
    assert_eq!(told["reads"]["others"][0]["type"], "Note");
    assert!(told.get("hash").is_none() && told["random"].is_u64());
    let ended = &place.of_kind("effect.ended")[0];
    assert_eq!(ended["result"]["log"], "a line of its log");
    let requested = &place.of_kind("effect.requested")[0];
    assert_eq!(requested["effect"], "exec:echo");
    // What it said stands in the log: all is refired without it, though it would say another time.
    place.ok(&["replay", "--refire"]);
    fs::remove_file(place.path().join("behaviors/echo.sh")).unwrap();
    place.ok(&["replay", "--refire"]);
    assert_eq!(place.ok(&["show", "note:1", "--json"]).out.matches("\"seen\":true").count(), 1);
}

#[test]
fn a_flock_with_an_executable_is_confirmed_first_and_again_when_it_changes() {
    let place = Place::new(FLOCK, &[("behaviors/echo.sh", ECHO)]);
    place.fails(
        &["run", "."],
        2,
        "exec:echo (a behavior): Says what it was told.\n    runs behaviors/echo.sh",
    );
    place.ok(&["run", ".", "--trust"]);
    place.ok(&["run", "."]);
    place.write("behaviors/echo.sh", &ECHO.replace("told=$(cat)", "told=1"));
    place.fails(&["run", "."], 2, "exec:echo");
    // A text that may now be run is another flock, too.
    let place = Place::new(FLOCK, &[("behaviors/echo.sh", ECHO), ("behaviors/lib.sh", "x=1\n")]);
    place.ok(&["run", ".", "--trust"]);
    let lib = place.path().join("behaviors/lib.sh");
    fs::set_permissions(lib, fs::Permissions::from_mode(0o755)).unwrap();
    place.fails(&["run", "."], 2, "exec:echo");
}

#[test]
fn what_an_executable_may_not_say_fails_whole() {
    let cases = [
        (
            "emits = [\"a.b\"]",
            "echo '{\"emit\": \"a.b\"}'; echo '{\"emit\": \"c.d\"}'",
            "add \"c.d\" to its `emits`",
        ),
        ("emits = []", "echo no", "line 1 it printed is no JSON object"),
        (
            "emits = []",
            "echo '{\"emit\": \"a.b\", \"payload\": {\"n\": 1e999}}'",
            "fits neither 64 bits nor a float",
        ),
        ("emits = []", "echo 'not today' >&2; exit 2", "it vetoes: not today"),
        ("emits = []", "echo 'it broke' >&2; exit 3", "ended with exit code 3\nit broke"),
        ("emits = []\n[exec]\ntimeout = \"200ms\"", "sleep 30", "did not answer within 200ms"),
        (
            "emits = []\n[exec]\noutput_bytes = 1000",
            "yes | head -n 9000",
            "printed more than 1000 bytes",
        ),
        ("effects = []", "echo '{\"request\": \"tool:x\"}'", "add \"tool:x\" to its `effects`"),
    ];
    for (fields, body, says) in cases {
        let text = program(&format!("on = \"note.added\"\n{fields}"), body);
        let place = Place::new(FLOCK, &[("behaviors/try_it.sh", &text)]);
        place.ok(&["run", ".", "--trust"]);
        let failure = place.failure();
        assert!(failure.contains(says), "{body}: {failure}");
        assert_eq!(place.of_kind("a.b").len(), 0, "nothing of it is applied");
        place.ok(&["replay", "--refire"]);
    }
}

/// A program has neither the network nor a place to write: it can only answer.
#[test]
fn an_executable_changes_nothing_but_by_its_answer() {
    let body = "touch ./made 2>/dev/null; touch behaviors/made 2>/dev/null\n\
                ls .starling/store.redb >/dev/null 2>&1 && echo '{\"emit\": \"store.seen\"}'\n\
                echo '{\"emit\": \"a.b\"}'";
    let text = program("on = \"note.added\"", body);
    let place = Place::new(FLOCK, &[("behaviors/try_it.sh", &text)]);
    place.ok(&["run", ".", "--trust"]);
    assert_eq!((place.of_kind("a.b").len(), place.of_kind("store.seen").len()), (1, 0));
    assert!(!place.path().join("made").exists() && !place.path().join("behaviors/made").exists());
}

const PAYING: &str = r#"
[grants]
effects = ["tool:pay"]
[[start]]
kind = "bill.came"
payload = { amount = 5 }
"#;
const PAY: &str = "behavior(name = \"pay_bill\", description = \"Pays.\", on = \"bill.came\", effects = [\"tool:pay\"])\n\
    def pay_bill(event):\n    request(\"tool:pay\", {\"amount\": event.payload.amount})\n";
const TOOL: &str = "command = [\"sh\", \"-c\", \"cat\"]\nclass = \"read_only\"\n";

fn guarded(body: &str) -> Place {
    let fields = "on = \"effect.requested\"\nwhere = { effect = \"tool:pay\" }\nguard = true\n[exec]\ntimeout = \"2s\"";
    let guard = program(fields, body);
    let files = [
        ("behaviors/pay.star", PAY),
        ("tools/pay.toml", TOOL),
        ("behaviors/judge.sh", guard.as_str()),
    ];
    let place = Place::new(PAYING, &files);
    place.ok(&["run", ".", "--trust"]);
    place.ok(&["replay", "--refire"]);
    place
}

/// How the payment ended: its status, and its result or the message of its error.
fn payment(place: &Place) -> (Value, Value) {
    let ended = place.of_kind("effect.ended");
    let pay = ended.iter().find(|e| e["effect"] == "tool:pay").unwrap();
    let told = if pay["error"].is_null() { &pay["result"] } else { &pay["error"]["message"] };
    (pay["status"].clone(), told.clone())
}

#[test]
fn a_guard_that_is_an_executable_allows_denies_and_rewrites() {
    let place = guarded("echo '{\"allow\": true}'");
    assert_eq!(payment(&place), (json!("succeeded"), json!({"amount": 5})));
    let place = guarded("echo '{\"deny\": \"too much\"}'");
    assert_eq!(payment(&place), (json!("rejected"), json!("judge denies: too much")));
    let place = guarded("echo 'not on Sundays' >&2; exit 2");
    assert_eq!(payment(&place), (json!("rejected"), json!("judge denies: not on Sundays")));
    // It is shown the rewritten arguments as well, and lets them pass.
    let halve = "grep -q '\"amount\":5' && echo '{\"rewrite\": {\"amount\": 2}}' || echo '{\"allow\": true}'";
    let place = guarded(halve);
    assert_eq!(payment(&place), (json!("succeeded"), json!({"amount": 2})));
}

#[test]
fn a_guard_that_does_not_answer_in_time_or_says_garbage_denies() {
    let begun = Instant::now();
    let place = guarded("sleep 60");
    let (status, why) = payment(&place);
    assert_eq!(status, "rejected");
    assert!(why.as_str().unwrap().contains("did not answer within 2s"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    for (body, says) in [
        ("exit 1", "exit code 1"),
        ("true", "it gave no verdict"),
        ("echo hm", "is no JSON object"),
    ] {
        let place = guarded(body);
        let (status, why) = payment(&place);
        assert_eq!(status, "rejected", "{body}");
        assert!(why.as_str().unwrap().contains(says), "{body}: {why}");
    }
}

#[test]
fn a_file_that_says_it_is_a_behavior_and_is_none_is_told() {
    let place =
        Place::new(FLOCK, &[("behaviors/ok.star", PAY), ("behaviors/README.md", "# Notes")]);
    place.ok(&["run", "."]);
    let text = program("on = \"note.added\"", "true").replace("#!/bin/sh\n", "");
    place.write("behaviors/count.sh", &text);
    place.fails(&["run", ".", "--fresh"], 1, "chmod +x behaviors/count.sh");
    place.write("behaviors/count.sh", "#!/bin/sh\ntrue\n");
    place.fails(
        &["run", ".", "--fresh"],
        1,
        "behaviors/count.sh:1:1: an executable in `behaviors`",
    );
    fs::remove_file(place.path().join("behaviors/count.sh")).unwrap();
    place.write("behaviors/plan.md", "Plan it.");
    place.fails(
        &["run", ".", "--fresh"],
        1,
        "behaviors/plan.md:1:1: a prompt begins with a line `---`",
    );
}
