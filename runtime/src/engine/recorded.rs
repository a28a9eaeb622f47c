//! What a fork asks its engine about: where it is by its parent's count, and what of the recorded
//! past has a place here.

use std::collections::{BTreeSet, HashMap};

use behaviors::ReactError;
use log::{Derivation, Draft, Event, EventId, Landed, Time};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::state::State;
use super::subscription::Subscription;
use super::{Engine, EngineError};

/// A firing that the machine ended: what the log says of it replaces the firing.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// How often the firing was refused before.
    pub(crate) refused: u64,
    pub(crate) error: ReactError,
}

impl State {
    /// The event by which settings said by a person come to a branch that follows no folder; none
    /// if nothing differs.
    pub(crate) fn setting(&self, set: &Map<String, Value>, time: Time) -> Option<Draft> {
        let payload = super::settings::with_set(&self.settings.whole, set);
        if payload.is_empty() {
            return None;
        }
        let id = Derivation::new().text("flock.changed").integer(self.head.count());
        let id = id.json(&Value::Object(payload.clone())).finish();
        Some(Draft { payload, time, ..Draft::new(id, "flock.changed", "runtime") })
    }

    /// Activations taken so far, leaving out those of some behaviors.
    pub(crate) fn taken_without(&self, left_out: &BTreeSet<SmolStr>) -> u64 {
        let counts = left_out.iter().filter_map(|name| self.counts.get(name));
        self.taken - counts.map(|count| count.firings).sum::<u64>()
    }
}

impl Engine {
    /// Activations taken so far, leaving out those of some behaviors.
    pub(crate) fn taken_without(&self, left_out: &BTreeSet<SmolStr>) -> u64 {
        self.state.taken_without(left_out)
    }

    /// The time that the log says it is.
    pub(crate) fn recorded_now(&self) -> Time {
        Time::from_ms(self.state.clock).unwrap_or_default()
    }

    /// Replaces these firings by their recorded ends.
    pub(crate) fn expect_stops(&mut self, stops: HashMap<EventId, Stop>) {
        self.stops = stops;
    }

    /// How the machine ended the activation just taken, where that is recorded.
    pub(super) fn recorded_stop(&self) -> Option<ReactError> {
        if self.stops.is_empty() {
            return None;
        }
        let activation = self.state.last.as_ref().expect("an activation was just taken");
        let stop = self.stops.get(&activation.label())?;
        (stop.refused == activation.refused).then(|| stop.error.clone())
    }

    /// Lands an event from outside as it is recorded elsewhere; `taken` is stamped here.
    pub(crate) fn land_recorded(&mut self, draft: Draft) -> Result<Landed, EngineError> {
        if draft.kind == "behavior.loaded" {
            // The code is fetched by its hash before the event says that it is there.
            let (event, _) = Event::encode(&draft, self.state.head.next()).map_err(log_error)?;
            let subscription = Subscription::read(&event)?;
            self.library.require(&subscription)?;
        }
        if let Some(name) = switched_on(&draft) {
            self.check_enable(&name).map_err(EngineError::Refused)?;
        }
        self.outside(draft)
    }

    /// Whether an event of the runtime itself, recorded elsewhere, says what is so here as well.
    pub(crate) fn has_come_to(&mut self, event: &Event) -> bool {
        let payload = event.payload();
        let text = |name: &str| payload.get(name).and_then(|value| value.as_str());
        match event.kind() {
            "behavior.suspended" => {
                let suspended = text("name").and_then(|name| self.state.suspended.get(name));
                suspended.is_some_and(|suspension| !suspension.announced)
            }
            "flock.exhausted" => {
                let limit = payload.get("limit").and_then(|limit| limit.as_i64());
                let known = (text("budget"), limit.map(i64::unsigned_abs));
                let (Some(budget), Some(limit)) = known else { return false };
                !self.state.exhausted.contains(&(budget.into(), limit))
                    && match self.state.next_bound() {
                        Some(Some(reached)) => reached.budget == budget && reached.limit == limit,
                        // The driver says so of effects, which no activation is stopped by.
                        _ => ["effects", "tokens", "cost_millionths"].contains(&budget),
                    }
            }
            "flock.ticked" => self.next_delayed().is_some_and(|due| due <= event.time().ms()),
            "behavior.removed" => text("name").is_some_and(|name| self.known(name).is_some()),
            _ => true,
        }
    }

    /// As `State::setting`.
    pub(crate) fn setting(&self, set: &Map<String, Value>, time: Time) -> Option<Draft> {
        self.state.setting(set, time)
    }

    /// Whether a behavior is loaded from a file with this hash.
    pub(crate) fn is_loaded_from(&self, name: &str, hash: &str) -> bool {
        self.known(name).is_some_and(|known| known.hash == hash)
    }
}

fn switched_on(draft: &Draft) -> Option<String> {
    let name = draft.payload.get("name").filter(|_| draft.kind == "behavior.enabled");
    name.and_then(Value::as_str).map(str::to_owned)
}

fn log_error(error: log::EventError) -> EngineError {
    log::LogError::from(error).into()
}
