//! Recorded answers: what the world said once, from a file or from any log, served to any effect
//! without asking again.
//!
//! An answer is found by the action and its intent; then by the intent, in the order in which the
//! answers were recorded; and answers of a file that name no intent by the effect and its
//! arguments. Nothing is served silently: the event that dispatches says `recorded`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Range;
use std::path::Path;

use effect::EffectError;
use log::{BranchId, EventId, Hash, Log, LogError, Offset, read};
use serde_json::{Value, json};

use super::action::question_of;
use super::events::Ending;
use super::state::action_of;

/// Where answers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serving {
    /// The world.
    #[default]
    Live,
    /// What is recorded; what is not waits.
    Recorded,
    /// What is recorded, else the world.
    RecordedThenLive,
}

impl Serving {
    /// The word for it in fork records and `flock.toml`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Serving::Live => "live",
            Serving::Recorded => "recorded",
            Serving::RecordedThenLive => "recorded_then_live",
        }
    }

    /// The mode called so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Serving> {
        let all = [Serving::Live, Serving::Recorded, Serving::RecordedThenLive];
        all.into_iter().find(|serving| serving.as_str() == name)
    }
}

/// Recorded answers.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    by_action: HashMap<(EventId, Hash), Ending>,
    /// With the action whose answer it was.
    by_intent: HashMap<Hash, Vec<(Option<EventId>, Ending)>>,
    by_question: HashMap<Hash, Vec<(Option<EventId>, Ending)>>,
    /// Answers given in place of recorded ones.
    overridden: HashMap<EventId, Ending>,
}

/// An answer that is served, and which one of its intent it is, if no action owned it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Served {
    pub(crate) ending: Ending,
    pub(crate) sequence: Option<u64>,
    /// Who is said to have answered.
    pub(crate) by: &'static str,
}

impl Recorded {
    /// Whether there is no answer at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = self.by_action.is_empty() && self.overridden.is_empty();
        none && self.by_intent.is_empty() && self.by_question.is_empty()
    }

    /// Reads a file of lines `{"effect", "args", "status"?, "result"?, "error"?, "intent"?,
    /// "action"?}`; or a log, as `starling export` writes it, for what was answered in it.
    ///
    /// # Errors
    /// It cannot be read; says which line is wrong.
    pub fn of_file(path: &Path) -> Result<Recorded, String> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let (mut recorded, mut asked) = (Recorded::default(), HashMap::new());
        for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |what: &str| format!("{}:{}: {what}", path.display(), nth + 1);
            let line = log::parse_object(line).map_err(|error| wrong(&error.to_string()))?;
            let line = Value::Object(line);
            if line.get("kind").is_some() {
                recorded.take_event(&line, &mut asked);
            } else {
                recorded.take_line(&line).map_err(|what| wrong(&what))?;
            }
        }
        Ok(recorded)
    }

    /// Takes what an event of an exported log tells: a question, or the answer to one.
    fn take_event(&mut self, line: &Value, asked: &mut HashMap<String, Hash>) {
        let payload = &line["payload"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match line["kind"].as_str().unwrap_or_default() {
            "effect.requested" => {
                let effect = payload["effect"].as_str().unwrap_or_default();
                if let Some(id) = text(&line["id"]) {
                    asked.insert(id, question_of(effect, &payload["args"]));
                }
            }
            "effect.rewritten" => {
                let effect = payload["effect"].as_str().unwrap_or_default();
                if let Some(action) = text(&payload["action"]) {
                    asked.insert(action, question_of(effect, &payload["args"]));
                }
            }
            "effect.ended" | "effect.reconciled" => {
                let question = payload["action"].as_str().and_then(|action| asked.get(action));
                if let (Some(question), Some(ending)) = (question, ending_of(payload)) {
                    self.by_question.entry(*question).or_default().push((None, ending));
                }
            }
            _ => {}
        }
    }

    fn take_line(&mut self, line: &Value) -> Result<(), String> {
        let effect = line["effect"].as_str().ok_or("an answer names its `effect`")?;
        let empty = json!({});
        let args = line.get("args").unwrap_or(&empty);
        let ending =
            ending_of(line).ok_or("an answer has a `result`, or a `status` and an `error`")?;
        let hash = |name: &str| line[name].as_str().and_then(|text| text.parse::<Hash>().ok());
        let action = line["action"].as_str().and_then(|text| text.parse::<EventId>().ok());
        match (hash("intent"), action) {
            (Some(intent), action) => self.put(action, intent, ending),
            (None, _) => {
                let all = self.by_question.entry(question_of(effect, args)).or_default();
                all.push((None, ending));
            }
        }
        Ok(())
    }

    /// Reads the answers that a branch holds in a stretch of it.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn of_log(
        log: &dyn Log,
        branch: BranchId,
        range: Range<Offset>,
    ) -> Result<Recorded, LogError> {
        let mut recorded = Recorded::default();
        let mut intents: BTreeMap<EventId, Hash> = BTreeMap::new();
        for event in read(log, branch, Offset::ZERO..range.end)? {
            let event = event?;
            let Some(action) = action_of(&event) else { continue };
            let payload = event.payload();
            match event.kind() {
                "effect.dispatched" => {
                    let intent = payload.get("intent").and_then(|intent| intent.as_str());
                    if let Some(intent) = intent.and_then(|intent| intent.parse().ok()) {
                        intents.insert(action, intent);
                    }
                }
                "effect.ended" | "effect.reconciled" if event.offset() >= range.start => {
                    let ending = ending_of(&Value::Object(payload.to_json()));
                    if let (Some(ending), Some(intent)) = (ending, intents.get(&action)) {
                        recorded.put(Some(action), *intent, ending);
                    }
                }
                _ => {}
            }
        }
        Ok(recorded)
    }

    /// Adds what else is recorded; what is known of an action stays.
    pub fn extend(&mut self, mut other: Recorded) {
        for (intent, endings) in std::mem::take(&mut other.by_intent) {
            self.by_intent.entry(intent).or_default().extend(endings);
        }
        for (question, endings) in std::mem::take(&mut other.by_question) {
            self.by_question.entry(question).or_default().extend(endings);
        }
        self.extend_owned(other);
    }

    /// Adds the answers that belong to an action.
    pub(crate) fn extend_owned(&mut self, other: Recorded) {
        for (known, ending) in other.by_action {
            self.by_action.entry(known).or_insert(ending);
        }
        self.overridden.extend(other.overridden);
    }

    /// Answers an action so, whatever is recorded.
    pub(crate) fn override_with(&mut self, action: EventId, ending: Ending) {
        self.overridden.insert(action, ending);
    }

    /// Whether an action is answered otherwise than recorded.
    pub(crate) fn is_overridden(&self, action: &EventId) -> bool {
        self.overridden.contains_key(action)
    }

    fn put(&mut self, action: Option<EventId>, intent: Hash, ending: Ending) {
        if let Some(action) = action {
            self.by_action.insert((action, intent), ending.clone());
        }
        self.by_intent.entry(intent).or_default().push((action, ending));
    }

    /// The answer to an action. `served` is how many of its intent were passed by in their order,
    /// and `asked` tells whether an action was asked for here: its answer is kept for it.
    pub(crate) fn find(
        &self,
        action: &EventId,
        intent: &Hash,
        question: &Hash,
        (served, asked): (u64, &dyn Fn(&EventId) -> bool),
    ) -> Option<Served> {
        if let Some(ending) = self.overridden.get(action) {
            return Some(Served { ending: ending.clone(), sequence: None, by: "override" });
        }
        if let Some(ending) = self.by_action.get(&(*action, *intent)) {
            return Some(Served { ending: ending.clone(), sequence: None, by: "recorded" });
        }
        let all = self.by_intent.get(intent).or_else(|| self.by_question.get(question))?;
        let from = usize::try_from(served).ok()?;
        let free = |(_, (owner, _)): &(usize, &(Option<EventId>, Ending))| {
            !owner.as_ref().is_some_and(asked)
        };
        let (place, (_, ending)) = all.iter().enumerate().skip(from).find(free)?;
        Some(Served { ending: ending.clone(), sequence: Some(place as u64), by: "recorded" })
    }
}

