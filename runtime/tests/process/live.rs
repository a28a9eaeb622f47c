//! `run --follow` as a process: files are saved, broken, switched off and on while it runs, and it
//! is killed while they are swapped.
//!
//! With `STARLING_LONG=1` it is killed a hundred times.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, events_of, long, ok};

/// A run that goes on at rest. It is killed when it is dropped.
struct Follows {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Follows {
    /// Starts it, and waits until it rests.
    fn start(folder: &Path) -> Follows {
        let mut command = command(folder, &["run", "flock", "--follow"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut follows = Follows { child, lines };
        follows.says("at rest");
        follows
    }

    /// Reads what it says up to a line with this in it.
    fn says(&mut self, text: &str) -> String {
        let mut before = String::new();
        for line in &mut self.lines {
            let line = line.unwrap();
            if line.contains(text) {
                return line;
            }
            before += &format!("{line}\n");
        }
        panic!("it ended without saying {text:?}:\n{before}")
    }
}

impl Drop for Follows {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn answer(name: &str, version: usize) -> String {
    format!(
        "behavior(name = '{name}', description = 'Answers.', on = '{name}.asked',\n    \
         emits = ['{name}.answered'], writes = [], version = '{version}')\ndef {name}():\n    \
         emit('{name}.answered', {{'version': {version}}})\n"
    )
}

/// Where a file is written before it takes the place of the old one.
fn aside(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("flock/behaviors/.{name}.tmp"))
}

/// Saves as editors do: other files take the places of the old ones.
fn save(folder: &Path, files: &[(&str, String)]) {
    for (name, text) in files {
        fs::write(aside(folder, name), text).unwrap();
    }
    for (name, _) in files {
        fs::rename(aside(folder, name), folder.join("flock/behaviors").join(name)).unwrap();
    }
}

fn new_flock() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["new", "flock", "flock"]);
    folder
}

#[test]
fn what_is_saved_while_a_run_rests_is_live_and_told() {
    let folder = new_flock();
    let at = folder.path();
    let mut run = Follows::start(at);
    save(at, &[("a.star", answer("a", 1))]);
    run.says("+ a is loaded");
    ok(at, &["append", "a.asked", "--store", "flock"]);
    save(at, &[("a.star", "def a(:\n".to_owned())]);
    run.says("! behaviors/a.star is not loaded");
    run.says("1 | def a(:");
    ok(at, &["append", "a.asked", "--store", "flock"]);
    ok(at, &["disable", "a", "--store", "flock"]);
    ok(at, &["append", "a.asked", "--store", "flock"]);
    save(at, &[("a.star", answer("a", 2))]);
    run.says("~ a is replaced");
    run.says("a is disabled: starling enable a");
    run.says("behaviors/a.star is whole again");
    ok(at, &["enable", "a", "--store", "flock"]);
    ok(at, &["append", "a.asked", "--store", "flock"]);
    fs::remove_file(at.join("flock/behaviors/a.star")).unwrap();
    run.says("- a is removed");
    drop(run);
    let answered = events_of(at, "a.answered");
    let version = |event: &Value| event["payload"]["version"].as_i64().unwrap();
    let versions: Vec<i64> = answered.iter().map(version).collect();
    assert_eq!(versions, [1, 1, 2], "broken it answers as before, switched off not at all");
    let who = &events_of(at, "behavior.disabled")[0];
    assert_eq!((&who["actor"], &who["payload"]["name"]), (&"user:ann".into(), &"a".into()));
    let refired = ok(at, &["replay", "--refire", "--store", "flock", "--json"]);
    let refired: Value = serde_json::from_str(&refired).unwrap();
    assert_eq!(refired["divergences"], 0);
}

/// Two files are saved together, and the run is killed at once, while it looks, or just after.
#[test]
fn a_run_that_is_killed_while_files_are_swapped_loses_none_and_halves_none() {
    let folder = new_flock();
    let at = folder.path();
    let both = |version| [("a.star", answer("a", version)), ("b.star", answer("b", version))];
    save(at, &both(0));
    let kills = if long() { 100 } else { 6 };
    for version in 1..=kills {
        let mut run = Follows::start(at);
        // The first is swapped while it runs, or by the next run.
        save(at, &both(version));
        if version % 3 > 0 {
            run.says("~ a is replaced");
        }
        if version % 3 > 1 {
            run.says("~ b is replaced");
        }
    }
    ok(at, &["run", "flock"]);
    ok(at, &["verify", "--store", "flock"]);
    let loaded = events_of(at, "behavior.loaded");
    let of = |name: &str| -> Vec<(u64, u64)> {
        let own = loaded.iter().filter(|event| event["payload"]["name"] == name);
        let fact = |event: &Value| {
            let version = event["payload"]["metadata"]["version"].as_str().unwrap();
            (event["offset"].as_u64().unwrap(), version.parse().unwrap())
        };
        own.map(fact).collect()
    };
    let (a, b) = (of("a"), of("b"));
    assert_eq!(a.last().unwrap().1, kills as u64, "the last one is live");
    assert!(a.is_sorted_by_key(|(_, version)| *version), "none is live again: {a:?}");
    let versions = |all: &[(u64, u64)]| all.iter().map(|(_, v)| *v).collect::<Vec<_>>();
    assert_eq!(versions(&a), versions(&b), "and none without the other");
    let together = a.iter().zip(&b).filter(|((a, _), (b, _))| a + 1 == *b).count();
    assert!(2 * together > a.len(), "as a rule side by side: {a:?} {b:?}");
}
