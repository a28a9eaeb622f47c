//! Refire: every firing of a log is run again, each on its recorded past and with the version of
//! its time, and what it proposes is compared byte for byte with what the log holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use behaviors::Texts;
use log::{BranchId, Event, Head, Log, LogError, Offset, read};
use serde_json::Value;

use super::activation::Activation;
use super::catching::Past;
use super::evaluate::evaluate;
use super::fire::{Keys, fire};
use super::library::Library;
use super::loaded::LOADS;
use super::state::State;
use super::wave::text_of;
use super::{EngineError, FoldError};
use crate::promote::keyed_at;

/// What refiring a branch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refired {
    /// How many firings were run again.
    pub firings: u64,
    /// How many firings could not be run, by behavior and the hash of the source that is not at
    /// hand. Of those nothing is known.
    pub unavailable: BTreeMap<String, u64>,
    /// Where the log and the code differ, first to last.
    pub divergences: Vec<Divergence>,
}

/// A firing that would not do again what the log says it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The offset at which its events stand, or would.
    pub offset: Offset,
    /// The behavior.
    pub behavior: String,
    /// The recorded events.
    pub recorded: Vec<String>,
    /// What the code proposes.
    pub proposed: Vec<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}: `{}` does something else now", self.offset, self.behavior)?;
        self.recorded.iter().try_for_each(|line| write!(f, "\n- {line}"))?;
        self.proposed.iter().try_for_each(|line| write!(f, "\n+ {line}"))?;
        let counts = (self.recorded.len(), self.proposed.len());
        if counts.0 != counts.1 {
            write!(f, "\n  {} events were recorded, {} are proposed", counts.0, counts.1)?;
        }
        for (old, new) in self.recorded.iter().zip(&self.proposed) {
            let json = |line: &str| serde_json::from_str(line).unwrap_or(Value::Null);
            for (path, old, new) in differences("", &json(old), &json(new)) {
                write!(f, "\n  {path}: {old} -> {new}")?;
            }
        }
        Ok(())
    }
}

/// Where two values differ: the paths, and what stands there on both sides.
fn differences(path: &str, one: &Value, other: &Value) -> Vec<(String, Value, Value)> {
    let inside = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let part = |value: &Value, name: &str| value.get(name).cloned().unwrap_or(Value::Null);
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            let below = names
                .into_iter()
                .flat_map(|name| differences(&inside(name), &part(one, name), &part(other, name)));
            below.collect()
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs.flat_map(|(nth, (a, b))| differences(&inside(&nth.to_string()), a, b)).collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![(path.to_owned(), one.clone(), other.clone())],
    }
}

/// The keyed events before a firing.
struct Recorded<'l> {
    log: &'l dyn Log,
    branch: BranchId,
    head: Head,
}

impl Keys for Recorded<'_> {
    fn keyed(&self, key: &str) -> Result<Option<Event>, LogError> {
        let found = self.log.find_key(self.branch, key)?;
        match found.filter(|offset| *offset < self.head.next()) {
            Some(offset) => keyed_at(self.log, self.branch, offset).map(Some),
            None => Ok(None),
        }
    }
}

/// Runs every firing of a branch again. Nothing is asked of the world: what it answered stands in
/// the log, and there is nobody here who could ask.
///
/// # Errors
/// The log is damaged.
pub fn refire(log: &dyn Log, branch: BranchId, library: Library) -> Result<Refired, EngineError> {
    refire_up_to(log, branch, log.branch(branch)?.tip.head, library)
}

