//! `run` as a process: to its end, killed and run again, and on a flock that changes between runs.
//!
//! With `STARLING_LONG=1` a run is killed thirty times.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, events_of, fails, long, run, works};

/// What a command says with `--json`.
fn json(folder: &Path, line: &[&str]) -> Value {
    let line: Vec<&str> = line.iter().copied().chain(["--json"]).collect();
    let out = works(folder, &line).out;
    serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{out}: {error}"))
}

/// A folder with the flock `flock` in it, as `new` makes it.
fn new_flock() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let said = works(folder.path(), &["new", "flock", "flock"]);
    assert_eq!(said.out, "flock\n");
    assert!(said.err.contains("next: starling run flock"), "{}", said.err);
    folder
}

/// A folder with a copy of the example `bridge` in it, which prints a line each tick.
fn bridge() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (from, to) = (root.join("examples/bridge"), folder.path().join("flock"));
    fs::create_dir_all(to.join("behaviors")).unwrap();
    fs::copy(from.join("flock.toml"), to.join("flock.toml")).unwrap();
    for entry in fs::read_dir(from.join("behaviors")).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join("behaviors").join(entry.file_name())).unwrap();
    }
    let say = "behavior(name = \"say_tick\", description = \"Says the tick.\", on = \"clock.ticked\")\n\
               def say_tick(event):\n    print(event.payload.tick)\n";
    fs::write(to.join("behaviors/say_tick.star"), say).unwrap();
    folder
}

const COLONY: [&str; 7] = ["run", "flock", "-v", "--set", "ants=48", "--set", "ticks=160"];

/// Starts a run, lets it print so many lines, and kills it. Tells whether it was still running.
fn kill_after(folder: &Path, lines: usize) -> bool {
    let mut child = command(folder, &COLONY).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.as_mut().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().take(lines).count();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    said == lines && status.code().is_none()
}

#[test]
fn a_run_that_is_killed_and_run_again_exports_what_one_exports_that_was_not() {
    let whole = bridge();
    works(whole.path(), &COLONY);
    let expected = works(whole.path(), &["export", "--store", "flock"]).out;
    let link = json(whole.path(), &["verify", "--store", "flock"])["link"].clone();
    assert!(expected.lines().count() > 6000, "the run has several waves");

    let kills = if long() { 30 } else { 3 };
    let (mut killed, mut seed, mut folder) = (0, 0x2545_f491_4f6c_dd1d_u64, bridge());
    while killed < kills {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if kill_after(folder.path(), 20 + (seed >> 33) as usize % 60) {
            killed += 1;
        } else {
            // It came to its end before it could be killed: check it, and begin another one.
            check_end(folder.path(), &expected, &link);
            folder = bridge();
        }
    }
    check_end(folder.path(), &expected, &link);
}

fn check_end(folder: &Path, expected: &str, link: &Value) {
    works(folder, &COLONY);
    assert!(works(folder, &["export", "--store", "flock"]).out == expected, "the same lines");
    assert_eq!(&json(folder, &["verify", "--store", "flock"])["link"], link);
}

#[test]
fn a_new_flock_runs_and_a_finished_branch_says_so() {
    let folder = new_flock();
    let at = folder.path();
    let first = works(at, &["run", "flock"]);
    assert!(first.out.contains("at rest, nothing is due"), "{}", first.out);
    assert!(first.out.contains("hello, world"), "{}", first.out);
    let export = works(at, &["export", "--store", "flock"]).out;
    let again = works(at, &["run", "flock"]);
    assert!(again.out.contains("was at rest already"), "{}", again.out);
    assert!(again.out.contains("0 events and 0 firings"), "{}", again.out);
    assert!(
        again.err.contains("--fresh") && again.err.contains("starling append"),
        "{}",
        again.err
    );
    assert_eq!(works(at, &["export", "--store", "flock"]).out, export, "it wrote nothing");
    let said = json(at, &["run", "flock"]);
    assert_eq!((&said["events"], &said["ended"]), (&0.into(), &"rest".into()));
    fails(at, &["new", "flock", "flock"], 6, "exists already");
    fails(at, &["run", "nowhere"], 3, "starling new flock");
}

