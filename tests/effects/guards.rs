//! Guards, grants and approvals: nothing leaves that somebody could have stopped and did not allow.

use std::sync::Arc;

use behaviors::{Firing, Proposals, ReactError};
use effect::Class;
use serde_json::{Value, json};

use super::wishing;
use crate::support::effects::{Scripted, World};
use crate::support::flock::Small;

fn guard(name: &str) -> Value {
    json!({
        "name": name, "on": "effect.requested", "where": {"effect": "tool:x"}, "guard": true,
        "reads": {"budgets": "(b:Budget)"},
    })
}

/// Allows up to the least budget.
fn within_budget(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let amount = firing.event.payload.at_path(&["args", "amount"]).and_then(|n| n.as_f64());
    let amount = amount.ok_or_else(|| ReactError::new("the amount is no number"))?;
    let budgets = firing.read("budgets")?.elements();
    let least = budgets.filter_map(|budget| budget.number("amount")).fold(f64::MAX, f64::min);
    if amount > least {
        out.deny(&format!("{amount} is above {least}"));
    } else {
        out.allow();
    }
    Ok(())
}

fn tool() -> Arc<Scripted> {
    Arc::new(Scripted::new(Class::Opaque, []))
}

fn wish(amount: Value) -> Small {
    wishing(&[json!({"args": {"amount": amount}})])
}

fn run(flock: &Small) -> (World, Arc<Scripted>) {
    let tool = tool();
    let mut world = World::new(flock, &[("tool:x", &tool)]);
    world.settle();
    (world, tool)
}

/// R108: 4200 of 3000, 3000 of 3000.
#[test]
fn a_guard_lets_pass_what_it_allows_and_its_reason_is_the_error() {
    let budget = json!([{"create": "b", "type": "Budget", "properties": {"amount": 3000}}]);
    for (amount, story) in [
        (4200, "requested deny rejected"),
        (3000, "requested allow dispatched attempt.succeeded succeeded"),
    ] {
        let flock = wish(json!(amount)).with(&guard("within"), within_budget);
        let (world, tool) = run(&flock.begins("budget.set", &budget));
        assert_eq!(world.story(), story);
        assert_eq!(tool.calls().len(), usize::from(amount == 3000));
        if amount == 4200 {
            let error = &world.payloads("effect.ended")[0]["error"];
            assert_eq!(error["message"], "within denies: 4200 is above 3000");
        }
    }
}

/// Rows 77 and 79 of the public failures: a guard that crashes, says nothing or never answers.
#[test]
fn silence_and_failure_deny() {
    let silent: behaviors::Reaction = |_, _| Ok(());
    let broken: behaviors::Reaction = |_, _| Err(ReactError::new("it broke"));
    let garbage: behaviors::Reaction = |_, out| {
        out.allow();
        out.allow();
        Ok(())
    };
    for (reaction, says) in [
        (silent, "it gave no verdict"),
        (broken, "it failed: it broke"),
        (garbage, "it failed: judge gives two verdicts; give one"),
    ] {
        let (world, tool) = run(&wish(json!(1)).with(&guard("judge"), reaction));
        assert!(tool.calls().is_empty(), "{says}");
        let error = &world.payloads("effect.ended")[0]["error"];
        assert_eq!(error["message"], format!("judge denies: {says}"));
        assert_eq!(world.payloads("effect.ended")[0]["status"], "rejected");
    }
}

#[test]
fn one_that_denies_is_enough_and_each_is_asked() {
    let yes: behaviors::Reaction = |_, out| {
        out.allow();
        Ok(())
    };
    let no: behaviors::Reaction = |_, out| {
        out.deny("never");
        Ok(())
    };
    let (world, tool) = run(&wish(json!(1)).with(&guard("a"), yes).with(&guard("b"), no));
    assert_eq!(world.story(), "requested allow deny rejected");
    assert!(tool.calls().is_empty());
    let (world, _) = run(&wish(json!(1)).with(&guard("a"), yes).with(&guard("b"), yes));
    assert_eq!(world.story(), "requested allow allow dispatched attempt.succeeded succeeded");
}

