//! Events from outside: of a person, a timer, an effect or a reload; and the start of a branch.
//!
//! Only these read the clock, once, at the edge. A live one waits for the end of a round.

use std::sync::Arc;

use behaviors::is_runtime_kind;
use log::{Append, AppendError, Appended, Batch, Branch, BranchId, BranchName, Derivation, Draft};
use log::{Delivery, Event, EventId, Head, Landed, Log, LogError, Offer, Time};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::catching::Past;
use super::fire::{Keys, Staged};
use super::forge::forged;
use super::loaded::LOADS;
use super::state::{STEPS_MAX, State};
use super::{Engine, EngineError};

/// What a new branch starts with. It lands as one batch, or not at all.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The payload of `flock.started`: whatever in the flock can change a result.
    pub flock: Map<String, Value>,
    /// The seed of the branch.
    pub seed: i64,
    /// The time of the start events.
    pub start: Time,
    /// The payloads of `behavior.loaded`, by name.
    pub behaviors: Vec<(SmolStr, Map<String, Value>)>,
    /// The `[[start]]` events, in order; their ids, times and counts are stamped here.
    pub events: Vec<Draft>,
}

/// Makes a branch and appends its start events. A branch that exists and is still empty is used.
///
/// # Errors
/// A start event cannot be applied, the branch is not empty, or the log cannot be written.
pub fn start_branch(
    log: &Arc<dyn Log>,
    name: &BranchName,
    start: &Start,
    owner: &str,
) -> Result<Branch, EngineError> {
    let known = log.branches()?.into_iter().find(|branch| branch.name == *name);
    let branch = match known {
        Some(branch) if branch.tip.head.count() == 0 => branch,
        Some(_) => return Err(LogError::BranchExists { name: name.clone() }.into()),
        None => log.create(name)?,
    };
    append_once(&**log, branch.id, start_batch(start)?, branch.tip.head, owner)?;
    Ok(log.branch(branch.id)?)
}

/// Appends one batch at exactly `expected` to a branch that nobody runs, and lets go of it.
///
/// # Errors
/// Somebody runs the branch, its head is another, or the log cannot be written.
pub(crate) fn append_once(
    log: &dyn Log,
    branch: BranchId,
    batch: Batch,
    expected: Head,
    owner: &str,
) -> Result<Appended, EngineError> {
    let epoch = log.claim(branch, owner)?.epoch;
    let appended = log.submit(Append { branch, batch, expected, epoch }).wait();
    log.release(branch, epoch);
    let stopped = || LogError::Stopped { what: "the writer is gone".to_owned() };
    Ok(appended.ok_or_else(stopped)??)
}

fn start_batch(start: &Start) -> Result<Batch, EngineError> {
    let seed = json!(start.seed);
    let derive = || Derivation::new().text("start").json(&seed);
    let mut payload = start.flock.clone();
    let count = 1 + start.behaviors.len() + start.events.len();
    payload.insert(super::cut::START_EVENTS.to_owned(), json!(count));
    let begin = Draft { payload, ..Draft::new(derive().finish(), "flock.started", "runtime") };
    let mut drafts = vec![begin];
    for (name, payload) in &start.behaviors {
        let id = load_id(start.seed, None, name);
        let payload = payload.clone();
        drafts.push(Draft { payload, ..Draft::new(id, "behavior.loaded", "runtime") });
    }
    for (nth, event) in start.events.iter().enumerate() {
        drafts.push(Draft { id: derive().integer(nth as u64).finish(), ..event.clone() });
    }
    let mut state = State::default();
    let mut batch = Batch::new();
    for mut draft in drafts {
        (draft.time, draft.taken) = (start.start, 0);
        let (event, blobs) = Event::encode(&draft, state.head.next()).map_err(LogError::from)?;
        state.fold(&event, Past::None)?;
        batch.push(event, blobs);
    }
    Ok(batch)
}

/// The id of a load or removal: adding a behavior renames nothing else, and two forks name it
/// alike.
fn load_id(seed: i64, last: Option<&EventId>, name: &str) -> EventId {
    let id = Derivation::new().json(&json!(seed));
    let id = if let Some(last) = last { id.id(last) } else { id.null() };
    id.text(name).finish()
}

