//! What an author is given: new files, checks, trials, tests and lists, by the real binary.

use std::fs;

use serde_json::{Value, json};

use crate::{FLOCK, Place, program};

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const GREET: &str = r#"behavior(
    name = "greet_guest",
    description = "Greets every guest.",
    match = "(guest:Guest)",
    writes = ["Greeting", "FOR"],
    emits = ["guest.greeted"],
)
def greet_guest(guest, settings):
    greeting = create("Greeting", text = f"{settings.greeting}, {guest.name}")
    emit("guest.greeted", {"guest": guest.id}, greeting, link(greeting, "FOR", guest))
"#;

const GUESTS: &str = r#"
[settings]
greeting = "hello"
[[start]]
kind = "guest.arrived"
changes = [{ create = "guest:1", type = "Guest", properties = { name = "Ann" } }]
"#;

#[test]
fn a_new_behavior_runs_at_once_in_each_form() {
    for (form, kind) in [("star", "note.seen"), ("exec", "note.counted"), ("md", "note.summed_up")]
    {
        let place = Place::new("name = \"f\"\n", &[]);
        let made = place.ok(&["new", "behavior", "look_at_note", "--form", form]);
        assert!(
            made.out.contains("behaviors/look_at_note.") && made.err.contains("next:"),
            "{}",
            made.err
        );
        let tested = place.ok(&["test"]);
        assert!(tested.out.ends_with(" passed, 0 failed\n"), "{}", tested.out);
        place.fails(&["new", "behavior", "look_at_note", "--form", form], 6, "exists already");
        if form == "md" {
            let flock = "[grants]\neffects = [\"model:writer\"]\n[models.writer]\nprovider = \"recorded\"\nanswers = \"a.jsonl\"\n";
            let content = "Sum up this note in one sentence, as {\"summary\": \"…\"}:\n\ntwo words";
            let schema = json!({"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}});
            let args =
                json!({"messages": [{"role": "user", "content": content}], "schema": schema});
            let line = json!({"effect": "model:writer", "args": args, "result": {"answer": {"summary": "short"}}});
            place.write("flock.toml", flock);
            place.write("a.jsonl", &line.to_string());
        }
        let checked = place.ok(&["check", "--strict"]);
        assert!(checked.err.contains("0 errors, 0 warnings"), "{}{}", checked.out, checked.err);
        place.ok(&["run", ".", "--trust"]);
        place.ok(&["append", "note.added", "{\"text\": \"two words\"}"]);
        place.ok(&["run", ".", "--trust"]);
        assert_eq!(place.of_kind(kind).len(), 1, "{form}");
    }
    let nowhere = tempfile::tempdir().unwrap();
    let place = Place { folder: nowhere };
    place.fails(&["new", "behavior", "x"], 3, "starling new flock NAME");
    place.fails(&["new", "behavior", "x", "--form", "rust"], 3, "behaviors/src/library");
    place.fails(&["new", "behavior", "Great Name"], 2, "cannot be a name");
}

#[test]
fn a_trial_shows_what_would_follow_and_writes_nothing() {
    let place = Place::new(GUESTS, &[]);
    place.write("behaviors/greet_guest.star", GREET);
    // Before the first run the world is that of the start events.
    let tried = &lines(&place.ok(&["try", "behaviors/greet_guest.star", "--json"]).out)[0];
    assert_eq!(
        (&tried["fired"], &tried["proposals"][0]["emit"]),
        (&json!(1), &json!("guest.greeted"))
    );
    assert!(!place.path().join(".starling").exists());
    place.ok(&["run", "."]);
    let head = place.ok(&["branches", "--json"]).out;
    place.write(
        "behaviors/greet_guest.star",
        &GREET.replace("guest.greeted\", {", "guest.met\", {"),
    );
    let tried = place.ok(&["try", "behaviors/greet_guest.star", "--at", "main@head"]);
    assert!(tried.out.contains("would fail: behaviors/greet_guest.star:10: "), "{}", tried.out);
    assert!(tried.out.contains("add \"guest.met\" to its `emits`"), "{}", tried.out);
    place.write("behaviors/greet_guest.star", &GREET.replace("hello", "hi"));
    let tried = place.ok(&["try", "behaviors/greet_guest.star"]);
    assert!(
        tried.out.contains("would emit guest.greeted {\"guest\":\"guest:1\"}"),
        "{}",
        tried.out
    );
    assert!(tried.out.contains("\"text\":\"hello, Ann\""), "{}", tried.out);
    assert_eq!(place.ok(&["branches", "--json"]).out, head, "the branch is as it was");
}

#[test]
fn a_trial_of_an_event_behavior_hears_the_last_such_event() {
    let count = program(
        "on = \"note.added\"\nemits = [\"note.counted\"]",
        "echo '{\"emit\": \"note.counted\", \"payload\": {\"n\": 3}}'",
    );
    let place = Place::new(FLOCK, &[]);
    place.ok(&["run", "."]);
    place.ok(&["append", "other.thing"]);
    place.write("behaviors/count.sh", &count);
    let tried = place.ok(&["try", "behaviors/count.sh"]);
    assert!(
        tried.out.starts_with("count fires once at main@1 note.added\n  would request exec:count "),
        "{}",
        tried.out
    );
    let tried = place.ok(&["try", "behaviors/count.sh", "--run"]);
    assert!(tried.out.contains("would emit note.counted {\"n\":3}"), "{}", tried.out);
    let tried = place.ok(&["try", "behaviors/count.sh", "--at", "main@0"]);
    assert!(tried.out.contains("where no event wakes it"), "{}", tried.out);
    place.fails(&["try", "behaviors/none.sh"], 3, "there is no file");
}

#[test]
fn a_test_that_fails_shows_the_difference() {
    let place = Place::new(GUESTS, &[]);
    place.write("behaviors/greet_guest.star", GREET);
    let guest = "{ create = \"g\", type = \"Guest\", properties = { name = \"Bo\" } }";
    let given = format!("{{ kind = \"guest.arrived\", changes = [{guest}] }}");
    let test = format!("[[test]]\nname = \"one\"\ngiven = [{given}]\n");
    let expect = "expect = [{ emit = \"guest.greeted\", payload = { guest = \"g\" } }]\n";
    place.write("behaviors/greet_guest.test.toml", &format!("{test}{expect}"));
    assert_eq!(place.ok(&["test", "."]).out, "1 passed, 0 failed\n");
    place.write(
        "behaviors/greet_guest.test.toml",
        &format!("{test}{}", expect.replace("\"g\"", "\"h\"")),
    );
    let done = place.run(&["test", "."]);
    assert_eq!(done.code, 1);
    let line = |guest: &str| json!({"emit": "guest.greeted", "payload": {"guest": guest}});
    let says = format!("    - {}\n    + {}\n0 passed, 1 failed\n", line("h"), line("g"));
    assert!(done.out.ends_with(&says), "{}", done.out);
    for (text, says) in [
        ("[[test]]\nexpct = []\n", "there is no `expct`; did you mean `expect`?"),
        (
            "[[test]]\nsettings = { greting = 1 }\n",
            "no setting `greting`; did you mean `greeting`?",
        ),
        (
            "[[test]]\nanswer = [{ effect = \"tool:x\", result = 1 }]\n",
            "nobody asked for the answer",
        ),
        ("[[test]]\nfails = \"boom\"\n", "expected a failure that says `boom`; nothing fails"),
    ] {
        place.write("behaviors/greet_guest.test.toml", text);
        let done = place.run(&["test", ".", "--json"]);
        assert_eq!(done.code, 1);
        let why = lines(&done.out)[0]["why"].as_str().unwrap().to_owned();
        assert!(why.contains(says), "{why}");
    }
    fs::remove_file(place.path().join("behaviors/greet_guest.test.toml")).unwrap();
    place.fails(&["test"], 3, "there is no test in .");
}

#[test]
fn the_examples_pass_their_tests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let place = Place { folder: tempfile::tempdir().unwrap() };
    for entry in fs::read_dir(root.join("examples")).unwrap().map(Result::unwrap) {
        let (example, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let tested = place.ok(&["test", example.to_str().unwrap()]);
        let passed: u32 = tested.out.split(' ').next().unwrap().parse().unwrap();
        assert!(passed >= 2 && tested.out.ends_with(", 0 failed\n"), "{name}: {}", tested.out);
        let checked = place.ok(&["check", example.to_str().unwrap(), "--strict"]);
        assert!(checked.err.contains("0 errors, 0 warnings"), "{name}: {}", checked.out);
        assert!(checked.err.contains("deterministic"), "{name}: {}", checked.err);
        let page = fs::read_to_string(example.join("README.md")).unwrap();
        assert!(page.contains("```text\n"), "{name}: its page shows what comes out");
    }
}

/// A copy of an example, so that nothing is written beside the original.
fn example(name: &str) -> Place {
    fn copy(from: &std::path::Path, to: &std::path::Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.ends_with(".starling") => {}
                path if path.is_dir() => copy(&path, &to.join(entry.file_name())),
                path => drop(fs::copy(path, to.join(entry.file_name())).unwrap()),
            }
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let place = Place { folder: tempfile::tempdir().unwrap() };
    copy(&root.join("examples").join(name), place.path());
    place
}

#[test]
fn the_research_example_ends_as_its_page_says() {
    let place = example("research");
    let page = fs::read_to_string(place.path().join("README.md")).unwrap();
    let expected = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let done = place.ok(&["run", ".", "--trust"]);
    let report = done.out.split_once('\n').unwrap().1;
    assert_eq!(report, expected);
    let why = place.ok(&["why", "memo"]).out;
    assert!(why.contains("memo.written") && why.contains("research.asked"), "{why}");
    place.ok(&["replay", "--refire"]);
    // Without the behavior that joins contradictions the prompts read otherwise.
    fs::remove_file(place.path().join("behaviors/find_contradiction.star")).unwrap();
    let done = place.ok(&["run", ".", "--trust", "--fresh"]);
    let told = done.out.lines().find(|line| line.starts_with("! ")).unwrap();
    let shown = page.lines().find(|line| line.starts_with("! ")).unwrap();
    assert_eq!(told, shown);
}

#[test]
fn a_check_names_what_is_wrong_and_where() {
    let wrong = r#"behavior(
    name = "go_round",
    description = "Wakes the other.",
    on = "ping.sent",
    emits = ["pong.sent"],
    writes = [],
    effects = ["tool:pya"],
    reads = {"guests": "(guests:Gest)"},
)
def go_round(event, guests):
    emit("pong.sent")
    emit("pang.sent")

behavior(name = "come_back", description = "And back.", on = "pong.sent", emits = ["ping.sent"], writes = [])
def come_back(event):
    emit("ping.sent")

behavior(
    name = "judge", description = "Is blind.", guard = True, on = "effect.requested",
    reads = {"limits": "(limits:Guest) WHERE limits.max < event.payload.args.amount"},
)
def judge(event, limits):
    allow()
"#;
    let place =
        Place::new(&format!("guards = [\"jduge\"]\n{GUESTS}"), &[("behaviors/wrong.star", wrong)]);
    place.write("tools/pay.toml", "command = [\"true\"]\n");
    let done = place.run(&["check"]);
    assert_eq!(done.code, 1, "{}", done.out);
    for says in [
        "warning: behaviors/wrong.star:8: go_round: `reads.guests` asks for the type Gest, which no start event",
        "and no behavior makes; did you mean `Guest`?",
        "warning: behaviors/wrong.star:7: go_round: nobody grants `tool:pya`",
        "warning: behaviors/wrong.star:7: go_round: there is no tool:pya, which would be tools/pya.toml; did you mean `tool:pay`?",
        "error: behaviors/wrong.star:12: emit(\"pang.sent\") is not declared; add \"pang.sent\" to `emits`",
        "may wake itself without end: come_back -> go_round -> come_back",
        "`reads.limits` of a guard compares the request",
        "error: flock.toml: the guard `jduge` is named and not there, and without it nothing leaves; did you mean `judge`?",
    ] {
        assert!(done.out.contains(says), "{says}\n{}", done.out);
    }
    place.write(
        "behaviors/wrong.star",
        "behavior(name = \"x\", description = \"x\", match = \"(a:A\")\ndef x(): pass\n",
    );
    let done = place.run(&["check"]);
    assert!(done.out.contains("error: behaviors/wrong.star:1:"), "{}", done.out);
    let rows = lines(&place.run(&["check", "--json"]).out);
    assert!(
        rows.iter().any(|row| row["level"] == "error" && row["path"] == "behaviors/wrong.star")
    );
    place.write(
        "behaviors/wrong.star",
        "# Says nothing.\nbehavior(name = \"x\", on = \"x.y\")\ndef x(): pass\n",
    );
    let done = place.run(&["check"]);
    let says = "error: behaviors/wrong.star:2: x: there is no `description`; say what it does";
    assert!(done.out.contains(says), "{}", done.out);
    place.write("flock.toml", GUESTS);
    place.write("behaviors/wrong.star", GREET);
    place.ok(&["check", "behaviors/wrong.star", "--strict"]);
    place.fails(&["check", "/"], 3, "is in no flock");
}

#[test]
fn behaviors_are_listed_with_what_they_did_and_their_source() {
    let count = program(
        "on = \"note.added\"\nemits = [\"note.counted\"]\nwrites = []",
        "echo '{\"emit\": \"note.counted\"}'",
    );
    let fail = "behavior(name = \"stumble\", description = \"Fails.\", on = \"note.counted\",\n\
                emits = [], writes = [])\ndef stumble(event):\n    fail(\"no\")\n";
    let place =
        Place::new(FLOCK, &[("behaviors/count.sh", &count), ("behaviors/stumble.star", fail)]);
    place.ok(&["run", ".", "--trust"]);
    let rows = lines(&place.ok(&["behaviors", "--json"]).out);
    assert_eq!(
        (&rows[0]["name"], &rows[0]["form"], &rows[0]["fired"]),
        (&json!("count"), &json!("exec"), &json!(2))
    );
    assert_eq!((&rows[0]["path"], &rows[0]["effects"]), (&json!("behaviors/count.sh"), &json!(1)));
    assert!(rows[0]["time_ms"].as_i64().unwrap() > 0);
    assert_eq!((&rows[1]["form"], &rows[1]["failed"]), (&json!("star"), &json!(1)));
    let table = place.ok(&["behaviors"]).out;
    assert!(
        table.starts_with("name     form  source                  state  fired  failed"),
        "{table}"
    );
    fs::remove_file(place.path().join("behaviors/count.sh")).unwrap();
    assert_eq!(place.ok(&["behaviors", "cat", "count"]).out, count);
    place.fails(&["behaviors", "cat", "cuont"], 3, "did you mean `count`?");
    let graph = place.ok(&["behaviors", "graph"]).out;
    assert!(
        graph.contains("count -> stumble  by note.counted\noutside -> count  by note.added\n"),
        "{graph}"
    );
    let graph = &lines(&place.ok(&["behaviors", "graph", "--json"]).out)[0];
    assert_eq!(graph["loops"], json!([]));
    let dot = place.ok(&["behaviors", "graph", "--dot"]).out;
    assert!(
        dot.starts_with("digraph flock {")
            && dot.contains("\"count\" -> \"stumble\" [label = \"note.counted\"];"),
        "{dot}"
    );
    place.ok(&["disable", "stumble"]);
    let off = &lines(&place.ok(&["behaviors", "--json"]).out)[1];
    assert_eq!((&off["name"], &off["state"]), (&json!("stumble"), &json!("disabled")));
    assert_eq!(off["failed"], json!(1), "what it did is still told");
    assert!(place.ok(&["behaviors"]).out.contains("stumble.star  disabled"));
    assert_eq!(place.ok(&["behaviors", "cat", "stumble"]).out, fail);
    let early = lines(&place.ok(&["behaviors", "--json", "--at", "main@0"]).out);
    assert_eq!(early.len(), 0, "nobody was loaded yet");
}