/// Row 80 of the public failures: what was rewritten is what leaves, and all guards judge it.
#[test]
fn the_last_rewriting_is_judged_by_all_and_is_what_leaves() {
    let halves: behaviors::Reaction = |firing, out| {
        let amount = firing.event.payload.at_path(&["args", "amount"]).and_then(|n| n.as_f64());
        match amount {
            Some(amount) if amount > 100.0 => out.rewrite(json!({"amount": amount / 2.0})),
            _ => out.allow(),
        }
        Ok(())
    };
    let flock =
        wish(json!(300)).with(&guard("halve"), halves).with(&guard("within"), within_budget);
    let (world, tool) = run(&flock);
    assert_eq!(tool.calls()[0].args, json!({"amount": 75.0}));
    assert_eq!(world.payloads("effect.dispatched")[0]["revision"], 2);
    let allowed = world.payloads("effect.judged");
    let of = |guard: &str| {
        let events = world.running.of_kind("effect.judged");
        let last = events.iter().rfind(|event| event.author() == Some(guard)).unwrap();
        Value::Object(last.payload().to_json())["revision"].clone()
    };
    assert_eq!((of("halve"), of("within")), (json!(2), json!(2)), "{allowed:?}");
}

#[test]
fn guards_that_never_agree_are_refused_after_eight_revisions() {
    let more: behaviors::Reaction = |firing, out| {
        let n = firing.event.payload.at_path(&["args", "amount"]).and_then(|n| n.as_i64());
        out.rewrite(json!({"amount": n.unwrap_or(0) + 1}));
        Ok(())
    };
    let (world, tool) = run(&wish(json!(0)).with(&guard("more"), more));
    assert!(tool.calls().is_empty());
    let ended = &world.payloads("effect.ended")[0];
    let message = &ended["error"]["message"];
    assert_eq!(message, "more denies: it was rewritten 8 times already");
    assert_eq!(world.payloads("effect.rewritten").len(), 8);
}

/// A field that the guard's `where` needs and the request lacks counts as matching.
#[test]
fn what_cannot_be_told_apart_is_guarded() {
    let no: behaviors::Reaction = |_, out| {
        out.deny("never");
        Ok(())
    };
    let mut metadata = guard("judge");
    metadata["where"] = json!({"args.kind": "payment"});
    let (world, _) = run(&wish(json!(1)).with(&metadata, no));
    assert_eq!(world.story(), "requested deny rejected");
    let other = wishing(&[json!({"args": {"kind": "mail"}})]).with(&metadata, no);
    assert_eq!(run(&other).0.story(), "requested dispatched attempt.succeeded succeeded");
}

#[test]
fn a_guard_that_the_flock_names_and_does_not_have_denies_everything() {
    let flock = wish(json!(1)).says("guards", json!(["within"]));
    let (world, tool) = run(&flock);
    assert!(tool.calls().is_empty());
    let error = &world.payloads("effect.ended")[0]["error"];
    assert_eq!(error["message"], "the guard `within` that flock.toml names is not loaded");
}

/// Guards see open requests: one that is loaded while a request waits is asked before it leaves.
#[test]
fn a_guard_that_comes_later_is_asked_about_what_has_not_left() {
    let tool = tool();
    let flock = wish(json!(1)).says("grants", json!({"effects": ["*"], "ask": ["tool:x"]}));
    let no: behaviors::Reaction = |_, out| {
        out.deny("never");
        Ok(())
    };
    let late = flock.clone().with(&guard("late"), no);
    let mut world = World::new(&flock, &[("tool:x", &tool)]);
    world.settle();
    assert_eq!(world.story(), "requested held");
    let (name, payload) = late.start.behaviors.iter().find(|(name, _)| name == "late").unwrap();
    let code = late.library.get(name, &payload["hash"].as_str().unwrap().into()).unwrap().clone();
    world.running.engine.learn(code);
    let now = log::Time::from_ms(world.now).unwrap();
    world.running.engine.load(name, payload.clone(), now).unwrap();
    world.settle();
    assert_eq!(world.story(), "requested held deny");
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    assert_eq!(world.story(), "requested held deny approved rejected");
    assert!(tool.calls().is_empty());
}