/// How something ended, as a line or an event says; none if it says nothing settled.
pub(crate) fn ending_of(json: &Value) -> Option<Ending> {
    let error = json.get("error").filter(|error| !error.is_null());
    let said = json.get("status").and_then(Value::as_str);
    let status = match said.unwrap_or(if error.is_some() { "failed" } else { "succeeded" }) {
        "succeeded" => "succeeded",
        "failed" => "failed",
        "cancelled" => "cancelled",
        // What was refused here is refused by the rules here, or not.
        _ => return None,
    };
    let error: Option<EffectError> = match error {
        Some(error) => Some(serde_json::from_value(error.clone()).ok()?),
        None => None,
    };
    let result = json.get("result").cloned();
    if status == "succeeded" && result.is_none() {
        return None;
    }
    let fingerprint = json.get("fingerprint").cloned();
    let fingerprint = fingerprint.and_then(|print| serde_json::from_value(print).ok());
    Some(Ending { status, result, error, fingerprint })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::effect::action::intent_of;

    fn file(lines: &str) -> Result<Recorded, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a file for a test");
        file.write_all(lines.as_bytes()).expect("it is written");
        Recorded::of_file(file.path())
    }

    #[test]
    fn answers_are_found_by_action_then_by_intent_in_order_then_by_question() {
        let args = json!({"n": 1});
        let intent = intent_of("tool:x", &args, "f", None, None);
        let question = question_of("tool:x", &args);
        let action = EventId::from_bytes([1; 16]);
        let lines = format!(
            "{}\n{}\n{}\n",
            json!({"effect": "tool:x", "intent": intent.to_string(), "action": action.to_string(), "result": {"a": 1}}),
            json!({"effect": "tool:x", "intent": intent.to_string(), "result": {"a": 2}}),
            json!({"effect": "tool:x", "args": {"n": 1.0}, "result": {"a": 3}}),
        );
        let recorded = file(&lines).expect("it is read");
        let result = |action: [u8; 16], intent: &Hash, served| {
            let action = EventId::from_bytes(action);
            let found = recorded.find(&action, intent, &question, (served, &|_| false))?;
            Some((found.ending.result.expect("a result")["a"].as_u64(), found.sequence))
        };
        assert_eq!(result([1; 16], &intent, 9), Some((Some(1), None)));
        assert_eq!(result([2; 16], &intent, 0), Some((Some(1), Some(0))));
        assert_eq!(result([2; 16], &intent, 1), Some((Some(2), Some(1))));
        assert_eq!(result([2; 16], &intent, 2), None);
        let other = Hash::of(b"other");
        assert_eq!(result([2; 16], &other, 0), Some((Some(3), Some(0))));
    }

    #[test]
    fn a_line_that_is_no_answer_is_named() {
        let says = |lines: &str| file(lines).expect_err("it is wrong");
        assert!(says("{\"effect\": \"x\", \"result\": 1}\n{").contains(":2: "));
        assert!(says("{}").ends_with(":1: an answer names its `effect`"));
        let nothing = says("{\"effect\": \"x\"}");
        assert!(nothing.ends_with("an answer has a `result`, or a `status` and an `error`"));
    }
}
