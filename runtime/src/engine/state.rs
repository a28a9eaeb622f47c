//! Everything the engine knows, as a function of the log alone: graph, agenda, loaded behaviors,
//! delays, budgets.
//!
//! `fold` takes activations off the agenda until it has taken as many as the next event says, then
//! applies the event. No reaction runs. `model.py` of the design is the oracle of these rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use behaviors::Stream;
use log::{Bound, Cause, Event, EventId, Head};
use projection::{Delta, Env, Exhausted, Graph, Row, Steps};
use smol_str::SmolStr;

use super::activation::{Activation, Carried};
use super::agenda::Agenda;
use super::catching::{Catching, Past};
use super::error::FoldError;
use super::rounds::Round;
use super::settings::{Schedule, Settings};
use super::subscription::{Subscription, Subscriptions};
use crate::effect::{Chain, Effects};
use crate::promote::{is_promoting, quiet_rows};

/// How many steps of matching one event may cost one pattern. A pattern that needs more, as at a
/// hub or in a dense clique, is suspended by name instead of holding up everybody.
pub(crate) const STEPS_MAX: u64 = 1_000_000;

/// Everything the engine knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) head: Head,
    /// Activations taken off the agenda so far.
    pub(crate) taken: u64,
    pub(crate) counts: BTreeMap<SmolStr, Count>,
    pub(crate) graph: Graph,
    pub(crate) subscriptions: Subscriptions,
    /// Matches on which a behavior failed, while they stand.
    pub(crate) failed: BTreeMap<SmolStr, BTreeSet<Vec<Bound>>>,
    /// Behaviors that still hear events from before they were loaded.
    pub(crate) catching: BTreeMap<SmolStr, Catching>,
    /// Behaviors that a person switched off, by name, with what is loaded of them.
    pub(crate) disabled: BTreeMap<SmolStr, Option<Arc<Subscription>>>,
    /// Files that are broken, by path.
    pub(crate) rejected: BTreeMap<SmolStr, Rejection>,
    /// Behaviors whose pattern cost too much: the reason, and whether the log says so already.
    pub(crate) suspended: BTreeMap<SmolStr, Suspension>,
    /// Bounds that the log says were reached.
    pub(crate) exhausted: BTreeSet<(SmolStr, u64)>,
    pub(crate) agenda: Agenda,
    /// The activation taken last.
    pub(crate) last: Option<Activation>,
    pub(crate) round: Round,
    pub(crate) effects: Effects,
    /// Behaviors that wait for an answer, by the action that they asked.
    pub(crate) asking: BTreeMap<EventId, Activation>,
    /// The latest time, in milliseconds, that an event from outside said.
    pub(crate) clock: i64,
}

/// What one behavior has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) firings: u64,
    pub(crate) events: u64,
}

/// Why a behavior no longer matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// The event at which it cost too much.
    pub(crate) at: Event,
    pub(crate) announced: bool,
}

/// What the log says about a broken file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The hash of its text.
    pub(crate) hash: SmolStr,
    /// What is wrong with it.
    pub(crate) error: String,
}

impl State {
    /// The state after one more event of the log.
    pub(crate) fn fold(&mut self, event: &Event, past: Past<'_>) -> Result<(), FoldError> {
        while self.taken < event.taken() {
            if self.take(past)?.is_none() {
                let (offset, taken) = (event.offset(), event.taken());
                return Err(FoldError::NothingDue { offset, taken });
            }
        }
        let outside = event.author().is_none();
        if outside {
            self.end_round();
        }
        let delta = self.graph.apply(event).map_err(FoldError::refused(event.offset()))?;
        self.applied(event, &delta, past)
    }

    /// Takes the next activation off the agenda; `None` at rest.
    pub(crate) fn take(&mut self, past: Past<'_>) -> Result<Option<&Activation>, FoldError> {
        if self.next_of_round().is_none() {
            self.open_round();
        }
        let Some(next) = self.round.left.pop_front() else { return Ok(None) };
        self.taken += 1;
        self.counts.entry(next.behavior.clone()).or_default().firings += 1;
        let catches_up = self.is_caught_up_by(&next).then(|| next.behavior.clone());
        self.last = Some(next);
        if let Some(name) = catches_up {
            self.catch_up(&name, past)?;
        }
        Ok(self.last.as_ref())
    }

    /// What `take` would take.
    pub(crate) fn peek(&mut self) -> Option<&Activation> {
        if self.next_of_round().is_some() {
            return self.round.left.front();
        }
        self.agenda.peek(self.head)
    }

    /// Makes the next activation of the round stand first in it, if the round has one left: a
    /// refused one is tried again at its end, alone, if its match still stands.
    fn next_of_round(&mut self) -> Option<()> {
        while self.round.left.is_empty() {
            let again = self.round.refused.pop_front()?;
            if self.stands_or_suspends(&again) {
                self.drop_twins(&again);
                self.round.alone();
                self.round.left.push_back(again);
            }
        }
        Some(())
    }

