//! What is known about effects: a fold of their events, and the indexes that find what can move.

mod advance;

use std::collections::{BTreeMap, BTreeSet};

use log::{Event, EventId, Hash, ValueRef, element_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::action::{Action, Chain, Facts, Judges, Stage};
use super::budget::{Account, Ceiling, Charge};
use super::cancel::Scope;
use super::grant::Granted;

/// All that is known about effects, besides the open actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) granted: Granted,
    /// The account of the whole flock.
    pub(crate) account: Account,
    /// How many effects each behavior requested.
    pub(crate) requests: BTreeMap<SmolStr, u64>,
    /// How often an intent failed with a signature.
    pub(crate) failures: BTreeMap<Hash, BTreeMap<String, u64>>,
    /// How often a domain of errors was tried again on a goal.
    pub(crate) retries: BTreeMap<EventId, BTreeMap<SmolStr, u64>>,
    /// Goals of which nothing leaves any more.
    pub(crate) cancelled: BTreeSet<EventId>,
    /// Broken files that may hold a guard and have no good version, each with what is wrong.
    pub(crate) broken_guards: BTreeMap<SmolStr, String>,
    /// The outcome that last changed the workspace.
    pub(crate) workspace: Option<EventId>,
    /// The commit of the workspace that was recorded last, and the writes recorded after it.
    pub(crate) commit: Option<String>,
    pub(crate) uncommitted: u64,
    /// How many recorded answers were served to an intent.
    pub(crate) served: BTreeMap<Hash, u64>,
}

/// What is known about effects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) ledger: Ledger,
    open: BTreeMap<EventId, Action>,
    /// What waits to leave, by effect and then in order.
    requested: BTreeMap<SmolStr, BTreeMap<u64, EventId>>,
    /// What is due when, though nobody outside says so.
    due: BTreeSet<(i64, EventId)>,
    /// The actions that have left with an intent and are not settled.
    intents: BTreeMap<Hash, EventId>,
    /// What is to end and has not left.
    to_end: BTreeSet<EventId>,
    /// Who ends as whom.
    linked: BTreeMap<EventId, BTreeSet<EventId>>,
}

impl Effects {
    pub(crate) fn get(&self, id: &EventId) -> Option<&Action> {
        self.open.get(id)
    }

    /// The open actions, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Action> {
        self.open.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// The effects of which something waits to leave.
    pub(crate) fn requested(&self) -> &BTreeMap<SmolStr, BTreeMap<u64, EventId>> {
        &self.requested
    }

    /// What is due at a time, first things first.
    pub(crate) fn due(&self, now: i64) -> Vec<EventId> {
        self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect()
    }

    /// What is to end and has not left: a behavior said so.
    pub(crate) fn to_end(&self) -> Vec<EventId> {
        self.to_end.iter().copied().collect()
    }

    /// When the next is due after a time.
    pub(crate) fn next_due_after(&self, now: i64) -> Option<i64> {
        self.due.range((now.saturating_add(1), EventId::ZERO)..).next().map(|(at, _)| *at)
    }

    /// The action that has left with this intent and is not settled.
    pub(crate) fn holder(&self, intent: &Hash) -> Option<EventId> {
        self.intents.get(intent).copied()
    }

    /// Who ends as this action ends.
    pub(crate) fn linked_to(&self, id: &EventId) -> Vec<EventId> {
        self.linked.get(id).into_iter().flatten().copied().collect()
    }

    /// The accounts that an action is charged to: the flock's, then those of its chain.
    pub(crate) fn over(
        &self,
        ceiling: &Ceiling,
        facts: &Facts,
        charge: Charge,
    ) -> Option<(String, u64)> {
        if let Some((name, limit)) = self.ledger.account.over(ceiling, charge) {
            return Some((name.to_owned(), limit));
        }
        facts.scopes.iter().find_map(|scope| {
            let narrowed = self.ledger.granted.narrowed.get(scope)?;
            let (name, limit) = narrowed.account.over(&narrowed.ceiling, charge)?;
            Some((format!("{name} of the narrower grant {}", &scope.to_string()[..8]), limit))
        })
    }

    /// Puts an action where it belongs: used by the fold and when a snapshot is read.
    pub(crate) fn insert(&mut self, action: Action) {
        let facts = &action.facts;
        if let Some(at) = facts.due() {
            self.due.insert((at, facts.id));
        }
        if facts.is_to_end() {
            self.to_end.insert(facts.id);
        }
        match &facts.stage {
            Stage::Requested => {
                let of = self.requested.entry(facts.effect.clone()).or_default();
                of.insert(facts.offset, facts.id);
            }
            Stage::Linked { to } => {
                self.linked.entry(*to).or_default().insert(facts.id);
            }
            Stage::Running(_) | Stage::Unknown(_) | Stage::Waiting { .. } => {
                if let Some(intent) = facts.intent {
                    self.intents.entry(intent).or_insert(facts.id);
                }
            }
            Stage::Held { .. } => {}
        }
        self.open.insert(facts.id, action);
    }