/// The same for the events before `until.next()`, which does not split a firing.
///
/// # Errors
/// As `refire`.
pub fn refire_up_to(
    log: &dyn Log,
    branch: BranchId,
    until: Head,
    mut library: Library,
) -> Result<Refired, EngineError> {
    let past = Past::Of(log, branch);
    let mut state = State::default();
    let mut refired = Refired { firings: 0, unavailable: BTreeMap::new(), divergences: Vec::new() };
    let mut events = read(log, branch, Offset::ZERO..until.next())?.peekable();
    while let Some(event) = events.next() {
        let event = event?;
        if event.taken() == state.taken {
            state.fold(&event, past)?;
            fetch(&state, &event, &mut library);
            continue;
        }
        // All events of one firing carry the same count, so the firing is as long as the count
        // lasts.
        let mut group = vec![event];
        while let Some(Ok(next)) = events.peek() {
            let same = next.author().is_some() && next.taken() == group[0].taken();
            if !same {
                break;
            }
            group.extend(events.next().transpose()?);
        }
        refire_group(&mut state, log, branch, &library, &group, &mut refired)?;
        for event in &group {
            state.fold(event, past)?;
            fetch(&state, event, &mut library);
        }
    }
    Ok(refired)
}

/// Takes activations up to a group of events; all but the last must be quiet, the last must emit
/// it.
fn refire_group(
    state: &mut State,
    log: &dyn Log,
    branch: BranchId,
    library: &Library,
    group: &[Event],
    refired: &mut Refired,
) -> Result<(), EngineError> {
    let first = &group[0];
    while state.taken < first.taken() {
        if state.take(Past::Of(log, branch))?.is_none() {
            let (offset, taken) = (first.offset(), first.taken());
            return Err(FoldError::NothingDue { offset, taken }.into());
        }
        let activation = state.last.clone().expect("an activation was just taken");
        let emits = state.taken == first.taken() && first.author().is_some();
        let recorded: &[Event] = if emits { group } else { &[] };
        if emits && was_stopped(first) {
            continue;
        }
        if let Some(version) = unavailable(state, library, &activation) {
            *refired.unavailable.entry(version).or_default() += 1;
            continue;
        }
        let keys = Recorded { log, branch, head: state.head };
        let find = |hash: &str| text_of(log, hash);
        let reaction = evaluate(state, &activation, library, Texts::of(&find));
        let reaction = reaction.map(|reply| reply.proposals);
        let mut proposed = fire(state, &keys, reaction)?;
        for staged in proposed.iter_mut().rev() {
            if let Some(delta) = staged.delta.take() {
                state.graph.undo(delta);
            }
        }
        refired.firings += 1;
        let same = proposed.iter().map(|staged| &staged.event).eq(recorded);
        if !same {
            refired.divergences.push(Divergence {
                offset: first.offset(),
                behavior: activation.behavior.to_string(),
                recorded: recorded.iter().map(|event| line(log, event)).collect(),
                proposed: proposed.iter().map(|staged| line(log, &staged.event)).collect(),
            });
        }
    }
    Ok(())
}

/// Whether the machine ended this firing: then the log is all there is to know.
fn was_stopped(event: &Event) -> bool {
    let stopped = event.payload().get("stopped");
    event.kind() == "behavior.failed" && stopped == Some(log::ValueRef::Bool(true))
}

/// An event as its line of an export; one whose long texts are not stored, by its id.
fn line(log: &dyn Log, event: &Event) -> String {
    let mut line = Vec::new();
    match log::write_line(log, event, log::Escapes::Needed, &mut line) {
        Ok(()) => String::from_utf8_lossy(&line).trim_end().to_owned(),
        Err(_) => format!("{} {} with a text that is not stored", event.kind(), event.id()),
    }
}

/// Fetches the code of what an event loaded, if it can be had.
fn fetch(state: &State, event: &Event, library: &mut Library) {
    if LOADS.contains(&event.kind()) {
        for subscription in state.subscriptions.iter() {
            // What is not at hand is told where it would have fired.
            drop(library.require(subscription));
        }
    }
}

/// The version of the behavior of an activation, if its code is not at hand.
fn unavailable(state: &State, library: &Library, activation: &Activation) -> Option<String> {
    let subscription = state.subscriptions.get(&activation.behavior)?;
    let found = library.get(&subscription.name, &subscription.hash);
    found.is_none().then(|| format!("{} {}", subscription.name, subscription.hash))
}
