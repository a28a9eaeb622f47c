//! The engine against the design's reference model: the same random flocks, the same events.
//!
//! `oracle/cases.jsonl.zst` holds flocks with the lines that the model gives for them. With the
//! model at hand (a folder in `STARLING_MODEL`, Python 3.11 with `blake3`), `STARLING_LONG=1` makes
//! new ones.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use behaviors::{Behavior, Binding, Firing, Loaded, Metadata, Proposal, Proposals, ReactError};
use log::{BranchName, Change, Draft, Event, Head, Log, LogId, MemoryLog, Time, WriteOp};
use runtime::{Engine, EngineError, Library, Start, Step, start_branch};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

/// A reaction of the model's random flocks: a small program as JSON.
#[derive(Debug)]
struct Interpreted {
    metadata: Metadata,
    source: Value,
}

impl Behavior for Interpreted {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn react(&self, firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
        let draws: Vec<u64> = (0..4).map(|_| firing.rand.below(4)).collect();
        let many: usize = firing.reads.iter().map(|read| read.rows().count()).sum();
        let names = Names::of(firing, &draws);
        let fail = self.source["fail"].as_u64().expect("a number");
        if fail > 0 && draws[2] >= fail {
            return Err(ReactError::new(format!("draw {}", draws[2])));
        }
        let mut last: Option<String> = None;
        for emitted in self.source["emits"].as_array().expect("a list") {
            let chance = emitted[0].as_u64().expect("a number");
            if draws[3] >= chance {
                continue;
            }
            let mut changes = Vec::new();
            for change in emitted[3].as_array().expect("a list") {
                let filled = if change[0] == "last" {
                    let Some(last) = &last else { continue };
                    json!(["link", change[1], last, names.fill(&change[2], draws[0], many), {}])
                } else {
                    if change[0] == "create" && change[1].is_null() {
                        last = Some(format!("@{}#{}", out.count(), changes.len()));
                    }
                    let parts = change.as_array().expect("a list").iter();
                    Value::Array(parts.map(|part| names.fill(part, draws[0], many)).collect())
                };
                changes.push(change_of(&filled));
            }
            let key = emitted[2].as_str();
            let payload = if key.is_some() {
                json!({"node": "n1"})
            } else {
                let node = names.get(["a", "b"][(draws[0] % 2) as usize]);
                json!({"node": node, "n": many % 3, "draws": draws, "seen": names.seen})
            };
            let kind = emitted[1].as_str().expect("a text").into();
            let payload = payload.as_object().expect("an object").clone();
            out.push(Proposal {
                kind,
                payload,
                changes,
                key: key.map(Into::into),
                word: behaviors::Word::Event,
            })?;
        }
        Ok(())
    }
}

/// The names that a reaction of the model may use for elements, and what it saw of each.
struct Names {
    ids: BTreeMap<&'static str, String>,
    seen: Map<String, Value>,
}

impl Names {
    fn of(firing: &Firing<'_>, draws: &[u64]) -> Names {
        let (mut ids, mut seen) = (BTreeMap::new(), Map::new());
        for (name, binding) in &firing.bound {
            let Binding::Element(element) = binding else { panic!("the model binds elements") };
            let known = ["a", "b", "e"].into_iter().find(|known| known == name).expect("a, b or e");
            ids.insert(known, element.id.to_owned());
            let p = element.get("p").map_or(Value::Null, |value| value.to_json());
            seen.insert(known.to_owned(), p);
        }
        ids.insert("n", ["n1", "n2", "n3", "n4"][draws[1] as usize].to_owned());
        let node = firing.event.payload.get("node").and_then(|node| node.as_str()).unwrap_or("n1");
        ids.entry("a").or_insert_with(|| node.to_owned());
        ids.entry("b").or_insert_with(|| "n2".to_owned());
        ids.entry("e").or_insert_with(|| "n3".to_owned());
        Names { ids, seen }
    }

    fn get(&self, name: &str) -> &str {
        &self.ids[name]
    }

    fn fill(&self, part: &Value, draw: u64, many: usize) -> Value {
        match part {
            Value::Object(map) => {
                map.iter().map(|(k, v)| (k.clone(), self.fill(v, draw, many))).collect()
            }
            Value::String(text) => match text.as_str() {
                "draw" => json!(draw),
                "many" => json!(many),
                name => json!(self.ids.get(name).map_or(name, String::as_str)),
            },
            other => other.clone(),
        }
    }
}

