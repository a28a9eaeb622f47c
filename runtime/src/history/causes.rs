//! What an event followed from, and what followed from it: causes backwards and forwards.
//!
//! An event names its cause by its derivation, and a cause stands before what it caused, mostly not
//! far. So causes are looked for from the event back, and followers from the event on, in one pass.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use log::{Bound, BranchId, Cause, Event, EventId, Head, Log, LogError, Offset, read};

/// How many events are read at once on the way back.
const STRETCH: u64 = 4096;

/// The event that an event followed from, if it is not one from outside.
pub(crate) fn cause_of(event: &Event) -> Option<EventId> {
    event.cause().map(|cause| match cause {
        Cause::Firing { event, .. } | Cause::Action { action: event } => event,
    })
}

/// Shows the events before `head.next()`, last to first, until `each` has seen enough.
pub(crate) fn backwards(
    log: &dyn Log,
    branch: BranchId,
    head: Head,
    mut each: impl FnMut(&Event) -> ControlFlow<()>,
) -> Result<(), LogError> {
    let mut end = head.count();
    while end > 0 {
        let start = end.saturating_sub(STRETCH);
        let some: Result<Vec<Event>, LogError> =
            read(log, branch, Offset::new(start)..Offset::new(end))?.collect();
        if some?.iter().rev().any(|event| each(event).is_break()) {
            return Ok(());
        }
        end = start;
    }
    Ok(())
}

/// Whether an event is of a firing on a match that holds an element which `is_it` accepts.
pub(crate) fn fired_on(event: &Event, is_it: impl Fn(&str) -> bool) -> bool {
    let Some(Cause::Firing { row, .. }) = event.cause() else { return false };
    row.iter().flat_map(Bound::ids).any(|id| is_it(id))
}

/// The last event before `head.next()` whose id begins so, and whether another one does.
pub(crate) fn event_by_id(
    log: &dyn Log,
    branch: BranchId,
    head: Head,
    prefix: &str,
) -> Result<(Option<Event>, bool), LogError> {
    let (mut found, mut more) = (None, false);
    backwards(log, branch, head, |event| {
        if !event.id().hex().as_str().starts_with(prefix) {
            return ControlFlow::Continue(());
        }
        more = found.is_some();
        found.get_or_insert_with(|| event.clone());
        if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((found, more))
}

/// These events and all that they followed from, up to those from outside, by id.
pub(crate) fn ancestry(
    log: &dyn Log,
    branch: BranchId,
    events: &[Event],
) -> Result<BTreeMap<EventId, Event>, LogError> {
    let mut known = BTreeMap::new();
    let mut wanted: BTreeSet<EventId> = BTreeSet::new();
    let mut last = Head::EMPTY;
    for event in events {
        last = last.max(Head::after(event.offset()));
        wanted.insert(event.id());
    }
    backwards(log, branch, last, |event| {
        if wanted.remove(&event.id()) {
            wanted.extend(cause_of(event));
            known.insert(event.id(), event.clone());
        }
        if wanted.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(known)
}

/// The events from `from` on that `is_root` accepts or that followed from one before, in order, up
/// to `most` of them; and how many more there are.
pub(crate) fn followers(
    log: &dyn Log,
    branch: BranchId,
    range: (Offset, Head),
    most: usize,
    mut is_root: impl FnMut(&Event) -> bool,
) -> Result<(Vec<Event>, u64), LogError> {
    let mut within: BTreeSet<EventId> = BTreeSet::new();
    let (mut found, mut more) = (Vec::new(), 0);
    for event in read(log, branch, range.0..range.1.next())? {
        let event = event?;
        let follows = cause_of(&event).is_some_and(|cause| within.contains(&cause));
        if !follows && !is_root(&event) {
            continue;
        }
        within.insert(event.id());
        if found.len() < most {
            found.push(event);
        } else {
            more += 1;
        }
    }
    Ok((found, more))
}
