//! The commands: a run waits for what comes by itself, says what waits for people, and people
//! answer it, whether it runs or not.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::flock::scripts;

const FLOCK: &str = r#"
name = "seats"
[grants]
effects = ["human.*", "timer", "tool:x"]
[[start]]
kind = "trip.opened"
"#;

const SEAT: &str = r#"
behavior(name = "ask_seat", description = "Asks for a seat.", on = "trip.opened", effects = ["human.ask"])
def ask_seat(event):
    request("human.ask", {"question": "window or aisle?"})

behavior(name = "note_seat", description = "Notes the seat.", on = "effect.ended", where = {"effect": "human.ask"}, writes = ["Seat"])
def note_seat(event):
    emit("seat.noted", {}, create("Seat", answer = event.payload.result.answer))
"#;

const TIMER: &str = r#"
behavior(name = "wait", description = "Waits.", on = "trip.opened", effects = ["timer"])
def wait(event):
    request("timer", {"after": "20ms"})

behavior(name = "go", description = "Goes.", on = "effect.ended", where = {"effect": "timer"}, after = "20ms")
def go(event):
    emit("trip.began", {})
"#;

/// Runs a command; gives its exit code, and what it wrote as data and as messages.
/// A command; a run is trusted, since nobody is there to be asked.
fn starling(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let trust: &[&str] = if args.first() == Some(&"run") { &["--trust"] } else { &[] };
    let all = ["starling"].iter().chain(args).chain(trust).map(Into::into);
    let code = runtime::cli::run(all, Box::new(std::io::empty()), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (code, text(out), text(err))
}

fn path(folder: &TempDir) -> &str {
    folder.path().to_str().expect("a plain path")
}

fn open(folder: &Path) -> Vec<Value> {
    let store = folder.to_str().expect("a plain path");
    let (code, out, err) = starling(&["effects", "--json", "--store", store]);
    assert_eq!(code, 0, "{err}");
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn kinds(folder: &TempDir) -> Vec<String> {
    let (_, out, _) = starling(&["export", "--store", path(folder)]);
    let event = |line: &str| serde_json::from_str::<Value>(line).ok();
    let kind = |event: Value| Some(event["kind"].as_str()?.to_owned());
    out.lines().filter_map(|line| kind(event(line)?)).collect()
}

#[test]
fn a_run_ends_with_what_people_are_asked_and_goes_on_after_their_answer() {
    let folder = scripts(FLOCK, &[("seat.star", SEAT)]);
    let (code, out, err) = starling(&["run", path(&folder), "-q"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("human.ask asked by ask_seat waits for: a person's answer"), "{out}");
    let open_now = open(folder.path());
    assert_eq!((open_now.len(), &open_now[0]["standing"]), (1, &Value::from("waits")));
    let id = open_now[0]["action"].as_str().unwrap();
    assert!(out.contains(&format!("starling approve {} ANSWER --store", &id[..12])), "{out}");

    let (code, _, err) = starling(&["approve", "00000000", "--store", path(&folder)]);
    assert_eq!(code, 1);
    assert!(err.contains("no open effect begins with 00000000"), "{err}");
    let (code, _, err) = starling(&["settle", &id[..12], "failed", "--store", path(&folder)]);
    assert_eq!(code, 1);
    assert!(err.contains("it is under way"), "{err}");

    let said = ["approve", &id[..12], "window", "--actor", "user:ann", "--store", path(&folder)];
    let (code, _, err) = starling(&said);
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = starling(&["effects", "--store", path(&folder)]);
    assert_eq!(out, "no effect is open\n");
    starling(&["run", path(&folder), "-q"]);
    assert_eq!(kinds(&folder).last().map(String::as_str), Some("seat.noted"));
    let (_, out, _) = starling(&["log", "--store", path(&folder)]);
    for words in ["asks for human.ask", "human.ask leaves to a person", "human.ask succeeded"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (code, out, err) = starling(&["replay", "--refire", "--store", path(&folder)]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("0 outside calls"), "{out}");
}

#[test]
fn a_run_that_waits_takes_an_answer_while_it_runs() {
    let folder = scripts(FLOCK, &[("seat.star", SEAT)]);
    let flock = path(&folder).to_owned();
    let runs = std::thread::spawn(move || {
        starling(&["run", &flock, "-q", "--wait", "--until", "(:Seat {answer: 'aisle'})"])
    });
    let began = Instant::now();
    let asked = loop {
        assert!(began.elapsed() < Duration::from_secs(30), "somebody is asked");
        if folder.path().join(".starling/store.redb").exists()
            && let (0, out, _) = starling(&["effects", "--json", "--store", path(&folder)])
            && let Some(line) = out.lines().next()
        {
            break serde_json::from_str::<Value>(line).expect("JSON");
        }
        std::thread::yield_now();
    };
    let id = asked["action"].as_str().unwrap().to_owned();
    let (code, _, err) = starling(&["approve", &id, "aisle", "--store", path(&folder)]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = runs.join().expect("the run ends");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("came to its end"), "{out}");
}

#[test]
fn a_run_waits_for_timers_and_delays_by_itself() {
    let folder = scripts(FLOCK, &[("timer.star", TIMER)]);
    let (code, out, err) = starling(&["run", path(&folder), "-q"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("at rest, nothing is due"), "{out}");
    let kinds = kinds(&folder);
    assert_eq!(kinds.last().map(String::as_str), Some("trip.began"));
    assert_eq!(kinds.iter().filter(|kind| *kind == "flock.ticked").count(), 1);
}

#[test]
fn people_cancel_and_grant() {
    let folder = scripts(FLOCK, &[("seat.star", SEAT)]);
    starling(&["run", path(&folder), "-q"]);
    let (code, _, err) = starling(&["cancel", "--all", "--store", path(&folder)]);
    assert_eq!(code, 0, "{err}");
    assert!(open(folder.path()).is_empty());
    for more in [&[][..], &["--revoke"]] {
        let mut said = vec!["grant", "http.*", "--store", path(&folder)];
        said.extend(more);
        assert_eq!(starling(&said).0, 0);
    }
    let kinds = kinds(&folder);
    let last: Vec<&str> = kinds.iter().rev().take(4).rev().map(String::as_str).collect();
    assert_eq!(last, ["attempt.ended", "effect.ended", "grant.given", "grant.revoked"]);
}

/// What people may not say: an outcome of their own making, or a node of the runtime.
#[test]
fn nobody_forges_an_outcome_from_outside() {
    let folder = scripts(FLOCK, &[("seat.star", SEAT)]);
    starling(&["run", path(&folder), "-q"]);
    let (code, _, err) = starling(&["append", "effect.ended", "{}", "--store", path(&folder)]);
    assert_eq!(code, 2);
    assert!(err.contains("only the runtime writes"), "{err}");
    let node = r#"[{"create": "g", "type": "_Grant", "properties": {"effects": ["*"]}}]"#;
    let said = ["append", "note.added", "{}", "--changes", node, "--store", path(&folder)];
    let (code, _, err) = starling(&said);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("written by the runtime only"), "{err}");
}

/// A fork works in a copy, or has no workspace to write to; its record says which.
#[test]
fn a_fork_gets_a_copy_of_the_workspace_or_none() {
    let flock = FLOCK.replace("name = \"seats\"", "name = \"seats\"\nworkspace = \"desk\"");
    let folder = scripts(&flock, &[("timer.star", TIMER)]);
    std::fs::create_dir(folder.path().join("desk")).unwrap();
    std::fs::write(folder.path().join("desk/note"), "one").unwrap();
    starling(&["run", path(&folder), "-q"]);
    let fork = |at: &str, name: &str| {
        let (code, _, err) = starling(&["fork", at, name, "--store", path(&folder)]);
        assert_eq!(code, 0, "{err}");
        err
    };
    assert!(fork("main", "now").contains("it works in a copy of the workspace"));
    let copy = folder.path().join(".starling/workspaces/now/note");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), "one");
    assert!(fork("main@head~1", "then").contains("what writes there is refused"));
    assert!(!folder.path().join(".starling/workspaces/then").exists());
}

const COMMIT: &str = r#"
behavior(name = "keep", description = "Keeps the note.", on = "trip.opened", effects = ["git.commit"])
def keep(event):
    request("git.commit", {"message": "the note", "paths": ["note"]})

behavior(name = "write", description = "Writes the note.", on = "note.wanted", effects = ["fs.write"])
def write(event):
    request("fs.write", {"path": "note", "text": "two", "base": event.payload.base})
"#;

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(words).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a text").trim().to_owned()
}

/// A workspace that is a repository: a fork works in another working tree of it, at the commit that
/// the log recorded last, wherever it is cut; and where the log holds no commit, or writes after it
/// that none holds, it says so.
#[test]
fn a_fork_gets_a_working_tree_of_a_repository() {
    let flock = FLOCK.replace("name = \"seats\"", "name = \"seats\"\nworkspace = \"desk\"");
    let flock = flock.replace("\"tool:x\"", "\"git.commit\", \"fs.write\"");
    let folder = scripts(&flock, &[("commit.star", COMMIT)]);
    let desk = folder.path().join("desk");
    std::fs::create_dir(&desk).unwrap();
    git(&desk, &["init", "-q", "-b", "main"]);
    std::fs::write(desk.join("note"), "one").unwrap();
    let (code, _, err) = starling(&["run", path(&folder), "-q"]);
    assert_eq!(code, 0, "{err}");
    let commit = git(&desk, &["rev-parse", "HEAD"]);
    let fork = |at: &str, name: &str| {
        let (code, _, err) = starling(&["fork", at, name, "--store", path(&folder)]);
        assert_eq!(code, 0, "{err}");
        err
    };
    let at_commit = kinds(&folder).len() - 1;
    std::fs::write(desk.join("note"), "nobody said so").unwrap();
    let said = fork("main", "tree");
    assert!(said.contains(&format!("a git worktree of the workspace at {commit}")), "{said}");
    let trees = folder.path().join(".starling/workspaces");
    assert_eq!(std::fs::read_to_string(trees.join("tree/note")).unwrap(), "one");
    assert!(git(&desk, &["worktree", "list"]).contains("workspaces/tree"));
    let said = fork("main@1", "before");
    assert!(said.contains("the log recorded no commit of it"), "{said}");
    assert!(!trees.join("before").exists());
    // A write that the log recorded and no commit holds: the folder as it is has it, no tree has.
    let base = effect_hash(&desk.join("note"));
    let wanted = format!("{{\"base\": \"{base}\"}}");
    let (code, _, err) = starling(&["append", "note.wanted", &wanted, "--store", path(&folder)]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = starling(&["run", path(&folder), "-q"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(std::fs::read_to_string(desk.join("note")).unwrap(), "two");
    let said = fork("main", "copy");
    assert!(
        said.contains("it works in a copy of the workspace: the log recorded writes"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(trees.join("copy/note")).unwrap(), "two");
    let said = fork(&format!("main@{at_commit}"), "again");
    assert!(said.contains("a git worktree"), "{said}");
    assert_eq!(std::fs::read_to_string(trees.join("again/note")).unwrap(), "one");
}

/// The hash that a write names its base by.
fn effect_hash(file: &Path) -> String {
    log::Hash::of(&std::fs::read(file).unwrap()).to_string()
}
