//! Logs of ActiveGraph: every event, its graph, its ids, its forks, and going on from there.
//!
//! `STARLING_ACTIVEGRAPH=FOLDER` also reads real ones: logs, and beside each what its graph is
//! (`NAME.jsonl` and `NAME.expected.json`), and the database `samples.db`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use log::{BranchName, Log, Missing, Store};
use projection::{ElementView, Graph, World};
use runtime::Snapshots;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::asking::{Done, cli};
use crate::support::flock::{events, scripts};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cli(&self, line: &[&str]) -> Done {
        cli(&self.path("s.redb"), line)
    }

    fn ok(&self, line: &[&str]) -> String {
        self.cli(line).with(0)
    }

    fn import(&self, file: &Path, more: &[&str]) -> Done {
        let line = ["import", "--from", "activegraph", file.to_str().unwrap()];
        self.cli(&[&line, more].concat())
    }

    fn lines(&self, lines: &[Value]) -> PathBuf {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.path("trace.jsonl"), text).unwrap();
        self.path("trace.jsonl")
    }

    fn with<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        let store = Store::open(&self.path("s.redb"), Missing::Refuse, "test").unwrap();
        let seen = look(&store);
        store.close().unwrap();
        seen
    }

    fn graph(&self, branch: &str) -> Value {
        self.with(|store| {
            let name: BranchName = branch.parse().unwrap();
            let branch = store.branches().unwrap().into_iter().find(|b| b.name == name).unwrap();
            theirs(&Snapshots::none().graph_at(store, branch.id, branch.tip.head).unwrap())
        })
    }
}

/// A graph as the other system writes it, without versions: theirs also count what changed nothing.
fn theirs(graph: &Graph) -> Value {
    let end = |node: projection::NodeRef| graph.at(node.into()).unwrap().id();
    let told = |element: ElementView<'_>| {
        let mut told = json!({
            "id": element.id(), "type": element.type_name(), "data": element.properties_json(),
        });
        if let Some((from, to)) = element.ends() {
            told["source"] = end(from).into();
            told["target"] = end(to).into();
        }
        (element.id().to_owned(), told)
    };
    let nodes = graph.nodes().map(|node| told(graph.at(node.into()).unwrap()));
    let edges = graph.edges().map(|edge| told(graph.at(edge.into()).unwrap()));
    let values = |all: BTreeMap<String, Value>| all.into_values().collect::<Vec<Value>>();
    json!({"objects": values(nodes.collect()), "relations": values(edges.collect())})
}

fn event(id: u32, kind: &str, actor: &str, cause: Option<u32>, payload: Value) -> Value {
    json!({
        "id": format!("evt_{id:03}"), "type": kind, "payload": payload, "actor": actor,
        "frame_id": null, "caused_by": cause.map(|cause| format!("evt_{cause:03}")),
        "timestamp": "2026-02-03T04:05:06Z",
    })
}

fn object(id: &str, data: Value) -> Value {
    let kind = id.split('#').next().unwrap();
    json!({"id": id, "object": {"id": id, "type": kind, "data": data, "version": 1}})
}

fn relation(id: &str, source: &str, target: &str) -> Value {
    json!({"id": id, "relation": {
        "id": id, "type": "cites", "source": source, "target": target, "data": {"w": 1},
    }})
}

fn patch(target: &str, op: &str, value: Value) -> Value {
    json!({"target": target, "patch": {"id": "patch_001", "target": target, "op": op, "value": value}})
}