impl State {
    /// The event that loads a behavior.
    pub(crate) fn loading(&self, name: &SmolStr, payload: Map<String, Value>, time: Time) -> Draft {
        let id = self.next_load(name);
        Draft { payload, time, ..Draft::new(id, "behavior.loaded", "runtime") }
    }

    /// The event that removes a behavior.
    pub(crate) fn removing(&self, name: &SmolStr, time: Time) -> Draft {
        let mut draft = Draft::new(self.next_load(name), "behavior.removed", "runtime");
        draft.payload.insert("name".to_owned(), json!(name.as_str()));
        Draft { time, ..draft }
    }

    fn next_load(&self, name: &SmolStr) -> EventId {
        load_id(self.settings.seed, self.subscriptions.loads.get(name), name)
    }
}

impl Engine {
    /// Lands an event from outside, now; `taken` is stamped here. If it lands inside a round it
    /// ends it. Gives where the event stands.
    ///
    /// # Errors
    /// Its key is used with other content, its changes cannot be applied, or the log failed.
    pub fn outside(&mut self, draft: Draft) -> Result<Landed, EngineError> {
        let mut landed = self.land_outside(vec![draft])?;
        Ok(landed.pop().expect("one event was given"))
    }

    /// Loads or replaces a behavior; its code must be in the engine's library.
    ///
    /// # Errors
    /// As `outside`.
    pub fn load(
        &mut self,
        name: &SmolStr,
        payload: Map<String, Value>,
        time: Time,
    ) -> Result<Landed, EngineError> {
        let draft = self.loading(name, payload, time);
        let mut landed = self.reload(vec![draft])?;
        Ok(landed.pop().expect("one event was given"))
    }

    /// Removes a behavior: what waits of it is withdrawn.
    ///
    /// # Errors
    /// As `outside`.
    pub fn unload(&mut self, name: &SmolStr, time: Time) -> Result<Landed, EngineError> {
        let draft = self.removing(name, time);
        let mut landed = self.reload(vec![draft])?;
        Ok(landed.pop().expect("one event was given"))
    }

    /// The event that loads a behavior.
    pub(crate) fn loading(&self, name: &SmolStr, payload: Map<String, Value>, time: Time) -> Draft {
        self.state.loading(name, payload, time)
    }

    /// The event that removes a behavior.
    pub(crate) fn removing(&self, name: &SmolStr, time: Time) -> Draft {
        self.state.removing(name, time)
    }

    /// Lands loads, removals and what else a flock's files came to, as one batch: all of them are
    /// in the log, or none.
    ///
    /// # Errors
    /// As `outside`.
    pub(crate) fn reload(&mut self, drafts: Vec<Draft>) -> Result<Vec<Landed>, EngineError> {
        self.land_outside(drafts)
    }

    /// Adds code to the engine's library.
    pub fn learn(&mut self, code: behaviors::Loaded) {
        self.library.insert(code);
    }

    pub(super) fn land_outside(&mut self, drafts: Vec<Draft>) -> Result<Vec<Landed>, EngineError> {
        // Who catches up is shown the log, so what came before is in it.
        if drafts.iter().any(|draft| LOADS.contains(&draft.kind.as_str())) {
            self.commit()?;
        }
        let mut staged: Vec<Staged> = Vec::with_capacity(drafts.len());
        let mut landed = Vec::with_capacity(drafts.len());
        let staging: Result<(), EngineError> = drafts.into_iter().try_for_each(|draft| {
            landed.push(self.stage_outside(draft, &mut staged)?);
            Ok(())
        });
        for staged in staged.iter_mut().rev() {
            self.state.graph.undo(staged.delta.take().expect("what is staged is applied"));
        }
        staging?;
        // Only what is recorded may end a round: the fold sees nothing of a refusal or a
        // repetition.
        if !staged.is_empty() {
            self.state.end_round();
            self.ahead.clear();
            self.land(staged)?;
        }
        Ok(landed)
    }

