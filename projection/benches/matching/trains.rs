//! The Train Benchmark: the time of the first validation, and of each round of changes with the
//! validation after each change, for every pattern and size.
//!
//! The violations that deltas keep up to date are checked against a naive evaluation up to size 16,
//! and against full matching above.

use crate::thread_ns;
use crate::train::naive::Copied;
use crate::train::railway::build;
use crate::train::{PATTERNS, Scenario, Train};

const ROUNDS: usize = 10;
const NAIVE_SIZE_MAX: usize = 16;

pub(crate) fn run(largest: usize) {
    for (scenario, amount, about) in [
        (Scenario::Repair, 5, "repair: ten rounds, 5 % of the violations each"),
        (Scenario::Inject, 10, "inject: ten rounds, ten elements each"),
    ] {
        println!("\n(c) Train Benchmark, {about}");
        println!(
            "{:>4} {:>9} {:>18} | {:>9} -> {:>7} | {:>9} | {:>8} | {:>9} | {:>8}",
            "size",
            "elements",
            "pattern",
            "found",
            "in end",
            "first ms",
            "changes",
            "µs/change",
            "steps"
        );
        for size in (0..10).map(|power| 1 << power).filter(|size| *size <= largest) {
            let railway = build(size, scenario);
            let elements = railway.node_count() + railway.edge_count();
            for (number, (name, _)) in PATTERNS.iter().enumerate() {
                let start = thread_ns();
                let mut train = Train::new(railway.clone(), number);
                let first_ms = (thread_ns() - start) / 1e6;
                let found = train.violations.len();
                let (ns, changes) = rounds(&mut train, scenario, amount);
                check(&train, number, size);
                let each = |total: f64| total / f64::from(changes.max(1));
                println!(
                    "{size:>4} {elements:>9} {name:>18} | {found:>9} -> {:>7} | {first_ms:>9.2} | {changes:>8} | {:>9.2} | {:>8.1}",
                    train.violations.len(),
                    each(ns / 1000.0),
                    each(train.steps as f64),
                );
            }
        }
    }
}

/// Ten rounds; the time of applying and revalidating all changes, and their number.
fn rounds(train: &mut Train, scenario: Scenario, amount: usize) -> (f64, u32) {
    let (mut ns, mut changes) = (0.0, 0);
    for _ in 0..ROUNDS {
        for todo in train.round(scenario, amount) {
            let Some(event) = train.event(&todo) else { continue };
            let start = thread_ns();
            let delta = train.graph.apply(&event).unwrap_or_else(|refusal| panic!("{refusal}"));
            train.revalidate(&delta);
            ns += thread_ns() - start;
            changes += 1;
        }
    }
    (ns, changes)
}

fn check(train: &Train, number: usize, size: usize) {
    let name = PATTERNS[number].0;
    if size <= NAIVE_SIZE_MAX {
        let naive = Copied::of(&train.graph).count(number);
        assert_eq!(train.violations.len(), naive, "{name} at size {size}: naive evaluation");
    } else {
        assert!(train.violations == train.validate(), "{name} at size {size}: full matching");
    }
}
