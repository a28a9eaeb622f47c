//! Where a fork and the branch it left go different ways, event by event, and why.
//!
//! Events are compared by what they derive from and what they say, not by where they stand: an
//! event that an unrelated behavior put between them parts nothing. What the fork itself changed,
//! and what both were told from outside, is no difference either; what follows from it is.

use std::collections::HashMap;
use std::fmt;

use log::{Branch, Event, EventId, Log, LogError, Offset, read};
use serde_json::{Value, json};

/// The first event that is not on both branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The address at which it stands.
    pub at: String,
    /// What happens there.
    pub kind: String,
    /// The behavior that does it.
    pub behavior: String,
    /// Why: a sentence.
    pub why: String,
    /// What the other branch has in its place, if the same firing says something else there.
    pub instead: Option<String>,
}

impl Parting {
    /// The same as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "at": self.at, "kind": self.kind, "behavior": self.behavior, "why": self.why,
            "instead": self.instead,
        })
    }
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parting { at, kind, behavior, why, instead } = self;
        write!(f, "they part at {at}: `{behavior}` says {kind}: {why}")?;
        instead.as_ref().map_or(Ok(()), |instead| write!(f, "\n  instead of {instead}"))
    }
}

/// The first event of a firing that a fork or its parent has and the other does not; none if both
/// did the same.
///
/// # Errors
/// The log cannot be read.
pub fn parting(log: &dyn Log, parent: &Branch, fork: &Branch) -> Result<Option<Parting>, LogError> {
    let Some(cut) = fork.fork.as_ref().map(|fork| fork.cut.next()) else { return Ok(None) };
    let (ours, theirs) = (firings(log, parent, cut)?, firings(log, fork, cut)?);
    let by_id = |events: &[Event]| -> HashMap<EventId, usize> {
        events.iter().enumerate().map(|(place, event)| (event.id(), place)).collect()
    };
    let (ours_by_id, theirs_by_id) = (by_id(&ours), by_id(&theirs));
    let other = |event: &Event, all: &[Event], places: &HashMap<EventId, usize>| {
        places.get(&event.id()).map(|place| all[*place].clone())
    };
    let parts = |event: &Event, other: &Option<Event>| {
        !other.as_ref().is_some_and(|other| other.same_content(event))
    };
    let mut found = theirs.iter().map(|event| (event, other(event, &ours, &ours_by_id)));
    let new = found.find(|(event, ours)| parts(event, ours));
    let mut missing = ours.iter().filter(|event| !theirs_by_id.contains_key(&event.id()));
    let gone = missing.next();
    // What is told is what comes first, counted from the cut.
    let told = match (new, gone) {
        (None, None) => return Ok(None),
        (Some((event, instead)), gone) => {
            match gone.filter(|gone| instead.is_none() && gone.taken() < event.taken()) {
                Some(gone) => absent(gone, parent, fork),
                None => present(event, instead.as_ref(), parent, fork),
            }
        }
        (None, Some(gone)) => absent(gone, parent, fork),
    };
    Ok(Some(told))
}

fn firings(log: &dyn Log, branch: &Branch, from: Offset) -> Result<Vec<Event>, LogError> {
    let mut events = Vec::new();
    for event in read(log, branch.id, from..branch.tip.head.next())? {
        let event = event?;
        if event.author().is_some() {
            events.push(event);
        }
    }
    Ok(events)
}

fn present(event: &Event, instead: Option<&Event>, parent: &Branch, fork: &Branch) -> Parting {
    let behavior = event.author().unwrap_or_default().to_owned();
    let why = match instead {
        Some(other) if other.actor() != event.actor() => {
            format!("it was {} on {} and is {} now", other.actor(), parent.name, event.actor())
        }
        Some(_) => "the same code saw something else".to_owned(),
        None => format!("{} has no such event", parent.name),
    };
    let instead = instead.map(|other| {
        format!("{} {} at {}@{}", other.kind(), payload(other), parent.name, other.offset())
    });
    let at = format!("{}@{}", fork.name, event.offset());
    let kind = format!("{} {}", event.kind(), payload(event));
    Parting { at, kind, behavior, why, instead }
}

fn absent(event: &Event, parent: &Branch, fork: &Branch) -> Parting {
    Parting {
        at: format!("{}@{}", parent.name, event.offset()),
        kind: format!("{} {}", event.kind(), payload(event)),
        behavior: event.author().unwrap_or_default().to_owned(),
        why: format!("{} has no such event", fork.name),
        instead: None,
    }
}

fn payload(event: &Event) -> Value {
    Value::Object(event.payload().to_json())
}
