//! The outside events of a fork's ancestors, each waiting for its place in the fork.
//!
//! An event is fed when the fork has taken as many activations of the behaviors that it did not
//! change as its parent had, and at rest in any case. What is about an effect is fed when the fork
//! has asked for the same and stands where the parent stood; it waits for that beside the others.
//! What a fork changed stays changed: a later version that its parent loaded does not replace it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use log::{AppendError, BranchId, Draft, Event, EventId, Log, LogError, Offset};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::changes::FOLLOWS;
use super::history::{History, Line, Told, about};
use crate::effect::{Driver, Ending, Recorded};
use crate::engine::{Engine, EngineError, Stop};
use crate::snapshot::Snapshots;

/// What a fork has still to be told.
#[derive(Debug, Default)]
pub struct Feed {
    lines: Vec<Line>,
    queue: VecDeque<Told>,
    /// What is about an action that does not stand there yet.
    parked: HashMap<EventId, VecDeque<Told>>,
    changed: BTreeSet<SmolStr>,
    /// What the fork's own settings are, whatever its parent changed later.
    set: Map<String, Value>,
    /// Answers that the fork was given in place of recorded ones.
    overridden: HashMap<EventId, Ending>,
    /// Firings that the machine ended.
    stops: HashMap<EventId, Stop>,
    same: bool,
    follows: bool,
    /// How many events were fed, and how many had no place.
    counts: (usize, usize),
}

