//! A test file beside a behavior, `NAME.test.toml`: what is given, and what is expected to be
//! proposed.

use std::collections::VecDeque;
use std::path::Path;

use behaviors::{Loaded, did_you_mean};
use effect::{Blame, EffectError};
use log::{Change, Derivation, Draft, EventId, Time};
use serde_json::{Map, Value, json};

use super::subject::{failure, proposal};
use crate::effect::Ending;
use crate::engine::trial::{Asked, Trial};

/// One test of a file.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    settings: Map<String, Value>,
    given: Vec<Draft>,
    answers: Vec<(String, Ending)>,
    expect: Vec<Value>,
    fails: Option<String>,
    /// Whether the order of proposals is left to the schedule.
    unordered: bool,
}

/// How many firings a test may take.
const FIRINGS_MAX: u64 = 10_000;
/// In an expectation: whatever stands there.
const ANY: &str = "*";

const FIELDS: [&str; 7] = ["name", "settings", "given", "answer", "expect", "fails", "unordered"];

/// Reads a test file.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Case>, String> {
    let bad = |what: String| format!("{}: {what}", path.display());
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| bad(error.to_string()))?;
    if let Some(other) = table.keys().find(|key| *key != "test") {
        return Err(bad(format!("there is no [{other}]; a test is a [[test]]")));
    }
    let cases = table.get("test").and_then(toml::Value::as_array);
    let cases = cases.filter(|cases| !cases.is_empty());
    let cases = cases.ok_or_else(|| bad("it has no [[test]]".to_owned()))?;
    let read = |(nth, case): (usize, &toml::Value)| {
        let json = serde_json::to_value(case).map_err(|error| error.to_string());
        json.and_then(|json| Case::read(&json, nth)).map_err(bad)
    };
    cases.iter().enumerate().map(read).collect()
}

impl Case {
    fn read(json: &Value, nth: usize) -> Result<Case, String> {
        let map = json.as_object().ok_or("a [[test]] is a table")?;
        let name = match map.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => format!("test {}", nth + 1),
        };
        let at = |what: String| format!("`{name}`: {what}");
        known(map, &FIELDS).map_err(at)?;
        let list = |field: &str| match map.get(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(_) => Err(at(format!("`{field}` is a list: [[test.{field}]]"))),
        };
        let given = list("given")?;
        let given = given.iter().map(draft).collect::<Result<_, _>>().map_err(at)?;
        let answers = list("answer")?;
        let answers = answers.iter().map(answer).collect::<Result<_, _>>().map_err(at)?;
        let expect = list("expect")?;
        for expected in &expect {
            let words = ["emit", "request", "allow", "deny", "rewrite"];
            if !words.iter().any(|word| expected.get(word).is_some()) {
                return Err(at(format!("an expectation has one of {}", words.join(", "))));
            }
            let fields = ["payload", "changes", "args", "key"];
            let all: Vec<&str> = words.into_iter().chain(fields).collect();
            known(expected.as_object().unwrap_or(&Map::new()), &all).map_err(at)?;
        }
        let settings = map.get("settings").and_then(Value::as_object).cloned();
        let fails = map.get("fails").and_then(Value::as_str).map(str::to_owned);
        let unordered = map.get("unordered") == Some(&Value::Bool(true));
        let settings = settings.unwrap_or_default();
        Ok(Case { settings, given, answers, expect, fails, unordered, name })
    }

    /// Runs it on the behaviors of its file. What is wrong, if something is.
    pub(super) fn run(
        &self,
        declared: &[Loaded],
        flock: &Map<String, Value>,
        start: Time,
    ) -> Result<(), String> {
        let mut flock = flock.clone();
        if let Some(settings) = flock.get_mut("settings").and_then(Value::as_object_mut) {
            for (name, value) in &self.settings {
                if !settings.contains_key(name) {
                    let hint = did_you_mean(name, settings.keys().map(String::as_str));
                    return Err(format!("the flock has no setting `{name}`{hint}"));
                }
                settings.insert(name.clone(), value.clone());
            }
        }
        let mut trial = Trial::new();
        begin(&mut trial, flock, start)?;
        declared.iter().try_for_each(|loaded| trial.load(loaded, start))?;
        let mut answers: VecDeque<_> = self.answers.iter().cloned().collect();
        for (nth, draft) in self.given.iter().enumerate() {
            trial
                .say(given(draft.clone(), nth, start))
                .map_err(|what| format!("what is given cannot be: {} ({what})", draft.kind))?;
            settle(&mut trial, &mut answers)?;
        }
        settle(&mut trial, &mut answers)?;
        if let Some((effect, _)) = answers.front() {
            return Err(format!("nobody asked for the answer that is given to {effect}"));
        }
        self.compare(&trial)
    }

    fn compare(&self, trial: &Trial<'_>) -> Result<(), String> {
        let failures: Vec<String> = trial.events.iter().filter_map(failure).collect();
        match (&self.fails, failures.as_slice()) {
            (None, []) => {}
            (None, [first, ..]) => return Err(format!("it fails: {first}")),
            (Some(says), all) if !all.iter().any(|what| what.contains(says.as_str())) => {
                let found =
                    if all.is_empty() { "nothing fails".to_owned() } else { all.join("\n") };
                return Err(format!("expected a failure that says `{says}`; {found}"));
            }
            (Some(_), _) => {}
        }
        let own = |event: &log::Event| {
            let effect = event.payload().get("effect").and_then(log::ValueRef::as_str);
            let author = event.author().unwrap_or_default();
            event.kind() == "effect.requested" && effect.is_some_and(|e| trial.asks(author, e))
        };
        let events = trial.events.iter().filter(|event| !own(event));
        let mut found: Vec<Value> = events.filter_map(proposal).collect();
        if self.unordered {
            found = in_order_of(&self.expect, found);
        }
        let fits = found.len() == self.expect.len()
            && self.expect.iter().zip(&found).all(|(expected, found)| agrees(expected, found));
        if fits { Ok(()) } else { Err(difference(&self.expect, &found)) }
    }
}

