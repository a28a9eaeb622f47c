//! Recovery: a run that was killed anywhere and goes on has the events of one that was not, and a
//! fork may cut anywhere.

use std::sync::Arc;

use log::{BranchId, BranchName, Event, Hash, Head, Log, LogId, MemoryLog, RedbLog};
use runtime::{Engine, Library, Step, start_branch};
use serde_json::{Value, json};

use crate::oracle::{self, Run};
use crate::support::flock::{Running, Small, events, memory, tip};
use crate::support::random::Random;
use crate::support::{long, name};

/// Every `step`-th committed case, or all of them in the long form.
fn some_cases(step: usize) -> Vec<Value> {
    let step = if long() { 1 } else { step };
    oracle::committed().into_iter().step_by(step).collect()
}

fn begin(log: &Arc<dyn Log>, case: &Value) -> BranchId {
    let start = oracle::start(case, &mut Library::new());
    start_branch(log, &BranchName::main(), &start, "test").expect("it starts").id
}

/// Opens an engine, and gives it the outside events that have not landed before.
fn resume(
    log: &Arc<dyn Log>,
    branch: BranchId,
    case: &Value,
    traceless: &[(Value, Head)],
    library: &Library,
) -> Run {
    let engine = Engine::open(Arc::clone(log), branch, library.clone(), "test").expect("it opens");
    let landed: Vec<String> =
        events(&**log, branch).iter().map(|event| event.id().to_string()).collect();
    let mut waiting = oracle::script(case);
    // An event that was refused is not sent again, unless what came before it is lost as well.
    let refused =
        |id: &Value| traceless.iter().any(|(known, at)| known == id && *at <= engine.head());
    waiting.retain(|fed| {
        let id = &fed.event["id"];
        !landed.iter().any(|landed| id == landed.as_str()) && !refused(id)
    });
    Run { engine, waiting, traceless: traceless.to_vec() }
}

/// A whole run: its events, its tip, and which outside events left no trace.
pub(crate) struct Whole {
    pub(crate) events: Vec<Event>,
    pub(crate) tip: (Head, Hash),
    pub(crate) traceless: Vec<(Value, Head)>,
}

pub(crate) fn uninterrupted(
    case: &Value,
    wave: usize,
    threads: usize,
) -> (Arc<dyn Log>, BranchId, Whole) {
    let log = memory();
    let branch = begin(&log, case);
    let mut run = resume(&log, branch, case, &[], &oracle::library(case));
    run.engine.set_wave(wave);
    run.engine.set_threads(threads);
    run.rest_at(oracle::limit(case));
    let traceless = std::mem::take(&mut run.traceless);
    let whole = Whole { events: events(&*log, branch), tip: tip(&*log, branch), traceless };
    (log, branch, whole)
}

/// One life of an engine: so many steps, then it is gone, with what was not durable.
fn live(run: &mut Run, limit: u64, steps: u64) {
    for _ in 0..steps {
        while run.feed_one(run.engine.taken()) {}
        if run.engine.taken() >= limit {
            return;
        }
        let step = run.engine.step().expect("the log does not fail");
        if step == Step::Rest && !run.feed_one(u64::MAX) {
            return;
        }
    }
}

/// Runs a case through many crashes; `reopen` gives the log again after each.
fn check_crashes(case: &Value, random: &mut Random, mut reopen: impl FnMut() -> Arc<dyn Log>) {
    let (_, _, whole) = uninterrupted(case, 2048, 1);
    let (library, limit) = (oracle::library(case), oracle::limit(case));
    let branch = begin(&reopen(), case);
    let mut traceless = Vec::new();
    let lives = 3 + random.below(12);
    for _ in 0..lives {
        let log = reopen();
        let mut run = resume(&log, branch, case, &traceless, &library);
        run.engine.set_wave(random.pick(&[1, 2, 7, 30, 2048]));
        run.engine.set_threads(random.pick(&[1, 2, 4]));
        live(&mut run, limit, 1 + random.below(30));
        if random.chance(20) {
            run.engine.commit().expect("the log does not fail");
        }
        traceless = std::mem::take(&mut run.traceless);
    }
    let log = reopen();
    let mut run = resume(&log, branch, case, &traceless, &library);
    run.rest_at(limit);
    drop(run);
    let found = events(&*log, branch);
    for (found, expected) in found.iter().zip(&whole.events) {
        assert_eq!(found, expected, "seed {}, {}", case["seed"], case["schedule"]);
    }
    assert_eq!(tip(&*log, branch), whole.tip, "seed {}, {}", case["seed"], case["schedule"]);
}

#[test]
fn a_run_that_is_killed_at_random_points_has_the_events_of_one_that_is_not() {
    let mut random = Random::new(1);
    for case in oracle::committed() {
        for _ in 0..if long() { 50 } else { 2 } {
            let log: Arc<dyn Log> = Arc::new(MemoryLog::new(LogId::ZERO));
            check_crashes(&case, &mut random, || Arc::clone(&log));
        }
    }
}

#[test]
fn a_run_over_a_file_that_is_killed_at_random_points_has_the_events_of_one_that_is_not() {
    let mut random = Random::new(2);
    for case in some_cases(40) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        drop(RedbLog::create(&path, LogId::ZERO).unwrap());
        check_crashes(&case, &mut random, || Arc::new(RedbLog::open(&path).unwrap()));
    }
}

/// Whether an event belongs to the same firing as the one before it.
fn inside_firing(before: &Event, event: &Event) -> bool {
    let author = event.author();
    author.is_some() && before.author() == author && before.taken() == event.taken()
}

