//! An unchanged fork has its parent's events byte for byte: wherever it is cut, though it is
//! killed, and however many forks lie between.

use std::sync::Arc;

use log::{BranchId, Event, Log};
use runtime::Library;
use serde_json::{Value, json};

use super::{Fork, splits_firing};
use crate::oracle;
use crate::recover::uninterrupted;
use crate::support::flock::{Small, events};
use crate::support::long;
use crate::support::random::Random;

fn start_count(case: &Value) -> usize {
    let count = |field: &str| case[field].as_array().expect("a list").len();
    1 + count("behaviors") + count("start")
}

/// Inputs, reloads, keys, conflicts and refusals, under all schedules: those of the design's model.
#[test]
fn a_fork_anywhere_that_goes_on_has_the_events_of_its_parent() {
    let (step, mut cuts) = (if long() { 1 } else { 8 }, 0);
    for case in oracle::committed().into_iter().step_by(step) {
        let (log, main, whole) = uninterrupted(&case, 2048, 1);
        let (library, limit) = (oracle::library(&case), oracle::limit(&case));
        for cut in start_count(&case)..=whole.events.len() {
            if splits_firing(&whole.events, cut) {
                continue;
            }
            let child = Fork::cut(&log, main, cut, &format!("cut-{cut}"));
            let mut fork = Fork::open(&log, child, &library);
            fork.run(limit, usize::MAX);
            let place = format!("seed {}, {}, cut {cut}", case["seed"], case["schedule"]);
            assert_eq!(events(&*log, child), whole.events, "{place}");
            cuts += 1;
        }
    }
    assert!(cuts > 500, "{cuts} forks");
}

/// A fork that is killed knows from its log what it has been told.
#[test]
fn a_fork_that_is_killed_again_and_again_has_the_events_of_its_parent() {
    let mut random = Random::new(11);
    for case in oracle::committed().into_iter().step_by(12) {
        let (log, main, whole) = uninterrupted(&case, 2048, 1);
        let (library, limit) = (oracle::library(&case), oracle::limit(&case));
        let cuts = start_count(&case)..=whole.events.len();
        let cut = cuts.start() + random.place(cuts.end() - cuts.start() + 1);
        if splits_firing(&whole.events, cut) {
            continue;
        }
        let child = Fork::cut(&log, main, cut, "killed");
        for _ in 0..6 {
            let mut life = Fork::open(&log, child, &library);
            life.engine.set_wave(random.pick(&[1, 3, 2048]));
            life.run(limit, 1 + random.place(8));
        }
        Fork::open(&log, child, &library).run(limit, usize::MAX);
        assert_eq!(events(&*log, child), whole.events, "seed {}, cut {cut}", case["seed"]);
    }
}

/// Inputs that wake a chain, so that there is something to be cut everywhere.
fn talking() -> (Arc<dyn Log>, BranchId, Library, Vec<Event>) {
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "a_hear", "on": "word.said"}), |firing, out| {
            out.emit("word.heard", json!({"draw": firing.rand.below(1000)}));
            Ok(())
        })
        .with(&json!({"name": "b_pass", "on": "word.heard", "after": 1}), |_, out| {
            out.emit("word.passed", json!({}));
            Ok(())
        });
    let mut running = flock.start();
    for nth in 0..60 {
        running.say(&format!("{nth}"), "word.said", json!({"n": nth}), &json!([]));
        if nth % 3 == 0 {
            running.rest();
        }
    }
    running.rest();
    let (log, branch, library) = (Arc::clone(&running.log), running.branch, running.library());
    let all = running.events();
    drop(running);
    (log, branch, library, all)
}

#[test]
fn a_fork_of_a_fork_to_depth_100_goes_on_as_the_first_branch_did() {
    let (log, main, library, whole) = talking();
    let mut at = main;
    for depth in 0..100 {
        // Some run before they are forked again, most do not.
        if depth % 9 == 4 {
            Fork::open(&log, at, &library).run(u64::MAX, 3);
        }
        let head = log.branch(at).unwrap().tip.head.count() as usize;
        let cut = if depth == 0 { 4 } else { head.min(4 + depth) };
        at = Fork::cut(&log, at, cut, &format!("depth-{depth}"));
    }
    assert_eq!(Fork::open(&log, at, &library).rest(), whole);
}

/// What a parent is told after the fork was made is its own.
#[test]
fn a_fork_hears_nothing_that_its_parent_was_told_after_it_was_made() {
    let (log, main, library, whole) = talking();
    let made = format!("until:{}", whole.len() - 10);
    let cut = log::Head::of_count(20);
    let child = log.fork(main, cut, &crate::support::name("early"), &made).unwrap().id;
    let found = Fork::open(&log, child, &library).rest();
    let said = |events: &[Event]| events.iter().filter(|event| event.is_kind("word.said")).count();
    assert_eq!(said(&found), said(&whole[..whole.len() - 10]));
    assert!(said(&found) < said(&whole));
}

/// The machine stopped a firing: what the log says of it holds in the fork, though the same code
/// would come to an end there.
#[test]
fn a_recorded_stop_replaces_the_firing_that_it_stopped() {
    let slow: behaviors::Reaction = |_, _| {
        let mut error = behaviors::ReactError::new("it took too long");
        error.stopped = true;
        Err(error)
    };
    let quick: behaviors::Reaction = |_, out| {
        out.emit("work.done", json!({}));
        Ok(())
    };
    let metadata = json!({"name": "work", "on": "work.asked"});
    let flock = |reaction| Small::new("fifo", &json!({})).with(&metadata, reaction);
    let mut running = flock(slow).start();
    running.say("one", "work.asked", json!({}), &json!([]));
    running.rest();
    let (log, main, whole) = (Arc::clone(&running.log), running.branch, running.events());
    drop(running);
    assert_eq!(whole.last().unwrap().kind(), "behavior.failed");
    let child = Fork::cut(&log, main, 2, "stopped");
    assert_eq!(Fork::open(&log, child, &flock(quick).library).rest(), whole);
}
