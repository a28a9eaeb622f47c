//! Guards in the fold: who is asked about a request, and what their words become.

use std::sync::Arc;

use log::{Bound, Event, EventId, ValueRef};
use projection::{Born, Row};
use smol_str::format_smolstr;

use super::activation::Activation;
use super::state::{Rejection, State};
use super::subscription::Subscription;
use crate::effect::{Action, Chain};

/// Whether an event tells of effects or grants.
pub(super) fn is_effect_kind(kind: &str) -> bool {
    ["effect.", "attempt.", "grant."].iter().any(|prefix| kind.starts_with(prefix))
}

/// The action that a guard judges when it is shown this event: a request, or a rewriting of one.
pub(super) fn judged(event: &Event) -> EventId {
    let named = event.payload().get("action").and_then(ValueRef::as_str);
    named.and_then(|id| id.parse().ok()).unwrap_or_else(|| event.id())
}

/// A text of a payload; empty if it has none.
pub(super) fn text(event: &Event, name: &str) -> String {
    event.payload().get(name).and_then(ValueRef::as_str).unwrap_or_default().to_owned()
}

impl State {
    /// What an event about effects means: to what is known of them, and to the guards.
    pub(super) fn obey_effect(&mut self, event: &Event, chain: &Chain) {
        self.note_question(event);
        self.effects.fold(event, chain);
        self.hear_answer(event);
        match event.kind() {
            "effect.requested" | "effect.rewritten" => self.ask_guards(event),
            "grant.narrowed" => {
                if let Some(last) = &mut self.last {
                    let mut scopes = last.scopes.as_deref().unwrap_or_default().to_vec();
                    scopes.push(event.id());
                    last.scopes = Some(scopes.into());
                }
            }
            _ => {}
        }
    }

    /// Asks every guard that a request concerns about its last revision.
    fn ask_guards(&mut self, event: &Event) {
        let guards: Vec<Arc<Subscription>> = self.subscriptions.guards().cloned().collect();
        let Some(action) = self.effects.get(&judged(event)) else { return };
        let facts = &action.facts;
        // What a guard asks is judged by no guard, or none would ever have spoken.
        if facts.judges.is_some() {
            return;
        }
        let scopes = (!facts.scopes.is_empty()).then(|| facts.scopes.as_slice().into());
        let chain = Chain { depth: 0, goal: facts.goal, scopes };
        for guard in guards {
            if guard.metadata.trigger.guards(event.payload()) {
                let row = Row { bound: Vec::new(), order: Vec::new() };
                self.queue(&guard, event, row, &chain, None);
            }
        }
    }

    /// Asks a guard that was just loaded about every request that has not left.
    pub(super) fn ask_late(&mut self, guard: &Subscription, loaded: &Event) {
        self.agenda.withdraw_all(&guard.name);
        let concerned: Vec<Action> = self.effects.iter().cloned().collect();
        for action in concerned.into_iter().filter(Action::is_waiting_to_leave) {
            let own = action.facts.judges.is_some();
            if own || !guard.metadata.trigger.guards(action.asked.payload()) {
                continue;
            }
            // The request is part of the match: what follows is another derivation than what the
            // version before said about it.
            let asked = &action.asked;
            let order = vec![Born { offset: asked.offset(), index: 0 }];
            let bound = vec![Bound::Element(format_smolstr!("{}", asked.id()))];
            self.agenda.insert(Activation {
                behavior: guard.name.clone(),
                order: guard.metadata.order,
                event: loaded.clone(),
                row: Row { bound, order },
                at: loaded.offset(),
                ticket: self.last.as_ref().map_or(0, |last| last.ticket) + 1,
                depth: 0,
                refused: 0,
                carried: None,
                goal: action.facts.goal,
                scopes: None,
                handled: Some(asked.clone()),
                answered: false,
            });
        }
    }

    /// A file is broken. If it may hold a guard of which there is no good version, nothing leaves
    /// until it is mended.
    pub(super) fn note_rejection(&mut self, event: &Event) {
        let may_guard = event.payload().get("guard") == Some(ValueRef::Bool(true));
        let path = text(event, "path");
        let (hash, error) = (text(event, "hash").into(), text(event, "error"));
        self.rejected.insert(path.as_str().into(), Rejection { hash, error });
        let has_good = self.subscriptions.iter().any(|loaded| loaded.path() == path);
        if may_guard && !has_good {
            self.effects.ledger.broken_guards.insert(path.into(), text(event, "error"));
        }
    }
}
