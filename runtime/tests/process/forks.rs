//! Forks, promotions and reruns as a person asks for them: what the commands say, and what a fork
//! does with the folder of its flock.

use serde_json::Value;

use crate::{Place, of_kind};

const FLOCK: &str = r#"
answers = { file = "answers.jsonl" }
[settings]
rate = 2
[grants]
effects = ["tool:price"]
[[start]]
kind = "trip.opened"
payload = { to = "Shenzhen" }
changes = [{ create = "trip:1", type = "Trip", properties = { to = "Shenzhen" } }]
"#;

const ASK: &str = r#"
behavior(name = "ask", description = "Asks what a trip costs.", match = "(trip:Trip)",
         writes = ["Trip.asked"], emits = ["price.asked"], effects = ["tool:price"])
def ask(trip):
    emit("price.asked", {"to": trip.to}, set(trip, asked = True))
    request("tool:price", {"to": trip.to})
"#;

const HEAR: &str = r#"
behavior(name = "hear", description = "Notes the price.", on = "effect.ended",
         writes = ["Offer"], emits = ["offer.noted"])
def hear(event, settings, rand):
    price = event.payload.result.price * settings.rate
    emit("offer.noted", {"draw": rand.below(1000)}, create("Offer", price = price))
"#;

const ANSWERS: &str = r#"{"effect": "tool:price", "args": {"to": "Shenzhen"}, "result": {"price": 900}}
{"effect": "tool:price", "args": {"to": "Lagos"}, "result": {"price": 700}}
"#;