fn text(value: &Value) -> SmolStr {
    value.as_str().expect("a text").into()
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// A change in the model's form.
fn change_of(change: &Value) -> Change {
    let at = |n: usize| &change[n];
    match change[0].as_str().expect("a text") {
        "create" => Change::Create {
            id: at(1).as_str().map(Into::into),
            type_name: text(at(2)),
            properties: map(at(3)),
        },
        "ensure" => {
            Change::Ensure { id: text(at(1)), type_name: text(at(2)), properties: map(at(3)) }
        }
        "link" => Change::Link {
            id: None,
            type_name: text(at(1)),
            from: text(at(2)),
            to: text(at(3)),
            properties: map(at(4)),
        },
        "ensure_link" => Change::EnsureLink {
            type_name: text(at(1)),
            from: text(at(2)),
            to: text(at(3)),
            properties: map(at(4)),
        },
        "remove" => Change::Remove { id: text(at(1)) },
        op => {
            let op = [WriteOp::Set, WriteOp::Add, WriteOp::Append]
                .into_iter()
                .find(|known| known.name() == op)
                .expect("an operation of the model");
            let property = at(2).as_str().expect("a text").to_owned();
            let properties = [(property, at(3).clone())].into_iter().collect();
            Change::Write { op, id: text(at(1)), properties, if_version: None }
        }
    }
}

/// A pattern in the model's form, as text; its variables are named with `prefix`.
fn pattern_of(pattern: &Value, prefix: &str, anchor: Option<&str>) -> String {
    let mut tests = Vec::new();
    let mut part = |name: &str| {
        let part = &pattern[if name == "e" { "edge" } else { name }];
        for test in part[1].as_array().expect("a list") {
            let word = |n: usize| test[n].as_str().expect("a text");
            tests.push(format!("{prefix}{name}.{} {} {}", word(0), word(1), test[2]));
        }
        format!("{prefix}{name}:{}", part[0].as_str().expect("a text"))
    };
    let mut text = format!("({})", part("a"));
    if !pattern["edge"].is_null() {
        let edge = part("e");
        text += &format!("-[{edge}]->({})", part("b"));
    }
    for missing in pattern["not"].as_array().into_iter().flatten() {
        let word = |n: usize| missing[n].as_str().expect("a text");
        let shape = match word(1) {
            "out" => format!("({prefix}{})-[:{}]->()", word(0), word(2)),
            _ => format!("({prefix}{})<-[:{}]-()", word(0), word(2)),
        };
        tests.push(format!("NOT EXISTS {{ {shape} }}"));
    }
    if let Some(field) = anchor {
        tests.push(format!("id({prefix}a) = event.payload.{field}"));
    }
    if tests.is_empty() { text } else { format!("{text} WHERE {}", tests.join(" AND ")) }
}

fn loaded(behavior: &Value) -> (Loaded, Map<String, Value>) {
    let trigger = &behavior["trigger"];
    let mut fields = Map::new();
    fields.insert("name".to_owned(), behavior["name"].clone());
    fields.insert("description".to_owned(), json!("A behavior of the model."));
    for field in ["on", "where", "after", "wakes_self"] {
        if !trigger[field].is_null() {
            fields.insert(field.to_owned(), trigger[field].clone());
        }
    }
    for field in ["match", "vanishes"] {
        if !trigger[field].is_null() {
            let pattern = pattern_of(&trigger[field], "", trigger["anchor"].as_str());
            fields.insert(field.to_owned(), json!(pattern));
        }
    }
    if !trigger["on"].is_null() && !trigger["match"].is_null() && trigger["anchor"].is_null() {
        fields.insert("each".to_owned(), json!(true));
    }
    let mut reads = Map::new();
    for (name, read) in behavior["reads"].as_object().expect("an object") {
        // Other names than those of the match: the model's reads here are not anchored.
        reads.insert(name.clone(), json!(pattern_of(&read[0], "r", None)));
    }
    fields.insert("reads".to_owned(), Value::Object(reads));
    let metadata = Metadata::from_json(&fields, "model").expect("the model's triggers are valid");
    let source = behavior["source"].to_string();
    let json = Value::Object(metadata.to_json());
    let behavior = Interpreted { metadata, source: behavior["source"].clone() };
    let name = behavior.metadata.name.clone();
    let loaded = Loaded::new(Arc::new(behavior), &source);
    let hash = loaded.hash().to_string();
    let payload = json!({"name": name, "hash": hash, "path": "model", "metadata": json});
    (loaded, map(&payload))
}

/// An outside event that waits for its place.
#[derive(Clone, Debug)]
pub(crate) struct Fed {
    pub(crate) need: u64,
    pub(crate) event: Value,
}

/// Runs a case as the model does: to rest or to its limit, feeding each outside event in its place.
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) waiting: Vec<Fed>,
    /// Which fed events left no trace, and where the branch ended then: the refused, the repeated.
    pub(crate) traceless: Vec<(Value, Head)>,
}

