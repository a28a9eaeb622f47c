//! Catching up: a behavior that wants events `from` the beginning hears those before it was loaded,
//! one after the other.
//!
//! The next earlier event becomes due when the one before it is taken, at the end that the branch
//! then has. So they are heard in the order of the log under every schedule, what follows from them
//! is not held up, one at a time waits in memory however long the log is, and how far it is read
//! ahead leaves no trace. The cause of such a firing is the event that
//! loaded the behavior; the event it hears is its match, so no derivation happens twice.

use std::collections::VecDeque;

use log::{Bound, BranchId, Event, Log, LogError, Offset, read};
use projection::{Born, Row};
use smol_str::{SmolStr, format_smolstr};

use super::activation::Activation;
use super::error::FoldError;
use super::state::State;
use super::subscription::Subscription;

/// How many events are read at once in search of those that are heard.
const READ_AHEAD: u64 = 1024;

/// Where earlier events are read.
#[derive(Clone, Copy)]
pub(crate) enum Past<'l> {
    /// The branch that is folded; durable up to the event that loads a behavior.
    Of(&'l dyn Log, BranchId),
    /// None: a branch that is only tried out, of which no activation is taken.
    None,
}

/// How far a behavior has caught up.
#[derive(Clone, Debug)]
pub(crate) struct Catching {
    /// The event that loaded it; it hears the events before it.
    pub(crate) cause: Event,
    /// The first event that it was not shown.
    pub(crate) next: Offset,
    /// What was read ahead and is heard.
    ahead: VecDeque<Event>,
    /// Up to where the log was read.
    read_to: Offset,
}

impl Catching {
    /// One that is shown nothing before `next`.
    pub(crate) fn from(cause: Event, next: Offset) -> Catching {
        assert!(next <= cause.offset(), "only what is earlier is caught up");
        Catching { cause, next, ahead: VecDeque::new(), read_to: next }
    }

    /// The next event that a behavior hears.
    fn next_heard(
        &mut self,
        subscription: &Subscription,
        log: &dyn Log,
        branch: BranchId,
    ) -> Result<Option<Event>, LogError> {
        let trigger = &subscription.metadata.trigger;
        let until = self.cause.offset();
        while self.ahead.is_empty() && self.read_to < until {
            let to = self.read_to.plus(READ_AHEAD).min(until);
            for event in read(log, branch, self.read_to..to)? {
                let event = event?;
                let own = event.author() == Some(subscription.name.as_str()) && !trigger.wakes_self;
                if !own && trigger.hears(&event) {
                    self.ahead.push_back(event);
                }
            }
            self.read_to = to;
        }
        let heard = self.ahead.pop_front();
        if let Some(event) = &heard {
            assert!(event.offset() >= self.next, "events are heard in the order of the log");
            self.next = event.offset().plus(1);
        }
        Ok(heard)
    }
}

impl State {
    /// The next earlier event that a behavior hears becomes due. Called when it is loaded, and when
    /// the event before it is taken: both are functions of the log.
    pub(super) fn catch_up(&mut self, name: &SmolStr, past: Past<'_>) -> Result<(), FoldError> {
        let Past::Of(log, branch) = past else { return Ok(()) };
        let Some(catching) = self.catching.get_mut(name) else { return Ok(()) };
        let subscription = self.subscriptions.get(name).expect("what catches up is loaded");
        let subscription = std::sync::Arc::clone(subscription);
        let cause = catching.cause.clone();
        let Some(heard) = catching.next_heard(&subscription, log, branch)? else {
            self.catching.remove(name);
            return Ok(());
        };
        let trigger = &subscription.metadata.trigger;
        let bound = vec![Bound::Element(format_smolstr!("{}", heard.id()))];
        let row = Row { bound, order: vec![Born { offset: heard.offset(), index: 0 }] };
        let ticket = self.ticket(cause.id(), name, &row);
        // Where the branch ends by now: what followed from the events before it is not held up.
        let now = self.head.last().expect("a branch on which something is loaded has events");
        let after = trigger.after_ms.map(|ms| heard.time().ms().saturating_add_unsigned(ms));
        let activation = Activation {
            behavior: name.clone(),
            order: subscription.metadata.order,
            row,
            at: now.max(heard.offset().plus(trigger.after)),
            ticket,
            depth: 0,
            refused: 0,
            carried: None,
            goal: cause.id(),
            scopes: None,
            handled: Some(heard),
            answered: false,
            event: cause,
        };
        self.enqueue(after, activation);
        Ok(())
    }

    /// Whether an activation is of an earlier event that is shown for the first time.
    pub(super) fn is_caught_up_by(&self, activation: &Activation) -> bool {
        let catching = self.catching.get(&activation.behavior);
        let same = |catching: &Catching| catching.cause.id() == activation.event.id();
        activation.refused == 0 && activation.handled.is_some() && catching.is_some_and(same)
    }
}
