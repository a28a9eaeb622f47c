//! Programs that answer for a behavior: what they are told and tell, and that what runs is what was
//! asked.

use std::time::Duration;

use effect::{Answer, Program, Sandbox};
use serde_json::{Value, json};

use crate::support::{BOTH, Flock, act, block_on, failed, mark, processes_with, result, wait_for};

fn program(flock: &Flock, sandbox: Sandbox, script: &str) -> (Program, Value) {
    flock.script("answer.sh", script);
    let program = Program {
        effect: "exec:answer".to_owned(),
        flock: flock.path(),
        path: "tools/answer.sh".to_owned(),
        timeout: Duration::from_secs(5),
        output_bytes: 4096,
        memory_bytes: None,
        sandbox,
    };
    let hash = blake3::hash(format!("#!/bin/sh\n{script}\n").as_bytes()).to_hex().to_string();
    (program, json!({"hash": hash, "program": "tools/answer.sh", "event": {"kind": "k"}}))
}

fn answer(flock: &Flock, program: &Program, args: Value) -> Answer {
    block_on(act(program, flock.call("exec:answer", args)))
}

#[test]
fn it_is_told_what_the_behavior_sees_and_its_lines_are_its_answer() {
    for sandbox in BOTH {
        let flock = Flock::new();
        let script = "echo \"of $STARLING_BEHAVIOR\" >&2; sed 's/.*/{\"told\":&}/'; echo; echo '{\"b\":1.0}'";
        let (program, args) = program(&flock, sandbox, script);
        let done = result(answer(&flock, &program, args));
        let told = json!({"told": {"event": {"kind": "k"}}});
        assert_eq!(done, json!({"proposals": [told, {"b": 1.0}], "log": "of answer"}));
    }
}

#[test]
fn what_runs_is_the_file_that_was_asked_or_nothing() {
    let flock = Flock::new();
    let (program, args) = program(&flock, Sandbox::Off, "echo '{\"a\":1}'");
    flock.script("answer.sh", "echo '{\"a\":2}'");
    let error = failed(answer(&flock, &program, args));
    assert_eq!(error.kind, "program.changed");
    assert!(!error.retryable);
}

#[test]
fn nobody_but_its_behavior_asks_it() {
    let flock = Flock::new();
    let (program, _) = program(&flock, Sandbox::Off, "true");
    let error = failed(answer(&flock, &program, json!({"x": 1})));
    assert_eq!(error.message, "exec:answer is asked by its behavior only");
}

#[test]
fn its_time_is_its_own_and_what_it_began_ends_with_it() {
    let flock = Flock::new();
    let word = mark(&flock.path());
    let (mut program, args) =
        program(&flock, Sandbox::Off, &format!("sh -c 'sleep 600 # {word}' & sleep 600"));
    program.timeout = Duration::from_millis(300);
    let error = failed(answer(&flock, &program, args));
    assert_eq!((error.kind.as_str(), error.retryable), ("process.timeout", false));
    assert_eq!(error.message, "tools/answer.sh did not answer within 300ms");
    wait_for("all of it ends", || processes_with(&word).is_empty());
}
