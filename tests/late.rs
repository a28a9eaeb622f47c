//! Behaviors that come late and want what was before them: they catch up, exactly, whatever happens
//! on the way.

use std::sync::Arc;

use behaviors::Reaction;
use log::{BranchName, Event, Head, Log, LogId, RedbLog};
use runtime::{Engine, Library, Snapshots, Step, refire, start_branch};
use serde_json::{Value, json};

use crate::support::flock::{Running, Small, events, tip};

/// Emits what it heard, and in which world.
const HEAR: Reaction = |firing, out| {
    let n = firing.event.payload.get("n").map_or(Value::Null, |n| n.to_json());
    let draw = firing.rand.below(1000);
    let done = out.count();
    out.emit("late.heard", json!({"n": n, "draw": draw})).add("sum", json!({"heard": 1}));
    assert_eq!(done, 0);
    Ok(())
};

fn hear(name: &str) -> Value {
    json!({"name": name, "on": "thing.*", "where": {"odd": true}, "from": "beginning"})
}

/// Something that goes on beside: it answers some of what is heard.
const ANSWER: Reaction = |firing, out| {
    let n = firing.event.payload.get("n").and_then(|n| n.as_i64()).unwrap_or(-1);
    if !(0..8).contains(&n) {
        return Ok(());
    }
    out.emit("thing.answered", json!({"odd": true, "n": -1})).add("sum", json!({"answered": 1}));
    Ok(())
};

fn flock(schedule: &str) -> Small {
    let answer = json!({"name": "answer", "on": "late.heard"});
    Small::new(schedule, &json!({}))
        .with(&answer, ANSWER)
        .begins("world.made", &json!([{"create": "sum", "type": "Sum"}]))
}

/// A branch with `count` events, every other one of which is heard.
fn with_past(schedule: &str, count: u64) -> Running {
    let mut running = flock(schedule).start();
    running.rest();
    past(&mut running, count);
    running
}

fn past(running: &mut Running, count: u64) {
    for n in 0..count {
        let payload = json!({"n": n, "odd": n % 2 == 1});
        running.say(&format!("thing {n}"), "thing.said", payload, &json!([]));
    }
}

fn heard(running: &Running) -> Vec<i64> {
    let heard = running.of_kind("late.heard").into_iter();
    let heard = heard.filter(|event| event.author() == Some("hear"));
    heard.map(|event| event.payload().get("n").unwrap().as_i64().unwrap()).collect()
}

#[test]
fn it_hears_the_events_before_it_once_each_in_their_order_and_then_the_later_ones() {
    for schedule in ["fifo", "rounds", "random"] {
        let mut running = with_past(schedule, 9);
        running.load(&hear("hear"), HEAR);
        running.say("thing 9", "thing.said", json!({"n": 9, "odd": true}), &json!([]));
        running.rest();
        let said: Vec<i64> = heard(&running).into_iter().filter(|n| *n >= 0).collect();
        let mut sorted = said.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 3, 5, 7, 9], "{schedule}: each once");
        let early: Vec<i64> = said.into_iter().filter(|n| *n < 9).collect();
        assert_eq!(early, [1, 3, 5, 7], "{schedule}: the earlier ones in their order");
        let loaded = running.of_kind("behavior.loaded").pop().unwrap();
        let first = &running.of_kind("late.heard")[0];
        let log::Cause::Firing { event, .. } = first.cause().unwrap() else { panic!("a firing") };
        assert_eq!(event, loaded.id(), "the cause is that it was loaded");
        let refired = refire(&*running.log, running.branch, running.library()).unwrap();
        assert_eq!(refired.divergences, [], "{schedule}");
    }
}

#[test]
fn its_own_events_and_those_of_an_earlier_version_are_not_heard() {
    let own = json!({"name": "own", "on": "*", "from": "beginning"});
    let echo: Reaction = |_, out| {
        out.emit("own.said", json!({}));
        Ok(())
    };
    let mut running = with_past("fifo", 3);
    running.load(&own, echo);
    running.rest();
    let before = running.of_kind("own.said").len();
    // flock.started, the load of `answer`, world.made and three things.
    assert_eq!(before, 6);
    let again = json!({"name": "own", "on": "*.said", "from": "beginning"});
    running.load(&again, echo);
    running.rest();
    let more = running.of_kind("own.said").len() - before;
    assert_eq!(more, 3, "with another trigger it begins anew, and hears nothing of its own");
}