/// Written by hand: every rule of their projection, and what it leaves alone.
fn made() -> Vec<Value> {
    vec![
        event(1, "goal.created", "user", None, json!({"goal": "café \u{2028} ok"})),
        event(2, "behavior.started", "runtime", Some(1), json!({"behavior": "plan"})),
        event(
            3,
            "object.created",
            "plan",
            Some(1),
            object("claim#1", json!({"text": "a", "n": null})),
        ),
        event(4, "object.created", "plan", Some(1), object("claim#2", json!({"text": "b"}))),
        event(5, "object.created", "plan", Some(1), object("memo#3", json!({"x": 1, "y": 2}))),
        event(6, "relation.created", "plan", Some(1), relation("rel_001", "claim#1", "claim#2")),
        event(7, "relation.created", "plan", Some(1), relation("rel_002", "claim#2", "memo#3")),
        event(8, "relation.created", "plan", Some(1), relation("rel_003", "memo#3", "late#9")),
        event(9, "patch.applied", "bob", None, patch("claim#1", "update", json!({"text": "c"}))),
        event(
            10,
            "patch.applied",
            "bob",
            None,
            patch("memo#3", "replace", json!({"y": 3, "z": {}})),
        ),
        event(11, "patch.applied", "bob", None, patch("nobody#7", "update", json!({"lost": 1}))),
        event(12, "patch.applied", "bob", None, patch("rel_001", "update", json!({"w": 2}))),
        event(
            13,
            "patch.rejected",
            "system",
            None,
            json!({"patch_id": "patch_001", "reason": "no"}),
        ),
        event(14, "llm.requested", "plan", Some(1), json!({"behavior": "plan", "prompt": "?"})),
        event(15, "llm.responded", "plan", Some(14), json!({"behavior": "plan", "raw_text": "!"})),
        event(16, "x.unknown_kind", "somebody", Some(999), json!({"deep": [{"kept": 1.5}]})),
        event(17, "object.removed", "system", None, json!({"id": "claim#2"})),
        event(18, "object.created", "plan", Some(1), object("late#9", json!({}))),
        event(19, "relation.removed", "system", None, json!({"id": "rel_404"})),
    ]
}

fn made_graph() -> Value {
    json!({
        "objects": [
            {"id": "claim#1", "type": "claim", "data": {"text": "c", "n": null}},
            {"id": "late#9", "type": "late", "data": {}},
            {"id": "memo#3", "type": "memo", "data": {"y": 3, "z": {}}},
        ],
        "relations": [
            {"id": "rel_003", "type": "cites", "source": "memo#3", "target": "late#9", "data": {"w": 1}},
        ],
    })
}

#[test]
fn every_event_is_kept_and_the_graph_is_theirs() {
    let place = Place::new();
    let file = place.lines(&made());
    let done = place.import(&file, &["--json"]);
    let told: Value = serde_json::from_str(done.out.trim()).unwrap();
    assert_eq!((&told["appended"], &told["found"]), (&19.into(), &0.into()));
    assert!(told["notices"][0].as_str().unwrap().starts_with("1 events name a cause"), "{told}");
    assert_eq!(place.graph("main"), made_graph());
    let kept = place.with(|store| events(store, store.branches().unwrap()[0].id));
    for (kept, line) in kept.iter().zip(made()) {
        assert_eq!(Value::Object(kept.payload().to_json()), line["payload"], "as it was");
        let mark = &Value::Object(kept.extra().to_json())["imported"];
        for field in ["id", "type", "caused_by", "frame_id", "timestamp"] {
            assert_eq!(mark[field], line[field]);
        }
    }
    let kinds: Vec<&str> = kept.iter().map(log::Event::kind).collect();
    assert_eq!(kinds[1], "activegraph.behavior.started", "not taken for one of ours");
    assert_eq!(kinds[15], "x.unknown_kind");
    assert_eq!(kept[8].time().to_string(), "2026-02-03T04:05:06Z");

    let again: Value = serde_json::from_str(place.import(&file, &["--json"]).out.trim()).unwrap();
    assert_eq!((&again["appended"], &again["found"]), (&0.into(), &19.into()));
    let mut other = made();
    other[8]["payload"]["patch"]["value"]["text"] = "d".into();
    let differs = place.import(&place.lines(&other), &[]);
    assert_eq!(differs.code, 6);
    assert!(differs.err.contains("main@8 holds another event than line 9"), "{}", differs.err);
}