#[test]
fn a_fork_runs_wherever_it_cuts_and_between_firings_it_has_the_events_of_its_parent() {
    let (mut between, mut inside) = (0, 0);
    for case in some_cases(6) {
        let (log, main, whole) = uninterrupted(&case, 2048, 1);
        let library = oracle::library(&case);
        for cut in 1..=whole.events.len() {
            let head = Head::of_count(cut as u64);
            let child = log.fork(main, head, &name(&format!("cut-{cut}")), "recorded").unwrap().id;
            let mut run = resume(&log, child, &case, &whole.traceless, &library);
            run.rest_at(oracle::limit(&case));
            drop(run);
            let found = events(&*log, child);
            assert_eq!(found[..cut], whole.events[..cut], "the prefix is shared");
            let next = whole.events.get(cut);
            if next.is_some_and(|next| inside_firing(&whole.events[cut - 1], next)) {
                inside += 1;
                assert_eq!(log::verify(&*log, child).unwrap().0, tip(&*log, child).0);
            } else if cut >= start_count(&case) {
                between += 1;
                let place = format!("seed {}, {}, cut {cut}", case["seed"], case["schedule"]);
                assert_eq!(found, whole.events, "{place}");
            }
        }
    }
    assert!(between > 500 && inside > 20, "{between} cuts between firings, {inside} inside of one");
}

/// How many events the start batch of a case has.
fn start_count(case: &Value) -> usize {
    let count = |field: &str| case[field].as_array().expect("a list").len();
    1 + count("behaviors") + count("start")
}

#[test]
fn quiet_firings_before_an_outside_event_are_not_fired_again_after_a_crash() {
    let asked = |name: &str| json!({"name": name, "on": "thing.asked"});
    let flock = Small::new("fifo", &json!({})).with(&asked("a_quiet"), |_, _| Ok(())).with(
        &asked("b_speaks"),
        |firing, out| {
            out.emit("thing.answered", json!({"draw": firing.rand.below(1000)}));
            Ok(())
        },
    );
    let run = |crash: bool| {
        let mut running = flock.start();
        running.say("one", "thing.asked", json!({}), &json!([]));
        assert_eq!(running.engine.step().unwrap(), Step::Fired(0));
        running.say("two", "thing.asked", json!({}), &json!([]));
        running.engine.commit().unwrap();
        if crash {
            running = running.crash();
            assert_eq!(
                running.engine.taken(),
                1,
                "the quiet firing is counted by the second event"
            );
            assert_eq!(running.engine.waiting(), 3);
        }
        running.rest();
        assert_eq!(running.engine.taken(), 4);
        (running.events(), running.tip())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_match_that_is_true_false_and_true_again_before_its_firing_fires_once() {
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "see", "match": "(n:N {on: true})"}), |firing, out| {
            out.emit("n.seen", json!({"by": firing.event.kind}));
            Ok(())
        })
        .begins("n.made", &json!([{"create": "n", "type": "N", "properties": {"on": false}}]));
    let mut running = flock.start();
    for (nth, on) in [true, false, true].into_iter().enumerate() {
        let kind = format!("n.turned_{nth}");
        let change = json!([{"set": "n", "properties": {"on": on}}]);
        running.say(&kind, &kind, json!({}), &change);
        assert_eq!(running.engine.waiting(), usize::from(on));
    }
    running.rest();
    let seen = running.of_kind("n.seen");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].payload().to_json()["by"], "n.turned_2", "the last rise is its cause");
    assert_eq!(running.engine.taken(), 1);
}

#[test]
fn removing_a_behavior_leaves_the_draws_of_the_other_as_they_were() {
    let draws = |name: &str| json!({"name": name, "on": "dice.asked"});
    let roll: behaviors::Reaction = |firing, out| {
        let rolled: Vec<u64> = (0..5).map(|_| firing.rand.below(1 << 40)).collect();
        out.emit("dice.rolled", json!({"rolled": rolled}));
        Ok(())
    };
    for schedule in ["fifo", "rounds", "random"] {
        let both = Small::new(schedule, &json!({})).with(&draws("a"), roll).with(&draws("b"), roll);
        let alone = Small::new(schedule, &json!({})).with(&draws("b"), roll);
        let rolled = |flock: Small| {
            let mut running = flock.start();
            for nth in 0..20 {
                running.say(&format!("{nth}"), "dice.asked", json!({}), &json!([]));
                running.rest();
            }
            let of_b = |event: &Event| event.author() == Some("b");
            let rolled = running.of_kind("dice.rolled").into_iter().filter(of_b);
            rolled.map(|event| (event.id(), event.payload().to_json())).collect::<Vec<_>>()
        };
        let (both, alone) = (rolled(both), rolled(alone));
        assert_eq!((both.len(), &both), (20, &alone), "{schedule}: ids and draws");
    }
}

#[test]
fn waves_and_threads_leave_no_trace_in_the_log() {
    for case in some_cases(10) {
        let tips: Vec<_> = [(1, 1), (7, 2), (2048, 4), (1, 4), (2048, 2), (7, 1)]
            .into_iter()
            .map(|(wave, threads)| uninterrupted(&case, wave, threads).2.tip)
            .collect();
        assert!(tips.iter().all(|tip| *tip == tips[0]), "seed {}: {tips:?}", case["seed"]);
    }
}

/// An engine that is gone without a word leaves a branch that another can claim.
#[test]
fn a_crash_frees_the_branch() {
    let flock = Small::new("fifo", &json!({}));
    let running: Running = flock.start();
    let again = Engine::open(Arc::clone(&running.log), running.branch, Library::new(), "other");
    let refused = again.expect_err("one engine runs a branch").to_string();
    assert!(refused.contains("test"), "the owner is named: {refused}");
    running.crash();
}