#[test]
fn with_the_same_trigger_a_new_version_goes_on_where_the_old_one_was() {
    let mut running = with_past("fifo", 12);
    running.load(&hear("hear"), HEAR);
    for _ in 0..3 {
        running.engine.step().unwrap();
    }
    let mut other = hear("hear");
    other["description"] = json!("another version");
    running.load(&other, HEAR);
    running.rest();
    let said: Vec<i64> = heard(&running).into_iter().filter(|n| *n >= 0).collect();
    assert_eq!(said, [1, 3, 5, 7, 9, 11]);
    let mut without = hear("hear");
    without.as_object_mut().unwrap().remove("from");
    let mut stops = with_past("fifo", 12);
    stops.load(&hear("hear"), HEAR);
    stops.engine.step().unwrap();
    stops.load(&without, HEAR);
    stops.rest();
    let said: Vec<i64> = heard(&stops).into_iter().filter(|n| *n >= 0).collect();
    assert_eq!(said, [1], "who wants earlier events no more hears no more of them");
}

#[test]
fn a_removed_one_hears_no_more_and_one_that_comes_back_begins_anew() {
    let mut running = with_past("fifo", 6);
    running.load(&hear("hear"), HEAR);
    running.engine.step().unwrap();
    running.engine.unload(&"hear".into(), log::Time::default()).unwrap();
    running.rest();
    assert_eq!(heard(&running), [1]);
    running.load(&hear("hear"), HEAR);
    running.rest();
    let said: Vec<i64> = heard(&running).into_iter().filter(|n| *n >= 0).collect();
    assert_eq!(said, [1, 1, 3, 5], "an addition hears all");
}

/// The lines of a whole run: two behaviors catch up beside each other.
fn whole(schedule: &str, wave: usize, threads: usize) -> (Vec<Event>, (Head, log::Hash)) {
    let mut running = with_past(schedule, 40);
    running.engine.set_wave(wave);
    running.engine.set_threads(threads);
    running.load(&hear("hear"), HEAR);
    running.load(&hear("listen"), HEAR);
    running.rest();
    (running.events(), running.tip())
}

#[test]
fn how_much_lands_at_once_and_on_how_many_threads_leaves_no_trace() {
    for schedule in ["fifo", "rounds", "random"] {
        let (_, tip) = whole(schedule, 2048, 1);
        for (wave, threads) in [(1, 1), (7, 2), (64, 4)] {
            assert_eq!(whole(schedule, wave, threads).1, tip, "{schedule} {wave} {threads}");
        }
    }
}

/// Kills the engine after every step, and opens the branch again: from the whole log, and from a
/// snapshot beside a file.
#[test]
fn it_is_killed_anywhere_and_hears_what_it_would_have() {
    for schedule in ["fifo", "rounds", "random"] {
        let (expected, _) = whole(schedule, 2048, 1);
        let mut running = with_past(schedule, 40);
        running.load(&hear("hear"), HEAR);
        running.load(&hear("listen"), HEAR);
        running.engine.commit().unwrap();
        let mut rests = 0;
        for kill in 0_u64.. {
            // Quiet firings at the end are fired again, so some lives have to be longer.
            let steps = kill % 5 + 1 + kill / 10;
            let rested = (0..steps).any(|_| running.engine.step().unwrap() == Step::Rest);
            if kill % 3 > 0 {
                running.engine.commit().unwrap();
            }
            running = running.crash();
            rests += u64::from(rested);
            if rests == 3 {
                break;
            }
        }
        running.rest();
        let lines = |events: &[Event]| -> Vec<Vec<u8>> {
            events.iter().map(|event| event.record().to_vec()).collect()
        };
        assert!(lines(&running.events()) == lines(&expected), "{schedule}");
    }
}

