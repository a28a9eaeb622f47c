//! An activation: a behavior that is due on one event and one match, and its place in the order.

use std::sync::Arc;

use log::{Bound, Cause, Derivation, Event, EventId, Offset, Time};
use projection::{Born, Row};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use smol_str::SmolStr;

/// A behavior that was woken and waits to fire.
#[derive(Clone, Debug)]
pub(crate) struct Activation {
    /// The behavior's name.
    pub(crate) behavior: SmolStr,
    /// Its place among the behaviors that one event wakes.
    pub(crate) order: i64,
    /// Its cause: the event that woke it.
    pub(crate) event: Event,
    /// The match; empty for a behavior without a pattern.
    pub(crate) row: Row,
    /// The offset that the branch has to reach before it is due.
    pub(crate) at: Offset,
    /// Its place under the schedule `random`.
    pub(crate) ticket: u64,
    /// How long the chain of causes is that led to it.
    pub(crate) depth: u64,
    /// How often it was refused as conflicting.
    pub(crate) refused: u64,
    /// The elements of a match that vanished, as they were.
    pub(crate) carried: Option<Arc<Vec<Carried>>>,
    /// The event from outside that began the chain of causes.
    pub(crate) goal: EventId,
    /// The narrower grants of that chain.
    pub(crate) scopes: Option<Arc<[EventId]>>,
    /// The request that a guard is shown, where its cause is that the guard was loaded.
    /// Or the event that a behavior was woken by that asked, and is now given the answer.
    pub(crate) handled: Option<Event>,
    /// Whether its event is the end of the effect that the behavior asked on this match.
    pub(crate) answered: bool,
}

/// An element as it was before it vanished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) id: SmolStr,
    pub(crate) type_name: SmolStr,
    pub(crate) version: u64,
    pub(crate) ends: Option<(SmolStr, SmolStr)>,
    /// The properties in canonical form.
    pub(crate) properties: Vec<u8>,
}

/// Where an activation stands in the canonical order: when it is due, then its behavior, then the
/// creation of its match, then its cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    at: Offset,
    order: i64,
    behavior: SmolStr,
    row: Vec<Born>,
    cause: Offset,
}

impl Place {
    pub(crate) fn at(&self) -> Offset {
        self.at
    }

    pub(crate) fn behavior(&self) -> &SmolStr {
        &self.behavior
    }
}

impl Activation {
    /// The event that the reaction sees.
    pub(crate) fn seen(&self) -> &Event {
        self.handled.as_ref().unwrap_or(&self.event)
    }

    /// The recorded time of its cause.
    pub(crate) fn now(&self) -> Time {
        if self.answered { self.event.time() } else { self.seen().time() }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            at: self.at,
            order: self.order,
            behavior: self.behavior.clone(),
            row: self.row.order.clone(),
            cause: self.event.offset(),
        }
    }

    /// Names the firing as `firing_of` does.
    pub(crate) fn label(&self) -> EventId {
        self.derivation().finish()
    }

    /// The beginning of the derivation of whatever this firing says.
    pub(crate) fn derivation(&self) -> Derivation {
        let label = Derivation::new().id(&self.event.id()).text(&self.behavior);
        label.list(|list| derive_row(list, &self.row.bound))
    }
}

/// Names a firing by its cause, whichever branch it is on and whatever came of it.
pub(crate) fn firing_of(cause: &Cause) -> Option<EventId> {
    let Cause::Firing { event, behavior, row } = cause else { return None };
    let label = Derivation::new().id(event).text(behavior);
    Some(label.list(|list| derive_row(list, row)).finish())
}

/// A short name of a match.
pub(crate) fn row_name(row: &[Bound]) -> String {
    Derivation::new().list(|list| derive_row(list, row)).finish().to_string()
}

/// Adds the elements of a match to a derivation.
fn derive_row(list: Derivation, row: &[Bound]) -> Derivation {
    row.iter().fold(list, |list, bound| match bound {
        Bound::Element(id) => list.text(id),
        Bound::Path(ids) => list.list(|path| ids.iter().fold(path, |path, id| path.text(id))),
    })
}

/// A row as JSON: an element is its id, a path the list of its edges.
pub(crate) fn row_json(row: &[Bound]) -> Value {
    let bound = |bound: &Bound| match bound {
        Bound::Element(id) => json!(id.as_str()),
        Bound::Path(ids) => json!(ids.iter().map(SmolStr::as_str).collect::<Vec<_>>()),
    };
    Value::Array(row.iter().map(bound).collect())
}
