//! The host is killed without a word, at any moment; no process of its tools outlives it.

use std::process::{Command, Stdio};
use std::time::Duration;

use effect::Sandbox;
use serde_json::json;

use crate::support::{BOTH, Flock, act, block_on, long, mark, processes_with, wait_for};

/// Says to this test binary that it is the host that will be killed.
const HOST: &str = "STARLING_TEST_HOST";

/// Begins children of every kind and does not end by itself.
const FAMILY: &str = "\
setsid sh -c 'while true; do sleep 0.05; : MARK; done' </dev/null >/dev/null 2>&1 &
(setsid sh -c '(setsid sh -c \"while true; do sleep 0.05; : MARK; done\" &) & ' &)
while true; do sleep 0.05; : MARK; done";

/// Not a test of its own: the process that `no_process_outlives_a_host_that_is_killed` starts.
#[test]
fn host() {
    let Ok(folder) = std::env::var(HOST) else { return };
    let (mode, folder) = folder.split_once(':').expect("a mode and a folder");
    let sandbox = if mode == "off" { Sandbox::Off } else { Sandbox::Required };
    let tools = effect::tools::load(std::path::Path::new(folder), sandbox).expect("they load");
    let mut call = Flock::new().call("tool:family", json!({}));
    call.workspace = None;
    call.timeout = Duration::from_secs(60);
    block_on(act(&*tools[0].1, call));
}

#[test]
fn no_process_outlives_a_host_that_is_killed() {
    let kills = if long() { 100 } else { 8 };
    for (sandbox, mode) in BOTH.into_iter().zip(["off", "required"]) {
        assert_eq!(mode == "off", sandbox == Sandbox::Off);
        for kill in 0..kills {
            let flock = Flock::new();
            let mark = mark(&flock.path());
            flock.tool("family", &FAMILY.replace("MARK", &mark), "");
            let this = std::env::current_exe().expect("this program");
            let mut host = Command::new(this);
            host.args(["host::host", "--exact", "--nocapture"]);
            host.env(HOST, format!("{mode}:{}", flock.path().display()));
            let mut host = host.stdout(Stdio::null()).spawn().expect("it starts");
            // Half of the kills come while the family is still being born.
            let least = if kill % 2 == 0 { 2 } else { 1 };
            wait_for("the tool has begun", || processes_with(&mark).len() >= least);
            host.kill().expect("killed");
            host.wait().expect("gone");
            wait_for("all its processes are gone", || processes_with(&mark).is_empty());
        }
    }
}