    fn stage_outside(
        &mut self,
        mut draft: Draft,
        staged: &mut Vec<Staged>,
    ) -> Result<Landed, EngineError> {
        draft.taken = self.state.taken;
        let offset = self.state.head.next().plus(staged.len() as u64);
        let (event, blobs) = Event::encode(&draft, offset).map_err(LogError::from)?;
        if let Some(key) = event.key() {
            let own = staged.iter().find(|staged| staged.event.key() == Some(key));
            let first = match own {
                Some(own) => Some(own.event.clone()),
                None => self.wave.keyed(key)?,
            };
            if let Some(first) = first {
                if !first.same_content(&event) {
                    let (branch, key, first) = (self.branch, key.to_owned(), first.offset());
                    return Err(AppendError::KeyConflict { branch, key, first }.into());
                }
                return Ok(Landed { offset: first.offset(), repeated: true });
            }
        }
        if !is_runtime_kind(event.kind())
            && let Some(id) = forged(&event, &self.state.graph)
        {
            return Err(EngineError::Refused(format!("`{id}` is written by the runtime only")));
        }
        let applied = self.state.graph.apply(&event);
        let delta = applied.map_err(|refusal| EngineError::Refused(refusal.to_string()))?;
        staged.push(Staged { event, blobs, delta: Some(delta) });
        Ok(Landed { offset, repeated: false })
    }

    /// Lands what others have offered, and tells them once it is durable.
    pub(super) fn take_offers(&mut self) -> Result<(), EngineError> {
        while let Some(Delivery { offer, answer }) =
            self.offered.take().or_else(|| self.claim.inbox.try_recv().ok())
        {
            let result = self.take_offer(offer);
            let fatal = matches!(&result, Err(EngineError::Log(_) | EngineError::Fold(_)));
            let told = match result {
                Ok(appended) => Ok(appended),
                Err(EngineError::Append(error)) => Err(error),
                Err(error) => Err(AppendError::Refused { what: error.to_string() }),
            };
            drop(answer.send(told));
            if fatal {
                return Err(LogError::Stopped { what: "an offer could not land".to_owned() }.into());
            }
        }
        Ok(())
    }

    fn take_offer(&mut self, offer: Offer) -> Result<Appended, EngineError> {
        let actual = self.state.head;
        if let Some(expected) = offer.expected.filter(|expected| *expected != actual) {
            return Err(AppendError::TailMoved { branch: self.branch, expected, actual }.into());
        }
        let drafts = self.dressed(offer.drafts)?;
        let landed = self.land_outside(drafts)?;
        let head = self.commit()?;
        Ok(Appended { head, link: self.wave.link(), landed })
    }

    /// Says in the log which behaviors were suspended, and why.
    pub(super) fn announce_suspensions(&mut self) -> Result<(), EngineError> {
        let quiet = self.state.suspended.iter().find(|(_, suspension)| !suspension.announced);
        let Some((name, suspension)) = quiet.map(|(name, s)| (name.clone(), s.clone())) else {
            return Ok(());
        };
        let id = Derivation::new().id(&suspension.at.id()).text(&name).list(|row| row);
        let id = id.text("behavior.suspended").integer(0).finish();
        let mut payload = Map::new();
        payload.insert("name".to_owned(), json!(name.as_str()));
        payload.insert("at".to_owned(), json!(suspension.at.offset().get()));
        let subscription = self.state.subscriptions.get(&name);
        let pattern = subscription.and_then(|subscription| subscription.pattern.as_ref());
        let pattern = pattern.map(|bindings| bindings.pattern.canonical()).unwrap_or_default();
        payload.insert("pattern".to_owned(), json!(pattern));
        let why = format!(
            "at @{} its pattern `{pattern}` took more steps than the {STEPS_MAX} that one event \
             may: start it narrower, by a type, by a property that few elements share or by a \
             shorter path, then save the file; `starling explain` shows what it costs",
            suspension.at.offset()
        );
        payload.insert("why".to_owned(), json!(why));
        let time = suspension.at.time();
        self.outside(Draft { payload, time, ..Draft::new(id, "behavior.suspended", "runtime") })?;
        self.announce_suspensions()
    }
}
