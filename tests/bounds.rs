//! Bounds and rest: what stops a run, what lets it go on, and what never starts it.

use log::{Derivation, Draft};
use runtime::{Reached, Step};
use serde_json::{Value, json};

use crate::support::flock::{Running, Small};

/// Two behaviors that answer each other for ever.
fn ping_pong(budget: &Value) -> Small {
    let ping = |name: &str, on: &str| json!({"name": name, "on": on});
    Small::new("fifo", budget)
        .with(&ping("b", "ball.pinged"), |_, out| {
            out.emit("ball.ponged", json!({}));
            Ok(())
        })
        .with(&ping("a", "ball.ponged"), |_, out| {
            out.emit("ball.pinged", json!({}));
            Ok(())
        })
        .begins("ball.ponged", &json!([]))
}

fn change_budget(running: &mut Running, budget: &Value) {
    let head = running.engine.head().count();
    let id = Derivation::new().text("budget").integer(head).finish();
    let mut draft = Draft::new(id, "flock.changed", "runtime");
    draft.payload.insert("budget".to_owned(), budget.clone());
    running.engine.outside(draft).unwrap();
}

fn stopped(step: &Step) -> &Reached {
    let Step::Stopped(reached) = step else { panic!("{step:?} is no stop at a bound") };
    reached
}

/// Runs to a bound, which is named once and keeps what is due; then raises it, and the run goes on.
fn check_bound(bound: &str, limit: u64, raised: u64, used: impl Fn(&Running) -> u64) {
    let mut running = ping_pong(&json!({bound: limit})).start();
    let step = running.rest();
    assert_eq!((stopped(&step).budget.as_str(), stopped(&step).limit), (bound, limit));
    assert_eq!(used(&running), limit, "{bound}: not more than it allows");
    let named = running.of_kind("flock.exhausted");
    assert_eq!(named.len(), 1, "{bound}");
    let payload = named[0].payload().to_json();
    assert_eq!((&payload["budget"], &payload["limit"]), (&json!(bound), &json!(limit)));
    assert_eq!(payload["behavior"], json!(stopped(&step).behavior.as_str()), "whose turn it was");
    assert_eq!(running.engine.waiting(), 1, "what was due stays due");

    let tip = running.tip();
    assert_eq!(running.rest(), step);
    running = running.crash();
    assert_eq!(running.rest(), step, "also after a crash");
    assert_eq!(running.tip(), tip, "a bound is named once");

    change_budget(&mut running, &json!({bound: raised}));
    let step = running.rest();
    assert_eq!(stopped(&step).limit, raised);
    assert!(used(&running) >= raised - 1, "{bound}: it went on");
    assert_eq!(running.of_kind("flock.exhausted").len(), 2, "the next bound is named as well");
}

#[test]
fn a_bound_on_firings_stops_is_named_and_can_be_raised() {
    check_bound("firings", 10, 25, |running| running.engine.taken());
}

#[test]
fn a_bound_on_events_stops_is_named_and_can_be_raised() {
    // The event that names the bound and the one that raises it are on the branch too.
    let runtime = |running: &Running| {
        let events = running.events();
        events.iter().filter(|event| event.kind() == "flock.exhausted").count() as u64
    };
    check_bound("events", 20, 40, |running| running.engine.head().count() - runtime(running));
}

#[test]
fn a_bound_on_depth_stops_is_named_and_can_be_raised() {
    check_bound("depth", 12, 30, |running| running.engine.taken());
}

#[test]
fn a_bound_of_a_behavior_names_it() {
    let metadata = json!({
        "name": "greedy", "on": "thing.asked", "wakes_self": true, "budget": {"firings": 7}
    });
    let flock = Small::new("fifo", &json!({}))
        .with(&metadata, |_, out| {
            out.emit("thing.asked", json!({}));
            Ok(())
        })
        .begins("thing.asked", &json!([]));
    let mut running = flock.start();
    let step = running.rest();
    assert_eq!(stopped(&step).budget, "greedy.firings");
    assert_eq!((running.engine.taken(), running.engine.waiting()), (7, 1));
    assert_eq!(
        running.of_kind("flock.exhausted")[0].payload().to_json()["budget"],
        "greedy.firings"
    );
}

#[test]
fn the_cascade_guard_names_the_cycle() {
    for depth in [40, 41] {
        let mut running = ping_pong(&json!({"depth": depth})).start();
        running.rest();
        let named = running.of_kind("flock.exhausted");
        assert_eq!(named[0].payload().to_json()["cycle"], "a -> b -> a", "depth {depth}");
    }
}

/// Nothing is due: stepping gives `Rest` and changes nothing, in memory or in the log.
fn check_rest(running: &mut Running) {
    let (tip, taken, head) = (running.tip(), running.engine.taken(), running.engine.head());
    for _ in 0..3 {
        assert_eq!(running.engine.step().unwrap(), Step::Rest);
        assert_eq!(running.rest(), Step::Rest);
    }
    assert_eq!((running.tip(), running.engine.taken()), (tip, taken));
    assert_eq!(running.engine.head(), head);
}

#[test]
fn at_rest_stepping_writes_nothing_and_so_does_opening_again() {
    let flock = Small::new("fifo", &json!({}))
        .with(&json!({"name": "see", "match": "(n:N)"}), |_, out| {
            out.emit("n.seen", json!({}));
            Ok(())
        })
        .with(&json!({"name": "quiet", "on": "n.seen"}), |_, _| Ok(()))
        .begins("n.made", &json!([{"create": "n", "type": "N", "properties": {}}]));
    let mut running = flock.run(1);
    check_rest(&mut running);
    let tip = running.tip();
    let mut again = running.crash();
    again.rest();
    assert_eq!(again.tip(), tip, "the quiet firing is fired again and leaves no trace");
    check_rest(&mut again);
}

#[test]
fn an_offset_delay_is_due_when_the_branch_reaches_it() {
    for schedule in ["fifo", "rounds", "random"] {
        let late = json!({"name": "late", "on": "thing.asked", "after": 3});
        let flock = Small::new(schedule, &json!({})).with(&late, |_, out| {
            out.emit("thing.answered", json!({}));
            Ok(())
        });
        let mut running = flock.start();
        running.say("ask", "thing.asked", json!({}), &json!([]));
        let asked = running.engine.head().count() - 1;
        for nth in 1..=3 {
            check_waits(&mut running, schedule);
            running = running.crash();
            running.say(&format!("{nth}"), "time.passed", json!({}), &json!([]));
        }
        running.rest();
        let answered = running.of_kind("thing.answered");
        assert_eq!(answered.len(), 1, "{schedule}");
        assert_eq!(answered[0].offset().get(), asked + 4, "{schedule}");
        check_rest(&mut running);
    }
}

fn check_waits(running: &mut Running, schedule: &str) {
    assert_eq!(running.rest(), Step::Rest, "{schedule}: a delay does not keep a run awake");
    assert_eq!(running.engine.waiting(), 1, "{schedule}: it is listed");
}
