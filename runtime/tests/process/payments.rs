//! `examples/payments` against its gateway, a real process with a ledger that outlives everybody:
//! each way in which it fails, for each class of tool, and kills at every step.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{long, starling};

/// A copy of the example with a gateway of its own.
struct World {
    folder: TempDir,
    gateway: Child,
}

impl World {
    fn new(modes: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/payments");
        for part in ["behaviors", "tools", "desk"] {
            fs::create_dir(folder.path().join(part)).expect("made");
        }
        let ledger = folder.path().join("ledger.jsonl");
        let file = folder.path().join("modes.json");
        fs::write(&file, modes.to_string()).expect("written");
        let mut serve = starling();
        serve.args(["gateway", "serve", "--port", "0", "--ledger"]).arg(&ledger);
        serve.arg("--modes").arg(&file).stdout(Stdio::piped());
        let mut gateway = serve.spawn().expect("the gateway starts");
        let mut address = String::new();
        let said = gateway.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut address).expect("it says where it is");
        for name in ["quote", "book", "pay", "mail", "publish"] {
            let name = format!("tools/{name}.toml");
            let text = fs::read_to_string(from.join(&name)).expect("there");
            let text = text.replace("127.0.0.1:8377", address.trim());
            fs::write(folder.path().join(name), text).expect("written");
        }
        for name in ["flock.toml", "behaviors/orders.star"] {
            fs::copy(from.join(name), folder.path().join(name)).expect("copied");
        }
        World { folder, gateway }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = starling();
        command.args(args).arg("--store").arg(self.path());
        command.env("XDG_STATE_HOME", self.path().join("state"));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, more: &[&str]) -> Command {
        let mut command = starling();
        command.arg("run").arg(self.path()).args(more);
        command.env("XDG_STATE_HOME", self.path().join("state"));
        command.stdin(Stdio::null());
        command
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(args).output().expect("it runs");
        let text = said(&output);
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    fn ledger(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path().join("ledger.jsonl")).unwrap_or_default();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.gateway.kill());
        drop(self.gateway.wait());
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

const MODES: [&str; 8] = [
    "ok",
    "never_received",
    "reply_lost",
    "lands_later",
    "slow",
    "server_error",
    "wrong_body",
    "refused",
];

/// The table: what each class makes of each way to fail, and how often it was done outside.
const TABLE: [(&str, &str); 4] = [
    // A price changes nothing: it is asked again, unless the answer says that it is wrong.
    (
        "quote",
        "succeeded/0 succeeded/0 succeeded/0 succeeded/0 succeeded/0 succeeded/0 failed/0 failed/0",
    ),
    // Looked up before it is asked again.
    (
        "book",
        "succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 failed/0",
    ),
    // Sent again with its key.
    (
        "pay",
        "succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 succeeded/1 failed/0",
    ),
    // Nobody can know, and it is not sent again.
    ("mail", "succeeded/1 unknown/0 unknown/1 unknown/1 unknown/1 unknown/0 unknown/1 failed/0"),
];

/// Asks for each effect once in each mode.
const ASK_ALL: &str = r#"
behavior(
    name = "ask_all", description = "Asks.", on = "all.wanted",
    writes = ["Wish", "ASKED"], emits = ["wish.made"],
    effects = ["tool:quote", "tool:book", "tool:pay", "tool:mail"],
)
def ask_all(event):
    for what in ["quote", "book", "pay", "mail"]:
        for item in event.payload.items:
            args = {"item": item}
            if what == "pay":
                args["amount"] = 1
            if what == "mail":
                args["text"] = "paid"
            wish = create("Wish", id = f"wish:{what}/{item}", what = what, item = item)
            emit("wish.made", {}, wish, link(wish, "ASKED", request(f"tool:{what}", args, key = f"{what}/{item}")))
"#;