#[test]
fn an_imported_log_is_asked_forked_and_gone_on_with() {
    let place = Place::new();
    place.import(&place.lines(&made()), &[]).with(0);
    let why = place.ok(&["why", "claim#1.text"]);
    assert!(why.contains("main@8  bob  patch.applied  text \"a\" -> \"c\""), "{why}");
    assert!(why.contains("<- main@0  user  goal.created"), "causes are kept: {why}");
    assert_eq!(place.ok(&["log", "--cause", "main@14"]).lines().count(), 3);
    assert!(place.ok(&["log", "--kind", "llm.*"]).contains("llm.responded"));
    assert!(place.ok(&["show", "claim#1"]).contains("\"c\""), "the id as it was");
    assert_eq!(place.ok(&["query", "MATCH (c:claim) RETURN c.text", "--csv"]), "c.text\nc\n");
    assert!(place.cli(&["diff", "main@4", "main"]).with(1).contains("claim#2"));
    // It goes its own way: it is not told what became of the claims afterwards.
    place.ok(&["fork", "main@15", "idea", "--answers", "live"]);
    place.ok(&["replay", "--verify"]);

    let note = r#"
behavior(
    name = "note_claim",
    description = "Notes every claim.",
    match = "(c:claim)",
    writes = ["Note", "OF"],
    emits = ["claim.noted"],
)
def note_claim(c):
    note = create("Note", text = c.text)
    emit("claim.noted", {}, note, link(note, "OF", c))
"#;
    let flock = scripts("name = \"notes\"\n", &[("note_claim.star", note)]);
    let folder = flock.path().to_str().unwrap();
    place.ok(&["run", folder, "--trust", "--quiet"]);
    place.ok(&["run", folder, "--trust", "--quiet", "--branch", "idea"]);
    let noted = |at: &str| {
        place.ok(&["query", "MATCH (n:Note) RETURN n.text ORDER BY n.text", "--csv", "--at", at])
    };
    assert_eq!(noted("main"), "n.text\nc\n");
    assert_eq!(noted("idea"), "n.text\nb\nc\n", "there it is not removed yet");
    let again = place.ok(&["log", "--kind", "claim.noted"]).lines().count();
    place.ok(&["run", folder, "--trust", "--quiet"]);
    assert_eq!(place.ok(&["log", "--kind", "claim.noted"]).lines().count(), again, "once each");
    assert_eq!(place.ok(&["log", "--kind", "flock.started"]).lines().count(), 1);
    place.ok(&["replay", "--verify"]);
}

#[test]
fn a_row_that_cannot_be_read_is_named_and_left_out_only_on_request() {
    let place = Place::new();
    let lines: Vec<String> = made().iter().map(Value::to_string).collect();
    let mut bytes = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        bytes.extend_from_slice(match number {
            2 => &line.as_bytes()[..line.len() / 2],
            10 => b"{\"id\": \"evt_011\", \"payload\": NaN}",
            12 => b"\0\0\0\0\xff\xfe",
            _ => line.as_bytes(),
        });
        bytes.push(b'\n');
    }
    // A whole last line is whole without its newline.
    bytes.pop();
    let file = place.path("torn.jsonl");
    std::fs::write(&file, bytes).unwrap();
    let refused = place.import(&file, &[]);
    assert_eq!(refused.code, 2);
    for place in
        ["3 rows cannot be read", "\nline 3: ", "\nline 11: ", "\nline 13: it is not UTF-8"]
    {
        assert!(refused.err.contains(place), "{place}: {}", refused.err);
    }
    assert!(place.ok(&["branches"]).is_empty(), "nothing was imported");
    let done = place.import(&file, &["--skip-corrupt"]);
    assert!(done.err.contains("left out line 3: "), "{}", done.err);
    done.with(0);
    assert_eq!(place.ok(&["log", "main"]).lines().count(), 16);
    let missing = place.import(&place.path("nothing.db"), &[]);
    assert!(
        missing.code == 3 && missing.err.contains("nothing.db cannot be read"),
        "{}",
        missing.err
    );
}