impl Run {
    pub(crate) fn feed_one(&mut self, most: u64) -> bool {
        if self.engine.in_round() {
            return false;
        }
        let Some(place) = self.waiting.iter().position(|fed| fed.need <= most) else {
            return false;
        };
        let event = self.waiting.remove(place).event;
        let draft = self.draft(&event);
        match self.engine.outside(draft) {
            Ok(landed) if !landed.repeated => {}
            Ok(_) | Err(EngineError::Refused(_) | EngineError::Append(_)) => {
                self.traceless.push((event["id"].clone(), self.engine.head()));
            }
            Err(error) => panic!("{error}"),
        }
        true
    }

    fn draft(&mut self, event: &Value) -> Draft {
        let id = event["id"].as_str().expect("a text").parse().expect("an id");
        let mut draft = Draft::new(id, text(&event["kind"]), "outside");
        draft.payload = map(&event["payload"]);
        if event["kind"] == "behavior.loaded" {
            let (code, payload) = loaded(&event["payload"]);
            self.engine.learn(code);
            draft.payload = payload;
        }
        draft.changes =
            event["changes"].as_array().expect("a list").iter().map(change_of).collect();
        draft.key = event["key"].as_str().map(Into::into);
        draft.time = Time::from_ms(event["time"].as_i64().expect("a number")).expect("a time");
        draft
    }

    pub(crate) fn rest_at(&mut self, limit: u64) {
        loop {
            while self.feed_one(self.engine.taken()) {}
            if self.engine.taken() >= limit {
                break;
            }
            let step = self.engine.step().expect("a log in memory does not fail");
            if step == Step::Rest && !self.feed_one(u64::MAX) {
                break;
            }
        }
        self.engine.commit().expect("a log in memory does not fail");
    }
}

pub(crate) fn start(case: &Value, library: &mut Library) -> Start {
    let seed = case["seed"].as_i64().expect("a number");
    let flock = map(&json!({"name": "model", "seed": seed, "schedule": case["schedule"]}));
    let mut start = Start { flock, seed, ..Start::default() };
    for behavior in case["behaviors"].as_array().expect("a list") {
        let (code, payload) = loaded(behavior);
        start.behaviors.push((text(&behavior["name"]), payload));
        library.insert(code);
    }
    for event in case["start"].as_array().expect("a list") {
        let mut draft = Draft::new(log::EventId::ZERO, text(&event["kind"]), "outside");
        draft.payload = map(&event["payload"]);
        draft.changes =
            event["changes"].as_array().expect("a list").iter().map(change_of).collect();
        start.events.push(draft);
    }
    start
}

/// An event of ours in the form of the model's lines, which leave out what differs by nature: who,
/// and the words of the runtime.
fn line(event: &Event) -> Value {
    let draft = event.to_draft();
    let runtime = event.kind().starts_with("behavior.") || event.kind().starts_with("flock.");
    let payload = if runtime { Map::new() } else { draft.payload };
    let changes: Vec<Value> = draft.changes.iter().map(model_change).collect();
    let cause = draft.cause.map(|cause| match cause {
        log::Cause::Firing { event, behavior, row } => {
            let row: Vec<&str> = row
                .iter()
                .map(|bound| match bound {
                    log::Bound::Element(id) => id.as_str(),
                    log::Bound::Path(_) => panic!("the model has no paths"),
                })
                .collect();
            json!({"event": event.to_string(), "behavior": behavior.as_str(), "match": row})
        }
        log::Cause::Action { action } => json!({"action": action.to_string()}),
    });
    json!({
        "offset": event.offset().get(), "id": event.id().to_string(), "kind": event.kind(),
        "payload": payload, "changes": changes, "cause": cause, "taken": event.taken(),
        "key": event.key(), "time": event.time().ms(),
    })
}