/// Lets what is due fire and answers what is asked, until nothing moves.
fn settle(trial: &mut Trial<'_>, answers: &mut VecDeque<(String, Ending)>) -> Result<(), String> {
    loop {
        trial.run(FIRINGS_MAX)?;
        if trial.is_due() {
            return Err(format!("it is not at rest after {FIRINGS_MAX} firings"));
        }
        let open = trial.open();
        let next = open.iter().find_map(|asked: &Asked| {
            let place = answers.iter().position(|(effect, _)| *effect == asked.effect)?;
            Some((asked.id, place))
        });
        let Some((id, place)) = next else { return Ok(()) };
        let (_, ending) = answers.remove(place).expect("it was just found");
        trial.answer(&id, &ending)?;
    }
}

/// Begins a world as a flock does.
pub(super) fn begin(
    trial: &mut Trial<'_>,
    flock: Map<String, Value>,
    start: Time,
) -> Result<(), String> {
    let id = Derivation::new().text("start").finish();
    let draft = Draft { payload: flock, time: start, ..Draft::new(id, "flock.started", "runtime") };
    trial.say(draft)
}

/// An event from outside, the nth one, at its time.
pub(super) fn given(draft: Draft, nth: usize, start: Time) -> Draft {
    let id = Derivation::new().text("given").integer(nth as u64).finish();
    let time = if draft.time == Time::default() { start } else { draft.time };
    Draft { id, time, ..draft }
}

fn known(map: &Map<String, Value>, fields: &[&str]) -> Result<(), String> {
    match map.keys().find(|key| !fields.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let hint = did_you_mean(key, fields.iter().copied());
            Err(format!("there is no `{key}`{hint}; there are {}", fields.join(", ")))
        }
    }
}

fn draft(json: &Value) -> Result<Draft, String> {
    let map = json.as_object().ok_or("what is given is an event: kind, payload, changes")?;
    known(map, &["kind", "actor", "key", "payload", "changes", "time"])?;
    let text = |name: &str| json[name].as_str();
    let kind = text("kind").ok_or("an event that is given has a `kind`")?;
    let mut draft = Draft::new(EventId::ZERO, kind, text("actor").unwrap_or("user:test"));
    draft.key = text("key").map(Into::into);
    draft.payload = json["payload"].as_object().cloned().unwrap_or_default();
    if let Some(time) = text("time") {
        draft.time = time.parse().map_err(|error: log::NameError| error.to_string())?;
    }
    for (nth, change) in json["changes"].as_array().into_iter().flatten().enumerate() {
        let read = Change::from_json(change, &format!("given {kind}.changes[{nth}]"));
        draft.changes.push(read.map_err(|error| error.to_string())?);
    }
    Ok(draft)
}