    fn remove(&mut self, id: &EventId) -> Option<Action> {
        let action = self.open.remove(id)?;
        let facts = &action.facts;
        if let Some(at) = facts.due() {
            self.due.remove(&(at, facts.id));
        }
        self.to_end.remove(id);
        match &facts.stage {
            Stage::Requested => {
                if let Some(of) = self.requested.get_mut(&facts.effect) {
                    of.remove(&facts.offset);
                    if of.is_empty() {
                        self.requested.remove(&facts.effect);
                    }
                }
            }
            Stage::Linked { to } => {
                if let Some(all) = self.linked.get_mut(to) {
                    all.remove(&facts.id);
                    if all.is_empty() {
                        self.linked.remove(to);
                    }
                }
            }
            Stage::Running(_) | Stage::Unknown(_) | Stage::Waiting { .. } | Stage::Held { .. } => {}
        }
        if let Some(intent) = facts.intent
            && self.intents.get(&intent) == Some(&facts.id)
        {
            self.intents.remove(&intent);
        }
        Some(action)
    }

    fn change(&mut self, id: &EventId, change: impl FnOnce(&mut Action)) {
        if let Some(mut action) = self.remove(id) {
            change(&mut action);
            self.insert(action);
        }
    }

    /// What follows from an event of the runtime about effects. `chain` is what it passes on;
    /// `guard` whether its author is a guard.
    pub(crate) fn fold(&mut self, event: &Event, chain: &Chain) {
        match event.kind() {
            "effect.requested" => self.request(event, chain),
            "grant.narrowed" => {
                let payload = Value::Object(event.payload().to_json());
                self.ledger.granted.narrow(event.id(), &payload);
            }
            "grant.given" | "grant.revoked" => self.regrant(event),
            "effect.cancelling" => self.note_cancelling(event),
            _ => {
                if let Some(id) = action_of(event) {
                    self.advance(&id, event);
                }
            }
        }
    }

    fn request(&mut self, event: &Event, chain: &Chain) {
        let Some(behavior) = event.author() else { return };
        let nth = self.ledger.requests.entry(behavior.into()).or_default();
        *nth += 1;
        let nth = *nth;
        let facts = Facts {
            id: event.id(),
            node: element_id("_Effect", &event.id(), 0).into(),
            offset: event.offset().get(),
            effect: text(event, "effect").unwrap_or_default().into(),
            behavior: behavior.into(),
            nth,
            firing: event.taken(),
            goal: chain.goal,
            scopes: chain.scopes.as_deref().unwrap_or_default().to_vec(),
            key: event.key().map(SmolStr::from),
            time: event.time().ms(),
            revision: 0,
            allowed: BTreeMap::new(),
            denied: None,
            approved: false,
            cancelled: false,
            stage: Stage::Requested,
            attempts: 0,
            intent: None,
            reserved: Charge::default(),
            judges: judged_by(event),
            first: 0,
        };
        self.insert(Action { asked: event.clone(), facts });
    }

    fn regrant(&mut self, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let effects = payload["effects"].as_array().into_iter().flatten();
        for pattern in effects.filter_map(Value::as_str) {
            if event.kind() == "grant.given" {
                self.ledger.granted.give(pattern);
            } else {
                self.ledger.granted.revoke(pattern);
            }
        }
    }

    fn note_cancelling(&mut self, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let Some(scope) = Scope::of_json(&payload["scope"]) else { return };
        if let Scope::Goal(goal) = scope {
            self.ledger.cancelled.insert(goal);
        }
        let meant: Vec<EventId> =
            self.open.values().filter(|a| scope.holds(&a.facts)).map(|a| a.facts.id).collect();
        for id in meant {
            self.change(&id, |action| action.facts.cancelled = true);
        }
    }
}

/// What a guard asks an effect to judge.
fn judged_by(event: &Event) -> Option<Judges> {
    let judges = event.payload().get("judges")?.to_json();
    let action = judges["action"].as_str()?.parse().ok()?;
    let revision = u32::try_from(judges["revision"].as_u64()?).ok()?;
    let question = judges["question"].as_str().map(SmolStr::from);
    let hears = judges["hears"] == Value::Bool(true);
    Some(Judges { action, revision, actor: event.actor().into(), question, hears })
}

/// The action that an event is about.
pub(crate) fn action_of(event: &Event) -> Option<EventId> {
    text(event, "action")?.parse().ok()
}

pub(super) fn text(event: &Event, name: &str) -> Option<String> {
    event.payload().get(name).and_then(ValueRef::as_str).map(str::to_owned)
}

pub(super) fn number(event: &Event, name: &str) -> Option<i64> {
    event.payload().get(name).and_then(ValueRef::as_i64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An action that nothing is known of.
    pub(crate) fn facts() -> Facts {
        Facts {
            id: EventId::from_bytes([5; 16]),
            node: "_Effect#1".into(),
            offset: 3,
            effect: "tool:x".into(),
            behavior: "b".into(),
            nth: 1,
            firing: 1,
            goal: EventId::ZERO,
            scopes: Vec::new(),
            key: None,
            time: 0,
            revision: 0,
            allowed: BTreeMap::new(),
            denied: None,
            approved: false,
            cancelled: false,
            stage: Stage::Requested,
            attempts: 1,
            intent: None,
            reserved: Charge::default(),
            judges: None,
            first: 0,
        }
    }
}