impl Feed {
    /// What is recorded for a branch; nothing if it is no fork, or one that asks anew.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn of(log: &dyn Log, branch: BranchId, snapshots: &Snapshots) -> Result<Feed, EngineError> {
        let history = History::of(log, branch, snapshots)?;
        let own = |kind: &'static str| history.own.iter().filter(move |event| event.is_kind(kind));
        let mut set = Map::new();
        own("flock.changed").for_each(|event| set.extend(said(event)));
        let overridden = own(super::changes::OVERRIDDEN).filter_map(ending_of).collect();
        let name = log.branch(branch)?.name;
        let follows = super::follows(log, branch, &name)?;
        Ok(Feed {
            lines: history.lines,
            queue: history.told.into(),
            parked: HashMap::new(),
            changed: history.changed,
            set,
            overridden,
            stops: history.stops,
            same: history.same,
            follows,
            counts: (0, 0),
        })
    }

    /// Tells the engine and the driver of a fork what they are to expect.
    ///
    /// # Errors
    /// The log refused or failed.
    pub fn begin(&mut self, engine: &mut Engine, driver: &mut Driver) -> Result<(), EngineError> {
        engine.expect_stops(std::mem::take(&mut self.stops));
        let ends = |told: &&Told| told.event.kind() != "effect.dispatched";
        let waited: HashSet<EventId> =
            self.queue.iter().filter(ends).filter_map(|told| about(&told.event)).collect();
        driver.expect_recorded(waited);
        let now = engine.recorded_now();
        driver.begin(engine, now)?;
        Ok(())
    }

    /// The answers that are recorded for the fork, those among them that it overrides.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn answers(&self, log: &dyn Log) -> Result<Recorded, LogError> {
        let mut all = Recorded::default();
        for line in &self.lines {
            let range = Offset::new(line.cut.count())..line.until.next();
            all.extend(Recorded::of_log(log, line.branch, range)?);
        }
        for (action, ending) in &self.overridden {
            all.override_with(*action, ending.clone());
        }
        Ok(all)
    }

    /// Whether everything has been fed that comes by its place.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether there is nothing left at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.parked.is_empty()
    }

    /// Whether the next event is about an effect.
    #[must_use]
    pub fn answers_next(&self) -> bool {
        self.queue.front().is_some_and(|told| about(&told.event).is_some())
    }

    /// How many events were fed, and how many had no place in the fork.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let parked: usize = self.parked.values().map(VecDeque::len).sum();
        (self.counts.0, self.counts.1 + parked)
    }

    /// Feeds all that has its place here. Tells how many events that were.
    ///
    /// # Errors
    /// The log refused or failed, or the code of what is to be loaded is gone.
    pub fn feed(&mut self, engine: &mut Engine, driver: &mut Driver) -> Result<usize, EngineError> {
        let mut fed = 0;
        while !self.is_empty() {
            let most = engine.taken_without(&self.changed);
            if !self.one(engine, driver, most)? {
                break;
            }
            fed += 1;
        }
        Ok(fed)
    }

    /// Feeds the next event, since nothing is due. Tells whether there was one that made sense.
    ///
    /// # Errors
    /// As `feed`.
    pub fn feed_at_rest(
        &mut self,
        engine: &mut Engine,
        driver: &mut Driver,
    ) -> Result<bool, EngineError> {
        self.one(engine, driver, u64::MAX)
    }

    fn one(
        &mut self,
        engine: &mut Engine,
        driver: &mut Driver,
        most: u64,
    ) -> Result<bool, EngineError> {
        if self.one_parked(engine, driver)? {
            return Ok(true);
        }
        while self.queue.front().is_some_and(|told| told.need <= most) {
            let told = self.queue.pop_front().expect("it was just there");
            let Some(action) = about(&told.event) else {
                if self.input(engine, &told)? {
                    return Ok(true);
                }
                continue;
            };
            if self.overridden.contains_key(&action) {
                // What the parent was answered is not what the fork is told.
                self.counts.1 += 1;
                let ends = told.event.kind() == "effect.ended";
                if ends && driver.serve_now(engine, action)? {
                    return Ok(true);
                }
                continue;
            }
            if self.parked.contains_key(&action) || !driver.agrees(engine, &told.event) {
                self.parked.entry(action).or_default().push_back(told);
            } else if self.answer(engine, &told)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Feeds what waited until its action stood there.
    fn one_parked(
        &mut self,
        engine: &mut Engine,
        driver: &mut Driver,
    ) -> Result<bool, EngineError> {
        if self.parked.is_empty() {
            return Ok(false);
        }
        let open: Vec<EventId> = engine.effects().iter().map(|action| action.facts.id).collect();
        for action in open {
            let front = self.parked.get(&action).and_then(VecDeque::front);
            if !front.is_some_and(|told| driver.agrees(engine, &told.event)) {
                continue;
            }
            let all = self.parked.get_mut(&action).expect("it was just there");
            let told = all.pop_front().expect("it was just there");
            if all.is_empty() {
                self.parked.remove(&action);
            }
            if self.answer(engine, &told)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Feeds what is about an effect.
    fn answer(&mut self, engine: &mut Engine, told: &Told) -> Result<bool, EngineError> {
        let mut draft = told.event.to_draft();
        let exact = self.same
            && engine.head().next() == told.event.offset()
            && engine.taken() == told.event.taken();
        if !exact && draft.kind == "effect.dispatched" {
            // In another history than its own an answer says where it is from.
            let from = format!("{}@{}", self.lines[told.line].name, told.event.offset());
            draft.payload.insert("served".to_owned(), json!(from));
        }
        self.land(engine, draft)
    }

    /// Feeds what came from outside and is about no effect.
    fn input(&mut self, engine: &mut Engine, told: &Told) -> Result<bool, EngineError> {
        if !self.wants(&told.event) || !engine.has_come_to(&told.event) {
            self.counts.1 += 1;
            return Ok(false);
        }
        let mut draft = told.event.to_draft();
        if draft.kind == "flock.changed" && !self.set.is_empty() {
            keep_set(&mut draft, &self.set);
        }
        self.land(engine, draft)
    }

    /// Whether an event about behaviors is still wanted: not where the fork or a folder decides.
    fn wants(&self, event: &Event) -> bool {
        if !event.kind().starts_with("behavior.") {
            return event.kind() != FOLLOWS || self.same;
        }
        let name = event.payload().get("name").and_then(|name| name.as_str());
        !self.follows && !name.is_some_and(|name| self.changed.contains(name))
    }

    fn land(&mut self, engine: &mut Engine, draft: Draft) -> Result<bool, EngineError> {
        match engine.land_recorded(draft) {
            Ok(landed) if !landed.repeated => {
                self.counts.0 += 1;
                Ok(true)
            }
            Ok(_)
            | Err(EngineError::Refused(_) | EngineError::Append(AppendError::KeyConflict { .. })) =>
            {
                self.counts.1 += 1;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// The settings that a person said, as `flock.changed` holds them.
fn said(event: &Event) -> Map<String, Value> {
    let set = event.payload().get("set").map(|set| set.to_json());
    if let Some(Value::Object(set)) = set { set } else { Map::new() }
}

/// Puts the fork's own settings over those that its parent changed later.
fn keep_set(draft: &mut Draft, set: &Map<String, Value>) {
    for field in ["settings", "set"] {
        if let Some(Value::Object(values)) = draft.payload.get_mut(field) {
            values.extend(set.clone());
        }
    }
    let id = log::Derivation::new().text("fed").id(&draft.id);
    draft.id = id.json(&Value::Object(draft.payload.clone())).finish();
    draft.salt = None;
}

/// The answer that a fork was given in place of a recorded one.
fn ending_of(event: &Event) -> Option<(EventId, Ending)> {
    let payload = Value::Object(event.payload().to_json());
    let action = payload["action"].as_str()?.parse().ok()?;
    Some((action, crate::effect::ending_of(&payload)?))
}
