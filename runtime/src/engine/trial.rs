//! A trial: behaviors fire on a world that only they see. Nothing is claimed, written or asked.
//!
//! It is the engine's own loop over a state in memory: the same matching, the same checks, the
//! same events. `starling try` begins with the state at an address, `starling test` with nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use behaviors::{Loaded, Texts};
use bytes::Bytes;
use log::{BranchId, Derivation, Draft, Event, EventId, Hash, Log, LogError, Time};
use serde_json::Value;
use smol_str::SmolStr;

use super::catching::Past;
use super::evaluate::evaluate;
use super::fire::{Keys, Staged, fire};
use super::library::Library;
use super::state::State;
use super::subscription::{Subscription, load_payload};
use super::wave::text_in;
use crate::effect::{Action, Ending, ended};

/// Behaviors on a world of their own.
pub(crate) struct Trial<'l> {
    state: State,
    library: Library,
    seen: Seen<'l>,
    /// What happened in the trial, in order.
    pub(crate) events: Vec<Event>,
    /// What reactions printed.
    pub(crate) printed: Vec<String>,
}

/// What the log holds from which the trial began, and what the trial added.
struct Seen<'l> {
    log: Option<(&'l dyn Log, BranchId)>,
    keys: BTreeMap<SmolStr, Event>,
    texts: HashMap<Hash, Bytes>,
}

impl Keys for Seen<'_> {
    fn keyed(&self, key: &str) -> Result<Option<Event>, LogError> {
        if let Some(event) = self.keys.get(key) {
            return Ok(Some(event.clone()));
        }
        let Some((log, branch)) = self.log else { return Ok(None) };
        let Some(offset) = log.find_key(branch, key)? else { return Ok(None) };
        crate::promote::keyed_at(log, branch, offset).map(Some)
    }
}

impl<'l> Seen<'l> {
    /// What was before the trial.
    fn past(&self) -> Past<'l> {
        self.log.map_or(Past::None, |(log, branch)| Past::Of(log, branch))
    }

    fn text(&self, hash: &str) -> Option<String> {
        text_in(&self.texts, self.log.map(|(log, _)| log), hash)
    }
}

impl<'l> Trial<'l> {
    /// A trial that begins with nothing.
    pub(crate) fn new() -> Self {
        Trial::of(State::default(), None)
    }

    /// A trial on what a branch held; nobody of it reacts any more.
    pub(crate) fn on(mut state: State, log: &'l dyn Log, branch: BranchId) -> Self {
        let names: Vec<SmolStr> = state.subscriptions.iter().map(|s| s.name.clone()).collect();
        state.end_round();
        for name in &names {
            state.agenda.withdraw_all(name);
            state.subscriptions.remove(name);
        }
        state.asking.clear();
        state.exhausted.clear();
        Trial::of(state, Some((log, branch)))
    }

