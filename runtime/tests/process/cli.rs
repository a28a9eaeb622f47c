//! The commands, one after the other and at once, over stores that others hold.
//!
//! With `STARLING_LONG=1` the backups during writes are made 100 times.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, long, ok, run};

/// Runs a command that fails, and says so to people only.
fn fails(folder: &Path, line: &[&str], code: i32, says: &str) {
    let done = crate::fails(folder, line, code, says);
    assert!(done.err.starts_with("error: "), "{line:?}: {}", done.err);
    assert_eq!(done.out, "", "messages are no data");
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// A process that holds the store for as long as its input is open.
struct Holder {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(folder: &Path, line: &[&str]) -> Holder {
        let mut command = command(folder, line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Holder { input: child.stdin.take(), output, child }
    }

    /// `append -`, which owns the store or is a guest of its owner.
    fn appender(folder: &Path) -> Holder {
        Holder::start(folder, &["append", "-", "-q"])
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn finish(mut self) {
        drop(self.input.take());
        self.output.read_to_end(&mut Vec::new()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_branch_goes_round_through_every_command() {
    let (a, b) = (folder(), folder());
    let (a, b) = (a.path(), b.path());
    assert_eq!(ok(a, &["append", "note.added", r#"{"text": "héllo"}"#]), "main@0\n");
    let changes = r#"[{"create": "task:1", "type": "Task", "properties": {"open": true}}]"#;
    ok(a, &["append", "task.added", "--changes", changes, "--actor", "user:bob"]);
    assert_eq!(
        ok(a, &["log"]),
        "     0  user:ann  note.added  text: \"héllo\"\n\
         \u{20}    1  user:bob  task.added  creates Task task:1 (open: true)\n"
    );
    let forked = ok(a, &["fork", "main@0", "side"]);
    assert_eq!(forked, "side forked from main@0: 1 events shared, 0 copied\n");
    ok(a, &["append", "note.added", "--branch", "side", "--key", "once"]);
    let again = run(a, &["append", "note.added", "--branch", "side", "--key", "once", "--json"]);
    assert_eq!(json(&again.out)["repeated"], true);
    assert!(again.err.contains("it was there already"));
    let branches = ok(a, &["branches", "--json"]);
    let side = json(branches.lines().nth(1).unwrap());
    assert_eq!((&side["head"], &side["forked_from"]), (&1.into(), &"main@0".into()));

    for branch in ["main", "side"] {
        let text = ok(a, &["export", branch, "--ascii"]);
        assert!(text.is_ascii());
        std::fs::write(b.join("lines.jsonl"), &text).unwrap();
        let done = json(&ok(b, &["import", "lines.jsonl", "--branch", branch, "--json"]));
        assert_eq!(done["appended"], 2);
        let there = json(&ok(a, &["verify", branch, "--json"]));
        assert_eq!(there["link"], done["link"], "the same last link");
        assert_eq!(ok(b, &["export", branch, "--ascii"]), text);
    }
    let again = json(&ok(b, &["import", "lines.jsonl", "--branch", "side", "--json"]));
    assert_eq!((&again["appended"], &again["found"]), (&0.into(), &2.into()));
    assert_eq!(ok(b, &["verify"]).lines().count(), 2);
    assert_eq!(json(ok(b, &["log", "-n", "1", "--json"]).trim())["offset"], 1);
}

#[test]
fn every_failure_has_its_code_and_says_what_to_do() {
    let folder = folder();
    let at = folder.path();
    for line in [["log"].as_slice(), &["branches"], &["verify"], &["export"], &["backup", "b"]] {
        fails(at, line, 3, "`starling append` and `starling import` make one");
    }
    fails(at, &["fork", "main@0", "x"], 3, "there is no store at");
    assert!(!at.join(".starling").exists(), "refusing makes nothing");
    ok(at, &["append", "a.b"]);
    fails(at, &["append", "Note"], 2, "write lower-case words with dots between");
    fails(at, &["append", "effect.ended"], 2, "only the runtime writes");
    fails(at, &["append", "a.b", "[1]"], 2, "expected an object, found [1]");
    fails(at, &["append", "a.b", "--actor", "runtime"], 2, "write user:NAME");
    fails(at, &["append", "a.b", "--expect", "7"], 6, "its head is 0, not 7");
    ok(at, &["append", "a.b", "{\"n\": 1}", "--key", "k"]);
    fails(at, &["append", "a.b", "{\"n\": 2}", "--key", "k"], 6, "with other content");
    fails(at, &["append", "a.b", "--branch", "side"], 3, "`starling fork main@head side`");
    fails(at, &["fork", "main@2", "x"], 3, "main reaches from 0 to 1");
    fails(at, &["fork", "main@1", "main"], 6, "choose another name");
    fails(at, &["log", "main@0", "--follow"], 2, "--follow goes on from the end");
    fails(at, &["import", "gone.jsonl"], 3, "gone.jsonl cannot be read");
    std::fs::write(at.join("bad.jsonl"), "{\"offset\": 0,\n").unwrap();
    fails(at, &["import", "bad.jsonl", "--branch", "new"], 2, "line 1, column ");
    let typo = run(at, &["brnches"]);
    assert!(typo.code == 2 && typo.err.contains("'branches'"), "did you mean: {}", typo.err);
    let wrong = run(at, &["log", "nope", "--json"]);
    assert_eq!(json(&wrong.err)["code"], 3);
    let store = at.join(".starling/store.redb");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&store, bytes).unwrap();
    let broken = run(at, &["verify"]);
    assert!(broken.code != 0 && broken.err.starts_with("error: "), "{}", broken.err);
}

/// A store with three people at three offsets.
fn with_people(at: &Path) {
    for (name, age) in [("ann", "41"), ("bob", "17.5"), ("cy, \\\"c\\\"", "null")] {
        let id = &name[..2];
        let changes = format!(
            r#"[{{"create": "{id}", "type": "Person", "properties": {{"name": "{name}", "age": {age}}}}}]"#
        );
        ok(at, &["append", "person.met", "--changes", &changes]);
    }
}

#[test]
fn a_query_is_answered_in_three_forms_at_any_offset() {
    let folder = folder();
    let at = folder.path();
    with_people(at);
    let query = "MATCH (p:Person) RETURN p.name AS name, p.age ORDER BY p.age";
    let table = run(at, &["query", query]);
    let lines = ["name     p.age", "-------  -----", "bob      17.5", "ann      41"];
    assert_eq!(table.out, lines.join("\n") + "\ncy, \"c\"  null\n");
    assert_eq!(table.err, "3 rows at main@head\n");
    let lines = ok(at, &["query", query, "--json"]);
    let objects: Vec<Value> = lines.lines().map(json).collect();
    assert_eq!(objects[0], serde_json::json!({"name": "bob", "p.age": 17.5}));
    assert_eq!(objects[2], serde_json::json!({"name": "cy, \"c\"", "p.age": null}));
    let csv = ok(at, &["query", query, "--csv"]);
    assert_eq!(csv, "name,p.age\nbob,17.5\nann,41\n\"cy, \"\"c\"\"\",\n");
    let then = ok(at, &["query", "MATCH (p) RETURN count(*) AS n", "--at", "main@0", "--json"]);
    assert_eq!(then, "{\"n\":1}\n");
    ok(at, &["fork", "main@1", "side"]);
    let side = ok(at, &["query", "(p:Person)", "--branch", "side", "--json"]);
    assert_eq!(side.lines().count(), 2, "a pattern alone shows what it names");
    assert_eq!(json(side.lines().next().unwrap())["p"]["properties"]["name"], "ann");
    let older = ["query", "(p) WHERE p.age > $least AND p.name <> $not", "--csv"];
    let given = ["--param", "least=10", "--param", "not=bob"];
    let rows = ok(at, &[older.as_slice(), &given].concat());
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let profiled = run(at, &["query", "(p:Person)", "--profile"]);
    assert!(profiled.err.starts_with("3 rows, 3 steps, "), "{}", profiled.err);
}

#[test]
fn a_query_that_cannot_be_answered_says_what_to_do() {
    let folder = folder();
    let at = folder.path();
    fails(at, &["query", "(p)"], 3, "there is no store at");
    with_people(at);
    fails(at, &["query", "MATCH (p:Person) RETURN q"], 2, "query, line 1, column 25");
    fails(at, &["query", "(p {name: $who})"], 2, "--param who=");
    fails(at, &["query", "MATCH (p) SET p.age = 1"], 2, "starling append");
    fails(at, &["query", "(p)", "--at", "main@7"], 3, "main reaches from 0 to 2");
    fails(at, &["query", "MATCH (a), (b), (c) RETURN count(*)", "--steps", "9"], 1, "more than 9");
    let fault = run(at, &["query", "RETURN range(1, 2, 0)", "--json"]);
    assert_eq!((fault.code, json(&fault.err)["code"].clone()), (1, 1.into()));
}

/// A reader that has seen enough is no failure.
#[test]
fn a_closed_pipe_is_quiet() {
    let folder = folder();
    let line = "{\"kind\": \"a.b\", \"payload\": {\"text\": \"some words to fill a pipe\"}}\n";
    let lines = folder.path().join("lines");
    std::fs::write(&lines, line.repeat(20_000)).unwrap();
    let mut append = command(folder.path(), &["append", "-", "-q"]);
    append.stdin(std::fs::File::open(lines).unwrap()).stdout(Stdio::null());
    assert!(append.status().unwrap().success());
    let mut command = command(folder.path(), &["log"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("a.b"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn any_command_works_while_another_process_owns_the_store() {
    let folder = folder();
    let at = folder.path();
    let mut owner = Holder::appender(at);
    owner.write(r#"{"kind": "owner.here"}"#);
    assert_eq!(owner.read(), "main@0");
    assert_eq!(ok(at, &["append", "guest.here"]), "main@1\n");
    owner.write(r#"{"kind": "owner.again"}"#);
    assert_eq!(owner.read(), "main@2");
    let kinds: Vec<_> =
        ok(at, &["log", "--json"]).lines().map(|l| json(l)["kind"].clone()).collect();
    assert_eq!(kinds, ["owner.here", "guest.here", "owner.again"]);
    ok(at, &["fork", "main@1", "side"]);
    ok(at, &["verify"]);
    let text = ok(at, &["export"]);
    std::fs::write(at.join("lines.jsonl"), text).unwrap();
    ok(at, &["import", "lines.jsonl", "--branch", "copy"]);
    ok(at, &["backup", "b.redb"]);
    assert_eq!(ok(at, &["branches"]).lines().count(), 3);
    owner.finish();
    assert_eq!(ok(at, &["append", "after.all"]), "main@3\n");
}

/// An import claims its branch, as an engine does.
#[test]
fn a_second_writer_of_a_claimed_branch_is_refused_naming_the_first() {
    let folder = folder();
    let at = folder.path();
    ok(at, &["append", "a.b"]);
    std::fs::write(at.join("lines.jsonl"), ok(at, &["export"])).unwrap();
    let mut importer = Holder::start(at, &["import", "-"]);
    let refused = loop {
        let done = run(at, &["import", "lines.jsonl"]);
        if done.code != 0 {
            break done;
        }
        // It may come while the other has the branch, and is then the one that is refused.
        if importer.child.try_wait().unwrap().is_some() {
            importer = Holder::start(at, &["import", "-"]);
        }
    };
    let pid = importer.child.id();
    assert_eq!(refused.code, 6);
    let says = format!("is being run by pid {pid} (starling import)");
    assert!(refused.err.contains(&says), "{}", refused.err);
    importer.finish();
    ok(at, &["import", "lines.jsonl"]);
}

#[test]
fn when_the_owner_is_killed_its_guests_go_on() {
    let folder = folder();
    let at = folder.path();
    for round in 0..3 {
        let mut owner = Holder::appender(at);
        owner.write(r#"{"kind": "owner.here"}"#);
        assert_eq!(owner.read(), format!("main@{}", 4 * round));
        let mut guest = Holder::appender(at);
        guest.write(r#"{"kind": "guest.here"}"#);
        assert_eq!(guest.read(), format!("main@{}", 4 * round + 1));
        let mut follower = Holder::start(at, &["log", "--follow", "--json"]);
        for offset in 0..4 * round + 2 {
            assert_eq!(json(&follower.read())["offset"], offset);
        }
        owner.kill();
        guest.write(r#"{"kind": "guest.goes_on"}"#);
        assert_eq!(guest.read(), format!("main@{}", 4 * round + 2));
        assert_eq!(ok(at, &["append", "a.newcomer"]), format!("main@{}\n", 4 * round + 3));
        for offset in 4 * round + 2..4 * round + 4 {
            assert_eq!(json(&follower.read())["offset"], offset);
        }
        follower.kill();
        guest.finish();
        ok(at, &["verify"]);
    }
}

/// Feeds an owner as fast as it takes lines, so many for each number it is told, and says how many
/// it took in all.
fn flood(folder: &Path, told: &Receiver<usize>) -> u64 {
    let owner = Holder::appender(folder);
    let Holder { mut child, input, mut output } = owner;
    let mut input = input.unwrap();
    let reading = thread::spawn(move || {
        let mut lines = 0;
        let mut line = String::new();
        while output.read_line(&mut line).unwrap() > 0 {
            line.clear();
            lines += 1;
        }
        lines
    });
    let line = "{\"kind\": \"ant.moved\", \"payload\": {\"x\": 3, \"y\": 4}}\n";
    for lines in told {
        input.write_all(line.repeat(lines).as_bytes()).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    reading.join().unwrap()
}

#[test]
fn backups_and_guests_work_while_events_pour_in() {
    let folder = folder();
    let at = folder.path();
    ok(at, &["append", "flood.begins"]);
    let long = long();
    let (rounds, lines) = if long { (100, 2_000) } else { (3, 20_000) };
    let (tell, told) = channel();
    let started = std::time::Instant::now();
    let (taken, backups) = thread::scope(|scope| {
        let flooding = scope.spawn(move || flood(at, &told));
        let mut backups = Vec::new();
        for round in 0..rounds {
            tell.send(lines).unwrap();
            ok(at, &["append", "guest.here", "--key", &format!("guest {round}")]);
            ok(at, &["log", "-n", "3"]);
            let file = format!("b{round}.redb");
            let copied = json(&ok(at, &["backup", &file, "--json"]));
            let restored = json(&ok(at, &["verify", "--store", &file, "--json"]));
            assert_eq!(restored["link"], copied["link"]);
            backups.push(copied);
            std::fs::remove_file(at.join(file)).unwrap();
        }
        drop(tell);
        (flooding.join().unwrap(), backups)
    });
    let rate = taken as f64 / started.elapsed().as_secs_f64();
    println!(
        "{taken} events of the owner beside {} guest commands: {rate:.0} a second",
        3 * rounds
    );
    let end = json(&ok(at, &["verify", "--json"]));
    assert_eq!(end["events"], 1 + taken + rounds);
    // What was backed up is what the branch still says of that offset.
    for (round, copied) in backups.iter().enumerate() {
        let address = format!("main@{}", copied["head"]);
        let fork = json(&ok(at, &["fork", &address, &format!("f{round}"), "--json"]));
        assert_eq!(fork["link"], copied["link"], "{address}");
    }
}

/// The plan of a pattern names each search with its cost, and what keeps it from being a trigger.
#[test]
fn explain_tells_how_a_pattern_is_searched_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut lines = String::new();
    for n in 0..20 {
        let task = serde_json::json!({"kind": "task.made", "payload": {}, "changes": [
            {"create": format!("t{n}"), "type": "Task", "properties": {"room": n % 4}},
            {"create": format!("r{n}"), "type": "Room", "properties": {"number": n}},
        ]});
        lines += &format!("{task}\n");
    }
    std::fs::write(at.join("lines"), lines).unwrap();
    let mut append = command(at, &["append", "-", "-q"]);
    let done = append.stdin(std::fs::File::open(at.join("lines")).unwrap()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));

    let pattern = "(t:Task), (r:Room) WHERE r.number = t.room";
    let told = ok(at, &["explain", pattern]);
    assert!(told.starts_with(pattern), "{told}");
    assert!(
        told.contains("from nothing: about") && told.contains("from a change of `t`"),
        "{told}"
    );
    assert!(told.contains("by the index of number"), "{told}");
    assert!(told.contains("it needs an index of Room.number"), "{told}");
    let early = ok(at, &["explain", pattern, "--at", "main@9"]);
    assert!(early.contains("every node :Task, about 10.0 each"), "half of it: {early}");
    let plan = json(&ok(at, &["explain", pattern, "--json"]));
    assert_eq!(plan["searches"].as_array().unwrap().len(), 3, "{plan}");
    assert_eq!(plan["searches"][0]["stages"][0]["binds"][0], "`t`", "{plan}");
    assert!(
        plan["searches"][1]["steps"].as_f64().unwrap() >= 1.0 && plan["disconnected"].is_null()
    );
    assert!(ok(at, &["explain", "(t:Task), (r:Room)"]).contains("it cannot be a trigger"));
    fails(at, &["explain", "(t:Task"], 2, "column 8");
}
