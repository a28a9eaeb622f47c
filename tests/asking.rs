//! What can be asked of a log: who, why, since when, what differs; by the commands, in words.

use std::io::Cursor;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::flock::scripts;

const FLOCK: &str = r#"
name = "trips"
[[start]]
kind = "trip.wished"
actor = "user:ann"
changes = [
  { create = "trip:1", type = "Trip", properties = { name = "Shenzhen", status = "open" } },
  { create = "budget:1", type = "Budget", properties = { amount = 3000 } },
]
"#;

const MAKE: &str = r#"
behavior(
    name = "make_offer",
    description = "Makes an offer for an open trip.",
    match = "(trip:Trip {status: 'open'})",
    writes = ["Offer", "OFFERED"],
    emits = ["offer.made"],
)
def make_offer(trip):
    offer = create("Offer", price = 100)
    emit("offer.made", {}, offer, link(trip, "OFFERED", offer))
"#;

const CHOOSE: &str = r#"
behavior(
    name = "choose_offer",
    description = "Takes the first offer.",
    match = "(trip:Trip)-[:OFFERED]->(offer:Offer)",
    reads = {"budgets": "(b:Budget)"},
    writes = ["Trip.status", "Trip.price"],
    emits = ["offer.chosen"],
)
def choose_offer(trip, offer, budgets):
    emit("offer.chosen", {}, set(trip, status = "chosen", price = offer.price))
"#;

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// The output of a command that ended so.
    pub(crate) fn with(self, code: u8) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self.out
    }

    /// Its lines as JSON.
    fn json(self) -> Vec<Value> {
        let out = self.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        out.collect()
    }
}

