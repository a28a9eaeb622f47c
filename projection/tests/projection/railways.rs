//! The Train Benchmark, its small sizes: what deltas keep up to date is what a naive evaluation and
//! full matching find, round after round of repairs and injections.

use crate::train::naive::Copied;
use crate::train::{PATTERNS, Scenario, Train, railway};

const ROUNDS: usize = 10;

fn check(train: &Train, number: usize, what: &str) {
    assert_eq!(train.violations, train.validate(), "{what}: full matching");
    let naive = Copied::of(&train.graph).count(number);
    assert_eq!(train.violations.len(), naive, "{what}: the naive evaluation");
}

#[test]
fn the_violations_of_a_railway_are_those_that_a_naive_evaluation_finds() {
    for scenario in [Scenario::Repair, Scenario::Inject] {
        for size in [1, 2, 4] {
            let railway = railway::build(size, scenario);
            for (number, (name, _)) in PATTERNS.iter().enumerate() {
                let mut train = Train::new(railway.clone(), number);
                let what = format!("{name}, size {size}, {scenario:?}");
                check(&train, number, &what);
                let first = train.violations.len();
                let mut changed = 0;
                for round in 0..ROUNDS {
                    let amount = if scenario == Scenario::Repair { 5 } else { 10 };
                    for todo in train.round(scenario, amount) {
                        let Some(event) = train.event(&todo) else { continue };
                        let before = train.violations.len();
                        let delta = train.graph.apply(&event).unwrap();
                        train.revalidate(&delta);
                        changed += usize::from(train.violations.len() != before);
                    }
                    check(&train, number, &format!("{what}, round {round}"));
                }
                let repaired = scenario == Scenario::Inject || first == 0 || changed > 0;
                assert!(repaired, "{what}: {first} violations, none repaired");
            }
        }
    }
}
