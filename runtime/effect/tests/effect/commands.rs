//! Commands: what they are told and tell, how they end, and that nothing of them is left.

use std::fs;
use std::time::{Duration, Instant};

use effect::{Answer, Class, Seen};
use serde_json::json;

use crate::support::{
    BOTH, Flock, act, block_on, failed, mark, processes_with, result, unknown, wait_for,
};

#[test]
fn arguments_go_in_and_the_result_comes_out() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let script = "read -r args; printf '{\"args\": %s, \"key\": \"%s\", \"action\": \"%s\"}' \
                      \"$args\" \"$STARLING_IDEMPOTENCY_KEY\" \"$STARLING_ACTION\"";
        let rest = "class = \"keyed\"\n[args]\nproperties.currency.default = \"EUR\"";
        flock.tool("pay", script, rest);
        let tool = flock.load(sandbox, "tool:pay");
        assert_eq!(tool.class(), Class::Keyed);
        let call = flock.call("tool:pay", json!({"amount": 12}));
        let answer = block_on(act(&*tool, call));
        let expected = json!({"amount": 12, "currency": "EUR"});
        let expected = json!({"args": expected, "key": "key-1", "action": "0f".repeat(16)});
        assert_eq!(result(answer), expected);
    }
}

/// No variable of the host goes to a tool that does not name it in its file.
#[test]
fn secrets_are_not_inherited() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let script =
            "cat >/dev/null; env | sed 's/=.*//' | sort | tr '\\n' ' ' | sed 's/.*/\"&\"/'";
        flock.tool(
            "env",
            script,
            "class = \"read_only\"\nenv = {MANIFEST = \"$CARGO_MANIFEST_DIR\"}",
        );
        let tool = flock.load(sandbox, "tool:env");
        let names = result(block_on(act(&*tool, flock.call("tool:env", json!({})))));
        let names: Vec<&str> = names.as_str().expect("a text").split_whitespace().collect();
        assert!(names.contains(&"MANIFEST"), "{names:?}");
        let known =
            ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "MANIFEST", "OLDPWD", "PATH", "PWD", "SHLVL"];
        let extra = names.iter().filter(|name| !known.contains(name) && **name != "_");
        let extra: Vec<_> = extra.filter(|name| !["TERM", "TZ"].contains(name)).collect();
        assert!(extra.iter().all(|name| name.starts_with("STARLING_")), "{extra:?}");
    }
}

#[test]
fn how_a_command_ends_says_what_is_known() {
    let cases = [
        ("exit 3", "opaque", "failed process.exit"),
        (
            "echo '{\"error\": {\"kind\": \"bank.refused\", \"message\": \"no money\"}}'; exit 1",
            "opaque",
            "failed bank.refused",
        ),
        ("exit 75", "opaque", "unknown process.exit"),
        ("exit 75", "read_only", "failed process.exit"),
        ("echo no json", "keyed", "unknown output.json"),
        ("echo no json", "read_only", "failed output.json"),
        ("echo '{\"n\": 1e999}'", "keyed", "unknown output.json"),
        ("echo '{\"n\": 1e999}'", "read_only", "failed output.json"),
        ("kill -9 $$", "opaque", "unknown process.signal"),
        ("kill -9 $$", "read_only", "failed process.signal"),
        ("echo '{\"paid\": \"much\"}'", "opaque", "unknown result.schema"),
        ("head -c 300000 /dev/zero | tr '\\0' x", "opaque", "unknown output.too_large"),
        ("sleep 60", "opaque", "unknown process.timeout"),
        ("sleep 60", "read_only", "failed process.timeout"),
    ];
    for sandbox in BOTH {
        for (script, class, expected) in cases {
            let flock = Flock::new();
            let rest = format!("class = \"{class}\"\n[result]\nproperties.paid.type = \"integer\"");
            flock.tool("it", script, &rest);
            let tool = flock.load(sandbox, "tool:it");
            let mut call = flock.call("tool:it", json!({}));
            if script.starts_with("sleep") {
                call.timeout = Duration::from_millis(300);
            }
            let said = match block_on(act(&*tool, call)) {
                Answer::Failed(error) => format!("failed {}", error.kind),
                Answer::Unknown(error) => format!("unknown {}", error.kind),
                other => format!("{other:?}"),
            };
            assert_eq!(said, expected, "{script} as {class}, {sandbox:?}");
        }
    }
}

/// What a command wrote is kept whole, whatever it may have written as a result: the message of an
/// error is short, and all of it stands beside.
#[test]
fn all_that_a_failing_command_wrote_is_kept() {
    let lines = "seq 1 60000; echo 'error[E0308]: mismatched types'; seq 1 60000";
    for sandbox in BOTH {
        let flock = Flock::new();
        flock.tool("fails", &format!("({lines}) >&2; exit 101"), "class = \"read_only\"");
        flock.tool("floods", lines, "class = \"read_only\"\noutput_bytes = 1000");
        for (name, kind) in [("tool:fails", "process.exit"), ("tool:floods", "output.too_large")] {
            let tool = flock.load(sandbox, name);
            let error = failed(block_on(act(&*tool, flock.call(name, json!({})))));
            assert_eq!(error.kind, kind);
            let output = error.output.expect("it wrote more than a message holds");
            assert_eq!(output.lines().count(), 120_001, "{name}, {sandbox:?}");
            assert!(error.message.len() < 4096, "{}", error.message.len());
            let short = effect::excerpt(&output).expect("it is long");
            assert!(short.contains("\nerror[E0308]: mismatched types\n"), "{short}");
        }
    }
}