    fn open_round(&mut self) {
        self.round.close();
        if self.settings.schedule == Schedule::Rounds {
            let due = self.agenda.take_due(self.head);
            if !due.is_empty() {
                self.round.open(due, self.graph.clone());
            }
        } else {
            self.round.left.extend(self.agenda.next(self.head));
        }
    }

    /// Ends a round in which an event from outside was found: what is left of it goes back.
    pub(crate) fn end_round(&mut self) {
        let left: Vec<Activation> =
            self.round.left.drain(..).chain(self.round.refused.drain(..)).collect();
        self.round.close();
        for activation in left {
            if self.stands_or_suspends(&activation) {
                self.drop_twins(&activation);
                self.agenda.insert(activation);
            }
        }
    }

    /// At most one activation waits for a match, so a newer one gives way; those of `on` wait one
    /// by one.
    fn drop_twins(&mut self, activation: &Activation) {
        if activation.answered {
            return;
        }
        let on = |name: &str| {
            self.subscriptions.get(name).is_some_and(|s| s.metadata.trigger.on.is_some())
        };
        if !on(&activation.behavior) {
            self.agenda.withdraw(&activation.behavior, &activation.row.bound);
        }
    }

    /// What follows from an event that the graph has just applied.
    pub(crate) fn applied(
        &mut self,
        event: &Event,
        delta: &Delta,
        past: Past<'_>,
    ) -> Result<(), FoldError> {
        assert_eq!(event.offset(), self.head.next(), "the log has no gaps");
        assert_eq!(event.taken(), self.taken, "activations were taken up to this event");
        self.head = Head::after(event.offset());
        let chain = self.chain_of(event);
        if let Some(author) = event.author() {
            self.counts.entry(author.into()).or_default().events += 1;
            self.round.note_writes(event, &self.graph, delta);
        } else if event.time().ms() > self.clock {
            self.clock = event.time().ms();
            self.agenda.release(self.clock, event.offset());
        }
        self.wake(event, delta, &chain);
        self.obey(event, &chain, past)
    }

    /// What an event passes on to what follows from it. An event from outside begins a chain, but
    /// an answer goes on with that of its action, whose goal and narrower grants hold below it.
    fn chain_of(&self, event: &Event) -> Chain {
        let begins = || Chain { depth: 0, goal: event.id(), scopes: None };
        if let Some(author) = event.author() {
            let last = self.last.as_ref().filter(|last| last.behavior == author);
            return last.map_or_else(begins, |last| Chain {
                depth: last.depth + 1,
                goal: last.goal,
                scopes: last.scopes.clone(),
            });
        }
        let Some(Cause::Action { action }) = event.cause() else { return begins() };
        let action = self.effects.get(&action);
        action.map_or_else(begins, |action| {
            let scopes = &action.facts.scopes;
            let scopes = (!scopes.is_empty()).then(|| scopes.as_slice().into());
            Chain { depth: 0, goal: action.facts.goal, scopes }
        })
    }

    /// Whether what an activation waits for still holds.
    pub(crate) fn stands(&self, activation: &Activation) -> Result<bool, Exhausted> {
        self.stands_in(&self.graph, activation)
    }

    /// The same in another world.
    pub(crate) fn stands_in(
        &self,
        world: &Graph,
        activation: &Activation,
    ) -> Result<bool, Exhausted> {
        let Some(subscription) = self.subscriptions.get(&activation.behavior) else {
            return Ok(false);
        };
        let Some(pattern) = &subscription.pattern else { return Ok(true) };
        let trigger = &subscription.metadata.trigger;
        let event = trigger.on.as_ref().map(|_| activation.seen());
        let env = self.env(event);
        let steps = Steps::up_to(STEPS_MAX);
        let row = &activation.row.bound;
        let stands = pattern.pattern.stands(world, row, &env, &steps)?;
        Ok(stands.is_some() != trigger.is_vanishes())
    }

    /// The same; a pattern that costs too much is suspended, and what it waits for does not hold.
    fn stands_or_suspends(&mut self, activation: &Activation) -> bool {
        if self.suspended.contains_key(&activation.behavior) {
            return false;
        }
        // An answer is heard in any case: where it came too late, the log says so.
        if activation.answered {
            return true;
        }
        self.stands(activation).unwrap_or_else(|_| {
            self.suspend(&activation.behavior, &activation.event);
            false
        })
    }

    pub(crate) fn env<'s>(&'s self, event: Option<&'s Event>) -> Env<'s> {
        Env { event, parameters: &self.settings.parameters }
    }

    /// Withdraws what fell, and queues what an event wakes.
    fn wake(&mut self, event: &Event, delta: &Delta, chain: &Chain) {
        for name in self.subscriptions.concerned(event, &self.graph, delta) {
            if self.suspended.contains_key(&name) {
                continue;
            }
            let Some(subscription) = self.subscriptions.get(&name).cloned() else { continue };
            let own =
                event.author() == Some(name.as_str()) && !subscription.metadata.trigger.wakes_self;
            let woken = self.woken(&subscription, event, delta, own);
            match woken {
                Ok(woken) => self.queue_rows(&subscription, event, delta, woken, chain),
                Err(_) => self.suspend(&subscription.name, event),
            }
        }
    }

