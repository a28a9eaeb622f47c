//! What a flock's first event settles for its branch, and what later ones may change.

use std::collections::BTreeMap;

use log::{Event, Time};
use serde_json::{Map, Value};

use super::error::FoldError;
use crate::effect::Policy;

/// Who goes next, as a function of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// What was due first goes first.
    #[default]
    Fifo,
    /// All that is due sees one world and lands in canonical order.
    Rounds,
    /// By chance, from the seed; nobody is overtaken for ever.
    Random,
}

impl Schedule {
    /// The word for it in `flock.toml` and in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Fifo => "fifo",
            Schedule::Rounds => "rounds",
            Schedule::Random => "random",
        }
    }

    /// The schedule with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Schedule::Fifo, Schedule::Rounds, Schedule::Random].into_iter().find(|s| s.name() == name)
    }
}

/// How much a run may do; what is not said is not bounded, but for depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events on the branch.
    pub events: Option<u64>,
    /// Activations taken.
    pub firings: Option<u64>,
    /// The length of a chain of causes.
    pub depth: u64,
}

/// How long a chain of causes may grow unless the flock says otherwise.
pub const DEPTH_DEFAULT: u64 = 1000;

impl Default for Bounds {
    fn default() -> Self {
        Bounds { events: None, firings: None, depth: DEPTH_DEFAULT }
    }
}

/// What `flock.started` settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) seed: i64,
    pub(crate) schedule: Schedule,
    /// The start event's payload, with the changes since.
    pub(crate) whole: Map<String, Value>,
    /// The flock's settings, for scripts.
    pub(crate) values: Map<String, Value>,
    /// The same, for patterns.
    pub(crate) parameters: BTreeMap<String, Value>,
    pub(crate) bounds: Bounds,
    pub(crate) policy: Policy,
    /// Whether what a behavior does not declare is refused, where it declares nothing at all.
    pub(crate) strict: bool,
    pub(crate) start: Time,
}

impl Settings {
    pub(crate) fn start(&mut self, event: &Event) -> Result<(), FoldError> {
        self.whole = event.payload().to_json();
        self.start = event.time();
        self.read().map_err(|what| FoldError::Meaning { offset: event.offset(), what })
    }

    /// `flock.changed` carries the fields of `flock.started` that have other values now.
    pub(crate) fn change(&mut self, event: &Event) -> Result<(), FoldError> {
        let schedule = self.schedule;
        for (field, value) in event.payload().to_json() {
            self.whole.insert(field, value);
        }
        self.read().map_err(|what| FoldError::Meaning { offset: event.offset(), what })?;
        if self.schedule != schedule {
            let what = "the schedule of a branch cannot change".to_owned();
            return Err(FoldError::Meaning { offset: event.offset(), what });
        }
        Ok(())
    }

    /// Reads the fields of `whole`; says what is wrong with them.
    pub(super) fn read(&mut self) -> Result<(), String> {
        let bad = |what: &str| what.to_owned();
        let seed = self.whole.get("seed").and_then(Value::as_i64);
        self.seed = seed.ok_or_else(|| bad("the seed is not a whole number"))?;
        let schedule = self.whole.get("schedule").and_then(Value::as_str);
        let schedule = schedule.and_then(Schedule::from_name);
        self.schedule =
            schedule.ok_or_else(|| bad("the schedule is none of fifo, rounds, random"))?;
        let settings = self.whole.get("settings").and_then(Value::as_object);
        self.values = settings.cloned().unwrap_or_default();
        self.parameters = self.values.clone().into_iter().collect();
        let budget = self.whole.get("budget");
        let bound = |name: &str| budget?.get(name)?.as_u64();
        self.bounds = Bounds {
            events: bound("events"),
            firings: bound("firings"),
            depth: bound("depth").unwrap_or(DEPTH_DEFAULT),
        };
        self.policy = Policy::of_flock(&self.whole);
        let lint = self.whole.get("lint").and_then(|lint| lint.get("undeclared"));
        self.strict = lint.and_then(Value::as_str) == Some("error");
        Ok(())
    }
}

/// The fields of `flock.started` that settings said by a person change.
pub(crate) fn with_set(whole: &Map<String, Value>, set: &Map<String, Value>) -> Map<String, Value> {
    let with = |field: &str| {
        let before = whole.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut after = before.clone();
        after.extend(set.clone());
        (after != before).then(|| (field.to_owned(), Value::Object(after)))
    };
    ["settings", "set"].into_iter().filter_map(with).collect()
}