#[test]
fn each_class_makes_of_each_failure_what_can_be_known() {
    let tools = ["quote", "book", "pay", "mail"];
    let named =
        tools.iter().flat_map(|tool| MODES.map(|mode| (format!("{tool}:{mode}"), json!([mode]))));
    let world = World::new(&Value::Object(named.collect()));
    fs::write(world.path().join("behaviors/orders.star"), ASK_ALL).expect("written");
    let flock = format!(
        "name = \"table\"\nworkspace = \"desk\"\n[grants]\neffects = [\"tool:*\"]\n[budget]\nwall = \"2m\"\n\
         [[report]]\ntitle = \"wishes\"\nmatch = \"(w:Wish)-[:ASKED]->(e:_Effect)\"\n\
         show = [\"w.what\", \"w.item\", \"e.status\"]\n\
         [[start]]\nkind = \"all.wanted\"\npayload = {{ items = {MODES:?} }}\n"
    );
    fs::write(world.path().join("flock.toml"), flock).expect("written");
    let refused = world.run(&[]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2), "nobody has confirmed it");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("tool:pay (keyed)"));
    let report = said(&world.run(&["--trust", "--json"]).output().expect("it runs"));
    let report: Value = serde_json::from_str(report.trim()).expect("one report");
    let mut status: BTreeMap<(String, String), String> = BTreeMap::new();
    for row in report["report"][0]["rows"].as_array().expect("rows") {
        let text = |at: usize| row[at].as_str().unwrap_or("").to_owned();
        status.insert((text(0), text(1)), text(2));
    }
    // What lands after its caller has given up.
    wait_for("the last mail lands", || count(&world, "mail", "lands_later") == 1);
    let mut wrong = Vec::new();
    for (tool, row) in TABLE {
        for (mode, expected) in MODES.iter().zip(row.split(' ')) {
            let found = status.get(&(tool.to_owned(), (*mode).to_owned()));
            let found = found.map_or("nothing", String::as_str);
            let found = format!("{found}/{}", count(&world, tool, mode));
            if found != expected {
                wrong.push(format!("{tool} {mode}: {found}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let open = world.lines(&["effects", "--json"]);
    assert_eq!(open.len(), 6, "exactly the mails that nobody can know about are open");
    for open in open {
        let commands = open["commands"].to_string();
        assert!(commands.contains("settle"), "what to do is said: {open}");
    }
}

fn ended(run: &mut Child) -> bool {
    run.try_wait().expect("it is ours").is_some()
}

fn count(world: &World, tool: &str, item: &str) -> usize {
    let is_it = |line: &&Value| line["did"] == tool && line["args"]["item"] == item;
    world.ledger().iter().filter(is_it).count()
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in time: {what}");
        thread::yield_now();
    }
}

/// Kills the run as soon as the gateway has done so many things, again and again, and lets it end.
#[test]
fn killed_anywhere_and_run_again_the_ledger_and_the_log_agree() {
    let rounds = if long() { 8 } else { 1 };
    for round in 0..rounds {
        let modes = include_str!("../../../examples/payments/modes.json");
        let world = World::new(&serde_json::from_str(modes).expect("modes"));
        let mut kills = 0;
        for done in 0..10 {
            let mut run = world.run(&["--trust", "--quiet"]).stdout(Stdio::null()).spawn();
            let run = run.as_mut().expect("it starts");
            let begun = Instant::now();
            while world.ledger().len() <= done && !ended(run) {
                assert!(begun.elapsed() < Duration::from_secs(120), "it goes on or ends");
                thread::yield_now();
            }
            if ended(run) {
                break;
            }
            run.kill().expect("killed");
            run.wait().expect("gone");
            kills += 1;
        }
        assert!(kills >= 5, "it was killed {kills} times in round {round}");
        let told = said(&world.run(&["--trust"]).output().expect("it runs"));
        agree(&world, &told);
        said(&world.command(&["verify"]).output().expect("it runs"));
    }
}

/// Everything in the ledger is known to the log, nothing twice; what the log says was done is in
/// the ledger; and what is not known is shown with what to do.
fn agree(world: &World, told: &str) {
    let ledger = world.ledger();
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    for line in &ledger {
        *done.entry(line["action"].as_str().expect("an action").to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "nothing is done twice: {twice:?}");
    let open = world.lines(&["effects", "--json"]);
    let log = world.lines(&["export"]);
    let of_kind = |kind: &'static str| log.iter().filter(move |event| event["kind"] == kind);
    let requested: Vec<&str> =
        of_kind("effect.requested").filter_map(|event| event["id"].as_str()).collect();
    for action in done.keys() {
        assert!(requested.contains(&action.as_str()), "{action} was asked for");
    }
    let mut settled: BTreeMap<&str, &str> = BTreeMap::new();
    for event in of_kind("effect.ended").chain(of_kind("effect.reconciled")) {
        let payload = &event["payload"];
        let text = |name: &str| payload[name].as_str().expect("a text");
        settled.insert(text("action"), text("status"));
        let receipt = &payload["result"]["receipt"];
        if !receipt.is_null() {
            let found = ledger.iter().any(|line| line["receipt"] == *receipt);
            assert!(found, "{receipt} is in the ledger");
        }
    }
    assert_eq!(settled.len(), requested.len(), "every action has an outcome:\n{told}");
    let unknown = settled.values().filter(|status| **status == "unknown").count();
    assert_eq!(unknown, open.len(), "what is unknown is listed");
    assert!(open.iter().all(|open| open["effect"] == "tool:mail"), "only mail: {open:?}");
    assert!(unknown == 0 || told.contains("settle"), "with what to do:\n{told}");
}
