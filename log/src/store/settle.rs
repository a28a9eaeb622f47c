//! What became of appends and offers whose answers were lost with the owner.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Role, Store};
use crate::chain;
use crate::error::{AppendError, LogError};
use crate::event::Event;
use crate::guest::Unsettled;
use crate::id::{BranchId, EventId, Hash, Head, Offset};
use crate::log::{Append, Appended, Landed, Log, Offer, Pending};
use crate::read::{find_batch, read};
use crate::redb::RedbLog;

type Result<T> = std::result::Result<T, AppendError>;

impl Store {
    /// Runs on the thread that read from the owner, when there is nothing more to read.
    pub(super) fn owner_left(&self, generation: u64, unsettled: Vec<Unsettled>) {
        if self.is_closed() {
            return crate::guest::leave_unknown(unsettled);
        }
        if let Err(error) = self.reattach(generation) {
            tracing::warn!(%error, "the store has no owner any more");
            return crate::guest::leave_unknown(unsettled);
        }
        // All are made again before the first is waited for, so that they land in their order.
        let mut waiting = Vec::new();
        for asked in unsettled {
            match self.look_up(&asked) {
                Ok(Some(appended)) => asked.answer(Ok(appended)),
                Ok(None) => waiting.extend(self.ask_again(asked)),
                Err(error) => asked.answer(Err(error)),
            }
        }
        for (asked, pending) in waiting {
            if let Some(result) = pending.wait() {
                asked.answer(result);
            }
        }
    }

    fn ask_again(&self, asked: Unsettled) -> Option<(Unsettled, Pending<Result<Appended>>)> {
        let current = self.current();
        let Role::Owner { log, .. } = &current.role else {
            self.hand_over(asked);
            return None;
        };
        let pending = ask(log, &asked);
        Some((asked, pending))
    }

    /// What the store says became of it; `None` when it did not land.
    fn look_up(&self, asked: &Unsettled) -> Result<Option<Appended>> {
        match asked {
            Unsettled::Append(append, _) => self.look_up_append(append),
            Unsettled::Offer(branch, offer, since, _) => self.look_up_offer(*branch, offer, *since),
        }
    }

    fn look_up_append(&self, append: &Append) -> Result<Option<Appended>> {
        let Append { branch, batch, expected, .. } = append;
        let Some(head) = find_batch(self, *branch, *expected, batch.id(*branch, *expected))? else {
            return Ok(None);
        };
        let events = read(self, *branch, expected.next()..head.next())?;
        let there = offsets(events)?;
        let asked = batch.events().map(|event| (event.id(), event.key()));
        self.appended(*branch, &there, asked).map(Some)
    }

    /// An offer lands whole, in one batch, so one of its events tells of all.
    fn look_up_offer(
        &self,
        branch: BranchId,
        offer: &Offer,
        since: Head,
    ) -> Result<Option<Appended>> {
        let end = Offset::new(u64::MAX);
        let ours = |event: &std::result::Result<Event, LogError>| {
            event.as_ref().is_ok_and(|event| offer.drafts.iter().any(|d| d.id == event.id()))
        };
        let events = read(self, branch, since.next()..end)?;
        let there = offsets(events.filter(|event| event.is_err() || ours(event)))?;
        if there.is_empty() {
            return Ok(None);
        }
        let asked = offer.drafts.iter().map(|draft| (draft.id, draft.key.as_deref()));
        self.appended(branch, &there, asked).map(Some)
    }

    /// The answer that was lost, from where the events are.
    fn appended<'a>(
        &self,
        branch: BranchId,
        there: &HashMap<EventId, Offset>,
        asked: impl Iterator<Item = (EventId, Option<&'a str>)>,
    ) -> Result<Appended> {
        let mut landed = Vec::new();
        for (id, key) in asked {
            let repeated = match (there.get(&id), key) {
                (Some(offset), _) => {
                    landed.push(Landed { offset: *offset, repeated: false });
                    continue;
                }
                (None, Some(key)) => self.find_key(branch, key)?,
                (None, None) => None,
            };
            let what = || "a part of a batch that landed is not there".to_owned();
            let offset = repeated.ok_or_else(|| LogError::Stopped { what: what() })?;
            landed.push(Landed { offset, repeated: true });
        }
        let last = *there.values().max().expect("some of the events are there");
        let link = link_of(self, branch, last)?;
        Ok(Appended { head: Head::after(last), link, landed })
    }
}

fn offsets(
    events: impl Iterator<Item = std::result::Result<Event, LogError>>,
) -> Result<HashMap<EventId, Offset>> {
    let mut there = HashMap::new();
    for event in events {
        let event = event?;
        there.insert(event.id(), event.offset());
    }
    Ok(there)
}

/// The link of the event at `offset`.
fn link_of(log: &dyn Log, branch: BranchId, offset: Offset) -> Result<Hash> {
    let blocks = log.blocks(branch, offset, 1)?;
    let block = blocks.first().expect("the event was read, so its block is there");
    let mut link = block.before;
    for event in block.events()?.iter().take_while(|event| event.offset() <= offset) {
        link = chain::link(&link, event.offset(), &event.digest());
    }
    Ok(link)
}

/// Asks the log that this process owns.
fn ask(log: &RedbLog, asked: &Unsettled) -> Pending<Result<Appended>> {
    match asked {
        Unsettled::Append(append, _) => log.submit(append.clone()),
        Unsettled::Offer(branch, offer, _, _) => {
            let Offer { drafts, expected } = offer;
            log.offer(*branch, Offer { drafts: drafts.clone(), expected: *expected })
        }
    }
}

/// Asks the log that this process owns, and sees to it that the answer arrives.
pub(super) fn forward(log: &Arc<RedbLog>, asked: Unsettled) {
    let pending = ask(log, &asked);
    let wait = move || {
        if let Some(result) = pending.wait() {
            asked.answer(result);
        }
    };
    // Only what was asked while the owner changed comes this way.
    drop(std::thread::Builder::new().name("late append".to_owned()).spawn(wait));
}
