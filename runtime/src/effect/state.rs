//! What is known about effects: a fold of their events, and the indexes that find what can move.

use std::collections::{BTreeMap, BTreeSet};

use log::{Event, EventId, Hash, ValueRef, element_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::action::{Action, Chain, Doubt, Facts, Judges, Running, Stage};
use super::budget::{Account, Ceiling, Charge};
use super::cancel::Scope;
use super::grant::Granted;
use super::guard::voice;

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
            hears: hears(event),
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
            self.change(&id, |action| {
                action.facts.cancelled = true;
                match &mut action.facts.stage {
                    Stage::Running(running) => running.cancelling = true,
                    Stage::Unknown(doubt) => doubt.cancelled = true,
                    _ => {}
                }
            });
        }
    }

    /// What an event about one action changes.
    fn advance(&mut self, id: &EventId, event: &Event) {
        match event.kind() {
            "effect.judged" => self.note_verdict(id, event),
            "effect.rewritten" => self.change(id, |action| {
                action.asked = event.clone();
                let facts = &mut action.facts;
                facts.revision += 1;
                facts.allowed.clear();
                (facts.denied, facts.approved, facts.stage) = (None, false, Stage::Requested);
            }),
            "effect.held" => {
                let expires = number(event, "expires").unwrap_or(i64::MAX);
                self.change(id, |action| action.facts.stage = Stage::Held { expires });
            }
            "effect.approved" => self.change(id, |action| {
                action.facts.approved = true;
                action.facts.stage = Stage::Requested;
            }),
            "effect.linked" => {
                if let Some(to) = text(event, "to").and_then(|to| to.parse().ok()) {
                    self.change(id, |action| action.facts.stage = Stage::Linked { to });
                }
            }
            "effect.dispatched" => self.note_dispatch(id, event),
            "attempt.ended" => self.note_attempt(id, event),
            "effect.looked" => self.change(id, |action| {
                if let Stage::Unknown(doubt) = &mut action.facts.stage {
                    update_doubt(doubt, event);
                }
            }),
            "effect.ended" | "effect.reconciled" => self.note_end(id, event),
            _ => {}
        }
    }

    fn note_verdict(&mut self, id: &EventId, event: &Event) {
        let said = text(event, "guard");
        let guard = event.author().map(str::to_owned).or(said).unwrap_or_default();
        let actor = text(event, "guard_actor").unwrap_or_else(|| event.actor().to_owned());
        let current = self.open.get(id).is_some_and(|action| {
            number(event, "revision") == Some(i64::from(action.facts.revision))
                && action.is_waiting_to_leave()
        });
        if !current {
            return;
        }
        let reason = text(event, "reason").unwrap_or_default();
        let allows = text(event, "verdict").as_deref() == Some("allow");
        let voice = voice(&guard, text(event, "question").as_deref());
        self.change(id, |action| {
            if allows {
                action.facts.allowed.insert(voice, actor.into());
            } else {
                action.facts.denied.get_or_insert((guard.into(), reason));
            }
        });
    }

    /// A guard failed on a request: nothing that it was to judge leaves.
    pub(crate) fn note_guard_failure(&mut self, id: &EventId, guard: &str, error: &str) {
        let reason = format!("it failed: {error}");
        self.change(id, |action| {
            if action.is_waiting_to_leave() {
                action.facts.denied.get_or_insert((guard.into(), reason));
            }
        });
    }

    fn note_dispatch(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let word = |name: &str| payload[name].as_str().unwrap_or_default();
        let ms = |name: &str| payload[name].as_i64().unwrap_or(0);
        let executor: SmolStr = word("executor").into();
        let reserved = if super::action::is_inner(&executor) {
            Charge::default()
        } else {
            Charge::of_usage(payload.get("reserves"))
        };
        let intent: Option<Hash> = word("intent").parse().ok();
        if let Some(sequence) = payload["sequence"].as_u64()
            && let Some(intent) = intent
        {
            self.ledger.served.insert(intent, sequence + 1);
        }
        let Some(mut action) = self.remove(id) else { return };
        let facts = &mut action.facts;
        let doubt = match &facts.stage {
            Stage::Unknown(doubt) => Some(Box::new(doubt.clone())),
            _ => None,
        };
        facts.attempts = payload["attempt"].as_u64().unwrap_or(1) as u32;
        facts.intent = intent;
        facts.reserved = reserved;
        if facts.attempts == 1 {
            facts.first = event.time().ms();
        }
        facts.stage = Stage::Running(Running {
            attempt: facts.attempts,
            executor,
            class: serde_json::from_value(payload["class"].clone()).unwrap_or_default(),
            epoch: payload["epoch"].as_u64().unwrap_or(0),
            deadline: ms("deadline"),
            cancelling: false,
            doubt,
        });
        self.accounts(&action.facts.scopes.clone(), |account| account.reserve(reserved));
        self.insert(action);
    }

    /// Does something to the flock's account and to those of a chain.
    fn accounts(&mut self, scopes: &[EventId], change: impl Fn(&mut Account)) {
        change(&mut self.ledger.account);
        for scope in scopes {
            if let Some(narrowed) = self.ledger.granted.narrowed.get_mut(scope) {
                change(&mut narrowed.account);
            }
        }
    }

    fn note_attempt(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let Some(mut action) = self.remove(id) else { return };
        let facts = &mut action.facts;
        let reserved = std::mem::take(&mut facts.reserved);
        let used = match payload.get("usage") {
            Some(usage) => Charge { effects: reserved.effects, ..Charge::of_usage(Some(usage)) },
            None => reserved,
        };
        let scopes = facts.scopes.clone();
        if let Some(retry) = payload["retry"].as_object() {
            let until = retry.get("until").and_then(Value::as_i64).unwrap_or(0);
            let domain: SmolStr =
                retry.get("domain").and_then(Value::as_str).unwrap_or_default().into();
            *self.ledger.retries.entry(facts.goal).or_default().entry(domain).or_default() += 1;
            facts.stage = Stage::Waiting { until };
        } else if let Stage::Running(running) = &facts.stage
            && payload["status"] == "unknown"
        {
            let mut doubt = running.doubt.as_deref().cloned().unwrap_or_else(|| Doubt {
                attempt: running.attempt,
                class: running.class,
                executor: running.executor.clone(),
                looks: 0,
                next: 0,
                person: None,
                absent: false,
                cancelled: running.cancelling,
                fingerprint: None,
            });
            doubt.attempt = running.attempt;
            update_doubt(&mut doubt, event);
            facts.stage = Stage::Unknown(doubt);
        }
        self.accounts(&scopes, |account| account.commit(reserved, used));
        self.insert(action);
    }

    fn note_end(&mut self, id: &EventId, event: &Event) {
        let payload = Value::Object(event.payload().to_json());
        let status = payload["status"].as_str().unwrap_or_default();
        if status == "unknown" {
            // It stays open until it is settled; what is known of it came with its attempt.
            return;
        }
        let Some(action) = self.remove(id) else { return };
        if status == "succeeded" && payload["fingerprint"].is_object() {
            self.ledger.workspace = Some(event.id());
            self.ledger.uncommitted += 1;
        }
        if status == "succeeded" && action.facts.effect == "git.commit" {
            self.ledger.commit = payload["result"]["commit"].as_str().map(str::to_owned);
            self.ledger.uncommitted = 0;
        }
        if let (true, Some(intent)) = (status == "failed", action.facts.intent) {
            let signature = payload["error"]["signature"].as_str().unwrap_or_default();
            let of = self.ledger.failures.entry(intent).or_default();
            *of.entry(signature.to_owned()).or_default() += 1;
        }
    }
}

