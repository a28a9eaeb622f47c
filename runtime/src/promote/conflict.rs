//! A conflict as people read it: what, why, both values, and who wrote each.

use std::fmt;

use log::{Branch, Event, Head, Log, LogError};
use projection::{Clash, Conflict};
use serde_json::{Value, json};

use crate::engine::resolved;

/// Something that stands in the way of a promotion.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// What kind of conflict it is: `property`, `removed`, `made`, `dangling`, `orphan`, `version`,
    /// `schema`, `key`, `action` or `firing`.
    pub kind: &'static str,
    /// The element, key, type or action that it is about; of a property, `id.name`.
    pub what: String,
    /// What is so, in a sentence.
    pub why: String,
    /// The branch that is promoted into: its value and who wrote it last.
    pub ours: Side,
    /// The promoted branch: the same.
    pub theirs: Side,
}

/// One side of a conflict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The value, where it is about one; none where there is none.
    pub value: Option<Value>,
    /// The address of the event that made it so, who did it, and its kind.
    pub cause: Option<(String, String, String)>,
}

impl Side {
    fn to_json(&self) -> Value {
        let cause = self.cause.as_ref();
        let cause = cause.map(|(at, actor, kind)| json!({"at": at, "actor": actor, "kind": kind}));
        json!({"value": self.value, "cause": cause})
    }
}

impl Disagreement {
    /// The conflict as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "conflict": self.kind, "what": self.what, "why": self.why,
            "ours": self.ours.to_json(), "theirs": self.theirs.to_json(),
        })
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.what, self.why)?;
        for side in [&self.ours, &self.theirs] {
            let Some((at, actor, kind)) = &side.cause else { continue };
            match &side.value {
                Some(value) => write!(f, "\n    {value} by {actor} at {at} ({kind})")?,
                None => write!(f, "\n    by {actor} at {at} ({kind})")?,
            }
        }
        Ok(())
    }
}

/// Finds who wrote what on both sides; reads nothing where nothing is asked.
pub(super) struct Authors<'l> {
    log: &'l dyn Log,
    theirs: (&'l Branch, Head),
    ours: (&'l Branch, Head),
    read: Option<[Vec<Event>; 2]>,
}

impl<'l> Authors<'l> {
    pub(super) fn between(
        log: &'l dyn Log,
        theirs: (&'l Branch, Head),
        ours: (&'l Branch, Head),
    ) -> Self {
        Authors { log, theirs, ours, read: None }
    }

    fn events(&mut self) -> Result<&[Vec<Event>; 2], LogError> {
        if self.read.is_none() {
            let ours = super::events_after(self.log, self.ours.0, self.ours.1)?;
            let theirs = super::events_after(self.log, self.theirs.0, self.theirs.1)?;
            self.read = Some([ours, theirs]);
        }
        Ok(self.read.as_ref().expect("it was just read"))
    }

    /// Who last wrote an element, or a property of it, on our side and on theirs.
    fn of(&mut self, id: &str, property: Option<&str>) -> Result<[Side; 2], LogError> {
        let names = [self.ours.0.name.clone(), self.theirs.0.name.clone()];
        let all = self.events()?;
        let last = |side: usize| {
            let wrote = |event: &&Event| writes(event, id, property);
            let event = all[side].iter().rev().find(wrote);
            let cause = event.map(|event| cause(names[side].as_str(), event));
            Side { value: None, cause }
        };
        Ok([last(0), last(1)])
    }

    pub(super) fn of_merge(
        &mut self,
        conflicts: &[Conflict],
    ) -> Result<Vec<Disagreement>, LogError> {
        conflicts.iter().map(|conflict| self.of_clash(conflict)).collect()
    }

    fn of_clash(&mut self, conflict: &Conflict) -> Result<Disagreement, LogError> {
        let id = conflict.id.as_str();
        let (here, there) = (self.ours.0.name.to_string(), self.theirs.0.name.to_string());
        let property = match &conflict.clash {
            Clash::Property { property, .. } => Some(property.as_str()),
            _ => None,
        };
        let [mut ours, mut theirs] = self.of(id, property)?;
        let mut what = id.to_owned();
        let (kind, why) = match &conflict.clash {
            Clash::Property { property, ours: mine, theirs: other } => {
                what = format!("{id}.{property}");
                ours.value = Some(mine.clone().unwrap_or(Value::Null));
                theirs.value = Some(other.clone().unwrap_or(Value::Null));
                let said = |value: &Option<Value>| {
                    value.as_ref().map_or("gone".to_owned(), Value::to_string)
                };
                let (mine, other) = (said(mine), said(other));
                ("property", format!("it is {mine} on {here} and {other} on {there}"))
            }
            Clash::Removed { here: true } => {
                ("removed", format!("{there} changed it, and {here} removed it"))
            }
            Clash::Removed { here: false } => {
                ("removed", format!("{there} removed it, and {here} changed it"))
            }
            Clash::Made => {
                ("made", format!("{here} and {there} each made it, of other types or ends"))
            }
            Clash::Dangling { end } => {
                ours = self.of(end, None)?[0].clone();
                ("dangling", format!("{there} links it to {end}, which {here} does not have"))
            }
            Clash::Orphan { edge } => {
                ours = self.of(edge, None)?[0].clone();
                ("orphan", format!("{there} removed it, and {here} has put the edge {edge} at it"))
            }
            Clash::Version => (
                "version",
                format!("{there} wrote it on the condition of its version, and {here} changed it"),
            ),
            _ => ("other", "it cannot be merged".to_owned()),
        };
        Ok(Disagreement { kind, what, why, ours, theirs })
    }
}

/// The address, the actor and the kind of an event.
pub(super) fn cause(branch: &str, event: &Event) -> (String, String, String) {
    let at = format!("{branch}@{}", event.offset());
    (at, event.actor().to_owned(), event.kind().to_owned())
}

fn writes(event: &Event, id: &str, property: Option<&str>) -> bool {
    resolved(event).iter().any(|change| {
        let touches = change.target == id || change.ends.iter().flatten().any(|end| end == id);
        touches && property.is_none_or(|name| change.target == id && names(&change.change, name))
    })
}

fn names(change: &log::ChangeRef<'_>, name: &str) -> bool {
    use log::ChangeRef::{Create, Ensure, EnsureLink, Link, Remove, Unset, Write};
    match change {
        Create { properties, .. }
        | Ensure { properties, .. }
        | Link { properties, .. }
        | EnsureLink { properties, .. }
        | Write { properties, .. } => properties.get(name).is_some(),
        Unset { names, .. } => names.iter().any(|known| known == name),
        Remove { .. } => true,
    }
}
