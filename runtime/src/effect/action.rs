//! An action: one thing that a behavior wants done outside, however many attempts it takes.
//!
//! Its id is the event that requested it. What it intends is hashed, so that the same intent under
//! another id is recognised while the first is open.

use std::collections::BTreeMap;
use std::sync::Arc;

use effect::Class;
use log::{Derivation, Event, EventId, Hash, INLINE_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use smol_str::SmolStr;

use super::budget::Charge;

/// What an event passes on to what follows from it: how long the chain of causes is, which event
/// from outside began it, and the narrower grants that hold in it.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) depth: u64,
    pub(crate) goal: EventId,
    pub(crate) scopes: Option<Arc<[EventId]>>,
}

/// An action that is not settled.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    /// The request, or the last rewriting of it: what guards are shown.
    pub(crate) asked: Event,
    pub(crate) facts: Facts,
}

/// What is known of an action besides its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) id: EventId,
    /// The node `_Effect` that stands for it.
    pub(crate) node: SmolStr,
    /// Where it was requested.
    pub(crate) offset: u64,
    pub(crate) effect: SmolStr,
    pub(crate) behavior: SmolStr,
    /// Which of its behavior's requests it is, from 1.
    pub(crate) nth: u64,
    /// The firing that requested it: `taken` of its events.
    pub(crate) firing: u64,
    /// The event from outside that began the chain of causes.
    pub(crate) goal: EventId,
    /// The narrower grants under which it was requested, outermost first.
    pub(crate) scopes: Vec<EventId>,
    pub(crate) key: Option<SmolStr>,
    /// When it was requested, in milliseconds.
    pub(crate) time: i64,
    /// How often its arguments were rewritten.
    pub(crate) revision: u32,
    /// The guards that let this revision pass, each with the hash of its source; one with a
    /// pattern, once for each match.
    pub(crate) allowed: BTreeMap<SmolStr, SmolStr>,
    /// Who refused, and why.
    pub(crate) denied: Option<(SmolStr, String)>,
    /// Whether a person approved this revision.
    pub(crate) approved: bool,
    /// Whether it is to end: what has not left is ended, what is out is told to, and what is in
    /// doubt is not sent again.
    pub(crate) cancelled: bool,
    pub(crate) stage: Stage,
    /// Attempts dispatched so far.
    pub(crate) attempts: u32,
    pub(crate) intent: Option<Hash>,
    /// What is set aside for it in its budgets.
    pub(crate) reserved: Charge,
    /// The request that a guard asks this to judge.
    pub(crate) judges: Option<Judges>,
    /// When its first attempt was dispatched: a provider's window is counted from here.
    pub(crate) first: i64,
}

/// What a guard asks an effect to judge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Judges {
    pub(crate) action: EventId,
    pub(crate) revision: u32,
    /// Who the guard is, with the hash of its source.
    pub(crate) actor: SmolStr,
    /// The match on which it was asked, if it has a pattern.
    pub(crate) question: Option<SmolStr>,
    /// Whether the guard itself turns the answer into its verdict.
    pub(crate) hears: bool,
}

/// How far an action is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Waits for guards, a grant, room or its turn.
    Requested,
    /// Waits for a person's approval.
    Held { expires: i64 },
    /// Ends as another action with the same intent ends.
    Linked { to: EventId },
    /// An attempt is out.
    Running(Running),
    /// Waits before the next attempt.
    Waiting { until: i64 },
    /// It may have taken effect.
    Unknown(Doubt),
}

/// An attempt that is out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) attempt: u32,
    pub(crate) executor: SmolStr,
    pub(crate) class: Class,
    pub(crate) epoch: u64,
    /// When it is over at the latest, or due.
    pub(crate) deadline: i64,
    /// The doubt that this attempt is to settle, if it is sent again for that.
    pub(crate) doubt: Option<Box<Doubt>>,
}

/// What is known about an action whose outcome is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Doubt {
    /// The attempt in doubt.
    pub(crate) attempt: u32,
    pub(crate) class: Class,
    pub(crate) executor: SmolStr,
    /// How often it was looked at, or sent again.
    pub(crate) looks: u32,
    /// When to look next.
    pub(crate) next: i64,
    /// Why only a person can decide; none while it may settle by itself.
    pub(crate) person: Option<String>,
    /// Whether a look found that it did not take effect and no longer can.
    pub(crate) absent: bool,
    /// What the attempt changes, as JSON.
    pub(crate) fingerprint: Option<String>,
}

impl Action {
    /// The arguments of this revision, long texts as references to blobs.
    pub(crate) fn args(&self) -> Value {
        self.asked.payload().get("args").map_or_else(|| json!({}), |args| args.to_json())
    }

