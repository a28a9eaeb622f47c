//! The words of behaviors besides events, as the events of the runtime that they become: a request,
//! a cancellation, a guard's verdict, a narrower grant.
//!
//! What a word says is the behavior's; who says it, about what and when is stamped here, so that
//! nobody speaks for another.

use behaviors::{Proposal, Word};
use log::{Change, WriteOp};
use serde_json::{Map, Value, json};

use super::activation::{Activation, row_name};
use super::guards::judged;
use super::state::State;
use crate::effect::{REVISIONS_MAX, Scope};

/// A guard that gives no verdict denies, unless it asks an effect for one.
pub(super) fn speak(state: &State, activation: &Activation, proposals: &mut Vec<Proposal>) {
    let subscription = state.subscriptions.get(&activation.behavior);
    let guard = subscription.is_some_and(|subscription| subscription.metadata.guard);
    let asks = |proposal: &Proposal| proposal.word.is_verdict() || proposal.word == Word::Request;
    if guard && !proposals.iter().any(asks) {
        let mut payload = Map::new();
        payload.insert("reason".to_owned(), json!("it gave no verdict"));
        let kind = Word::Deny.as_str().into();
        let (changes, key, word) = (Vec::new(), None, Word::Deny);
        proposals.push(Proposal { kind, payload, changes, key, word });
    }
}

/// The proposal as the event it becomes.
pub(super) fn said(state: &State, activation: &Activation, proposal: Proposal) -> Proposal {
    match proposal.word {
        Word::Event => proposal,
        Word::Request => requested(state, activation, proposal),
        Word::Narrow => narrowed(proposal),
        Word::Cancel => cancelling(state, activation, proposal),
        Word::Allow | Word::Deny | Word::Rewrite => verdict(state, activation, proposal),
    }
}

fn requested(state: &State, activation: &Activation, proposal: Proposal) -> Proposal {
    let Proposal { kind, payload: args, key, word, .. } = proposal;
    let mut payload = Map::new();
    payload.insert("effect".to_owned(), json!(kind.as_str()));
    payload.insert("args".to_owned(), Value::Object(args));
    let mut properties = payload.clone();
    let subscription = state.subscriptions.get(&activation.behavior);
    if subscription.is_some_and(|subscription| subscription.metadata.guard) {
        let shown = activation.seen();
        let revision = shown.payload().get("revision").and_then(|n| n.as_i64()).unwrap_or(0);
        let action = judged(shown).to_string();
        let mut judges = json!({"action": action, "revision": revision});
        if subscription.is_some_and(|s| s.asks.as_deref() == Some(kind.as_str())) {
            judges["hears"] = json!(true);
        }
        if let Some(question) = question(state, activation) {
            judges["question"] = json!(question);
        }
        payload.insert("judges".to_owned(), judges);
    }
    properties.insert("status".to_owned(), json!("requested"));
    // Who asks is no part of a keyed request, whose content must not depend on it.
    if key.is_none() {
        properties.insert("behavior".to_owned(), json!(activation.behavior.as_str()));
    }
    let create = Change::Create { id: None, type_name: "_Effect".into(), properties };
    Proposal { kind: "effect.requested".into(), payload, changes: vec![create], key, word }
}

/// An action may be named by its node. What is named and not open ends nothing.
fn cancelling(state: &State, activation: &Activation, proposal: Proposal) -> Proposal {
    let Proposal { payload: said, word, .. } = proposal;
    let scope = match said.get("effect").and_then(Value::as_str) {
        Some(named) => {
            let open = state.effects.iter().find(|action| action.facts.node == named);
            let id = open.map_or_else(|| named.to_owned(), |action| action.facts.id.to_string());
            json!({"effect": id})
        }
        None if said.is_empty() => Scope::Goal(activation.goal).to_json(),
        None => Value::Object(said),
    };
    let mut payload = Map::new();
    payload.insert("scope".to_owned(), scope);
    payload.insert("reason".to_owned(), json!(format!("{} said so", activation.behavior)));
    let (kind, changes) = ("effect.cancelling".into(), Vec::new());
    Proposal { kind, payload, changes, key: None, word }
}

