//! A firing, from its proposals to events that can land: stamped, encoded and checked, all or none.

use std::collections::BTreeMap;

use behaviors::{Proposal, ReactError, Word};
use log::{Blobs, Cause, Change, Derivation, Draft, Event, EventId, LogError};
use projection::Delta;
use serde_json::{Map, json};
use smol_str::{SmolStr, ToSmolStr, format_smolstr};

use super::activation::Activation;
use super::forge::forged;
use super::resolve::resolved;
use super::state::State;
use super::words;

/// An event that is ready to land, with the texts that moved out of it.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) event: Event,
    pub(crate) blobs: Blobs,
    /// What it changed, if the graph has applied it already.
    pub(crate) delta: Option<Delta>,
}

/// Finds the event that has a durable key, on the branch or in the wave that is not durable yet.
pub(crate) trait Keys {
    fn keyed(&self, key: &str) -> Result<Option<Event>, LogError>;
}

/// Why the proposals of a firing do not land.
enum Refusal {
    /// Another firing of the round was first.
    Conflict(SmolStr),
    Failure(ReactError),
    Log(LogError),
}

/// The events of the activation just taken. The graph is as before, except that a single event is
/// applied already and carries its delta.
pub(crate) fn fire(
    state: &mut State,
    keys: &dyn Keys,
    reaction: Result<Vec<Proposal>, ReactError>,
) -> Result<Vec<Staged>, LogError> {
    let activation = state.last.clone().expect("an activation was just taken");
    let actor = actor(state, &activation);
    let firing = Firing { activation: &activation, actor };
    let refusal = match reaction {
        Ok(mut proposals) => {
            words::speak(state, &activation, &mut proposals);
            match firing.stage(state, keys, proposals) {
                Ok(staged) => return Ok(staged),
                Err(refusal) => refusal,
            }
        }
        Err(error) => Refusal::Failure(error),
    };
    let draft = match refusal {
        Refusal::Conflict(why) => firing.conflicted(why),
        Refusal::Failure(error) => firing.failed(&error),
        Refusal::Log(error) => return Err(error),
    };
    let draft = Draft { taken: state.taken, ..draft };
    let (event, blobs) = Event::encode(&draft, state.head.next())?;
    Ok(vec![Staged { event, blobs, delta: None }])
}

fn actor(state: &State, activation: &Activation) -> SmolStr {
    let subscription = state.subscriptions.get(&activation.behavior);
    subscription.expect("what fires is loaded").actor.clone()
}

struct Firing<'a> {
    activation: &'a Activation,
    actor: SmolStr,
}

