//! How behaviors are tested: a scene in JSON goes in, the proposals come out as text.
//!
//! For tests only: every function panics when what it is given cannot be used.

use std::borrow::Cow;
use std::fmt::Write;

use log::{Bound, EventId, MapRef, Time, ValueWriter};
use serde_json::{Map, Value};

use crate::behavior::Behavior;
use crate::error::ReactError;
use crate::proposal::{Proposals, Reply};
use crate::stream::Stream;
use crate::texts::Texts;
use crate::view::{Binding, ElementView, EventView, Firing, Read};
use crate::word::Word;

/// Everything that a firing borrows from.
///
/// As JSON, each part may be left out:
/// `{"event": {"kind", "payload", "actor", "key"}, "bound": {name: element | [edge, …] | null},
/// "reads": {name: [element, …] | [{variable: element}, …]}, "settings": {…}, "seed": 1,
/// "now": ms, "answer": {…}}`;
/// an element is `{"id", "type", "properties", "version", "from", "to"}`.
#[derive(Clone, Debug)]
pub struct Scene {
    json: Value,
    stored: Vec<(Map<String, Value>, Vec<u8>)>,
    row: Vec<Bound>,
}

impl Scene {
    /// Reads a scene.
    #[must_use]
    pub fn new(json: Value) -> Self {
        let mut stored = Vec::new();
        collect_maps(&json, &mut stored);
        let bound = json["bound"].as_object().into_iter().flatten();
        let row = bound.filter_map(|(_, value)| match value {
            Value::Array(edges) => {
                Some(Bound::Path(edges.iter().map(|e| id_of(e).into()).collect()))
            }
            Value::Null => None,
            element => Some(Bound::Element(id_of(element).into())),
        });
        Scene { row: row.collect(), json, stored }
    }

    /// The firing of a behavior of this name.
    #[must_use]
    pub fn firing<'a>(&'a self, behavior: &'a str) -> Firing<'a> {
        let event = &self.json["event"];
        let now = Time::from_ms(self.json["now"].as_i64().unwrap_or(0)).expect("a time");
        let id = EventId::from_bytes([7; 16]);
        let bound = self.json["bound"].as_object().into_iter().flatten();
        let reads = self.json["reads"].as_object().into_iter().flatten();
        let settings = self.json["settings"].as_object();
        Firing {
            event: EventView {
                id,
                kind: event["kind"].as_str().unwrap_or("test.happened"),
                actor: event["actor"].as_str().unwrap_or("user:ann"),
                key: event["key"].as_str(),
                time: now,
                payload: self.stored(&event["payload"]),
            },
            bound: bound.map(|(name, value)| (name.as_str(), self.binding(value))).collect(),
            reads: reads.map(|(name, rows)| self.read(name, rows)).collect(),
            settings: settings.map_or(Cow::Owned(Map::new()), Cow::Borrowed),
            rand: Stream::of_firing(
                self.json["seed"].as_i64().unwrap_or(1),
                id,
                behavior,
                &self.row[..],
            ),
            now,
            answer: self.json["answer"].as_object().map(|_| self.stored(&self.json["answer"])),
            texts: Texts::none(),
        }
    }

    fn read<'a>(&'a self, name: &'a str, rows: &'a Value) -> Read<'a> {
        let rows = rows.as_array().expect("a read is a list of rows");
        let record = |row: &'a Value| row.as_object().filter(|_| row.get("id").is_none());
        let variables: Vec<&str> = match rows.first().and_then(record) {
            Some(record) => record.keys().map(String::as_str).collect(),
            None => vec![name],
        };
        let bindings = rows.iter().flat_map(|row| match record(row) {
            Some(record) => record.values().map(|value| self.binding(value)).collect(),
            None => vec![self.binding(row)],
        });
        Read { name, variables, bindings: bindings.collect() }
    }

    fn binding<'a>(&'a self, value: &'a Value) -> Binding<'a> {
        match value {
            Value::Null => Binding::Null,
            Value::Array(edges) => Binding::Path(edges.iter().map(|e| self.element(e)).collect()),
            element => Binding::Element(self.element(element)),
        }
    }

    fn element<'a>(&'a self, json: &'a Value) -> ElementView<'a> {
        ElementView {
            id: id_of(json),
            type_name: json["type"].as_str().expect("an element has a type"),
            version: json["version"].as_u64().unwrap_or(1),
            ends: json["from"].as_str().zip(json["to"].as_str()),
            properties: self.stored(&json["properties"]),
        }
    }

    fn stored(&self, map: &Value) -> MapRef<'_> {
        let Some(map) = map.as_object() else { return MapRef::EMPTY };
        let found = self.stored.iter().find(|(json, _)| json == map);
        MapRef::from_checked(&found.expect("every object was stored").1)
    }
}

fn id_of(element: &Value) -> &str {
    element["id"].as_str().expect("an element has an id")
}

/// Stores every object of a scene, so that any of them can be borrowed.
fn collect_maps(json: &Value, stored: &mut Vec<(Map<String, Value>, Vec<u8>)>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect_maps(item, stored)),
        Value::Object(map) => {
            let mut writer = ValueWriter::default();
            writer.entries(map, "scene").expect("an object can be stored");
            stored.push((map.clone(), writer.bytes));
            map.values().for_each(|value| collect_maps(value, stored));
        }
        _ => {}
    }
}

/// Lets a behavior react to a scene.
///
/// # Errors
/// Its reaction failed, or it broke a rule.
pub fn react(behavior: &dyn Behavior, scene: &Scene) -> Result<Reply, ReactError> {
    let firing = scene.firing(&behavior.metadata().name);
    let mut out = Proposals::new(behavior.metadata(), &firing);
    behavior.react(&firing, &mut out)?;
    out.finish()
}

/// What became of a reaction, as text: a line for each event, below it a line for each change.
#[must_use]
pub fn reply_text(reply: &Result<Reply, ReactError>) -> String {
    let mut text = String::new();
    match reply {
        Err(error) => writeln!(text, "error: {error}").expect("a String takes every write"),
        Ok(reply) => {
            for line in &reply.printed {
                writeln!(text, "print: {line}").expect("a String takes every write");
            }
            for proposal in &reply.proposals {
                let payload = Value::Object(proposal.payload.clone());
                let key = proposal.key.as_ref().map_or(String::new(), |key| format!(" key {key}"));
                let word = match proposal.word {
                    Word::Event => String::new(),
                    Word::Request => "request ".to_owned(),
                    word => format!("{} ", word.as_str()),
                };
                let kind = if proposal.word.is_verdict()
                    || matches!(proposal.word, Word::Narrow | Word::Cancel)
                {
                    ""
                } else {
                    proposal.kind.as_str()
                };
                writeln!(text, "{word}{kind} {payload}{key}").expect("a String takes every write");
                for change in &proposal.changes {
                    writeln!(text, "  {}", change.to_json()).expect("a String takes every write");
                }
            }
        }
    }
    text
}

/// Checks what a behavior proposes in a scene; `expected` is as `reply_text` writes it, indented as
/// one likes.
///
/// # Panics
/// It proposes something else.
#[track_caller]
pub fn check(behavior: &dyn Behavior, scene: Value, expected: &str) {
    let found = reply_text(&react(behavior, &Scene::new(scene)));
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(lines(&found), lines(expected), "found:\n{found}");
}
