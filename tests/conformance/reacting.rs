//! Reacting: who fires, on what, in which order, how often, and what a failure leaves.

use behaviors::{Firing, Proposals, ReactError};
use log::{Cause, Derivation, Draft};
use runtime::{Flock, Overrides, Step};
use serde_json::{Value, json};

use super::{flock, payloads, script, story};
use crate::support::flock::{Running, Small, scripts};

fn say(running: &mut Running, name: &str, kind: &str, payload: Value, changes: Value) {
    running.say(name, kind, payload, &changes);
    running.rest();
}

/// The example of every introduction: a plan, a worker, and an edge that acts.
#[test]
fn a_plan_is_worked_off_along_its_edges() {
    let files = [
        script(
            "plan",
            "on = \"goal.stated\"",
            "",
            r#"
first = create("Task", id = "task:1", status = "open")
second = create("Task", id = "task:2", status = "blocked")
emit("task.planned", {}, first)
emit("task.planned", {}, second, link(second, "DEPENDS_ON", "task:1"))"#,
        ),
        script(
            "research",
            "match = \"(task:Task {status: 'open'})\"",
            "task",
            r#"
emit("claim.made", {}, create("Claim", about = task.id))
emit("task.done", {"task": task.id}, set(task, status = "done"))"#,
        ),
        script(
            "unblock",
            "match = \"(task:Task {status: 'blocked'})-[:DEPENDS_ON]->(:Task {status: 'done'})\"",
            "task",
            "emit(\"task.opened\", {\"task\": task.id}, set(task, status = \"open\"))",
        ),
    ];
    let mut running = flock(&files);
    say(&mut running, "goal", "goal.stated", json!({}), json!([]));
    let told = "goal.stated task.planned task.planned claim.made task.done task.opened claim.made \
                task.done";
    assert_eq!(story(&running).join(" "), told);
    assert_eq!(running.property("task:2", "status"), "done", "what is unblocked is worked on");
    assert_eq!(running.engine.graph().element("task:2").unwrap().version(), 3);
    assert_eq!(running.rest(), Step::Rest);
}

/// Who did it and why is stamped: what a payload says about that is only data.
#[test]
fn who_did_it_and_why_is_written_by_the_runtime() {
    let body = "emit(\"note.made\", {\"actor\": \"user:boss\", \"cause\": \"none\"})";
    let mut running = flock(&[script("note", "on = \"note.asked\"", "", body)]);
    say(&mut running, "ask", "note.asked", json!({}), json!([]));
    let (asked, made) = (running.of_kind("note.asked").remove(0), running.of_kind("note.made"));
    assert_eq!(made[0].payload().to_json()["actor"], "user:boss");
    assert!(made[0].actor().starts_with("behavior:note@"), "{}", made[0].actor());
    let Some(Cause::Firing { event, behavior, .. }) = made[0].cause() else { panic!("a cause") };
    assert_eq!((event, behavior.as_str()), (asked.id(), "note"));
    assert_eq!(made[0].time(), asked.time(), "it took no time of its own");
}

fn tell(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let next: &[&str] = match firing.event.kind {
        "letter.a" => &["letter.b", "letter.c"],
        "letter.b" => &["letter.d"],
        "letter.c" => &["letter.e"],
        _ => &[],
    };
    for kind in next {
        out.emit(kind, json!({}));
    }
    Ok(())
}

#[test]
fn behaviors_hear_an_event_in_their_order_and_answers_come_breadth_first() {
    let heard: behaviors::Reaction = |_, out| {
        out.emit("call.heard", json!({}));
        Ok(())
    };
    let on = |name: &str, kind: &str, order: i64| json!({"name": name, "on": kind, "order": order});
    let mut running = Small::new("fifo", &json!({}))
        .with(&json!({"name": "tell", "on": "letter.*", "wakes_self": true}), tell)
        .with(&on("a_later", "call.made", 1), heard)
        .with(&on("b_sooner", "call.made", 0), heard)
        .with(&on("a_sooner", "call.made", 0), heard)
        .start();
    say(&mut running, "a", "letter.a", json!({}), json!([]));
    assert_eq!(story(&running).join(" "), "letter.a letter.b letter.c letter.d letter.e");
    say(&mut running, "call", "call.made", json!({}), json!([]));
    let order: Vec<_> =
        running.of_kind("call.heard").iter().map(|e| e.author().unwrap().to_owned()).collect();
    assert_eq!(order, ["a_sooner", "b_sooner", "a_later"]);
}

