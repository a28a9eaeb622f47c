//! The events of an action, each with what it does to the graph.
//!
//! Nodes: `_Effect` for the action, `_Attempt` for each attempt, `_Outcome` for each answer to what
//! became of it; edges `(_Effect)-[:_ATTEMPT]->(_Attempt)` and `(_Effect)-[:_OUTCOME]->(_Outcome)`.

use effect::{EffectError, Fingerprint};
use log::{Cause, Change, Derivation, Draft, EventId, Time, WriteOp, element_id};
use serde_json::{Map, Value, json};
use smol_str::{SmolStr, format_smolstr};

use super::action::{Action, Facts, object};
use super::excerpts;

/// How an action ended, or what settled it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    /// `succeeded`, `failed`, `cancelled`, `rejected` or `unknown`.
    pub(crate) status: &'static str,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<EffectError>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Ending {
    pub(crate) fn succeeded(result: Value) -> Self {
        Ending { status: "succeeded", result: Some(result), error: None, fingerprint: None }
    }

    pub(crate) fn with(status: &'static str, error: EffectError) -> Self {
        Ending { status, result: None, error: Some(error), fingerprint: None }
    }

    fn error_json(&self) -> Option<Value> {
        self.error.as_ref().map(|error| json!(error))
    }
}

/// An event of the runtime about an action. Its id is a derivation of the action, the kind, a
/// number and, for what the world said, the content.
pub(crate) fn about(facts: &Facts, kind: &str, number: u64, payload: Map<String, Value>) -> Draft {
    let says =
        matches!(kind, "attempt.ended" | "effect.ended" | "effect.reconciled" | "attempt.late");
    let id = Derivation::new().id(&facts.id).text(kind).integer(number);
    let payload = Value::Object(payload);
    let id = if says { id.json(&payload) } else { id };
    let excerpts = says.then(|| excerpts::of(&payload)).flatten();
    let Value::Object(mut payload) = payload else { unreachable!("it was made an object above") };
    payload.extend(excerpts.map(|excerpts| ("excerpts".to_owned(), excerpts)));
    let named = [
        ("action", json!(facts.id.to_string())),
        ("node", json!(facts.node.as_str())),
        ("effect", json!(facts.effect.as_str())),
    ];
    payload.extend(named.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let actor = match kind {
        "attempt.ended" | "attempt.late" => format_smolstr!("effect:{}", facts.effect),
        _ => SmolStr::from("runtime"),
    };
    let mut draft = Draft::new(id.finish(), kind, actor);
    draft.payload = payload;
    draft.cause = Some(Cause::Action { action: facts.id });
    draft
}

pub(crate) fn set(id: &str, properties: Value) -> Change {
    let Value::Object(properties) = properties else { panic!("properties are an object") };
    Change::Write { op: WriteOp::Set, id: id.into(), properties, if_version: None }
}

pub(crate) fn append(id: &str, properties: Value) -> Change {
    let Value::Object(properties) = properties else { panic!("properties are an object") };
    Change::Write { op: WriteOp::Append, id: id.into(), properties, if_version: None }
}

fn create(type_name: &str, properties: Map<String, Value>) -> Change {
    Change::Create { id: None, type_name: type_name.into(), properties }
}

fn link(from: &str, type_name: &str, to: &str) -> Change {
    let (from, to, properties) = (from.into(), to.into(), Map::new());
    Change::Link { id: None, type_name: type_name.into(), from, to, properties }
}

pub(crate) fn at(mut draft: Draft, now: Time) -> Draft {
    draft.time = now;
    draft
}

/// The runtime put other arguments in place: those that its executor understands them to be.
pub(crate) fn rewritten(action: &Action, args: &Value) -> Draft {
    let facts = &action.facts;
    let revision = facts.revision + 1;
    let payload = object([("args", Some(args.clone())), ("revision", Some(json!(revision)))]);
    let mut draft = about(facts, "effect.rewritten", u64::from(revision), payload);
    draft.changes.push(set(&facts.node, json!({"args": args})));
    draft
}

/// A guard is asked whose pattern the request meets only now.
pub(crate) fn asked(facts: &Facts, guard: &str, at: u64) -> Draft {
    let payload =
        object([("guard", Some(json!(guard))), ("revision", Some(json!(facts.revision)))]);
    about(facts, "effect.asked", at, payload)
}

/// It waits for a person until then.
pub(crate) fn held(facts: &Facts, expires: i64) -> Draft {
    let payload =
        object([("expires", Some(json!(expires))), ("revision", Some(json!(facts.revision)))]);
    let mut draft = about(facts, "effect.held", u64::from(facts.revision), payload);
    draft.changes.push(set(&facts.node, json!({"status": "held"})));
    draft
}

/// It ends as another ends.
pub(crate) fn linked(facts: &Facts, to: &EventId) -> Draft {
    let mut draft = about(facts, "effect.linked", 0, object([("to", Some(json!(to.to_string())))]));
    draft.changes.push(set(&facts.node, json!({"status": "linked"})));
    draft.changes.push(link(&facts.node, "_LINKED", &element_id("_Effect", to, 0)));
    draft
}

/// An attempt that leaves.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    pub(crate) attempt: u32,
    pub(crate) executor: SmolStr,
    pub(crate) class: effect::Class,
    pub(crate) epoch: u64,
    pub(crate) deadline: i64,
    pub(crate) intent: log::Hash,
    pub(crate) reserves: Value,
    /// Which of the recorded answers to its intent it is given.
    pub(crate) sequence: Option<u64>,
    /// Why it leaves again although its outcome is unknown.
    pub(crate) again: Option<&'static str>,
}