/// A database of theirs, made by hand: a run, a fork that copied its prefix and went on, one that
/// did not, and a run of which only a snapshot and what follows is left.
fn database(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT, type TEXT, actor TEXT, payload TEXT,
            frame_id TEXT, caused_by TEXT, timestamp TEXT, run_id TEXT);
         CREATE TABLE events_archive (seq INTEGER, id TEXT, type TEXT, actor TEXT, payload TEXT,
            frame_id TEXT, caused_by TEXT, timestamp TEXT, run_id TEXT, archived_at TEXT);
         CREATE TABLE runs (run_id TEXT PRIMARY KEY, parent_run_id TEXT, forked_at_event_id TEXT,
            label TEXT, created_at TEXT, goal TEXT, frame_id TEXT);
         CREATE TABLE snapshots (state_hash TEXT PRIMARY KEY, blob TEXT, created_at TEXT);
         INSERT INTO runs VALUES ('child', 'root', 'evt_008', NULL, 't', NULL, NULL),
            ('root', NULL, NULL, NULL, 't', NULL, NULL),
            ('idle', 'child', 'evt_020', NULL, 't', NULL, NULL),
            ('short', NULL, NULL, NULL, 't', NULL, NULL);
         INSERT INTO snapshots VALUES ('sha256:1', '{\"objects\": [{\"id\": \"a#1\", \"type\": \"a\",
            \"data\": {\"n\": 1}}], \"relations\": []}', 't');",
    )
    .unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let put = |run: &str, event: &Value| {
        let values = (
            text(&event["id"]),
            text(&event["type"]),
            text(&event["actor"]),
            event["payload"].to_string(),
            text(&event["caused_by"]),
            text(&event["timestamp"]),
            run,
        );
        let insert = "INSERT INTO events (id, type, actor, payload, caused_by, timestamp, run_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        db.execute(insert, values).unwrap();
    };
    made().iter().for_each(|event| put("root", event));
    let own =
        event(20, "patch.applied", "eve", None, patch("claim#1", "update", json!({"text": "e"})));
    for run in ["child", "idle"] {
        made()[..8].iter().for_each(|event| put(run, event));
        put(run, &own);
    }
    put("short", &event(2, "runtime.snapshot", "runtime", None, json!({"state_hash": "sha256:1"})));
    put("short", &event(3, "patch.applied", "eve", None, patch("a#1", "update", json!({"n": 2}))));
}

#[test]
fn runs_of_a_database_are_branches_and_its_forks_are_forks() {
    let place = Place::new();
    let file = place.path("runs.db");
    database(&file);
    let told = place.import(&file, &["--json"]);
    let lines = told.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: BTreeMap<String, Value> =
        lines.map(|line| (line["branch"].as_str().unwrap().to_owned(), line)).collect();
    let of = |run: &str| (told[run]["appended"].clone(), told[run]["forked_from"].clone());
    assert_eq!(of("root"), (19.into(), Value::Null));
    assert_eq!(of("child"), (1.into(), "root@7".into()), "its prefix is shared, not copied");
    assert_eq!(of("idle"), (0.into(), "child@8".into()));
    assert_eq!(of("short"), (2.into(), Value::Null));
    assert_eq!(place.graph("root"), made_graph());
    assert_eq!(place.graph("short")["objects"][0]["data"], json!({"n": 2}));
    let claim = |branch: &str| place.graph(branch)["objects"][0]["data"]["text"].clone();
    assert_eq!((claim("child"), claim("idle")), ("e".into(), "e".into()));
    let told = place.cli(&["diff", "root@8", "child"]).with(1);
    assert!(told.contains("text: \"c\" -> \"e\"") && told.contains("child@8  eve"), "{told}");
    assert_eq!(place.cli(&["diff", "child", "idle"]).code, 0);

    let only = Place::new();
    only.import(&file, &["--run", "child"]).with(0);
    assert_eq!(only.ok(&["branches"]).lines().count(), 2, "a run and what it was forked from");
    assert_eq!(only.import(&file, &["--run", "nobody"]).code, 3);
}

#[test]
fn real_logs_fold_into_their_own_graph() {
    let Some(folder) = std::env::var_os("STARLING_ACTIVEGRAPH").map(PathBuf::from) else {
        println!("real logs are not at hand: name their folder by STARLING_ACTIVEGRAPH");
        return;
    };
    let expected = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{name}.expected.json"))).unwrap();
        let mut graph: Value = serde_json::from_str(&text).unwrap();
        for object in graph["objects"].as_array_mut().unwrap() {
            object.as_object_mut().unwrap().remove("version");
        }
        let mut sorted = |name: &str| {
            let list = graph[name].as_array_mut().unwrap();
            list.sort_by_key(|element| element["id"].to_string());
        };
        sorted("objects");
        sorted("relations");
        graph
    };
    for name in ["golden_readme", "samples_main", "quickstart"] {
        let place = Place::new();
        let file = folder.join(format!("{name}.jsonl"));
        place.import(&file, &[]).with(0);
        assert_eq!(place.graph("main"), expected(name), "{name}");
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert_eq!(place.ok(&["log", "main"]).lines().count(), lines, "every event of {name}");
        place.ok(&["replay", "--verify"]);
    }
    let place = Place::new();
    place.import(&folder.join("samples.db"), &[]).with(0);
    assert_eq!(place.graph("run_main"), expected("samples_main"));
    let branches = place.ok(&["branches"]);
    assert!(branches.lines().count() >= 6, "{branches}");
}