fn narrowed(proposal: Proposal) -> Proposal {
    let Proposal { payload, word, .. } = proposal;
    let create = |type_name: &str, properties: &Map<String, Value>| Change::Create {
        id: None,
        type_name: type_name.into(),
        properties: properties.clone(),
    };
    let mut changes = Vec::new();
    if let Some(effects) = payload.get("effects") {
        let mut properties = Map::new();
        properties.insert("effects".to_owned(), effects.clone());
        changes.push(create("_Grant", &properties));
    }
    if let Some(budget) = payload.get("budget").and_then(Value::as_object) {
        changes.push(create("_Budget", budget));
    }
    Proposal { kind: "grant.narrowed".into(), payload, changes, key: None, word }
}

/// A verdict about the revision that the guard was shown. One about another revision, or about what
/// has left or ended meanwhile, is recorded and binds nobody.
fn verdict(state: &State, activation: &Activation, proposal: Proposal) -> Proposal {
    let Proposal { payload: said, word, .. } = proposal;
    let shown = activation.seen();
    let id = judged(shown);
    let revision = shown.payload().get("revision").and_then(|n| n.as_i64()).unwrap_or(0);
    let action = state.effects.get(&id).filter(|action| {
        action.is_waiting_to_leave() && i64::from(action.facts.revision) == revision
    });
    let effect = shown.payload().get("effect").map_or(Value::Null, |effect| effect.to_json());
    let mut payload = Map::new();
    payload.insert("action".to_owned(), json!(id.to_string()));
    payload.insert("effect".to_owned(), effect);
    let same = |action: &&crate::effect::Action| action.args() == Value::Object(said.clone());
    let rewrites = word == Word::Rewrite && !action.as_ref().is_some_and(same);
    // Guards that never agree would go on for ever.
    let too_often = rewrites && revision >= i64::from(REVISIONS_MAX);
    let rewrites = rewrites && !too_often;
    if let (true, Some(action)) = (rewrites, action) {
        payload.insert("args".to_owned(), Value::Object(said.clone()));
        payload.insert("revision".to_owned(), json!(revision + 1));
        let mut properties = Map::new();
        properties.insert("args".to_owned(), Value::Object(said));
        let changes = vec![write(WriteOp::Set, &action.facts.node, properties)];
        return Proposal { kind: "effect.rewritten".into(), payload, changes, key: None, word };
    }
    let denies = word == Word::Deny || too_often;
    payload.insert("revision".to_owned(), json!(revision));
    let verdict = if rewrites {
        "rewrite"
    } else if denies {
        "deny"
    } else {
        "allow"
    };
    payload.insert("verdict".to_owned(), json!(verdict));
    if let Some(question) = question(state, activation) {
        payload.insert("question".to_owned(), json!(question));
    }
    let args = shown.payload().get("args").map_or(Value::Null, |args| args.to_json());
    let hash = log::Hash::of(args.to_string().as_bytes()).to_string();
    payload.insert("args_hash".to_owned(), json!(hash));
    let often = || json!(format!("it was rewritten {REVISIONS_MAX} times already"));
    let reason = if too_often { Some(often()) } else { said.get("reason").cloned() };
    if let Some(reason) = reason.clone().filter(|_| denies) {
        payload.insert("reason".to_owned(), reason);
    }
    let mut changes = Vec::new();
    if let Some(action) = action {
        let guard = activation.behavior.as_str();
        let reason = reason.as_ref().and_then(Value::as_str).unwrap_or_default();
        let (name, value) = match denies {
            true => ("denied", json!(format!("{guard}: {reason}"))),
            false => ("allowed", json!(guard)),
        };
        let mut properties = Map::new();
        properties.insert(name.to_owned(), value);
        changes.push(write(WriteOp::Append, &action.facts.node, properties));
    } else {
        payload.insert("stale".to_owned(), json!(true));
    }
    Proposal { kind: "effect.judged".into(), payload, changes, key: None, word }
}

/// The match on which a guard is asked, if it has a pattern.
fn question(state: &State, activation: &Activation) -> Option<String> {
    let guard = state.subscriptions.get(&activation.behavior)?;
    guard.pattern.as_ref().map(|_| row_name(&activation.row.bound))
}

fn write(op: WriteOp, id: &str, properties: Map<String, Value>) -> Change {
    Change::Write { op, id: id.into(), properties, if_version: None }
}