fn attempt_id(facts: &Facts, attempt: u32) -> String {
    let id = Derivation::new().id(&facts.id).text("effect.dispatched").integer(attempt.into());
    element_id("_Attempt", &id.finish(), 1)
}

pub(crate) fn dispatched(facts: &Facts, leaving: &Leaving) -> Draft {
    let reserves = Some(leaving.reserves.clone());
    let payload = object([
        ("attempt", Some(json!(leaving.attempt))),
        ("executor", Some(json!(leaving.executor.as_str()))),
        ("class", Some(json!(leaving.class))),
        ("epoch", Some(json!(leaving.epoch))),
        ("deadline", Some(json!(leaving.deadline))),
        ("intent", Some(json!(leaving.intent.to_string()))),
        ("revision", Some(json!(facts.revision))),
        ("reserves", reserves.filter(|r| r.as_object().is_some_and(|map| !map.is_empty()))),
        ("sequence", leaving.sequence.map(Value::from)),
        ("again", leaving.again.map(Value::from)),
    ]);
    let mut draft = about(facts, "effect.dispatched", leaving.attempt.into(), payload);
    let attempt = object([
        ("number", Some(json!(leaving.attempt))),
        ("executor", Some(json!(leaving.executor.as_str()))),
        ("class", Some(json!(leaving.class))),
        ("deadline", Some(json!(leaving.deadline))),
        ("status", Some(json!("out"))),
    ]);
    draft.changes = vec![
        set(&facts.node, json!({"status": "dispatched", "attempts": leaving.attempt})),
        create("_Attempt", attempt),
        link(&facts.node, "_ATTEMPT", "#1"),
    ];
    draft
}

/// What follows an attempt besides its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// Tried again: the domain of the error, how long to wait and until when.
    pub(crate) retry: Option<(String, u64, i64)>,
    /// Unknown: looks so far, when to look next, and why only a person can decide.
    pub(crate) doubt: Option<(u32, i64, Option<String>)>,
}

pub(crate) fn attempt_ended(facts: &Facts, attempt: u32, ending: &Ending, after: &After) -> Draft {
    let usage = ending.result.as_ref().and_then(|result| result.get("usage")).cloned();
    let retry = after.retry.as_ref().map(
        |(domain, wait_ms, until)| json!({"domain": domain, "wait_ms": wait_ms, "until": until}),
    );
    let doubt = after.doubt.as_ref();
    let payload = object([
        ("attempt", Some(json!(attempt))),
        ("status", Some(json!(ending.status))),
        ("error", ending.error_json()),
        ("fingerprint", ending.fingerprint.as_ref().map(|print| json!(print))),
        ("usage", usage),
        ("retry", retry),
        ("looks", doubt.map(|doubt| json!(doubt.0))),
        ("next", doubt.filter(|doubt| doubt.2.is_none()).map(|doubt| json!(doubt.1))),
        ("person", doubt.and_then(|doubt| doubt.2.as_deref()).map(Value::from)),
    ]);
    let mut draft = about(facts, "attempt.ended", attempt.into(), payload);
    let status = ending.status;
    draft.changes.push(set(&attempt_id(facts, attempt), json!({"status": status})));
    if after.retry.is_some() {
        draft.changes.push(set(&facts.node, json!({"status": "waiting"})));
    }
    draft
}

/// The outcome, or what settled an unknown one: `kind` is `effect.ended` or `effect.reconciled`.
pub(crate) fn outcome(
    facts: &Facts,
    kind: &str,
    ending: &Ending,
    more: impl IntoIterator<Item = (&'static str, Value)>,
) -> Draft {
    let mut payload = object([
        ("status", Some(json!(ending.status))),
        ("behavior", Some(json!(facts.behavior.as_str()))),
        ("attempts", Some(json!(facts.attempts))),
        ("key", facts.key.as_deref().map(Value::from)),
        ("result", ending.result.clone()),
        ("error", ending.error_json()),
        ("fingerprint", ending.fingerprint.as_ref().map(|print| json!(print))),
    ]);
    payload.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let mut draft = about(facts, kind, facts.attempts.into(), payload);
    let node = object([
        ("status", Some(json!(ending.status))),
        ("result", ending.result.clone()),
        ("error", ending.error_json()),
        ("excerpts", draft.payload.get("excerpts").cloned()),
    ]);
    draft.changes = vec![
        set(&facts.node, json!({"status": ending.status})),
        create("_Outcome", node),
        link(&facts.node, "_OUTCOME", "#1"),
    ];
    draft
}

/// A look that settled nothing.
pub(crate) fn looked(
    facts: &Facts,
    seen: &str,
    looks: u32,
    next: i64,
    person: Option<&str>,
) -> Draft {
    let payload = object([
        ("seen", Some(json!(seen))),
        ("looks", Some(json!(looks))),
        ("next", person.is_none().then(|| json!(next))),
        ("person", person.map(Value::from)),
    ]);
    about(facts, "effect.looked", looks.into(), payload)
}

/// A receipt that came after the decision; `conflict` if it says something else.
pub(crate) fn late(facts: &Facts, attempt: u32, ending: &Ending, decided: &str) -> Draft {
    let conflict = decided != ending.status && ending.status != "unknown";
    let payload = object([
        ("attempt", Some(json!(attempt))),
        ("status", Some(json!(ending.status))),
        ("decided", Some(json!(decided))),
        ("conflict", conflict.then_some(Value::Bool(true))),
        ("result", ending.result.clone()),
        ("error", ending.error_json()),
    ]);
    let mut draft = about(facts, "attempt.late", attempt.into(), payload);
    let late = json!({"late": ending.status});
    draft.changes.push(set(&attempt_id(facts, attempt), late));
    if conflict {
        draft.changes.push(set(&facts.node, json!({"conflict": true})));
    }
    draft
}
