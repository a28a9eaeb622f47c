//! Scripts that would tear down what runs them: each is ended, named, and starves nobody.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use crate::{Place, long};

/// The behavior beside each bomb, which hears the same event after it.
const NEIGHBOR: &str = r#"
behavior(name = "z_neighbor", description = "Does its work.", on = "bomb.lit", emits = ["work.done"])

def z_neighbor(event):
    emit("work.done", {"n": event.payload.n})
"#;

const LIT: &str = r#"
[budget]
depth = 50
events = 5000

[[start]]
kind = "bomb.lit"
payload = { n = 1 }

[[start]]
kind = "bomb.lit"
payload = { n = 2 }
"#;

/// How each bomb ends: a part of the error, and whether the machine had to stop it. One that
/// fails by what it counts fails the same on every machine.
const ENDS: [(&str, &str, bool); 12] = [
    ("bigint_squaring", "did not end within", true),
    ("deep_recursion", "calls are nested more than 64 deep", false),
    ("deep_value", "nested more than 64 deep", false),
    ("dict_growth", "bytes of memory", false),
    ("echo_chamber", "", false),
    ("endless_loop", "steps, calls and turns of loops", false),
    ("list_of_range", "the language gave up here", true),
    ("list_times", "", true),
    ("many_emits", "at most 10000 events", false),
    ("quadratic_list", "", false),
    ("string_doubling", "the language gave up here", true),
    ("string_times", "", true),
];

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/bombs")
}

/// Runs a flock of one bomb and its neighbor to its end; what failed, and the log as exported.
fn explode(name: &str) -> (Vec<Value>, String) {
    let bomb = fs::read_to_string(corpus().join(format!("{name}.star"))).unwrap();
    let path = format!("behaviors/{name}.star");
    let place = Place::new(LIT, &[(&path, &bomb), ("behaviors/z_neighbor.star", NEIGHBOR)]);
    let start = Instant::now();
    let done = place.run(&["run", "."]);
    assert!(matches!(done.code, 0 | 1), "{name}: {} {}{}", done.code, done.out, done.err);
    assert!(start.elapsed().as_secs() < 120, "{name} took {:?}", start.elapsed());
    let work = place.of_kind("work.done");
    assert_eq!(work.len(), 2, "{name} starved its neighbor: {}{}", done.out, done.err);
    (place.of_kind("behavior.failed"), place.ok(&["export"]).out)
}

#[test]
fn every_bomb_is_ended_and_named_and_starves_nobody() {
    let rounds = if long() { 20 } else { 1 };
    let mut files: Vec<_> = fs::read_dir(corpus()).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let names: Vec<_> = files.iter().map(|f| f.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ENDS.map(|(name, _, _)| name));
    for (name, says, by_machine) in ENDS {
        let mut first = None;
        for _ in 0..rounds {
            let (failed, log) = explode(name);
            if name == "echo_chamber" {
                // It breaks no rule of its own; the bound of the run ends it.
                assert!(failed.is_empty(), "{failed:?}");
                continue;
            }
            assert_eq!(failed.len(), 2, "{name}: {failed:?}");
            for failed in &failed {
                let error = failed["error"].as_str().unwrap();
                assert!(error.contains(says), "{name}: {error}");
                assert_eq!(
                    failed["stopped"].as_bool().unwrap_or(false),
                    by_machine,
                    "{name}: {error}"
                );
            }
            assert_eq!(*first.get_or_insert_with(|| log.clone()), log, "{name} ends in two ways");
        }
    }
}