    fn of(state: State, log: Option<(&'l dyn Log, BranchId)>) -> Self {
        let seen = Seen { log, keys: BTreeMap::new(), texts: HashMap::new() };
        let (events, printed) = (Vec::new(), Vec::new());
        Trial { state, library: Library::new(), seen, events, printed }
    }

    /// Lets something happen from outside.
    ///
    /// # Errors
    /// It cannot be: says why.
    pub(crate) fn say(&mut self, mut draft: Draft) -> Result<(), String> {
        self.state.end_round();
        draft.taken = self.state.taken;
        let encoded = Event::encode(&draft, self.state.head.next());
        let (event, blobs) = encoded.map_err(|error| error.to_string())?;
        self.land(vec![Staged { event, blobs, delta: None }])
    }

    fn land(&mut self, staged: Vec<Staged>) -> Result<(), String> {
        for Staged { event, blobs, delta } in staged {
            self.seen.texts.extend(blobs.given);
            let delta = match delta {
                Some(delta) => delta,
                None => self.state.graph.apply(&event).map_err(|refusal| refusal.to_string())?,
            };
            let past = self.seen.past();
            self.state.applied(&event, &delta, past).map_err(|error| error.to_string())?;
            if let Some(key) = event.key() {
                self.seen.keys.insert(key.into(), event.clone());
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Loads a behavior: it sees every match that stands.
    pub(crate) fn load(&mut self, loaded: &Loaded, time: Time) -> Result<(), String> {
        self.library.insert(loaded.clone());
        self.say(load_draft(loaded, time))
    }

    /// Loads a behavior as if it had always been there, and lets an event happen again that the
    /// branch holds next.
    pub(crate) fn hear(&mut self, loaded: &Loaded, event: &Event) -> Result<(), String> {
        self.library.insert(loaded.clone());
        let load = load_draft(loaded, event.time());
        let (load, _) = Event::encode(&load, event.offset()).map_err(|error| error.to_string())?;
        let subscription = Subscription::read(&load).map_err(|error| error.to_string())?;
        for (type_name, property) in subscription.indexes() {
            self.state.graph.declare_index(&type_name, &property);
        }
        self.state.subscriptions.insert(Arc::new(subscription));
        self.state.taken = event.taken();
        let delta = self.state.graph.apply(event).map_err(|refusal| refusal.to_string())?;
        self.state.applied(event, &delta, self.seen.past()).map_err(|error| error.to_string())
    }

    /// Fires what is due, at most so often. Tells how often something fired.
    ///
    /// # Errors
    /// The log that it began with cannot be read.
    pub(crate) fn run(&mut self, most: u64) -> Result<u64, String> {
        let mut fired = 0;
        while fired < most {
            let took = self.state.take(self.seen.past()).map_err(|error| error.to_string())?;
            if took.is_none() {
                break;
            }
            fired += 1;
            let activation = self.state.last.clone().expect("an activation was just taken");
            let find = |hash: &str| self.seen.text(hash);
            let reply = evaluate(&self.state, &activation, &self.library, Texts::of(&find));
            let reaction = reply.map(|reply| {
                self.printed.extend(reply.printed);
                reply.proposals
            });
            let staged = fire(&mut self.state, &self.seen, reaction);
            self.land(staged.map_err(|error| error.to_string())?)?;
        }
        Ok(fired)
    }

    /// Whether more is due.
    pub(crate) fn is_due(&mut self) -> bool {
        self.state.peek().is_some()
    }

    /// The effects that were asked in the trial and are not answered, in order.
    pub(crate) fn open(&self) -> Vec<Asked> {
        let own = |action: &&Action| self.events.iter().any(|e| e.id() == action.facts.id);
        let mut open: Vec<&Action> = self.state.effects.iter().filter(own).collect();
        open.sort_by_key(|action| action.facts.offset);
        let asked = |action: &Action| Asked {
            id: action.facts.id,
            effect: action.facts.effect.to_string(),
            behavior: action.facts.behavior.to_string(),
            args: Texts::of(&|hash: &str| self.seen.text(hash)).whole(action.args()),
        };
        open.into_iter().map(asked).collect()
    }

    /// Whether a behavior asks this effect to answer for it.
    pub(crate) fn asks(&self, behavior: &str, effect: &str) -> bool {
        let loaded = self.state.subscriptions.get(behavior);
        loaded.and_then(|loaded| loaded.asks.as_deref()) == Some(effect)
    }

    /// Answers an effect.
    pub(crate) fn answer(&mut self, id: &EventId, ending: &Ending) -> Result<(), String> {
        let Some(action) = self.state.effects.get(id).cloned() else { return Ok(()) };
        let now = Time::from_ms(self.state.clock).unwrap_or_default();
        let drafts = ended(&self.state.effects, &action, ending, now);
        drafts.into_iter().try_for_each(|draft| self.say(draft))
    }
}

/// An effect that was asked in a trial.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: EventId,
    pub(crate) effect: String,
    pub(crate) behavior: String,
    pub(crate) args: Value,
}

fn load_draft(loaded: &Loaded, time: Time) -> Draft {
    let name = loaded.metadata().name.as_str();
    let id = Derivation::new().text("trial").text(name).finish();
    let payload = load_payload(loaded, "", &loaded.hash().to_string());
    Draft { payload, time, ..Draft::new(id, "behavior.loaded", "runtime") }
}