#[test]
fn what_nobody_grants_is_rejected_and_only_people_and_policy_grant() {
    let flock = wish(json!(1)).says("grants", json!({"effects": ["fs.*"]}));
    let (world, tool) = run(&flock);
    assert_eq!(world.story(), "requested rejected");
    assert!(tool.calls().is_empty());
    let error = &world.payloads("effect.ended")[0]["error"];
    assert_eq!(error["kind"], "policy.grant");
    assert_eq!(error["suggested_action"], "add it to [grants] effects, or starling grant 'tool:x'");
}

/// A cause that gives less: nothing that follows from it has more, whoever asks.
#[test]
fn a_narrower_grant_holds_for_all_that_follows() {
    let delegate: behaviors::Reaction = |_, out| {
        out.narrow(json!({"effects": ["tool:y"]}));
        out.emit("task.given", json!({}));
        Ok(())
    };
    let again: behaviors::Reaction = |_, out| {
        out.narrow(json!({"effects": ["*"]}));
        out.request("tool:x", json!({}), None);
        out.request("tool:y", json!({}), None);
        Ok(())
    };
    let flock = Small::new("fifo", &json!({}))
        .says("grants", json!({"effects": ["*"]}))
        .with(&json!({"name": "delegate", "on": "goal.stated"}), delegate)
        .with(&json!({"name": "work", "on": "task.given", "effects": ["*"]}), again)
        .begins("goal.stated", &json!([]));
    let (x, y) = (tool(), tool());
    let mut world = World::new(&flock, &[("tool:x", &x), ("tool:y", &y)]);
    world.settle();
    assert_eq!((x.calls().len(), y.calls().len()), (0, 1));
    let ended = world.payloads("effect.ended");
    assert_eq!(ended[0]["error"]["kind"], "policy.grant");
    // The same after a restart, from the log alone.
    let world = world.crash();
    assert_eq!(world.running.events().len(), world.running.engine.head().count() as usize);
}

/// Approvals: by id, surviving a restart, bound to what was shown, and expiring as a refusal.
#[test]
fn what_a_person_has_to_approve_waits_for_it_across_restarts() {
    let flock = || {
        wish(json!(1))
            .says("grants", json!({"effects": ["*"], "ask": ["tool:x"], "approval": "10m"}))
    };
    let (world, tool) = run(&flock());
    assert_eq!(world.story(), "requested held");
    let mut world = world.crash();
    world.settle();
    assert_eq!(world.open()[0].commands.len(), 2);
    assert!(tool.calls().is_empty());
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    assert_eq!(world.story(), "requested held approved dispatched attempt.succeeded succeeded");
    let again = world.says(json!({"say": "approve"}));
    assert!(again.is_err(), "it has ended");

    let (mut world, tool) = run(&flock());
    world.says(json!({"say": "deny", "reason": "too dear"})).unwrap();
    world.settle();
    assert_eq!(world.story(), "requested held rejected");
    let message = &world.payloads("effect.ended")[0]["error"]["message"];
    assert_eq!(message, "user:ann denies: too dear");
    assert!(tool.calls().is_empty());

    let (mut world, tool) = run(&flock());
    world.pass(599_999);
    assert_eq!(world.story(), "requested held");
    world.pass(1);
    assert_eq!(world.story(), "requested held rejected");
    assert_eq!(world.payloads("effect.ended")[0]["error"]["kind"], "policy.approval");
    assert!(tool.calls().is_empty());
}

