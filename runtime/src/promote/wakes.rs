//! Which matches wake when a promotion lands: those that stood in neither side. What stood on the
//! branch, for a behavior that was loaded there, had its say there and is quiet here, unless it
//! still waits there or failed.

use std::collections::BTreeMap;

use log::{Bound, Event, ValueRef};
use projection::{Delta, Row, Steps};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::Sides;
use crate::engine::row_json;
use crate::engine::state::{STEPS_MAX, State};
use crate::engine::subscription::Subscription;

/// The rows that one event wakes or would wake.
#[derive(Clone, Debug, Default)]
pub(super) struct Woken {
    pub(super) wakes: BTreeMap<SmolStr, usize>,
    /// The rows that are quiet, by behavior.
    pub(super) quiet: Map<String, Value>,
    pub(super) quiet_count: usize,
}

/// Sorts what an event of a promotion makes true or false on our side.
pub(super) fn sorted(ours: &State, sides: &Sides, event: &Event, delta: &Delta) -> Woken {
    let mut woken = Woken::default();
    for name in ours.subscriptions.concerned(event, &ours.graph, delta) {
        let Some(subscription) = ours.subscriptions.get(&name) else { continue };
        let trigger = &subscription.metadata.trigger;
        if trigger.on.is_some() || subscription.metadata.guard {
            continue;
        }
        let Some(pattern) = &subscription.pattern else { continue };
        let steps = Steps::up_to(STEPS_MAX);
        // One that costs too much is suspended when the event lands.
        let Ok(rows) = pattern.pattern.delta(&ours.graph, delta, &ours.env(None), &steps) else {
            continue;
        };
        let rows = if trigger.is_vanishes() { rows.fallen } else { rows.risen };
        let (quiet, wakes): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| had_its_say(subscription, sides, row));
        if !wakes.is_empty() {
            woken.wakes.insert(name.clone(), wakes.len());
        }
        if !quiet.is_empty() {
            woken.quiet_count += quiet.len();
            let rows: Vec<Value> = quiet.iter().map(|row| row_json(&row.bound)).collect();
            woken.quiet.insert(name.to_string(), Value::Array(rows));
        }
    }
    woken
}

/// Whether a behavior was loaded on the branch, with the same trigger, and has fired there on this.
fn had_its_say(subscription: &Subscription, sides: &Sides, row: &Row) -> bool {
    let theirs = &sides.theirs;
    let name = &subscription.name;
    let trigger = &subscription.metadata.trigger;
    let Some(there) = theirs.subscriptions.get(name) else { return false };
    if there.metadata.trigger != *trigger || theirs.suspended.contains_key(name) {
        return false;
    }
    let pattern = &subscription.pattern.as_ref().expect("it has a row").pattern;
    let stands = |graph| {
        let steps = Steps::up_to(STEPS_MAX);
        pattern
            .stands(graph, &row.bound, &theirs.env(None), &steps)
            .is_ok_and(|found| found.is_some())
    };
    let round = theirs.round.rest().filter(|one| one.behavior == *name);
    let mut waiting = theirs.agenda.of(name).chain(round);
    let failed = theirs.failed.get(name).is_some_and(|rows| rows.contains(&row.bound));
    let held = match trigger.is_vanishes() {
        false => stands(&theirs.graph),
        true => stands(&sides.base) && !stands(&theirs.graph),
    };
    held && !failed && !waiting.any(|one| one.row.bound == row.bound)
}

fn row_of(row: &Value) -> Vec<Bound> {
    let text = |value: &Value| SmolStr::from(value.as_str().unwrap_or_default());
    let bound = |value: &Value| match value {
        Value::Array(path) => Bound::Path(path.iter().map(text).collect()),
        id => Bound::Element(text(id)),
    };
    row.as_array().into_iter().flatten().map(bound).collect()
}

/// The rows of a behavior that an event of a promotion does not wake.
pub(crate) fn quiet_rows(event: &Event, behavior: &str) -> Vec<Vec<Bound>> {
    let Some(ValueRef::Map(quiet)) = event.payload().get("quiet") else { return Vec::new() };
    let rows = quiet.get(behavior).map(|rows| rows.to_json());
    let rows = rows.as_ref().and_then(Value::as_array).into_iter().flatten();
    rows.map(row_of).collect()
}