    /// The rows on which an event wakes a behavior. What fell is withdrawn on the way.
    fn woken(
        &mut self,
        subscription: &Subscription,
        event: &Event,
        delta: &Delta,
        own: bool,
    ) -> Result<Vec<Row>, Exhausted> {
        let trigger = &subscription.metadata.trigger;
        let hears = !own && trigger.hears(event);
        let Some(pattern) = &subscription.pattern else {
            let all = Row { bound: Vec::new(), order: Vec::new() };
            return Ok(if hears { vec![all] } else { Vec::new() });
        };
        let (pattern, steps) = (&pattern.pattern, Steps::up_to(STEPS_MAX));
        if trigger.on.is_some() && pattern.uses_event() {
            self.withdraw_fallen_conditions(subscription)?;
        } else {
            let rows = pattern.delta(&self.graph, delta, &self.env(None), &steps)?;
            let vanishes = trigger.is_vanishes();
            let (rise, fall) =
                if vanishes { (rows.fallen, rows.risen) } else { (rows.risen, rows.fallen) };
            for row in &fall {
                self.agenda.withdraw(&subscription.name, &row.bound);
            }
            if let Some(failed) = self.failed.get_mut(&subscription.name) {
                fall.iter().for_each(|row| {
                    failed.remove(&row.bound);
                });
            }
            if trigger.on.is_none() {
                let quiet = match is_promoting(event) {
                    true => quiet_rows(event, &subscription.name),
                    false => Vec::new(),
                };
                let mut rise = if own { Vec::new() } else { rise };
                rise.retain(|row| !quiet.contains(&row.bound));
                return Ok(rise);
            }
        }
        if !hears || trigger.on.is_none() {
            return Ok(Vec::new());
        }
        let env = self.env(Some(event));
        pattern.matches(&self.graph, &[], &env, &steps)
    }

    /// A condition that reads the waking event holds or falls for each activation by itself.
    fn withdraw_fallen_conditions(&mut self, subscription: &Subscription) -> Result<(), Exhausted> {
        let mut fallen = Vec::new();
        for activation in self.agenda.of(&subscription.name) {
            if !activation.answered && !self.stands(activation)? {
                fallen.push(activation.clone());
            }
        }
        for activation in fallen {
            self.agenda.take_out(&activation);
        }
        Ok(())
    }

    fn queue_rows(
        &mut self,
        subscription: &Subscription,
        event: &Event,
        delta: &Delta,
        rows: Vec<Row>,
        chain: &Chain,
    ) {
        let vanishes = subscription.metadata.trigger.is_vanishes();
        for row in rows {
            let carried = vanishes.then(|| Carried::before(&self.graph, delta, &row));
            self.queue(subscription, event, row, chain, carried);
        }
    }

    pub(crate) fn queue(
        &mut self,
        subscription: &Subscription,
        event: &Event,
        row: Row,
        chain: &Chain,
        carried: Option<Vec<Carried>>,
    ) {
        let ticket = self.ticket(event.id(), &subscription.name, &row);
        let activation = Activation {
            behavior: subscription.name.clone(),
            order: subscription.metadata.order,
            event: event.clone(),
            row,
            at: event.offset().plus(subscription.metadata.trigger.after),
            ticket,
            depth: chain.depth,
            refused: 0,
            carried: carried.map(Arc::new),
            goal: chain.goal,
            scopes: chain.scopes.clone(),
            handled: None,
            answered: false,
        };
        let after = subscription.metadata.trigger.after_ms;
        let due = after.map(|ms| event.time().ms().saturating_add_unsigned(ms));
        self.enqueue(due, activation);
    }

    /// The ticket of an activation: under `random` an integer drawn from a stream of its own onto
    /// that of the activation taken last.
    pub(super) fn ticket(&self, cause: EventId, behavior: &str, row: &Row) -> u64 {
        if self.settings.schedule != Schedule::Random {
            return 0;
        }
        let stream = Stream::of_ticket(self.settings.seed, cause, behavior, &row.bound[..]);
        self.last.as_ref().map_or(0, |last| last.ticket) + 1 + stream.below(1 << 16)
    }

    /// Lets an activation wait: for its turn, or for its time by the recorded clock.
    pub(super) fn enqueue(&mut self, due: Option<i64>, activation: Activation) {
        match due.filter(|due| *due > self.clock) {
            Some(due) => self.agenda.delay(due, activation),
            None => self.agenda.insert(activation),
        }
    }

    /// A pattern that costs too much is not matched any more; what waits of it is withdrawn.
    pub(crate) fn suspend(&mut self, name: &SmolStr, event: &Event) {
        tracing::warn!(behavior = %name, at = %event.offset(), "a pattern costs too much");
        self.agenda.withdraw_all(name);
        self.suspended.insert(name.clone(), Suspension { at: event.clone(), announced: false });
    }
}