/// A guard that cannot know by itself asks an executable: dispatch waits for the answer up to its
/// timeout, and anything but a clear yes denies.
#[test]
fn a_guard_may_ask_an_effect_and_only_a_clear_yes_lets_pass() {
    use crate::support::effects::Does;
    let asks: behaviors::Reaction = |firing, out| {
        let args = firing.event.payload.get("args").map(|args| args.to_json());
        out.request("tool:judge", json!({"of": args}), None);
        Ok(())
    };
    let mut metadata = guard("ask_judge");
    metadata["effects"] = json!(["tool:judge"]);
    // It would hear its own question as well, if guards judged what guards ask.
    metadata["where"] = json!({});
    let allow = || Does::Succeeds(json!({"verdict": "allow"}));
    let deny = Does::Succeeds(json!({"verdict": "deny", "reason": "too dear"}));
    for (does, status, says) in [
        (allow(), "succeeded", None),
        (deny, "rejected", Some("ask_judge denies: too dear")),
        (Does::Succeeds(json!("yes")), "rejected", Some("ask_judge denies: it gave no verdict")),
        (Does::Fails("process.exit"), "rejected", Some("ask_judge denies: it was process.exit")),
        (Does::Vanishes, "rejected", Some("ask_judge denies: it was network.lost")),
        (Does::Hangs, "rejected", None),
    ] {
        let mut judge = Scripted::new(Class::Opaque, [does]);
        judge.limits.timeout = std::time::Duration::from_millis(20);
        let (tool, judge) = (tool(), Arc::new(judge));
        let flock = wish(json!(1)).with(&metadata, asks);
        let mut world = World::new(&flock, &[("tool:x", &tool), ("tool:judge", &judge)]);
        world.settle();
        let ended = world.payloads("effect.ended");
        let of = ended.iter().find(|ended| ended["effect"] == "tool:x").expect("it ended");
        assert_eq!(of["status"], status);
        assert_eq!(tool.calls().len(), usize::from(status == "succeeded"));
        assert_eq!(judge.calls().len(), 1);
        if let Some(says) = says {
            assert_eq!(of["error"]["message"], says);
        }
    }
}

/// Speaks about payments of trips that are frozen: one word for each trip.
fn frozen() -> Value {
    json!({
        "name": "frozen", "guard": true,
        "match": "(request:_Effect {effect: 'tool:x'})<-[:PAID_BY]-(trip:Trip {frozen: true})",
    })
}

/// Allows unless the trip says no.
fn asks_trip(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let amount = firing.event.payload.at_path(&["args", "amount"]).and_then(|n| n.as_f64());
    match firing.element("trip")?.text("says") {
        Some("no") => out.deny("the trip says no"),
        _ if amount.is_none() => out.deny("no amount"),
        _ => out.allow(),
    }
    Ok(())
}

/// Pays for one thing on account of trips, each `{frozen, says}`.
fn paying(trips: &[Value]) -> Small {
    let pay: behaviors::Reaction = |firing, out| {
        let effect = out.request("tool:x", json!({"amount": 5}), None);
        let trips: Vec<String> =
            firing.read("trips")?.elements().map(|trip| trip.id.to_owned()).collect();
        let mut paying = out.emit("trip.paying", json!({}));
        for trip in trips {
            paying.link(&trip, "PAID_BY", &effect, json!({}));
        }
        Ok(())
    };
    let changes: Vec<Value> = trips
        .iter()
        .enumerate()
        .map(|(n, trip)| json!({"create": format!("trip:{n}"), "type": "Trip", "properties": trip}))
        .collect();
    let metadata = json!({
        "name": "pay", "on": "goal.stated", "effects": ["*"], "reads": {"trips": "(trip:Trip)"},
    });
    Small::new("fifo", &json!({}))
        .with(&metadata, pay)
        .says("grants", json!({"effects": ["*"], "ask": ["tool:x"]}))
        .begins("goal.stated", &Value::Array(changes))
}