#[test]
fn another_seed_is_refused_and_a_fresh_store_keeps_the_old_one() {
    let folder = new_flock();
    let at = folder.path();
    let first = json(at, &["run", "flock", "--seed", "3"]);
    fails(at, &["run", "flock", "--seed", "4"], 2, "--fresh");
    assert_eq!(json(at, &["run", "flock", "--seed", "3"])["link"], first["link"]);

    let stores = || {
        let files = fs::read_dir(at.join("flock/.starling")).unwrap().map(Result::unwrap);
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "redb"));
        files.sort();
        files
    };
    let before = stores();
    let fresh = run(at, &["run", "flock", "--fresh", "--seed", "4"]);
    assert_eq!(fresh.code, 0, "{}", fresh.err);
    let old: Vec<PathBuf> = stores().into_iter().filter(|file| !before.contains(file)).collect();
    assert_eq!(old.len(), 1, "the old store is beside the new one");
    assert!(fresh.err.contains(old[0].file_name().unwrap().to_str().unwrap()), "{}", fresh.err);
    let old = json(at, &["verify", "--store", old[0].to_str().unwrap()]);
    assert_eq!(old["link"], first["link"], "and it is whole");
    assert_ne!(json(at, &["verify", "--store", "flock"])["link"], first["link"]);
}

/// Appends a guest, so that the behavior has something to do.
fn guest(folder: &Path, name: &str) {
    let change = format!(
        r#"[{{"create": "guest:{name}", "type": "Guest", "properties": {{"name": "{name}"}}}}]"#
    );
    works(folder, &["append", "guest.arrived", "--store", "flock", "--changes", &change]);
}

#[test]
fn a_broken_file_is_an_event_and_its_last_good_version_stays() {
    let folder = new_flock();
    let at = folder.path();
    works(at, &["run", "flock"]);
    let file = at.join("flock/behaviors/greet_guest.star");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{good}    emit(\"a.b\",,)\n")).unwrap();
    guest(at, "ann");
    let done = works(at, &["run", "flock"]);
    assert!(done.err.contains("behaviors/greet_guest.star is not loaded"), "{}", done.err);
    assert!(done.out.contains("hello, ann"), "the last good version greets: {}", done.out);
    let rejected = events_of(at, "behavior.rejected");
    assert_eq!(rejected.len(), 1);
    let error = rejected[0]["payload"]["error"].as_str().unwrap();
    assert!(error.contains("behaviors/greet_guest.star:"), "file and line: {error}");
    works(at, &["run", "flock"]);
    assert_eq!(events_of(at, "behavior.rejected").len(), 1, "it is told once");

    fs::write(&file, good.replace("{guest.name}", "dear {guest.name}")).unwrap();
    guest(at, "bob");
    let done = works(at, &["run", "flock"]);
    assert!(done.err.contains("greet_guest is replaced"), "{}", done.err);
    assert!(done.out.contains("hello, dear bob"), "{}", done.out);
    fs::remove_file(&file).unwrap();
    guest(at, "cid");
    let done = works(at, &["run", "flock"]);
    assert!(done.err.contains("greet_guest is removed"), "{}", done.err);
    assert!(!done.out.contains("cid"), "deleted = gone: {}", done.out);
    assert_eq!(events_of(at, "behavior.removed").len(), 1);
    assert_eq!(json(at, &["replay", "--store", "flock", "--refire"])["divergences"], 0);
}

#[test]
fn a_changed_setting_becomes_an_event() {
    let folder = new_flock();
    let at = folder.path();
    works(at, &["run", "flock"]);
    guest(at, "ann");
    let done = works(at, &["run", "flock", "--set", "greeting=goodbye"]);
    assert!(done.err.contains("settings has changed"), "{}", done.err);
    assert!(done.out.contains("goodbye, ann"), "{}", done.out);
    let changed = events_of(at, "flock.changed");
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["payload"]["settings"]["greeting"], "goodbye");
    fails(at, &["run", "flock", "--set", "greting=x"], 2, "did you mean `greeting`");
    let toml = at.join("flock/flock.toml");
    let text = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, text.replace("schedule = \"fifo\"", "schedule = \"rounds\"")).unwrap();
    fails(at, &["run", "flock"], 2, "--fresh");
}

/// It used to be loaded, and to hear nothing of the events that it asked for.
#[test]
fn a_late_behavior_that_wants_every_event_from_the_beginning_hears_them() {
    let folder = new_flock();
    let at = folder.path();
    let counter = r#"
behavior(name = "count_guest", description = "Counts.", on = "guest.arrived", from_ = "beginning",
    emits = ["guest.counted"])
def count_guest(event):
    emit("guest.counted", {"id": event.id})
"#;
    let file = at.join("flock/behaviors/count_guest.star");
    fs::write(&file, counter).unwrap();
    works(at, &["run", "flock"]);
    guest(at, "ann");
    works(at, &["run", "flock"]);
    assert_eq!(events_of(at, "guest.counted").len(), 2, "there from the start, it hears all");

    let late =
        counter.replace("count_guest", "count_late").replace("guest.counted", "late.counted");
    fs::write(at.join("flock/behaviors/count_late.star"), late).unwrap();
    let done = works(at, &["run", "flock"]);
    assert!(done.err.contains("count_late is loaded"), "{}", done.err);
    let heard = |kind: &str| -> Vec<Value> {
        events_of(at, kind).into_iter().map(|event| event["payload"]["id"].clone()).collect()
    };
    assert_eq!(heard("late.counted"), heard("guest.counted"), "loaded late, it hears the same");
    assert_eq!(json(at, &["replay", "--store", "flock", "--refire"])["divergences"], 0);
}