/// A firing is a transaction. Elsewhere what was written before the failure stays.
#[test]
fn a_failure_leaves_nothing_of_its_firing_and_stops_nobody() {
    let files = [
        script(
            "a_fails",
            "on = \"thing.asked\"",
            "",
            r#"
emit("thing.made", {}, create("Thing", id = "thing"))
fail("boom")"#,
        ),
        script("b_works", "on = \"thing.asked\"", "", "emit(\"work.done\", {})"),
    ];
    let mut running = flock(&files);
    say(&mut running, "ask", "thing.asked", json!({}), json!([]));
    assert_eq!(story(&running).join(" "), "thing.asked behavior.failed work.done");
    assert!(running.engine.graph().element("thing").is_none());
    let failed = &payloads(&running, "behavior.failed")[0];
    assert!(failed["error"].as_str().unwrap().contains("boom"), "{failed}");
    assert_eq!((&failed["file"], &failed["line"]), (&json!("behaviors/a_fails.star"), &json!(4)));
    assert_eq!(running.engine.failures()[0].times, 1, "and whoever runs it is told");
}

#[test]
fn an_edge_that_acts_fires_once_for_each_edge_at_what_the_event_names() {
    let fields = "on = \"task.done\", match = \"(task:Task)-[edge:NEEDS]->(done:Task) \
                  WHERE id(done) = event.payload.task\"";
    let body = "emit(\"edge.acted\", {\"from\": task.id, \"edge\": edge.type})";
    let mut running = flock(&[script("act", fields, "task, edge", body)]);
    let task = |id: &str| json!({"create": id, "type": "Task"});
    let needs = |kind: &str, from: &str| json!({"link": kind, "from": from, "to": "task:1"});
    let changes = json!([
        task("task:1"),
        task("task:11"),
        task("a"),
        task("b"),
        task("c"),
        needs("NEEDS", "a"),
        needs("NEEDS", "b"),
        needs("LIKES", "c"),
    ]);
    say(&mut running, "made", "tasks.made", json!({}), changes);
    let wrong = json!({"task": "task:11", "text": "task:1 is done", "task:1": true});
    say(&mut running, "other", "task.done", wrong, json!([]));
    assert!(payloads(&running, "edge.acted").is_empty(), "neither a part of a text nor a key");
    say(&mut running, "done", "task.done", json!({"task": "task:1"}), json!([]));
    let acted = |from: &str| json!({"from": from, "edge": "NEEDS"});
    assert_eq!(payloads(&running, "edge.acted"), [acted("a"), acted("b")]);
}

#[test]
fn event_and_pattern_must_both_hold_and_a_negation_shares_its_variables() {
    let fields = "on = \"look.asked\", each = True, match = \"(c:Claim) \
                  WHERE NOT EXISTS { (c)<-[:SUPPORTS]-(:Evidence) }\"";
    let files = [
        script("look", fields, "c", "emit(\"claim.bare\", {\"claim\": c.id})"),
        script(
            "count",
            "on = \"look.asked\", reads = {\"all\": \"(all:Claim)\"}",
            "all",
            "emit(\"claims.counted\", {\"all\": [c.id for c in all]})",
        ),
    ];
    let mut running = flock(&files);
    let claim = |id: &str| json!({"create": id, "type": "Claim"});
    let changes = json!([
        claim("c:1"), claim("c:2"), claim("c:3"), {"create": "e", "type": "Evidence"},
        {"link": "SUPPORTS", "from": "e", "to": "c:1"},
    ]);
    say(&mut running, "made", "claims.made", json!({}), changes);
    assert_eq!(story(&running).len(), 1, "the pattern alone wakes nobody");
    say(&mut running, "look", "look.asked", json!({}), json!([]));
    let bare = |id: &str| json!({"claim": id});
    assert_eq!(payloads(&running, "claim.bare"), [bare("c:2"), bare("c:3")]);
    assert_eq!(payloads(&running, "claims.counted"), [json!({"all": ["c:1", "c:2", "c:3"]})]);

    let (name, text) = script("wrong", "match = \"(c:Claim WHERE c.n > 1\"", "c", "pass");
    let folder = scripts("name = \"w\"\n", &[(&name, &text)]);
    let flock = Flock::read(folder.path(), &Overrides::default()).unwrap();
    let error = flock.sources[0].declared.as_ref().unwrap_err();
    assert!(error.starts_with("behaviors/wrong.star:1:") && error.contains("WHERE"), "{error}");
}

