//! Refire: every firing of a log does again what it did, or is named.

use std::sync::atomic::{AtomicU64, Ordering};

use runtime::{Flock, Overrides, refire};
use serde_json::json;

use crate::examples;
use crate::oracle;
use crate::recover::uninterrupted;
use crate::support::flock::{Running, Small, start_folder};

#[test]
fn every_firing_of_the_model_s_flocks_does_again_what_it_did() {
    let mut firings = 0;
    for case in oracle::committed() {
        let (log, branch, _) = uninterrupted(&case, 2048, 1);
        let refired = refire(&*log, branch, oracle::library(&case)).unwrap();
        let first = refired.divergences.first().map(ToString::to_string);
        assert_eq!(first, None, "seed {}, {}", case["seed"], case["schedule"]);
        firings += refired.firings;
    }
    assert!(firings > 3000, "{firings} firings were run again");
}

/// Refires an example with the code that its own log's sources hold.
fn check_example(name: &str, settings: &[&str], run: impl FnOnce(&mut Running)) {
    let settings = settings.iter().map(|&text| text.to_owned()).collect();
    let overrides = Overrides { settings, ..Overrides::default() };
    let mut running = start_folder(&examples::folder(name), &overrides);
    run(&mut running);
    let flock = Flock::read(&examples::folder(name), &overrides).unwrap();
    let refired = refire(&*running.log, running.branch, flock.library(&running.log)).unwrap();
    assert_eq!(refired.divergences.first().map(ToString::to_string), None);
    assert!(refired.firings > 100, "{} firings", refired.firings);
}

#[test]
fn every_firing_of_the_examples_does_again_what_it_did() {
    check_example("bridge", &["ants=8", "ticks=30"], |running| {
        running.rest();
    });
    check_example("life", &[], |running| examples::live_until(running, 8));
}

#[test]
fn a_behavior_that_is_not_deterministic_is_named_with_its_offset() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "honest", "on": "thing.asked"}), |_, out| {
            out.emit("thing.answered", json!({}));
            Ok(())
        })
        .with(&json!({"name": "planted", "on": "thing.answered"}), |_, out| {
            // The first three calls agree, so that only the later ones can be found out.
            let call = CALLS.fetch_add(1, Ordering::SeqCst).max(2);
            out.emit("call.counted", json!({"call": call}));
            Ok(())
        });
    let mut running = flock.start();
    for nth in 0..3 {
        running.say(&format!("{nth}"), "thing.asked", json!({}), &json!([]));
        running.rest();
    }
    let refired = refire(&*running.log, running.branch, flock.library).unwrap();
    let recorded = running.of_kind("call.counted");
    let offsets: Vec<_> = recorded.iter().map(log::Event::offset).collect();
    let found: Vec<_> = refired.divergences.iter().map(|found| found.offset).collect();
    assert_eq!((refired.firings, &found), (6, &offsets), "all calls count on, those of refire too");
    let told = refired.divergences[0].to_string();
    assert!(
        told.starts_with(&format!("@{}: `planted` does something else now", offsets[0])),
        "{told}"
    );
    let changed = |(old, new): (&String, &String)| old != new && old.contains("call.counted");
    let (old, new) = (&refired.divergences[0].recorded, &refired.divergences[0].proposed);
    assert!(old.iter().zip(new).all(changed) && old.len() == 1, "both are shown: {told}");
}