/// Runs a command over a store, in this process.
pub(crate) fn cli(store: &Path, line: &[&str]) -> Done {
    let store = store.to_str().expect("a plain path");
    let args = ["starling"].into_iter().chain(line.iter().copied()).chain(["--store", store]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let input = Box::new(Cursor::new(Vec::new()));
    let code = runtime::cli::run(args.map(Into::into), input, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("commands write UTF-8");
    Done { code, out: text(out), err: text(err) }
}

/// The flock of trips, run to rest: 0 to 3 begin it, 4 makes an offer, 5 chooses it.
struct Trips {
    folder: TempDir,
}

impl Trips {
    fn new() -> Trips {
        let folder = scripts(FLOCK, &[("make_offer.star", MAKE), ("choose_offer.star", CHOOSE)]);
        let trips = Trips { folder };
        trips.run("main");
        trips
    }

    fn run(&self, branch: &str) {
        let flock = self.folder.path().to_str().expect("a plain path");
        self.cli(&["run", flock, "--trust", "--branch", branch, "--quiet"]).with(0);
    }

    fn cli(&self, line: &[&str]) -> Done {
        cli(&self.folder.path().join("s.redb"), line)
    }

    /// The output of a command that works.
    fn ok(&self, line: &[&str]) -> String {
        self.cli(line).with(0)
    }
}

#[test]
fn why_proves_a_value_up_to_what_came_from_outside() {
    let trips = Trips::new();
    let why = trips.ok(&["why", "trip:1.status"]);
    let lines: Vec<&str> = why.lines().map(str::trim).collect();
    assert_eq!(lines[0], "trip:1.status is \"chosen\", after 2 changes");
    assert!(
        lines[1].starts_with("main@3  user:ann  trip.wished  status nothing -> \"open\""),
        "{why}"
    );
    assert_eq!(lines[2], "from outside");
    assert!(lines[3].starts_with("main@5  behavior:choose_offer@"), "{why}");
    assert!(lines[3].ends_with("offer.chosen  status \"open\" -> \"chosen\""), "{why}");
    assert!(lines[4].starts_with("by choose_offer of behaviors/choose_offer.star ("), "{why}");
    assert!(
        lines[5].starts_with("on trip = trip:1 (main@4), ") || lines[5].contains("trip:1"),
        "{why}"
    );
    assert_eq!(lines[6], "read budgets = budget:1 (main@3)");
    assert!(lines[7].starts_with("<- main@4  behavior:make_offer@"), "{why}");
    assert!(lines[10..].contains(&"<- main@3, told above"), "{why}");
    let told = trips.cli(&["why", "trip:1.status", "--json"]).json().remove(0);
    assert_eq!(told["changes"], serde_json::json!([3, 5]));
    assert_eq!(told["causes"], serde_json::json!([5, 4, 3]));
    let firing = &told["proof"][1]["chain"][0]["firing"];
    assert_eq!(firing["reads"][0]["elements"][0]["changed"], "main@3");
    let event = trips.ok(&["why", "main@5"]);
    assert!(event.contains("by choose_offer of behaviors/choose_offer.star"), "{event}");
}

/// A chain of causes that stopped at an element's creation hid every later change of it.
#[test]
fn why_and_blame_see_writes_that_changed_something_and_no_others() {
    let trips = Trips::new();
    let same = r#"[{"set": "trip:1", "properties": {"status": "chosen"}}]"#;
    trips.ok(&["append", "trip.confirmed", "--changes", same, "--actor", "user:bob"]);
    let dearer = r#"[{"add": "trip:1", "properties": {"price": 11}}]"#;
    trips.ok(&["append", "price.raised", "--changes", dearer, "--actor", "user:bob"]);
    let blame = trips.cli(&["blame", "trip:1", "--json"]).json();
    let who = blame.iter().map(|line| (line["property"].as_str().unwrap_or("-"), &line["address"]));
    let who: Vec<String> =
        who.map(|(name, at)| format!("{name} {}", at.as_str().unwrap())).collect();
    assert_eq!(who, ["- main@3", "name main@3", "price main@7", "status main@5"]);
    assert_eq!(blame[2]["actor"], "user:bob");
    let then = trips.ok(&["blame", "trip:1", "--at", "main@6"]);
    assert!(then.contains("price = 100") && !then.contains("user:bob"), "{then}");
    assert!(trips.ok(&["why", "trip:1.price"]).starts_with("trip:1.price is 111, after 2 changes"));
}

#[test]
fn impact_is_why_forwards() {
    let trips = Trips::new();
    let told = trips.cli(&["impact", "main@3", "--json"]).json();
    let tree: Vec<(&str, u64)> = told
        .iter()
        .map(|line| (line["kind"].as_str().unwrap(), line["depth"].as_u64().unwrap()))
        .collect();
    assert_eq!(tree, [("trip.wished", 0), ("offer.made", 1), ("offer.chosen", 2)]);
    assert_eq!(
        trips.ok(&["impact", "budget:1"]).lines().count(),
        3,
        "all that followed from its making"
    );
    assert_eq!(trips.ok(&["impact", "main@5"]).lines().count(), 1);
}

#[test]
fn bisect_names_the_event_that_made_a_pattern_true_and_its_author() {
    let trips = Trips::new();
    for first in [[].as_slice(), &["--first"]] {
        let line = [&["bisect", "main", "(:Trip {status: 'chosen'})", "--json"], first].concat();
        let told = trips.cli(&line).json().remove(0);
        assert_eq!(told["address"], "main@5");
        assert!(told["actor"].as_str().unwrap().starts_with("behavior:choose_offer@"));
        assert_eq!(told["match"], serde_json::json!(["trip:1"]));
    }
    let never = trips.cli(&["bisect", "main", "(:Trip {status: 'open'})"]);
    assert_eq!(never.code, 3);
    assert!(never.err.contains("--first finds out whether it had one before"), "{}", never.err);
    assert!(
        trips.ok(&["bisect", "main", "(:Trip {status: 'open'})", "--first"]).starts_with("main@3")
    );
    let always = trips.cli(&["bisect", "main", "(:Trip)", "--from", "main@4"]);
    assert!(always.code == 3 && always.err.contains("from the beginning on"), "{}", always.err);
}

#[test]
fn a_tag_stands_wherever_an_address_does_and_leaves_the_history_as_it_is() {
    let trips = Trips::new();
    let before = trips.ok(&["export", "main"]);
    assert_eq!(trips.ok(&["tag", "wished", "main@3"]), "wished names main@3\n");
    assert_eq!(trips.ok(&["export", "main"]), before, "naming a place changes nothing there");
    assert!(trips.ok(&["show", "wished"]).contains("trip.wished"));
    assert_eq!(trips.ok(&["show", "trip:1", "--at", "wished"]).matches("\"open\"").count(), 1);
    assert!(trips.cli(&["diff", "wished", "main"]).with(1).contains("+ (Offer)"));
    assert!(trips.ok(&["fork", "wished", "again"]).starts_with("again forked from main@3"));
    assert_eq!(trips.cli(&["tag", "wished", "main@4"]).code, 6, "a name is not moved by mistake");
    assert_eq!(trips.cli(&["tag", "main", "main@4"]).code, 6, "a branch is no tag");
    trips.ok(&["tag", "wished", "main@4", "--move"]);
    assert_eq!(trips.ok(&["tag"]), "wished  main@4\n");
    trips.ok(&["tag", "wished", "--delete"]);
    assert_eq!(trips.cli(&["show", "wished", "--at", "main"]).code, 3);
    assert_eq!(trips.ok(&["tag"]), "");
}

#[test]
fn the_log_is_filtered_by_what_happened_who_did_it_and_what_it_was_about() {
    let trips = Trips::new();
    let offsets = |filter: &[&str]| -> Vec<u64> {
        let told = trips.cli(&[&["log", "--json"], filter].concat()).json();
        told.iter().map(|event| event["offset"].as_u64().unwrap()).collect()
    };
    assert_eq!(offsets(&["--kind", "offer.*"]), [4, 5]);
    assert_eq!(offsets(&["--kind", "offer.*", "-n", "1"]), [5]);
    assert_eq!(offsets(&["--actor", "behavior:make_offer"]), [4]);
    assert_eq!(offsets(&["--actor", "user:*"]), [3]);
    assert_eq!(offsets(&["--node", "budget:1"]), [3]);
    assert_eq!(offsets(&["--node", "trip:1"]), [3, 4, 5]);
    assert_eq!(offsets(&["--cause", "main@5"]), [3, 4, 5]);
    assert_eq!(offsets(&["--match", "(:Trip {status: 'open'})"]), [3, 5], "it came and went");
    assert_eq!(offsets(&["--until", "1970-01-01T00:00:00Z"]), [] as [u64; 0]);
    assert_eq!(offsets(&["--since", "1970-01-01T00:00:00Z"]).len(), 6);
    assert_eq!(trips.cli(&["log", "--cause", "main@99"]).code, 3);
}

/// The other system's comparison called the same work done again another world, since it compared
/// places and times.
#[test]
fn the_same_done_again_elsewhere_is_no_difference() {
    let trips = Trips::new();
    trips.ok(&["fork", "main@3", "later"]);
    trips.ok(&["append", "note.added", "--branch", "later"]);
    trips.run("later");
    let told = trips.cli(&["diff", "main", "later"]).with(0);
    assert!(told.contains("their events part at offset 4:"), "{told}");
    assert!(told.contains("their worlds are equal"), "{told}");
    assert!(told.contains("+ 4  user:"), "both events are told: {told}");
}

#[test]
fn diff_names_both_authors_and_compares_several() {
    let trips = Trips::new();
    trips.ok(&["fork", "main@5", "side"]);
    let set = |price: u64| format!(r#"[{{"set": "trip:1", "properties": {{"price": {price}}}}}]"#);
    trips.ok(&[
        "append",
        "price.set",
        "--changes",
        &set(7),
        "--actor",
        "user:bob",
        "--branch",
        "side",
    ]);
    let told = trips.cli(&["diff", "main", "side", "--json"]);
    assert_eq!(told.code, 1);
    let told = told.json().remove(0);
    assert_eq!(told["first_event"], 6);
    assert_eq!(told["counts"]["properties"], 1);
    let by = &told["differences"][0]["by"]["price"];
    assert_eq!(
        (&by["one"]["address"], &by["other"]["address"]),
        (&"main@5".into(), &"side@6".into())
    );
    assert_eq!(by["other"]["actor"], "user:bob");
    assert_eq!(told["figures"]["one"]["make_offer firings"], 1);
    let lines = trips.cli(&["diff", "main", "side", "main@3", "--stat"]).with(1);
    let head = lines.lines().find(|line| line.contains("side@head  ") && !line.contains(" and "));
    assert!(head.is_some_and(|head| head.contains("main@3")), "three columns: {lines}");
    assert_eq!(trips.cli(&["diff", "main", "main@5", "side@5"]).code, 0);
    trips.ok(&[
        "append",
        "trip.left",
        "--changes",
        r#"[{"remove": "trip:1"}]"#,
        "--branch",
        "side",
    ]);
    let gone = trips.cli(&["diff", "main", "side"]).with(1);
    assert!(gone.contains("- (Trip) trip:1") && gone.contains("side@7"), "who removed it: {gone}");
}

/// Every address, event and element that a command prints can be given to `show`.
#[test]
fn every_id_that_is_printed_is_a_valid_argument() {
    let trips = Trips::new();
    let mut words = 0;
    for line in [
        ["log", "main"].as_slice(),
        &["why", "trip:1"],
        &["impact", "main@3"],
        &["blame", "trip:1"],
        &["log", "main@5", "-n", "1"],
        &["bisect", "main", "(:Offer)"],
    ] {
        let out = trips.ok(line);
        for word in out.split(|c: char| c.is_whitespace() || "(),;".contains(c)) {
            let is_id =
                word.starts_with("main@") || word.contains('#') || word.starts_with("trip:");
            let after = out.split("<- event ").nth(1).and_then(|rest| rest.split(' ').next());
            let is_event = after == Some(word);
            if is_id || is_event {
                words += 1;
                assert_eq!(trips.cli(&["show", word]).code, 0, "{line:?} prints {word}");
            }
        }
    }
    assert!(words > 20, "{words} ids were tried");
    trips.ok(&["append", "trip.left", "--changes", r#"[{"remove": "trip:1"}]"#]);
    let gone = trips.cli(&["show", "trip:1"]);
    assert!(gone.code == 3 && gone.err.contains("`--at main@5` has it as it was"), "{}", gone.err);
    assert!(trips.ok(&["show", "trip:1", "--at", "main@5"]).contains("chosen"));
}

/// Commands of another system that only read wrote to its store, and one that was asked for a run
/// that is not there made it.
#[test]
fn whoever_only_asks_writes_nothing_and_makes_nothing() {
    let trips = Trips::new();
    let before = (trips.ok(&["branches", "--json"]), trips.ok(&["verify", "--json"]));
    for line in [
        ["log", "main"].as_slice(),
        &["show", "main@4"],
        &["why", "trip:1"],
        &["impact", "trip:1"],
        &["blame", "trip:1"],
        &["bisect", "main", "(:Offer)"],
        &["query", "(t:Trip)"],
        &["graph"],
        &["tag"],
        &["replay", "--verify"],
        &["effects"],
    ] {
        trips.ok(line);
    }
    trips.cli(&["diff", "main@3", "main"]).with(1);
    for line in [
        ["replay", "nobody"].as_slice(),
        &["diff", "main", "nobody"],
        &["bisect", "nobody", "(:Offer)"],
        &["tag", "t", "nobody@3"],
        &["tag", "t", "main@99"],
        &["blame", "nobody"],
        &["tag", "nothing", "--delete"],
    ] {
        let done = trips.cli(line);
        assert_eq!(done.code, 3, "{line:?}: {}", done.err);
        assert!(done.err.contains("there is no"), "{line:?}: {}", done.err);
    }
    let after = (trips.ok(&["branches", "--json"]), trips.ok(&["verify", "--json"]));
    assert_eq!(before, after);
}
