//! The kinds that only the runtime writes, and what they mean to the engine: settings, loading,
//! replacing and removing behaviors, failures and conflicts.

use std::collections::BTreeSet;
use std::sync::Arc;

use log::{Bound, Event, Offset};
use projection::{Exhausted, Row, Steps};
use serde_json::Value;
use smol_str::SmolStr;

use super::activation::Activation;
use super::catching::{Catching, Past};
use super::error::FoldError;
use super::guards::{is_effect_kind, judged, text};
use super::state::{STEPS_MAX, State};
use super::subscription::Subscription;
use crate::effect::Chain;

/// Loading looks at every match that stands, once: it may take so many steps for each element of
/// the graph, beside those that one event may take.
const LOAD_STEPS_PER_ELEMENT: u64 = 64;

impl State {
    pub(crate) fn obey(
        &mut self,
        event: &Event,
        chain: &Chain,
        past: Past<'_>,
    ) -> Result<(), FoldError> {
        match event.kind() {
            "flock.started" => {
                self.settings.start(event)?;
                if self.settings.schedule == super::settings::Schedule::Random {
                    self.agenda.order_by_ticket();
                }
            }
            "flock.changed" => self.settings.change(event)?,
            "flock.exhausted" => {
                let payload = event.payload();
                let budget = payload.get("budget").and_then(|value| value.as_str());
                let limit = payload.get("limit").and_then(|value| value.as_i64());
                if let (Some(budget), Some(limit)) = (budget, limit) {
                    self.exhausted.insert((budget.into(), limit.unsigned_abs()));
                }
            }
            "behavior.loaded" => self.load(event, past)?,
            "behavior.removed" => {
                let name = named(event)?;
                self.unload(&name);
                if let Some(kept) = self.disabled.get_mut(&name) {
                    *kept = None;
                }
                self.subscriptions.loads.insert(name, event.id());
            }
            "behavior.disabled" => {
                let name = named(event)?;
                let loaded = self.subscriptions.get(&name).cloned();
                self.unload(&name);
                self.disabled.entry(name).or_insert(loaded);
            }
            "behavior.enabled" => {
                if let Some(Some(loaded)) = self.disabled.remove(&named(event)?) {
                    self.install(loaded, event, past)?;
                }
            }
            "behavior.suspended" => {
                let name = named(event)?;
                if let Some(suspension) = self.suspended.get_mut(&name) {
                    suspension.announced = true;
                }
            }
            "behavior.conflicted" => {
                let mut again = self.last.clone().ok_or_else(|| nothing_fired(event))?;
                again.refused += 1;
                self.round.refused.push_back(again);
            }
            "behavior.failed" => self.note_failure(event)?,
            "behavior.rejected" => self.note_rejection(event),
            "behavior.mended" => {
                self.rejected.remove(&*text(event, "path"));
                self.effects.ledger.broken_guards.remove(&*text(event, "path"));
            }
            kind if is_effect_kind(kind) => self.obey_effect(event, chain),
            _ => {}
        }
        Ok(())
    }

    fn note_failure(&mut self, event: &Event) -> Result<(), FoldError> {
        let last = self.last.clone().ok_or_else(|| nothing_fired(event))?;
        if self.subscriptions.get(&last.behavior).is_some_and(|s| s.metadata.guard) {
            let action = judged(last.seen());
            let error = text(event, "error");
            self.effects.note_guard_failure(&action, &last.behavior, &error);
            return Ok(());
        }
        let matches = self
            .subscriptions
            .get(&last.behavior)
            .is_some_and(|subscription| subscription.metadata.trigger.is_match());
        // One that costs too much is suspended by the next event that asks for it.
        if matches && self.stands(&last).unwrap_or(false) {
            self.failed.entry(last.behavior).or_default().insert(last.row.bound);
        }
        Ok(())
    }

    /// Loads or replaces a behavior. The trigger is all that decides when it fires, so with the
    /// same trigger what waits stays and only failed matches wake again.
    ///
    /// One that is switched off is only remembered.
    fn load(&mut self, event: &Event, past: Past<'_>) -> Result<(), FoldError> {
        let new = Arc::new(Subscription::read(event)?);
        tracing::debug!(behavior = %new.name, hash = %new.hash, at = %event.offset(), "loaded");
        self.subscriptions.loads.insert(new.name.clone(), event.id());
        self.effects.ledger.broken_guards.remove(new.path().as_str());
        if let Some(kept) = self.disabled.get_mut(&new.name) {
            *kept = Some(new);
            return Ok(());
        }
        self.install(new, event, past)
    }