/// A guard with a pattern is asked about the requests that stand in a match, once for each match,
/// though the match came about only after the request did; and every word has to be a yes.
#[test]
fn a_guard_with_a_pattern_speaks_once_for_each_match() {
    let open = || json!({"frozen": false, "says": "no"});
    let (yes, no) = (json!({"frozen": true}), json!({"frozen": true, "says": "no"}));
    for (trips, story) in [
        (vec![open()], "requested held"),
        (vec![yes.clone(), open()], "requested asked allow held"),
        (vec![yes.clone(), yes.clone()], "requested asked allow allow held"),
        (vec![yes.clone(), no.clone()], "requested asked allow deny rejected"),
        (vec![no, yes], "requested asked deny allow rejected"),
    ] {
        let (world, tool) = run(&paying(&trips).with(&frozen(), asks_trip));
        assert_eq!(world.story(), story, "{trips:?}");
        assert!(tool.calls().is_empty());
        let (events, world) = (world.running.tip(), world.crash());
        assert_eq!(world.running.tip(), events, "the fold asks the same");
    }
}

/// What matters is how the world is when a request is to leave, not how it was when it was made.
#[test]
fn a_match_that_rises_while_a_request_waits_has_its_guard_asked() {
    let flock = paying(&[json!({"frozen": false, "says": "no"})]).with(&frozen(), asks_trip);
    let (mut world, tool) = run(&flock);
    assert_eq!(world.story(), "requested held");
    let freeze = json!([{"set": "trip:0", "properties": {"frozen": true}}]);
    world.running.say("freeze", "trip.frozen", json!({}), &freeze);
    world.settle();
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    assert_eq!(world.story(), "requested held approved asked deny rejected");
    assert!(tool.calls().is_empty());
    // And one that has fallen by then has nobody to say anything.
    let flock = paying(&[json!({"frozen": true})]).with(&frozen(), asks_trip);
    let (mut world, tool) = run(&flock);
    assert_eq!(world.story(), "requested asked allow held");
    let thaw = json!([{"set": "trip:0", "properties": {"frozen": false}}]);
    world.running.say("thaw", "trip.thawed", json!({}), &thaw);
    world.says(json!({"say": "approve"})).unwrap();
    world.settle();
    assert!(world.story().ends_with("held approved dispatched attempt.succeeded succeeded"));
    assert_eq!(tool.calls().len(), 1);
    let library = world.running.library();
    let refired = runtime::refire(&*world.running.log, world.running.branch, library).unwrap();
    assert!(refired.divergences.is_empty(), "{:?}", refired.divergences);
}

/// With a pattern that stands at the request and another guard that rewrites: all speak again.
#[test]
fn a_guard_with_a_pattern_judges_every_revision() {
    let halves: behaviors::Reaction = |firing, out| {
        match firing.event.payload.at_path(&["args", "amount"]).and_then(|n| n.as_f64()) {
            Some(amount) if amount > 3.0 => out.rewrite(json!({"amount": 2.5})),
            _ => out.allow(),
        }
        Ok(())
    };
    let any: behaviors::Reaction = |_, out| {
        out.allow();
        Ok(())
    };
    let metadata = json!({"name": "any", "guard": true, "on": "effect.requested",
        "match": "(request:_Effect {effect: 'tool:x'})"});
    let (world, _) = run(&paying(&[]).with(&guard("halve"), halves).with(&metadata, any));
    let judged = world.running.of_kind("effect.judged");
    let of = |name: &str, revision: i64| {
        let said = |event: &&log::Event| {
            event.author() == Some(name)
                && event.payload().get("revision").and_then(|n| n.as_i64()) == Some(revision)
        };
        judged.iter().filter(said).count()
    };
    assert_eq!((of("any", 1), of("halve", 1)), (1, 1), "{}", world.story());
    assert!(world.story().ends_with("held"));
}