/// It used to go back to what the file says as soon as a run did not repeat it.
#[test]
fn a_setting_of_the_command_line_stays_until_it_is_taken_back() {
    let folder = new_flock();
    let at = folder.path();
    works(at, &["run", "flock", "--set", "greeting=goodbye"]);
    guest(at, "ann");
    let done = works(at, &["run", "flock"]);
    assert!(done.out.contains("goodbye, ann"), "{}", done.out);
    assert!(events_of(at, "flock.changed").is_empty(), "nothing has changed");
    assert_eq!(events_of(at, "flock.started")[0]["payload"]["set"]["greeting"], "goodbye");
    works(at, &["run", "flock", "--set", "greeting=welcome"]);
    guest(at, "bob");
    assert!(works(at, &["run", "flock"]).out.contains("welcome, bob"));
    works(at, &["run", "flock", "--unset", "greeting"]);
    guest(at, "cid");
    assert!(works(at, &["run", "flock"]).out.contains("hello, cid"), "as in the file again");
    assert_eq!(events_of(at, "flock.changed").len(), 2);
}

/// A run used to end at rest without a word about what could not go on.
#[test]
fn a_run_tells_at_its_end_what_was_suspended_and_what_a_budget_stopped() {
    let folder = new_flock();
    let at = folder.path();
    let echo = r#"
behavior(name = "echo_guest", description = "Echoes.", on = "guest.*", budget = {"firings": 1})
def echo_guest(event):
    emit("echo.heard", {}, create("Echo"))
"#;
    fs::write(at.join("flock/behaviors/echo_guest.star"), echo).unwrap();
    let done = works(at, &["run", "flock"]);
    assert!(done.out.contains("echo_guest.firings = 1"), "{}", done.out);
    let said = json(at, &["run", "flock"]);
    let bounds = &said["troubles"]["bounds"];
    assert_eq!(bounds, &serde_json::json!([{"budget": "echo_guest.firings", "limit": 1}]));
    let declare = "echo_guest does not declare what it does; add emits = [\"echo.heard\"], \
                   writes = [\"Echo\"]";
    assert!(done.out.contains(declare), "{}", done.out);
    let raised = echo.replace("\"firings\": 1", "\"firings\": 9");
    fs::write(at.join("flock/behaviors/echo_guest.star"), raised).unwrap();
    let said = json(at, &["run", "flock"]);
    assert_eq!(said["troubles"]["bounds"], serde_json::json!([]), "it was raised");
    assert_eq!(events_of(at, "echo.heard").len(), 2);

    let knows = r#"[{"create": "hub", "type": "Hub", "properties": {"n": 0}}]"#;
    works(at, &["append", "hub.made", "--store", "flock", "--changes", knows]);
    let costly = r#"
behavior(name = "watch_hub", description = "Watches.",
    match = "(h:Hub)-[:R*1..8]-(o:Spoke)")
def watch_hub(h):
    pass
"#;
    fs::write(at.join("flock/behaviors/watch_hub.star"), costly).unwrap();
    works(at, &["run", "flock"]);
    let spokes = (0..12).map(|n| format!("{{\"create\": \"s:{n}\", \"type\": \"Spoke\"}}"));
    let mut changes: Vec<String> = spokes.collect();
    for a in 0..12 {
        changes.push(format!("{{\"link\": \"R\", \"from\": \"hub\", \"to\": \"s:{a}\"}}"));
        for b in 0..a {
            changes.push(format!("{{\"link\": \"R\", \"from\": \"s:{a}\", \"to\": \"s:{b}\"}}"));
        }
    }
    let changes = format!("[{}]", changes.join(","));
    works(at, &["append", "clique.made", "--store", "flock", "--changes", &changes]);
    let done = works(at, &["run", "flock"]);
    assert!(done.out.contains("watch_hub is suspended since @"), "{}", done.out);
    let said = json(at, &["run", "flock"]);
    assert_eq!(said["troubles"]["suspended"][0]["behavior"], "watch_hub");
}