    /// Whether it has not left yet, so that guards and grants still decide.
    pub(crate) fn is_waiting_to_leave(&self) -> bool {
        matches!(self.facts.stage, Stage::Requested | Stage::Held { .. })
    }
}

impl Facts {
    /// Whether somebody outside may still be at it.
    pub(crate) fn is_out(&self) -> bool {
        match &self.stage {
            Stage::Running(running) => !is_inner(&running.executor),
            Stage::Unknown(_) => true,
            _ => false,
        }
    }

    /// Whether it is to end and nobody outside has to be asked for that.
    pub(crate) fn is_to_end(&self) -> bool {
        self.cancelled && !self.is_out()
    }

    /// When something is to be done about it though nothing is heard from outside.
    pub(crate) fn due(&self) -> Option<i64> {
        match &self.stage {
            Stage::Held { expires } => Some(*expires),
            Stage::Waiting { until } => Some(*until),
            Stage::Unknown(doubt) if doubt.person.is_none() => Some(doubt.next),
            Stage::Running(running) if is_inner(&running.executor) => Some(running.deadline),
            _ => None,
        }
    }
}

/// Whether the runtime itself answers: the clock and people need no executor.
pub(crate) fn is_inner(executor: &str) -> bool {
    executor == "clock" || executor == "person"
}

/// What an action intends: the effect, its arguments, what they are relative to, its key, and the
/// workspace as the log last recorded it. Spelling makes no difference, a changed workspace does.
pub(crate) fn intent_of(
    effect: &str,
    args: &Value,
    scope: &str,
    key: Option<&str>,
    workspace: Option<&EventId>,
) -> Hash {
    let parts = json!([
        "intent",
        effect,
        normal(args),
        scope,
        key,
        workspace.map(|revision| revision.hex().as_str().to_owned()),
    ]);
    Hash::of(parts.to_string().as_bytes())
}

/// What is asked for, wherever: for recorded answers that name no intent.
pub(crate) fn question_of(effect: &str, args: &Value) -> Hash {
    Hash::of(json!(["question", effect, normal(args)]).to_string().as_bytes())
}

/// The key that a provider is given: the same for every attempt at an action on one branch.
pub(crate) fn idempotency_key(action: &EventId, branch: &str) -> String {
    Derivation::new().id(action).text(branch).finish().to_string()
}

/// A value in one spelling: whole floats as integers, long texts as references.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(normal_number(number)),
        Value::String(text) if text.len() > INLINE_MAX => {
            json!({"$blob": Hash::of(text.as_bytes()).to_string()})
        }
        Value::Array(items) => Value::Array(items.iter().map(normal).collect()),
        Value::Object(map) => match map.get("$blob") {
            Some(blob) => json!({"$blob": blob}),
            None => Value::Object(map.iter().map(|(k, v)| (k.clone(), normal(v))).collect()),
        },
        other => other.clone(),
    }
}

fn normal_number(number: &Number) -> Number {
    if number.as_i64().is_some() || number.as_u64().is_some() {
        return number.clone();
    }
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() < 9.0e15 => (float as i64).into(),
        Some(float) => Number::from_f64(float).unwrap_or_else(|| number.clone()),
        None => number.clone(),
    }
}

/// A map with one entry for each pair that has a value.
pub(crate) fn object<const N: usize>(pairs: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let pairs = pairs.into_iter();
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(args: Value) -> Hash {
        intent_of("tool:x", &args, "flock", None, None)
    }

    #[test]
    fn spelling_is_no_other_intent_and_content_is() {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let one = intent(parsed(r#"{"a": 1, "b": {"c": 2.50, "d": [1e2]}}"#));
        assert_eq!(one, intent(parsed(r#"{"b": {"d": [100], "c": 2.5}, "a": 1.0}"#)));
        assert_ne!(one, intent(parsed(r#"{"a": 1, "b": {"c": 2.5, "d": [101]}}"#)));
        assert_ne!(one, intent(parsed(r#"{"a": "1", "b": {"c": 2.5, "d": [100]}}"#)));
    }

    #[test]
    fn another_key_scope_or_workspace_is_another_intent() {
        let args = json!({"a": 1});
        let revision = EventId::from_bytes([1; 16]);
        let all = [
            intent_of("tool:x", &args, "flock", None, None),
            intent_of("tool:y", &args, "flock", None, None),
            intent_of("tool:x", &args, "other", None, None),
            intent_of("tool:x", &args, "flock", Some("key"), None),
            intent_of("tool:x", &args, "flock", None, Some(&revision)),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn a_long_text_and_its_reference_are_the_same_argument() {
        let text = "x".repeat(INLINE_MAX + 1);
        let hash = Hash::of(text.as_bytes()).to_string();
        let stored = json!({"t": {"$blob": hash, "head": "xxx", "size": text.len()}});
        assert_eq!(intent(json!({"t": text})), intent(stored));
    }
}