    /// Puts a behavior in place of what has its name. `event` is the cause of what wakes.
    fn install(
        &mut self,
        new: Arc<Subscription>,
        event: &Event,
        past: Past<'_>,
    ) -> Result<(), FoldError> {
        let name = new.name.clone();
        let old = self.subscriptions.get(&name).cloned();
        let mut failed = self.failed.remove(&name).unwrap_or_default();
        // A guard is not woken by its pattern: the request asks it.
        let standing = match new.metadata.trigger.is_match() && !new.metadata.guard {
            true => self.rows_of(&new),
            false => Ok(Vec::new()),
        };
        let costly = standing.is_err();
        let standing = standing.unwrap_or_default();
        let begins = begins(old.as_deref(), &new);
        let same = old.as_ref().is_some_and(|old| old.metadata.trigger == new.metadata.trigger);
        let same = same && !begins;
        if new.metadata.trigger.is_match() {
            // One that asked and was not answered has not had its say: the new version asks again.
            failed.extend(self.forget_questions(&name).into_iter().map(|first| first.row.bound));
        }
        let wanted: Vec<Row> = if same && !self.suspended.contains_key(&name) {
            standing.into_iter().filter(|row| failed.contains(&row.bound)).collect()
        } else {
            let settled = old.map_or_else(BTreeSet::new, |old| self.settled(&old, &failed));
            self.unload(&name);
            standing.into_iter().filter(|row| !settled.contains(&row.bound)).collect()
        };
        self.suspended.remove(&name);
        for (type_name, property) in new.indexes() {
            self.graph.declare_index(&type_name, &property);
        }
        self.subscriptions.insert(Arc::clone(&new));
        let chain = Chain { depth: 0, goal: event.id(), scopes: None };
        for row in wanted {
            self.queue(&new, event, row, &chain, None);
        }
        if begins {
            let catching = Catching::from(event.clone(), Offset::ZERO);
            self.catching.insert(name.clone(), catching);
            self.catch_up(&name, past)?;
        } else if !new.metadata.from_beginning {
            self.forget_earlier(&name);
        }
        if new.metadata.guard {
            self.ask_late(&new, event);
        }
        if costly {
            self.suspend(&name, event);
        }
        Ok(())
    }

    /// The matches on which an old version has had its say.
    fn settled(&self, old: &Subscription, failed: &BTreeSet<Vec<Bound>>) -> BTreeSet<Vec<Bound>> {
        if !old.metadata.trigger.is_match() || old.metadata.guard {
            return BTreeSet::new();
        }
        let waiting: BTreeSet<&Vec<Bound>> =
            self.agenda.of(&old.name).map(|waiting| &waiting.row.bound).collect();
        // If the old pattern costs too much, nobody knows what it stood on: then all is new.
        let rows = self.rows_of(old).unwrap_or_default().into_iter().map(|row| row.bound);
        rows.filter(|row| !waiting.contains(row) && !failed.contains(row)).collect()
    }

    /// Every match that stands of a behavior.
    fn rows_of(&self, subscription: &Subscription) -> Result<Vec<Row>, Exhausted> {
        let Some(pattern) = &subscription.pattern else { return Ok(Vec::new()) };
        let elements = (self.graph.node_count() + self.graph.edge_count()) as u64;
        let steps = Steps::up_to(STEPS_MAX + LOAD_STEPS_PER_ELEMENT * elements);
        pattern.pattern.matches(&self.graph, &[], &self.env(None), &steps)
    }

    /// A behavior does not want earlier events any more.
    fn forget_earlier(&mut self, name: &SmolStr) {
        let Some(catching) = self.catching.remove(name) else { return };
        let earlier = |waiting: &&Activation| {
            waiting.event.id() == catching.cause.id() && waiting.handled.is_some()
        };
        let waiting: Vec<Activation> = self.agenda.of(name).filter(earlier).cloned().collect();
        waiting.iter().for_each(|activation| self.agenda.take_out(activation));
    }

    fn unload(&mut self, name: &SmolStr) {
        self.forget_questions(name);
        self.agenda.withdraw_all(name);
        self.catching.remove(name);
        self.subscriptions.remove(name);
        self.failed.remove(name);
        self.suspended.remove(name);
    }
}

/// Whether a behavior begins to hear events from the beginning: it says so, and the version before
/// it, if there is one, did not or heard others.
fn begins(old: Option<&Subscription>, new: &Subscription) -> bool {
    let before = |old: &Subscription| {
        old.metadata.from_beginning && old.metadata.trigger == new.metadata.trigger
    };
    // An earlier event is heard as it was; whether a pattern held then nobody knows any more.
    let hears = new.metadata.trigger.condition.is_none() && !new.metadata.guard;
    new.metadata.from_beginning && hears && !old.is_some_and(before)
}

fn named(event: &Event) -> Result<SmolStr, FoldError> {
    let name = event.payload().get("name").map(|name| name.to_json());
    match name.as_ref().and_then(Value::as_str) {
        Some(name) => Ok(name.into()),
        None => {
            let what = format!("`{}` names no behavior", event.kind());
            Err(FoldError::Meaning { offset: event.offset(), what })
        }
    }
}

fn nothing_fired(event: &Event) -> FoldError {
    let what = format!("`{}` before anything fired", event.kind());
    FoldError::Meaning { offset: event.offset(), what }
}