#[test]
fn a_snapshot_in_the_middle_of_it_goes_on_as_the_log_does() {
    for schedule in ["fifo", "rounds", "random"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let small = flock(schedule);
        let open = |log: &Arc<dyn Log>, library: &Library, snapshots: Snapshots| {
            let branch = log.branches().unwrap()[0].id;
            Engine::open_with(Arc::clone(log), branch, library.clone(), "test", snapshots).unwrap()
        };
        let tips: Vec<_> = [true, false]
            .into_iter()
            .map(|snapshots| {
                let path = path.with_extension(if snapshots { "with" } else { "without" });
                let log: Arc<dyn Log> = Arc::new(RedbLog::create(&path, LogId::ZERO).unwrap());
                start_branch(&log, &BranchName::main(), &small.start, "test").unwrap();
                let mut running = Running::open(
                    Arc::clone(&log),
                    log.branches().unwrap()[0].id,
                    small.library.clone(),
                );
                past(&mut running, 6000);
                running.load(&hear("hear"), HEAR);
                let library = running.library();
                running.engine.commit().unwrap();
                drop(running);
                let kept = || if snapshots { Snapshots::beside(&path) } else { Snapshots::none() };
                let mut engine = open(&log, &library, kept());
                for _ in 0..500 {
                    engine.step().unwrap();
                }
                engine.commit().unwrap();
                assert_eq!(engine.catching_up().len(), 1, "it is in the middle of it");
                drop(engine);
                let mut engine = open(&log, &library, kept());
                engine.run(|_| true).unwrap();
                assert_eq!(engine.catching_up(), []);
                let beside = std::path::PathBuf::from(format!("{}.snapshots", path.display()));
                assert_eq!(beside.is_dir(), snapshots, "snapshots were kept");
                tip(&*log, engine.branch())
            })
            .collect();
        assert_eq!(tips[0].0, tips[1].0, "{schedule}");
    }
}

#[test]
fn a_fork_in_the_middle_of_it_goes_on_as_its_parent_did() {
    let mut running = with_past("fifo", 20);
    running.load(&hear("hear"), HEAR);
    running.rest();
    let all = running.events();
    let heard = all.iter().filter(|event| event.kind() == "late.heard");
    let cut = heard.map(|event| event.offset()).nth(3).unwrap();
    let name: BranchName = "idea".parse().unwrap();
    let fork = running.log.fork(running.branch, Head::after(cut), &name, "").unwrap();
    let mut engine =
        Engine::open(Arc::clone(&running.log), fork.id, running.library(), "test").unwrap();
    engine.run(|_| true).unwrap();
    let forked = events(&*running.log, fork.id);
    let ids = |events: &[Event]| events.iter().map(Event::id).collect::<Vec<_>>();
    assert_eq!(ids(&forked), ids(&all), "it has the events of its parent");
}

/// One waits in memory, however many there are.
#[test]
fn a_long_past_waits_one_by_one() {
    let mut running = with_past("fifo", 3000);
    running.load(&hear("hear"), HEAR);
    let loaded = running.engine.head();
    assert_eq!(running.engine.waiting(), 1, "at @{loaded}");
    let mut most = 0;
    while running.engine.step().unwrap() != Step::Rest {
        most = most.max(running.engine.waiting());
    }
    assert!(most <= 8, "{most} waited");
    running.engine.commit().unwrap();
    assert_eq!(heard(&running).len(), 1500 + 4);
}

#[test]
fn a_delay_counts_from_the_event_that_is_heard() {
    let mut metadata = hear("hear");
    metadata["after"] = json!(8);
    let mut running = with_past("fifo", 4);
    running.load(&metadata, HEAR);
    running.rest();
    assert_eq!(heard(&running), [0; 0], "what is not due yet waits");
    let first = running.of_kind("thing.said")[1].offset();
    for n in 0..12 {
        running.say(&format!("more {n}"), "more.said", json!({}), &json!([]));
        running.rest();
    }
    assert_eq!(heard(&running)[..2], [1, 3]);
    assert!(running.of_kind("late.heard")[0].offset() > first.plus(8), "then it is heard");
}
