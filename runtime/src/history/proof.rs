//! The proof of a value: who wrote it, on which match, having read what, because of which event,
//! and so on up to what came from outside.

use std::collections::{BTreeMap, BTreeSet};

use log::{BranchId, Event, EventId, Log, Offset};

use super::ancestry;
use crate::engine::state::State;
use crate::engine::{FoldError, Shown, shown};
use crate::snapshot::Snapshots;

/// Events with all that they followed from, and what each firing among them was shown.
#[derive(Debug)]
pub(crate) struct Proof {
    /// Every event, by id.
    pub(crate) events: BTreeMap<EventId, Event>,
    /// What the firings were shown that was asked for, by the offset of their event.
    pub(crate) shown: BTreeMap<Offset, Shown>,
}

/// Proves events of one branch.
#[derive(Debug)]
pub(crate) struct Prover<'l> {
    pub(crate) log: &'l dyn Log,
    pub(crate) snapshots: &'l Snapshots,
    pub(crate) branch: BranchId,
}

impl Prover<'_> {
    /// The proof of some events; of `most` firings, those of the events themselves first and then
    /// their latest causes, also what they were shown.
    pub(crate) fn prove(&self, proven: &[Event], most: usize) -> Result<Proof, FoldError> {
        let events = ancestry(self.log, self.branch, proven)?;
        let mut firings: Vec<&Event> =
            events.values().filter(|event| event.author().is_some()).collect();
        let asked: BTreeSet<Offset> = proven.iter().map(Event::offset).collect();
        firings.sort_unstable_by_key(|event| {
            (!asked.contains(&event.offset()), std::cmp::Reverse(event.offset()))
        });
        firings.truncate(most);
        firings.sort_unstable_by_key(|event| event.offset());
        let mut state = State::default();
        let mut proof = BTreeMap::new();
        for event in firings {
            let before = log::Head::of_count(event.offset().get());
            let nearer = self.snapshots.nearest_state(
                self.log,
                self.branch,
                (state.head.min(before), before),
            )?;
            // The events of one firing were shown the same.
            let same = proof.last_key_value().filter(|_| state.taken == event.taken());
            if let Some((_, before)) = same {
                let before: Shown = Shown::clone(before);
                proof.insert(event.offset(), before);
                continue;
            }
            if let Some(nearer) = nearer.filter(|nearer| nearer.taken < event.taken()) {
                state = nearer;
            }
            if let Some(told) = shown(&mut state, self.log, self.branch, event)? {
                proof.insert(event.offset(), told);
            }
        }
        Ok(Proof { events, shown: proof })
    }
}