fn update_doubt(doubt: &mut Doubt, event: &Event) {
    if let Some(looks) = number(event, "looks") {
        doubt.looks = u32::try_from(looks).unwrap_or(u32::MAX);
    }
    if let Some(next) = number(event, "next") {
        doubt.next = next;
    }
    doubt.person = text(event, "person");
    doubt.absent = text(event, "seen").as_deref() == Some("absent");
    if let Some(print) = event.payload().get("fingerprint") {
        doubt.fingerprint = Some(print.to_json().to_string());
    }
}

/// What a guard asks an effect to judge.
fn judged_by(event: &Event) -> Option<Judges> {
    let judges = event.payload().get("judges")?.to_json();
    let action = judges["action"].as_str()?.parse().ok()?;
    let revision = u32::try_from(judges["revision"].as_u64()?).ok()?;
    let question = judges["question"].as_str().map(SmolStr::from);
    Some(Judges { action, revision, actor: event.actor().into(), question })
}

/// Whether the guard that asks turns the answer into its verdict.
fn hears(event: &Event) -> bool {
    let judges = event.payload().get("judges").and_then(ValueRef::as_map);
    judges.and_then(|judges| judges.get("hears")) == Some(ValueRef::Bool(true))
}

/// The action that an event is about.
pub(crate) fn action_of(event: &Event) -> Option<EventId> {
    text(event, "action")?.parse().ok()
}

fn text(event: &Event, name: &str) -> Option<String> {
    event.payload().get(name).and_then(ValueRef::as_str).map(str::to_owned)
}

fn number(event: &Event, name: &str) -> Option<i64> {
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
            hears: false,
            first: 0,
        }
    }
}
