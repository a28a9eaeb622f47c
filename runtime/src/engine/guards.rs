//! Guards in the fold: who is asked about a request, and what their words become.

use std::sync::Arc;

use log::{Bound, Event, EventId, ValueRef};
use projection::{Born, Exhausted, Row, Steps};
use smol_str::{SmolStr, format_smolstr};

use super::activation::{Activation, row_name};
use super::state::{Rejection, STEPS_MAX, State};
use super::subscription::Subscription;
use crate::effect::{Action, Asked, Chain, Verdicts, voice};

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

/// Under which name a guard's word on a match is kept.
fn voice_on(guard: &Subscription, row: &[Bound]) -> SmolStr {
    let question = guard.pattern.as_ref().map(|_| row_name(row));
    voice(&guard.name, question.as_deref())
}

impl State {
    /// What an event about effects means: to what is known of them, and to the guards.
    pub(super) fn obey_effect(&mut self, event: &Event, chain: &Chain) {
        self.note_question(event);
        self.effects.fold(event, chain);
        self.hear_answer(event);
        match event.kind() {
            "effect.requested" | "effect.rewritten" => self.ask_guards(event),
            "effect.asked" => self.ask_one(event),
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

    /// The matches on which a guard is to speak about a request, as the world is: one without
    /// elements for a guard without a pattern. What a guard asks is judged by no guard, or none
    /// would ever have spoken.
    pub(super) fn questions(
        &self,
        guard: &Subscription,
        action: &Action,
    ) -> Result<Vec<Row>, Exhausted> {
        let facts = &action.facts;
        if facts.judges.is_some() || !guard.metadata.trigger.guards(action.asked.payload()) {
            return Ok(Vec::new());
        }
        let Some(pattern) = &guard.pattern else {
            return Ok(vec![Row { bound: Vec::new(), order: Vec::new() }]);
        };
        let (given, steps) = ([("request", facts.node.as_str())], Steps::up_to(STEPS_MAX));
        pattern.pattern.matches(&self.graph, &given, &self.env(None), &steps)
    }

    /// Asks every guard that a request concerns about its last revision. Where that costs too much
    /// to find out, the request is refused when it is to leave.
    fn ask_guards(&mut self, event: &Event) {
        let guards: Vec<Arc<Subscription>> = self.subscriptions.guards().cloned().collect();
        let Some(action) = self.effects.get(&judged(event)).cloned() else { return };
        let facts = &action.facts;
        let scopes = (!facts.scopes.is_empty()).then(|| facts.scopes.as_slice().into());
        let chain = Chain { depth: 0, goal: facts.goal, scopes };
        for guard in guards {
            for row in self.questions(&guard, &action).unwrap_or_default() {
                self.queue(&guard, event, row, &chain, None);
            }
        }
    }

    /// Asks a guard whose pattern a request meets only now.
    fn ask_one(&mut self, event: &Event) {
        let Some(guard) = self.subscriptions.get(&text(event, "guard")).cloned() else { return };
        if let Some(action) = self.effects.get(&judged(event)).cloned() {
            self.ask(&guard, &action, event);
        }
    }

    /// Asks a guard that was just loaded about every request that has not left.
    pub(super) fn ask_late(&mut self, guard: &Subscription, loaded: &Event) {
        self.agenda.withdraw_all(&guard.name);
        let open: Vec<Action> = self.effects.iter().cloned().collect();
        for action in open.into_iter().filter(Action::is_waiting_to_leave) {
            self.ask(guard, &action, loaded);
        }
    }

    /// Asks a guard about a request because of another event than the request: what it has allowed
    /// already it is not asked again.
    fn ask(&mut self, guard: &Subscription, action: &Action, because: &Event) {
        for row in self.questions(guard, action).unwrap_or_default() {
            let voice = voice_on(guard, &row.bound);
            if action.facts.allowed.get(&voice) == Some(&guard.actor) {
                continue;
            }
            // The request is part of the match: what follows is another derivation than what the
            // version before said about it.
            let asked = &action.asked;
            let row = match guard.pattern {
                Some(_) => row,
                None => Row {
                    bound: vec![Bound::Element(format_smolstr!("{}", asked.id()))],
                    order: vec![Born { offset: asked.offset(), index: 0 }],
                },
            };
            self.agenda.insert(Activation {
                behavior: guard.name.clone(),
                order: guard.metadata.order,
                event: because.clone(),
                row,
                at: because.offset(),
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

    /// What every loaded guard has to say about a request, as the world is.
    pub(super) fn verdicts(&self, action: &Action) -> Verdicts<'_> {
        let mut verdicts = Verdicts::default();
        for guard in self.subscriptions.guards() {
            verdicts.loaded.push(&guard.name);
            let Ok(rows) = self.questions(guard, action) else {
                verdicts.costly = Some(&guard.name);
                continue;
            };
            for row in rows {
                let voice = voice_on(guard, &row.bound);
                let allowed = action.facts.allowed.get(&voice) == Some(&guard.actor);
                let pending = allowed || guard.pattern.is_none() || self.asks(guard, action, &row);
                let (guard, actor) = (&guard.name, &guard.actor);
                verdicts.asked.push(Asked { guard, actor, voice, pending });
            }
        }
        verdicts
    }

    /// Whether a guard with a pattern was asked about this match, and will still speak.
    fn asks(&self, guard: &Subscription, action: &Action, row: &Row) -> bool {
        let id = action.facts.id;
        let same = |waiting: &Activation| {
            waiting.behavior == guard.name
                && waiting.row.bound == row.bound
                && judged(waiting.seen()) == id
        };
        let question = row_name(&row.bound);
        let is_judge = |other: &Action| {
            other.facts.judges.as_ref().is_some_and(|judges| {
                judges.action == id
                    && judges.revision == action.facts.revision
                    && judges.actor == guard.actor
                    && judges.question.as_deref() == Some(&*question)
            })
        };
        let mut waiting = self.agenda.of(&guard.name);
        let mut in_round = self.round.left.iter().chain(&self.round.refused);
        waiting.any(same) || in_round.any(same) || self.effects.iter().any(is_judge)
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
