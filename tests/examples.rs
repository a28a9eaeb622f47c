//! The example flocks, against the numbers that are known of their models.

use std::path::{Path, PathBuf};

use log::{Hash, Head};
use projection::Pattern;
use runtime::{Overrides, Step};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::effects::World;
use crate::support::flock::{Running, start_folder};
use crate::support::long;
use crate::support::random::Random;

/// The folder of an example.
pub(crate) fn folder(name: &str) -> PathBuf {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the root");
    root.join("examples").join(name)
}

fn overrides(seed: i64, settings: &[(&str, u64)]) -> Overrides {
    let settings = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Overrides { seed: Some(seed), settings, until: None }
}

/// Runs Life up to the end of a generation's round, and makes it durable.
pub(crate) fn live_until(life: &mut Running, generation: u64) {
    let engine = &mut life.engine;
    loop {
        let world = engine.graph().element("world").expect("there is a world");
        let now = world.property("generation").and_then(log::ValueRef::as_i64);
        if !engine.in_round() && now == i64::try_from(generation).ok() {
            break;
        }
        let step = engine.step().expect("a log in memory does not fail");
        assert!(matches!(step, Step::Fired(_)), "life goes on: {step:?}");
    }
    engine.commit().expect("a log in memory does not fail");
}

/// Population as the world counts it, and as its cells stand.
fn population(life: &Running) -> Value {
    let cells = life.engine.graph().find_prefix("cell:", usize::MAX);
    let living = cells.iter().filter(|cell| {
        cell.property("alive").is_some_and(|alive| alive.to_json() == Value::Bool(true))
    });
    let counted = life.property("world", "population");
    assert_eq!(counted, Value::from(living.count()), "the count is kept by the cells themselves");
    counted
}

#[test]
fn the_r_pentomino_has_the_populations_that_are_known() {
    let mut life = start_folder(&folder("life"), &Overrides::default());
    assert_eq!(life.engine.step().unwrap(), Step::Fired(5), "the first cells are placed");
    assert_eq!(population(&life), 5);
    for (nth, cells) in [6, 7, 9, 8, 9, 12, 11, 18].into_iter().enumerate() {
        live_until(&mut life, 1 + nth as u64);
        assert_eq!(population(&life), cells, "generation {}", 1 + nth);
    }
    live_until(&mut life, 69);
    assert_eq!(population(&life), 52);
    if long() {
        live_until(&mut life, 1102);
        assert_eq!(population(&life), 118);
        live_until(&mut life, 1103);
        assert_eq!(population(&life), 116);
        live_until(&mut life, 1200);
        assert_eq!(population(&life), 116, "it has come to rest");
    }
}

#[test]
fn a_life_that_is_killed_at_twenty_random_points_is_the_same_life() {
    let end = if long() { 1103 } else { 40 };
    let whole = {
        let mut life = start_folder(&folder("life"), &Overrides::default());
        live_until(&mut life, end);
        life
    };
    let mut random = Random::new(3);
    let mut life = start_folder(&folder("life"), &Overrides::default());
    // So that twenty lives get as far as the end, and each is cut at another place.
    let most = 2 * whole.engine.taken() / 20;
    for _ in 0..20 {
        life.engine.set_wave(random.pick(&[1, 7, 300]));
        for _ in 0..random.below(most) {
            if life.property("world", "generation") == end && !life.engine.in_round() {
                break;
            }
            life.engine.step().unwrap();
        }
        life = life.crash();
    }
    live_until(&mut life, end);
    assert_eq!(life.tip(), whole.tip());
    assert_eq!(population(&life), population(&whole));
    if long() {
        assert_eq!(population(&life), 116);
    }
}

/// Runs a colony to its choice.
fn colony(folder: &Path, seed: u64, ants: u64, ticks: u64) -> Running {
    let seed = i64::try_from(seed).expect("a small seed");
    let mut bridge = start_folder(folder, &overrides(seed, &[("ants", ants), ("ticks", ticks)]));
    assert_eq!(bridge.rest(), Step::Rest);
    assert!(bridge.of_kind("behavior.failed").is_empty());
    assert_eq!(bridge.of_kind("colony.chose").len(), 1, "it is asked once");
    bridge
}

/// In how many of a hundred colonies the long branch won.
fn long_wins(seeds: std::ops::Range<u64>, ants: u64, ticks: u64) -> f64 {
    let count = seeds.end - seeds.start;
    let half = seeds.start + count / 2;
    let wins = |seeds: std::ops::Range<u64>| {
        let chose = |seed| colony(&folder("bridge"), seed, ants, ticks).property("colony", "chose");
        seeds.filter(|seed| chose(*seed) == "long").count()
    };
    let (start, end) = (seeds.start, seeds.end);
    let wins = std::thread::scope(|scope| {
        let first = scope.spawn(move || wins(start..half));
        let second = wins(half..end);
        first.join().expect("a colony does not panic") + second
    });
    100.0 * wins as f64 / count as f64
}

