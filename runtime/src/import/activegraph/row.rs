//! Events and runs as the other system stores them.

use std::fmt;

use serde_json::{Map, Value};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Where it stands in the file: `line 7`.
    pub(crate) place: String,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) payload: Map<String, Value>,
    pub(crate) actor: Option<String>,
    pub(crate) frame: Option<String>,
    pub(crate) cause: Option<String>,
    pub(crate) time: String,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) place: String,
    pub(crate) what: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// One run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Empty where the file does not say.
    pub(crate) id: String,
    /// The run and the event that it was forked at.
    pub(crate) parent: Option<(String, String)>,
    /// All its events, those that it copied from its parent included.
    pub(crate) rows: Vec<Row>,
    pub(crate) bad: Vec<Bad>,
    /// The graph that its first row stands for, where what was before it is not in the file.
    pub(crate) base: Option<Value>,
}

impl Row {
    /// Reads an event as the other system writes it as JSON.
    pub(crate) fn of_json(place: String, json: Value) -> Result<Row, Bad> {
        let bad = |what: &str| Bad { place: place.clone(), what: what.to_owned() };
        let Value::Object(mut fields) = json else { return Err(bad("it is no JSON object")) };
        let mut text = |name: &str| match fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad(&format!("its `{name}` is no text"))),
        };
        let missing = |name: &str| bad(&format!("it has no `{name}`"));
        let id = text("id")?.ok_or_else(|| missing("id"))?;
        let kind = text("type")?.ok_or_else(|| missing("type"))?;
        let time = text("timestamp")?.ok_or_else(|| missing("timestamp"))?;
        let (actor, frame, cause) = (text("actor")?, text("frame_id")?, text("caused_by")?);
        let payload = match fields.remove("payload") {
            Some(Value::Object(payload)) => payload,
            _ => return Err(bad("its `payload` is no JSON object")),
        };
        Ok(Row { place, id, kind, payload, actor, frame, cause, time })
    }

    /// Whether it is the same event, wherever it stands.
    pub(crate) fn same(&self, other: &Row) -> bool {
        let place = self.place.clone();
        *self == Row { place, ..other.clone() }
    }
}

/// Orders runs so that each stands behind the one that it was forked from.
pub(crate) fn parents_first(runs: &mut Vec<Run>) {
    let mut waiting = std::mem::take(runs);
    while !waiting.is_empty() {
        let is_ready = |run: &Run| match &run.parent {
            None => true,
            Some((parent, _)) => !waiting.iter().any(|other| other.id == *parent),
        };
        // Runs that name each other in a circle are taken as they come.
        let next = waiting.iter().position(is_ready).unwrap_or(0);
        runs.push(waiting.remove(next));
    }
}