fn answer(json: &Value) -> Result<(String, Ending), String> {
    let map = json.as_object().ok_or("an answer has an effect and a result, or an error")?;
    known(map, &["effect", "result", "error"])?;
    let effect = json["effect"].as_str().ok_or("an answer names its `effect`")?.to_owned();
    let ending = match (map.get("result"), map.get("error").and_then(Value::as_str)) {
        (Some(result), None) => Ending::succeeded(result.clone()),
        (None, Some(message)) => {
            let error = EffectError::new("test.error", Blame::Tool, message, "see the test");
            Ending::with("failed", error)
        }
        _ => return Err(format!("the answer to {effect} has a `result` or an `error`, a text")),
    };
    Ok((effect, ending))
}

/// Whether a proposal is as expected: what is not said does not matter, `"*"` is anything.
fn agrees(expected: &Value, found: &Value) -> bool {
    let Some(map) = expected.as_object() else { return false };
    map.iter().all(|(name, expected)| same(expected, found.get(name).unwrap_or(&Value::Null)))
}

fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == ANY => true,
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            // TOML has no null, so what is null may be left out.
            let known = b.iter().all(|(name, b)| b.is_null() || a.contains_key(name));
            known && a.iter().all(|(name, a)| same(a, b.get(name).unwrap_or(&Value::Null)))
        }
        (a, b) => a == b,
    }
}

/// What was found in the order in which it is expected; what nobody expects comes last.
fn in_order_of(expected: &[Value], mut found: Vec<Value>) -> Vec<Value> {
    let mut ordered = Vec::with_capacity(found.len());
    for expected in expected {
        if let Some(place) = found.iter().position(|found| agrees(expected, found)) {
            ordered.push(found.remove(place));
        }
    }
    ordered.extend(found);
    ordered
}

/// Both lists, line by line: what was expected and is not there, and what is there instead.
fn difference(expected: &[Value], found: &[Value]) -> String {
    let mut lines = Vec::new();
    for nth in 0..expected.len().max(found.len()) {
        match (expected.get(nth), found.get(nth)) {
            (Some(expected), Some(found)) if agrees(expected, found) => {
                lines.push(format!("  {found}"));
            }
            (expected, found) => {
                lines.extend(expected.map(|expected| format!("- {expected}")));
                // Only what is compared is shown, so that the difference can be seen.
                let shown = found.map(|found| match expected.and_then(Value::as_object) {
                    Some(said) => {
                        let part = |name: &String| Some((name.clone(), found.get(name)?.clone()));
                        let part: Map<String, Value> = said.keys().filter_map(part).collect();
                        if part.is_empty() { found.clone() } else { Value::Object(part) }
                    }
                    None => found.clone(),
                });
                lines.extend(shown.map(|found| format!("+ {found}")));
            }
        }
    }
    let both = json!({"expected": expected.len(), "proposed": found.len()});
    format!("other proposals than expected (- expected, + proposed) {both}\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_does_not_matter_and_a_star_is_anything() {
        let found =
            json!({"emit": "a.b", "payload": {"n": 1, "x": null}, "changes": [{"set": "t"}]});
        assert!(agrees(&json!({"emit": "a.b"}), &found));
        assert!(agrees(&json!({"emit": "a.b", "payload": {"n": 1.0}}), &found));
        assert!(agrees(&json!({"emit": "a.b", "payload": {"n": "*"}}), &found));
        assert!(!agrees(&json!({"emit": "a.b", "payload": {}}), &found), "a payload is whole");
        assert!(!agrees(&json!({"emit": "a.b", "changes": []}), &found));
        assert!(!agrees(&json!({"emit": "a.c"}), &found));
    }
}