fn model_change(change: &Change) -> Value {
    match change {
        Change::Create { id, type_name, properties } => {
            json!(["create", id.as_deref(), type_name.as_str(), properties])
        }
        Change::Ensure { id, type_name, properties } => {
            json!(["ensure", id.as_str(), type_name.as_str(), properties])
        }
        Change::Link { type_name, from, to, properties, .. } => {
            json!(["link", type_name.as_str(), from.as_str(), to.as_str(), properties])
        }
        Change::EnsureLink { type_name, from, to, properties } => {
            json!(["ensure_link", type_name.as_str(), from.as_str(), to.as_str(), properties])
        }
        Change::Write { op, id, properties, .. } => {
            let (name, value) = properties.iter().next().expect("the model writes one property");
            json!([op.name(), id.as_str(), name, value])
        }
        Change::Unset { .. } => panic!("the model has no unset"),
        Change::Remove { id } => json!(["remove", id.as_str()]),
    }
}

/// The outside events of a case, in order.
pub(crate) fn script(case: &Value) -> Vec<Fed> {
    let fed = |fed: &Value| Fed {
        need: fed["need"].as_u64().expect("a number"),
        event: fed["event"].clone(),
    };
    case["script"].as_array().expect("a list").iter().map(fed).collect()
}

/// How many activations a case takes at most.
pub(crate) fn limit(case: &Value) -> u64 {
    case["limit"].as_u64().expect("a number")
}

/// The behaviors of a case, those that its outside events load among them.
pub(crate) fn library(case: &Value) -> Library {
    let mut library = Library::new();
    start(case, &mut library);
    for fed in script(case).iter().filter(|fed| fed.event["kind"] == "behavior.loaded") {
        library.insert(loaded(&fed.event["payload"]).0);
    }
    library
}

fn check(case: &Value, wave: usize, threads: usize) {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new(LogId::ZERO));
    let mut library = Library::new();
    let start = start(case, &mut library);
    let branch = start_branch(&log, &BranchName::main(), &start, "test").expect("it starts");
    let mut engine = Engine::open(Arc::clone(&log), branch.id, library, "test").expect("it opens");
    engine.set_wave(wave);
    engine.set_threads(threads);
    let mut run = Run { engine, waiting: script(case), traceless: Vec::new() };
    run.rest_at(limit(case));
    let ours = log::read_all(&*log, branch.id).expect("it reads");
    let ours: Vec<Value> = ours.map(|event| line(&event.expect("it is whole"))).collect();
    let theirs = case["events"].as_array().expect("a list");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(
            ours, theirs,
            "seed {}, {}: ours, then the model's",
            case["seed"], case["schedule"]
        );
    }
    assert_eq!(ours.len(), theirs.len(), "seed {}: as many events", case["seed"]);
}

/// The committed cases.
pub(crate) fn committed() -> Vec<Value> {
    let packed = include_bytes!("oracle/cases.jsonl.zst");
    cases(&zstd::decode_all(&packed[..]).expect("the cases are packed with zstd"))
}

fn cases(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("the cases are text");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

#[test]
fn the_engine_gives_the_events_of_the_model() {
    let cases = committed();
    assert!(cases.len() >= 400, "the committed cases are whole");
    for (n, case) in cases.iter().enumerate() {
        check(case, [1, 3, 2048][n % 3], 1 + n % 3);
    }
}

#[test]
fn long_new_random_flocks_give_the_events_of_the_model() {
    let Ok(model) = std::env::var("STARLING_MODEL") else {
        println!("no STARLING_MODEL: only the committed cases were run");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/cases.py");
    let first = std::process::id().to_string();
    let made = Command::new("python3")
        .args([script, &model, &first, "2000"])
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 is there");
    assert!(made.status.success(), "the model runs");
    std::io::stdout().flush().expect("the terminal takes it");
    for case in cases(&made.stdout) {
        check(&case, 7, 2);
    }
}