/// A flock that has run, was told of a second trip, and has run again.
fn travelled() -> Place {
    let files =
        [("behaviors/ask.star", ASK), ("behaviors/hear.star", HEAR), ("answers.jsonl", ANSWERS)];
    let place = Place::new(FLOCK, &files);
    place.ok(&["run", ".", "--trust"]);
    let second = r#"[{"create": "trip:2", "type": "Trip", "properties": {"to": "Lagos"}}]"#;
    place.ok(&["append", "trip.opened", r#"{"to": "Lagos"}"#, "--changes", second]);
    place.ok(&["run", ".", "--trust"]);
    place
}

fn export(place: &Place, branch: &str) -> Vec<String> {
    place.ok(&["export", "--branch", branch]).out.lines().map(str::to_owned).collect()
}

fn of_branch(place: &Place, branch: &str, kind: &str) -> Vec<Value> {
    let log = place.ok(&["log", "--branch", branch, "--json", "-n", "1000"]).out;
    of_kind(&log, kind).into_iter().map(|mut event| event["payload"].take()).collect()
}

fn offset(place: &Place, kind: &str) -> u64 {
    let log = place.ok(&["log", "--json", "-n", "1000"]).out;
    of_kind(&log, kind)[0]["offset"].as_u64().unwrap()
}

#[test]
fn an_unchanged_fork_that_is_run_has_the_events_of_its_parent() {
    let place = travelled();
    let main = export(&place, "main");
    for cut in 3..main.len() as u64 {
        let (address, name) = (format!("main@{cut}"), format!("same-{cut}"));
        let done = place.ok(&["fork", &address, &name, "--run"]);
        assert_eq!(export(&place, &name), main, "{address}: {}", done.err);
    }
    assert!(main.len() > 15, "{main:#?}");
}

/// A fork was given what its parent loaded later, from the same file. The event is the same, so the
/// fork was taken to have come that far, and heard nothing of what was said before.
#[test]
fn a_fork_that_has_a_behavior_before_its_parent_had_it_hears_all_the_same() {
    let place = travelled();
    let note = "behavior(name = \"note\", description = \"Notes every trip.\", on = \"trip.opened\",\n\
        \x20        emits = [\"trip.noted\"])\ndef note(event):\n    emit(\"trip.noted\", {\"to\": event.payload.to})\n";
    place.write("behaviors/note.star", note);
    place.ok(&["run", ".", "--trust"]);
    let cut = format!("main@{}", offset(&place, "offer.noted"));
    place.ok(&["fork", &cut, "noted", "--with", "behaviors/note.star", "--run"]);
    let noted = of_branch(&place, "noted", "trip.noted");
    assert_eq!(noted.iter().map(|trip| &trip["to"]).collect::<Vec<_>>(), ["Lagos"]);
    assert_eq!(of_branch(&place, "noted", "offer.noted").len(), 2);
    let rerun = place.ok(&["rerun", &cut, "--behaviors", "behaviors", "--trust"]);
    assert_eq!(of_branch(&place, "rerun-1", "trip.noted").len(), 1, "{}", rerun.err);
}

#[test]
fn a_cut_inside_of_a_firing_moves_and_says_so_and_exact_keeps_it() {
    let place = travelled();
    let asked = offset(&place, "price.asked");
    let moved = place.ok(&["fork", &format!("main@{asked}"), "moved"]);
    let said = format!(
        "main@{asked} lies inside of a firing of `ask`, which begins at main@{asked}; cut at"
    );
    assert!(moved.err.contains(&said), "{}", moved.err);
    let exact = place.ok(&["fork", &format!("main@{asked}"), "exact", "--exact"]);
    assert!(exact.err.contains("a firing of `ask`"), "{}", exact.err);
    assert_eq!(export(&place, "exact").len() as u64, asked + 1);
}

#[test]
fn what_a_fork_changes_are_its_first_events_and_a_wrong_word_makes_no_fork() {
    let place = travelled();
    let cut = format!("main@{}", offset(&place, "trip.opened"));
    place.write("new/hear.star", &HEAR.replace("* settings.rate", "+ settings.rate"));
    place.write("said.jsonl", "{\"kind\": \"note.added\", \"payload\": {\"by\": \"me\"}}\n");
    let line = ["fork", &cut, "idea", "--with", "new/hear.star", "--set", "rate=5"];
    place.ok(&[&line[..], &["--inject", "said.jsonl", "--run"]].concat());
    let offers = place.ok(&["query", "(o:Offer)", "--at", "idea@head", "--json"]).out;
    assert!(offers.contains("905") && offers.contains("705"), "{offers}");
    assert_eq!(of_branch(&place, "idea", "note.added").len(), 1);
    let served = of_branch(&place, "idea", "effect.dispatched");
    assert!(served.iter().all(|sent| sent["served"].as_str().unwrap().starts_with("main@")));

    place.ok(&["fork", &cut, "mute", "--without", "hear", "--run"]);
    assert!(of_branch(&place, "mute", "offer.noted").is_empty());
    assert_eq!(of_branch(&place, "mute", "effect.ended").len(), 2, "every answer was served");

    place.fails(&["fork", &cut, "wrong", "--without", "heer"], 2, "did you mean `hear`");
    place.fails(&["fork", &cut, "wrong", "--set", "rat=1"], 2, "no setting `rat`");
    place.fails(&["fork", &cut, "wrong", "--set", "effect:ffff=1"], 2, "no effect whose id begins");
    let branches = place.ok(&["branches"]).out;
    assert!(!branches.contains("wrong"), "{branches}");
}

#[test]
fn an_effect_is_answered_otherwise_than_it_was() {
    let place = travelled();
    let cut = format!("main@{}", offset(&place, "trip.opened"));
    let ended = of_branch(&place, "main", "effect.ended");
    let action = ended[0]["action"].as_str().unwrap();
    let set = format!("effect:{}={{\"price\": 1}}", &action[..10]);
    place.ok(&["fork", &cut, "cheap", "--set", &set, "--run"]);
    let ended = of_branch(&place, "cheap", "effect.ended");
    assert_eq!(ended[0]["result"]["price"], 1);
    assert_eq!(ended[1]["result"]["price"], 700, "the other is as it was");
    assert_eq!(of_branch(&place, "cheap", "effect.dispatched")[0]["executor"], "override");
}

/// A fork once took over whatever stood in the folder as soon as it was run.
#[test]
fn a_fork_is_pinned_to_its_log_until_it_is_told_to_follow() {
    let place = travelled();
    let before = export(&place, "main");
    place.write("behaviors/hear.star", &HEAR.replace("* settings.rate", "+ settings.rate"));
    place.write(
        "behaviors/new.star",
        &HEAR.replace("\"hear\"", "\"new\"").replace("def hear", "def new"),
    );
    let cut = format!("main@{}", offset(&place, "trip.opened"));
    place.ok(&["fork", &cut, "kept"]);
    for line in [vec!["run", ".", "--branch", "kept"], vec!["run", "--branch", "kept"]] {
        let done = place.ok(&line);
        assert!(done.err.contains("kept is pinned to the behaviors in its log"), "{}", done.err);
        assert_eq!(export(&place, "kept"), before);
    }
    place.fails(&["run", "--branch", "kept", "--unset", "rate"], 2, "pinned");
    place.ok(&["run", "--branch", "kept", "--set", "rate=9"]);
    assert_eq!(of_branch(&place, "kept", "flock.changed")[0]["settings"]["rate"], 9);
}

#[test]
fn a_promotion_says_what_lands_and_a_conflict_is_told_with_both_sides() {
    let place = travelled();
    place.ok(&["fork", "main@head", "idea"]);
    let set = |value: u64| format!(r#"[{{"set": "trip:1", "properties": {{"days": {value}}}}}]"#);
    place.ok(&["append", "trip.planned", "--branch", "idea", "--changes", &set(3)]);
    let dry = place.ok(&["promote", "idea", "--dry-run"]);
    assert_eq!(dry.out, "idea would be promoted into main with 1 changes\n");
    assert!(
        place.ok(&["promote", "idea"]).out.starts_with("idea is promoted into main: 1 changes")
    );
    assert!(place.ok(&["promote", "idea"]).out.contains("nothing was promoted"));
    place.ok(&["append", "trip.planned", "--branch", "idea", "--changes", &set(4)]);
    place.ok(&["append", "trip.planned", "--changes", &set(5)]);
    let told = place.run(&["promote", "idea"]).failed(&["promote"], 6, "nothing was promoted");
    assert!(
        told.out.contains("property trip:1.days: it is 5 on main and 4 on idea"),
        "{}",
        told.out
    );
    assert!(told.out.contains("by user:ann at idea@"), "{}", told.out);
    let json = place.run(&["promote", "idea", "--json"]).out;
    let conflict: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&conflict["ours"]["value"], &conflict["theirs"]["value"]), (&5.into(), &4.into()));
}

#[test]
fn a_rerun_with_other_behaviors_says_where_and_why_the_histories_part() {
    let place = travelled();
    place.write("new/ask.star", ASK);
    place.write("new/hear.star", &HEAR.replace("* settings.rate", "+ settings.rate"));
    let cut = format!("main@{}", offset(&place, "trip.opened"));
    let done = place.ok(&["rerun", &cut, "--behaviors", "new"]);
    assert!(done.out.contains("they part at rerun-1@"), "{}", done.out);
    assert!(done.out.contains("`hear` says offer.noted"), "{}", done.out);
    assert!(done.out.contains("it was behavior:hear@"), "{}", done.out);
    let same = place.ok(&["rerun", &cut, "--behaviors", "behaviors"]);
    assert!(same.out.contains("rerun-2 does what main did"), "{}", same.out);
}

/// Row 16 of the public failures: to resume is to go on at the head. From anywhere else it is a
/// fork, which is another word.
#[test]
fn a_run_goes_on_at_the_head_and_nowhere_else() {
    let place = travelled();
    place.fails(&["run", "--branch", "main@3"], 2, "main@3");
}