/// Elsewhere comparing a text with a number ends the run, and the event is lost for everybody.
#[test]
fn a_text_compared_with_a_number_is_no_match_and_loses_no_event() {
    let files = [
        script(
            "a_compare",
            "match = \"(t:Thing) WHERE t.n > 3\"",
            "t",
            "emit(\"thing.large\", {\"thing\": t.id})",
        ),
        script("b_hear", "on = \"thing.made\"", "", "emit(\"thing.heard\", {})"),
    ];
    let mut running = flock(&files);
    for (id, n) in [("text", json!("many")), ("small", json!(1)), ("large", json!(9))] {
        let change = json!([{"create": id, "type": "Thing", "properties": {"n": n}}]);
        say(&mut running, id, "thing.made", json!({}), change);
    }
    assert_eq!(payloads(&running, "thing.large"), [json!({"thing": "large"})]);
    assert_eq!(payloads(&running, "thing.heard").len(), 3);
}

/// Elsewhere a delay that nothing ends spins for ever, is lost by a restart, and never fires at all
/// for an edge.
#[test]
fn a_delay_waits_for_so_many_events_at_rest_and_across_a_crash() {
    let nag = "on = \"task.added\", after = 2";
    let edge = "on = \"task.added\", after = 2, match = \"(t:Task)-[:NEEDS]->(:Task) \
                WHERE id(t) = event.payload.task\"";
    let files = [
        script("a_nag", nag, "", "emit(\"task.nagged\", {\"by\": \"a_nag\"})"),
        script("b_edge", edge, "", "emit(\"task.nagged\", {\"by\": \"b_edge\"})"),
    ];
    let mut running = flock(&files);
    let changes = json!([
        {"create": "t", "type": "Task"}, {"create": "u", "type": "Task"},
        {"link": "NEEDS", "from": "t", "to": "u"},
    ]);
    say(&mut running, "add", "task.added", json!({"task": "t"}), changes);
    assert_eq!((running.rest(), running.engine.waiting()), (Step::Rest, 2), "it waits at rest");
    say(&mut running, "noise 1", "noise.made", json!({}), json!([]));
    assert!(payloads(&running, "task.nagged").is_empty());
    let mut running = running.crash();
    assert_eq!(running.engine.waiting(), 2);
    say(&mut running, "noise 2", "noise.made", json!({}), json!([]));
    let by = |name: &str| json!({"by": name});
    assert_eq!(payloads(&running, "task.nagged"), [by("a_nag"), by("b_edge")]);
    say(&mut running, "noise 3", "noise.made", json!({}), json!([]));
    assert_eq!(payloads(&running, "task.nagged").len(), 2, "once");
}

/// Elsewhere a budget that ends in the midst of an event's behaviors loses the rest of them.
#[test]
fn what_a_budget_stops_goes_on_when_it_is_raised_each_once() {
    let heard: behaviors::Reaction = |firing, out| {
        let n = firing.event.payload.get("n").map_or(Value::Null, |n| n.to_json());
        out.emit("tick.heard", json!({"n": n}));
        Ok(())
    };
    let on = |name: &str| json!({"name": name, "on": "clock.ticked"});
    let small = Small::new("fifo", &json!({"firings": 3})).with(&on("a"), heard);
    let mut running = small.with(&on("b"), heard).start();
    for n in 0..4 {
        running.say(&format!("tick {n}"), "clock.ticked", json!({"n": n}), &json!([]));
    }
    assert!(matches!(running.rest(), Step::Stopped(reached) if reached.budget == "firings"));
    assert_eq!(payloads(&running, "flock.exhausted").len(), 1);
    assert_eq!(payloads(&running, "tick.heard").len(), 3);
    let mut running = running.crash();
    let id = Derivation::new().text("raised").finish();
    let mut draft = Draft::new(id, "flock.changed", "runtime");
    draft.payload.insert("budget".to_owned(), json!({"firings": 100}));
    running.engine.outside(draft).unwrap();
    assert_eq!(running.rest(), Step::Rest);
    let heard = running.of_kind("tick.heard").into_iter();
    let heard: Vec<(String, Value)> = heard
        .map(|e| (e.author().unwrap().to_owned(), e.payload().to_json()["n"].clone()))
        .collect();
    let expected: Vec<(String, Value)> =
        (0..4).flat_map(|n| ["a", "b"].map(|name| (name.to_owned(), json!(n)))).collect();
    assert_eq!(heard, expected);
    let tip = running.tip();
    assert_eq!((running.rest(), running.tip()), (Step::Rest, tip), "a clean rest has nothing due");
}
