//! Scripts in a process of their own: the same log as in one process, whatever becomes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Place, command};

/// Sixty behaviors that hear one event, each adding to what the one before it wrote: whatever is
/// run ahead of its turn sees a world that is gone by then.
const COUNTERS: &str = r#"
def _count(c):
    emit("counted", {"n": c.n + 1}, set(c, n = c.n + 1))
"#;

const COUNTED: &str = r#"
[[start]]
kind = "counter.made"
changes = [{ create = "counter", type = "Counter", properties = { n = 0 } }]

[[start]]
kind = "count.asked"
"#;

fn counters() -> String {
    let one = |number: usize| {
        format!(
            "behavior(name = \"count_{number:02}\", description = \"Counts on.\", on = \"count.asked\",\n         \
             reads = {{\"all\": \"(c:Counter)\"}}, emits = [\"counted\"])\n\n\
             def count_{number:02}(all):\n    _count(all[0])\n\n"
        )
    };
    COUNTERS.to_owned() + &(0..60).map(one).collect::<String>()
}

/// The log of a flock that is run to its end with these words.
fn log_of(place: &Place, words: &[&str]) -> String {
    let line: Vec<&str> =
        ["run", ".", "--fresh"].into_iter().chain(words.iter().copied()).collect();
    place.ok(&line);
    place.ok(&["export"]).out
}

#[test]
fn what_was_run_ahead_counts_only_for_the_world_it_was_shown() {
    let place = Place::new(COUNTED, &[("behaviors/counters.star", &counters())]);
    let apart = log_of(&place, &[]);
    assert!(place.ok(&["query", "MATCH (c:Counter) RETURN c.n", "--csv"]).out.contains("60"));
    assert_eq!(apart, log_of(&place, &["--trust"]));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_name() == ".starling" {
            continue;
        }
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn every_schedule_gives_one_log_in_one_process_and_in_two() {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for (name, schedule, events) in [
        ("schelling", "random", "3000"),
        ("naming-game", "fifo", "4000"),
        ("life", "rounds", "4000"),
    ] {
        let place = Place::new("", &[]);
        copy(&examples.join(name), place.path());
        let flock = fs::read_to_string(place.path().join("flock.toml")).unwrap();
        assert!(flock.contains(&format!("schedule = \"{schedule}\"")));
        let bound = format!("events = {events}");
        let bounded = match flock.contains("[budget]") {
            true => flock.replace("[budget]", &format!("[budget]\n{bound}")),
            false => format!("{flock}\n[budget]\n{bound}\n"),
        };
        place.write("flock.toml", &bounded);
        let run = |words: &[&str]| {
            let line: Vec<&str> =
                ["run", ".", "--fresh"].into_iter().chain(words.iter().copied()).collect();
            let done = place.run(&line);
            assert!(matches!(done.code, 0 | 1), "{name}: {}{}", done.out, done.err);
            place.ok(&["export"]).out
        };
        let (apart, here) = (run(&[]), run(&["--trust"]));
        assert!(apart.lines().count() > 1_000, "{name} did something");
        assert!(apart == here, "{name} under `{schedule}` depends on where scripts run");
    }
}

/// The process that runs the scripts of another.
fn worker_of(host: u32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{host}/task/{host}/children")).ok()?;
    children.split_whitespace().find_map(|child| {
        let name = fs::read(format!("/proc/{child}/cmdline")).ok()?;
        name.starts_with(b"starling-script-worker").then(|| child.parse().ok()).flatten()
    })
}

/// Somebody else may end the process, for want of memory: that is not the doing of a script.
#[test]
fn a_process_that_is_ended_from_outside_is_started_again_and_nothing_is_lost() {
    let script = r#"
behavior(name = "tick", description = "Goes on.", on = "ticked", wakes_self = True, emits = ["ticked"])

def tick(event):
    if event.payload.n < 100000:
        emit("ticked", {"n": event.payload.n + 1})
"#;
    let flock = "[budget]\ndepth = 200000\n[[start]]\nkind = \"ticked\"\npayload = { n = 1 }\n";
    let place = Place::new(flock, &[("behaviors/tick.star", script)]);
    let mut command = command(place.path(), &["run", "."]);
    let mut host = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    // It is under way when somebody beside it reads what it wrote.
    while place.run(&["show", "main@1000"]).code != 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "it began");
    }
    let worker = worker_of(host.id()).expect("it still runs");
    assert!(Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    assert!(host.wait().unwrap().success());
    assert_eq!(place.of_kind("behavior.failed"), Vec::<serde_json::Value>::new());
    let log = place.ok(&["log", "--json", "-n", "200000"]).out;
    assert_eq!(log.matches("\"kind\":\"ticked\"").count(), 100_000);
}

/// Whoever runs a flock may be killed at any time; nothing of it goes on.
#[test]
fn the_process_ends_with_its_host_from_the_midst_of_a_computation() {
    let bomb = include_str!("../../../tests/bombs/bigint_squaring.star");
    let flock = "[[start]]\nkind = \"bomb.lit\"\n";
    let place = Place::new(flock, &[("behaviors/bigint_squaring.star", bomb)]);
    let mut command = command(place.path(), &["run", "."]);
    let mut host = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    let worker = loop {
        assert!(start.elapsed() < Duration::from_secs(30), "its process was found");
        match worker_of(host.id()) {
            Some(worker) => break worker,
            None => std::thread::yield_now(),
        }
    };
    host.kill().unwrap();
    host.wait().unwrap();
    let there = || fs::read(format!("/proc/{worker}/cmdline")).is_ok_and(|name| !name.is_empty());
    while there() {
        assert!(start.elapsed() < Duration::from_secs(60), "process {worker} outlived its host");
        std::thread::yield_now();
    }
}