impl Firing<'_> {
    fn draft(&self, id: EventId, kind: &str) -> Draft {
        let cause = Cause::Firing {
            event: self.activation.event.id(),
            behavior: self.activation.behavior.clone(),
            row: self.activation.row.bound.clone(),
        };
        let draft = Draft::new(id, kind, self.actor.clone());
        Draft { cause: Some(cause), time: self.activation.now(), ..draft }
    }

    /// A reaction is a transaction: it fails whole.
    fn failed(&self, error: &ReactError) -> Draft {
        let id = self.activation.derivation().text("failed").finish();
        let mut payload = Map::new();
        payload.insert("error".to_owned(), json!(error.message));
        if let Some(file) = &error.file {
            payload.insert("file".to_owned(), json!(file));
        }
        if let Some(line) = error.line {
            payload.insert("line".to_owned(), json!(line));
        }
        if let Some(text) = &error.line_text {
            payload.insert("source".to_owned(), json!(text));
        }
        if error.stopped {
            payload.insert("stopped".to_owned(), json!(true));
        }
        Draft { payload, ..self.draft(id, "behavior.failed") }
    }

    fn conflicted(&self, why: SmolStr) -> Draft {
        let nth = self.activation.refused;
        let index = |list: Derivation| list.text("conflicted").integer(nth);
        let id = self.activation.derivation().list(index).finish();
        let mut payload = Map::new();
        payload.insert("why".to_owned(), json!(why.as_str()));
        Draft { payload, ..self.draft(id, "behavior.conflicted") }
    }

    fn stage(
        &self,
        state: &mut State,
        keys: &dyn Keys,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Staged>, Refusal> {
        let alone = proposals.len() == 1;
        let mut staged = Vec::with_capacity(proposals.len());
        let result = self.stage_each(state, keys, proposals, &mut staged);
        if result.is_err() || !alone {
            for staged in staged.iter_mut().rev() {
                state.graph.undo(staged.delta.take().expect("what is staged is applied"));
            }
        }
        result.map(|()| staged)
    }

    /// Stamps, checks and applies each proposal in turn; `staged` is what has to be undone.
    fn stage_each(
        &self,
        state: &mut State,
        keys: &dyn Keys,
        proposals: Vec<Proposal>,
        staged: &mut Vec<Staged>,
    ) -> Result<(), Refusal> {
        let mut made = BTreeMap::new();
        let single = proposals.len() == 1;
        // A firing cannot collide with itself: what it staged so far is left out of the question.
        let landed = (state.round.is_open() && !single).then(|| state.graph.clone());
        for (number, proposal) in proposals.into_iter().enumerate() {
            let id = self.activation.derivation().integer(number as u64).finish();
            let own = proposal.word == Word::Event;
            let proposal = words::said(state, self.activation, proposal);
            let mut draft = self.draft(id, &proposal.kind);
            draft.taken = state.taken;
            draft.payload = proposal.payload;
            draft.changes = proposal.changes;
            draft.key = proposal.key;
            for change in &mut draft.changes {
                name_what_is_made(change, number, &made);
            }
            let offset = state.head.next().plus(staged.len() as u64);
            let encoded = Event::encode(&draft, offset);
            let (event, blobs) = encoded.map_err(|error| failure(error.to_string()))?;
            let first = self.first_of_key(state, keys, staged, &event)?;
            if !single {
                let stands = first.as_ref().unwrap_or(&event);
                for (index, change) in resolved(stands).into_iter().enumerate() {
                    made.insert(format_smolstr!("@{number}#{index}"), change.target);
                }
            }
            if first.is_some() {
                // The same again: left out, and the rest lands.
                continue;
            }
            if let Some(id) = if own { forged(&event, &state.graph) } else { None } {
                return Err(failure(format!("`{id}` is written by the runtime only")));
            }
            if let Some(why) = state.round.clash(&event, landed.as_ref().unwrap_or(&state.graph)) {
                return Err(Refusal::Conflict(why));
            }
            let delta = state.graph.apply(&event).map_err(|error| failure(error.to_string()))?;
            staged.push(Staged { event, blobs, delta: Some(delta) });
        }
        Ok(())
    }

    /// The event that had this event's key first, if it is the same again.
    fn first_of_key(
        &self,
        state: &State,
        keys: &dyn Keys,
        staged: &[Staged],
        event: &Event,
    ) -> Result<Option<Event>, Refusal> {
        let Some(key) = event.key() else { return Ok(None) };
        let own = staged.iter().map(|staged| &staged.event).find(|other| other.key() == Some(key));
        let first = match own {
            Some(own) => Some(own.clone()),
            None => keys.keyed(key).map_err(Refusal::Log)?,
        };
        match first {
            Some(first) if !first.same_content(event) => {
                let why = format_smolstr!("the key `{key}` is used at @{}", first.offset());
                let in_round = state.round.writes.keys.contains(key);
                Err(if in_round { Refusal::Conflict(why) } else { failure(why.to_string()) })
            }
            first => Ok(first),
        }
    }
}

fn failure(message: String) -> Refusal {
    Refusal::Failure(ReactError::new(message))
}

/// Replaces `@i#j`, what change j of proposal i makes, by the id it has now that ids are known.
fn name_what_is_made(change: &mut Change, number: usize, made: &BTreeMap<SmolStr, SmolStr>) {
    let name = |id: &mut SmolStr| {
        if !id.starts_with('@') {
            return;
        }
        let own = id.strip_prefix(&format!("@{number}")).filter(|rest| rest.starts_with('#'));
        if let Some(own) = own {
            *id = own.to_smolstr();
        } else if let Some(known) = made.get(id) {
            *id = known.clone();
        }
    };
    match change {
        Change::Create { .. } => {}
        Change::Link { from, to, .. } | Change::EnsureLink { from, to, .. } => {
            name(from);
            name(to);
        }
        Change::Ensure { id, .. }
        | Change::Write { id, .. }
        | Change::Unset { id, .. }
        | Change::Remove { id } => name(id),
    }
}