#[test]
fn a_large_colony_takes_the_short_branch_and_a_single_ant_does_not_know() {
    let one = long_wins(0..24, 1, 200);
    assert!((20.0..=80.0).contains(&one), "one ant: {one} % on the long branch");
    let many = long_wins(0..4, 128, 100);
    assert!(many == 0.0, "128 ants: {many} % on the long branch");
}

#[test]
fn long_the_share_of_colonies_on_the_long_branch_falls_with_their_size() {
    if !long() {
        println!("no STARLING_LONG: only a few colonies were run");
        return;
    }
    let shares: Vec<f64> = [1, 4, 16, 128].map(|ants| long_wins(0..200, ants, 1000)).to_vec();
    println!("on the long branch with 1, 4, 16, 128 ants: {shares:?} %");
    assert!((43.0..=58.0).contains(&shares[0]), "{shares:?}");
    assert!(shares.windows(2).all(|two| two[0] > two[1]), "{shares:?}");
    assert!(shares[3] <= 1.0, "{shares:?}");
}

/// An example without one of its behavior files.
pub(crate) fn without(name: &str, file: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(folder(name).join("flock.toml"), copy.path().join("flock.toml")).unwrap();
    let behaviors = copy.path().join("behaviors");
    std::fs::create_dir(&behaviors).unwrap();
    let mut left_out = 0;
    for entry in std::fs::read_dir(folder(name).join("behaviors")).unwrap().map(Result::unwrap) {
        if entry.file_name() == file {
            left_out += 1;
        } else {
            std::fs::copy(entry.path(), behaviors.join(entry.file_name())).unwrap();
        }
    }
    assert_eq!(left_out, 1, "{file} was there");
    copy
}

#[test]
fn without_the_deposit_file_the_ants_split_evenly() {
    let copy = without("bridge", "leave_pheromone.star");
    let ticks = if long() { 1000 } else { 200 };
    let bridge = colony(copy.path(), 1, 64, ticks);
    let trips = |branch: &str| bridge.property(branch, "trips").as_f64().unwrap();
    let (short, long) = (trips("branch:short"), trips("branch:long"));
    let share = 100.0 * long / (short + long);
    assert!((48.0..=52.0).contains(&share), "{share} % of {} choices", short + long);
    assert_eq!(bridge.property("branch:short", "tau"), 1.0, "nobody leaves anything");
    let with = colony(&folder("bridge"), 1, 64, 200);
    assert!(with.property("colony", "share").as_f64().unwrap() < 0.3, "the file makes the colony");
}

/// What a colony's log is, whatever it was run on.
fn bridge_tip(wave: usize, threads: usize) -> (Head, Hash) {
    let mut bridge = start_folder(&folder("bridge"), &overrides(9, &[("ants", 40), ("ticks", 12)]));
    bridge.engine.set_wave(wave);
    bridge.engine.set_threads(threads);
    bridge.rest();
    bridge.tip()
}

#[test]
fn a_colony_of_scripts_has_one_log_on_any_number_of_threads() {
    let tips = [(1, 1), (7, 2), (2048, 4)].map(|(wave, threads)| bridge_tip(wave, threads));
    assert!(tips.iter().all(|tip| *tip == tips[0]), "{tips:?}");
}

#[test]
fn research_ends_in_a_memo_whose_every_point_cites_a_claim_that_holds() {
    let mut research = World::of_folder(&folder("research"));
    research.settle();
    let running = &research.running;
    assert!(running.of_kind("behavior.failed").is_empty());
    let count = |pattern: &str| running.engine.rows(&Pattern::parse(pattern).unwrap()).len();
    assert_eq!(count("(c:Claim)<-[:SUPPORTS]-(e:Evidence)-[:TAKEN_FROM]->(d:Document)"), 9);
    assert_eq!(count("(m:Memo)<-[:PART_OF]-(p:Point)"), 5);
    assert_eq!(count("(m:Memo)<-[:PART_OF]-(p:Point)-[:CITES]->(c:Claim {holds: TRUE})"), 5);
    assert_eq!(count("(r:Risk)-[:ARISES_FROM]->(c:Claim {holds: TRUE})"), 4);
    assert_eq!(count("(a:Claim)-[:CONTRADICTS]->(b:Claim)"), 1);
    assert_eq!(running.property("claim:grant", "holds"), false, "its quote was made up");
    assert_eq!(count("(t:Task) WHERE t.status <> 'done'"), 0);
    let refired = runtime::refire(&*running.log, running.branch, running.library()).unwrap();
    assert_eq!(refired.divergences.first().map(ToString::to_string), None);
}