#[test]
fn a_program_that_is_not_there_never_began() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let file = "command = [\"no-such-program-anywhere\"]";
        fs::write(flock.path().join("tools/lost.toml"), file).expect("written");
        let tool = flock.load(sandbox, "tool:lost");
        let error = failed(block_on(act(&*tool, flock.call("tool:lost", json!({})))));
        assert_eq!(error.kind, "process.start", "{error}");
    }
}

/// A child that ignores being told to end, one in a session of its own, and one forked twice.
const STUBBORN: &str = "\
trap '' TERM
sh -c \"trap '' TERM; while true; do sleep 0.05; : $1; done\" MARK &
setsid sh -c 'trap \"\" TERM; while true; do sleep 0.05; : MARK; done' </dev/null >/dev/null 2>&1 &
(setsid sh -c '(setsid sh -c \"while true; do sleep 0.05; : MARK; done\" &) & ' &)
touch started
while true; do sleep 0.05; : MARK; done";

#[test]
fn a_cancellation_ends_all_that_a_command_began() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let mark = mark(&flock.path());
        let rest = "class = \"opaque\"\neffects = [\"write\"]\ncancel_within = \"5s\"";
        flock.tool("stubborn", &STUBBORN.replace("MARK", &mark), rest);
        let tool = flock.load(sandbox, "tool:stubborn");
        let call = flock.call("tool:stubborn", json!({}));
        let (cancel, started) = (call.cancel.clone(), flock.work().join("started"));
        let ender = {
            let mark = mark.clone();
            std::thread::spawn(move || {
                wait_for("it has started", || started.exists());
                wait_for("all its children run", || processes_with(&mark).len() >= 4);
                cancel.cancel();
                Instant::now()
            })
        };
        let answer = block_on(act(&*tool, call));
        let took = ender.join().expect("it cancels").elapsed();
        assert_eq!(unknown(answer).kind, "process.cancelled");
        assert!(took < Duration::from_secs(5), "within its bound: {took:?}");
        assert_eq!(processes_with(&mark), [0; 0], "nothing of it is left, {sandbox:?}");
    }
}

/// What a command leaves behind in the background ends with it.
#[test]
fn what_a_command_leaves_behind_is_ended() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let mark = mark(&flock.path());
        let script =
            format!("(setsid sh -c 'while true; do sleep 0.05; : {mark}; done' &)\necho 1");
        flock.tool("leaves", &script, "");
        let tool = flock.load(sandbox, "tool:leaves");
        let answer = block_on(act(&*tool, flock.call("tool:leaves", json!({}))));
        assert_eq!(result(answer), json!(1));
        assert_eq!(processes_with(&mark), [0; 0], "{sandbox:?}");
    }
}

#[test]
fn a_look_tells_found_absent_pending_and_that_it_could_not_be_made() {
    let cases = [
        ("echo '{\"status\": \"found\", \"result\": {\"id\": 7}}'", Seen::Found(json!({"id": 7}))),
        ("echo '{\"status\": \"absent\"}'", Seen::Absent),
        ("echo '{\"status\": \"pending\"}'", Seen::Pending),
    ];
    for (script, expected) in cases {
        let flock = Flock::new();
        flock.script("look.sh", script);
        let rest = "class = \"queryable\"\nreconcile = [\"tools/look.sh\"]";
        flock.tool("publish", "exit 75", rest);
        let tool = flock.load(effect::Sandbox::Off, "tool:publish");
        let call = flock.call("tool:publish", json!({}));
        assert_eq!(block_on(tool.look(&call, &json!(null))), expected);
        flock.script("look.sh", "echo cannot reach it >&2; exit 1");
        let seen = block_on(tool.look(&call, &json!(null)));
        assert!(matches!(seen, Seen::Unreachable(error) if error.message.contains("cannot reach")));
    }
}

#[test]
fn the_listing_changes_with_every_byte_of_what_would_run() {
    let flock = Flock::new();
    flock.tool("pay", "echo 1", "effects = [\"network\"]\nenv = {TOKEN = \"$BANK_TOKEN\"}");
    let first = effect::tools::list(&flock.path(), &[]).expect("it lists");
    assert_eq!(first.tools[0].effect, "tool:pay");
    assert_eq!(first.tools[0].wants, ["the network", "the variable BANK_TOKEN"]);
    flock.script("pay.sh", "echo 2");
    let second = effect::tools::list(&flock.path(), &[]).expect("it lists");
    assert_ne!(first.hash, second.hash, "the script is part of it");
}
