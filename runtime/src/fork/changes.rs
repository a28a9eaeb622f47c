//! What a fork changes at its cut: its first events. They are tried on the world of the cut before
//! there is a fork, and land as one batch.

use std::sync::Arc;

use behaviors::{did_you_mean, is_runtime_kind};
use log::{Batch, Branch, BranchId, BranchName, Derivation, Draft, Event, EventId, Head};
use log::{Log, LogError, Offset, Time, read, read_one};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::effect::ending_of;
use crate::engine::catching::Past;
use crate::engine::forge::forged;
use crate::engine::state::State;
use crate::engine::{EngineError, append_once};
use crate::flock::workspace::Fork;
use crate::flock::{Source, name_of, store_source};
use crate::snapshot::Snapshots;

/// The event that tells a fork to follow the folder of its flock from then on.
pub(crate) const FOLLOWS: &str = "branch.follows";
/// The event that gives an effect another answer than the recorded one.
pub(super) const OVERRIDDEN: &str = "branch.overridden";

/// Why a fork was not made. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// What it is to change is not there, or cannot be so.
    #[error("{0}")]
    Refused(String),
    /// The log, or what it folds into.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<LogError> for ForkError {
    fn from(error: LogError) -> Self {
        ForkError::Engine(error.into())
    }
}

/// What a fork changes at its cut.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Behaviors that it goes on without, by name.
    pub without: Vec<String>,
    /// Behavior files that it goes on with; what has a name of theirs is replaced.
    pub with: Vec<Source>,
    /// `NAME=VALUE` of settings.
    pub set: Vec<String>,
    /// Effects by the beginning of their id, and what became of them: a result, or
    /// `{status, result, error}`.
    pub answers: Vec<(String, Value)>,
    /// Events from outside.
    pub inject: Vec<Draft>,
}

impl Changes {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let behaviors = self.without.is_empty() && self.with.is_empty();
        behaviors && self.set.is_empty() && self.answers.is_empty() && self.inject.is_empty()
    }

    /// Tries on the world of a cut what is changed there, and writes nothing.
    ///
    /// # Errors
    /// Something to be changed is not there or cannot be so, or the log failed.
    pub fn prepare(
        &self,
        log: &dyn Log,
        snapshots: &Snapshots,
        (parent, cut): (&Branch, Head),
    ) -> Result<Prepared, ForkError> {
        let with = self.with.clone();
        let mut prepared = Prepared { parent: parent.id, cut, batch: Batch::new(), with };
        if self.is_empty() {
            return Ok(prepared);
        }
        let state = snapshots.fold_branch(log, parent.id, cut).map_err(EngineError::from)?;
        if state.head == Head::EMPTY {
            let what = "a fork that shares nothing has nothing to change; run its flock on it";
            return Err(ForkError::Refused(what.to_owned()));
        }
        let mut staging = Staging::on(log, parent.id, state);
        self.stage(&mut staging)?;
        prepared.batch = staging.batch;
        Ok(prepared)
    }

    fn stage(&self, staging: &mut Staging<'_>) -> Result<(), ForkError> {
        for name in &self.without {
            staging.remove(name)?;
        }
        for source in &self.with {
            staging.load(source)?;
        }
        staging.set(&self.set)?;
        for (prefix, outcome) in &self.answers {
            staging.answer(prefix, outcome)?;
        }
        self.inject.iter().try_for_each(|draft| staging.push(draft.clone()))
    }
}

/// A fork that can be made: its first events have their place.
#[derive(Debug)]
pub struct Prepared {
    parent: BranchId,
    cut: Head,
    batch: Batch,
    with: Vec<Source>,
}

impl Prepared {
    /// Makes the fork. `record` is what its record says, and `owner` who makes it. Gives the branch
    /// and the number of its first events.
    ///
    /// Its first events have the time of the cut: a fork goes on from there, whatever the clock
    /// says.
    ///
    /// # Errors
    /// The name is taken, or the log failed.
    pub fn fork(
        self,
        log: &Arc<dyn Log>,
        name: &BranchName,
        (record, owner): (&str, &str),
    ) -> Result<(Branch, usize), ForkError> {
        for source in &self.with {
            store_source(log, source)?;
        }
        let count = self.batch.len();
        let record = Fork { changes: count as u64, ..Fork::read(record) };
        let made = log.fork(self.parent, self.cut, name, &record.record())?;
        if count == 0 {
            return Ok((made, 0));
        }
        append_once(&**log, made.id, self.batch, self.cut, owner)?;
        Ok((log.branch(made.id)?, count))
    }
}

/// The first events of a fork, folded as they are made.
struct Staging<'l> {
    log: &'l dyn Log,
    parent: BranchId,
    cut: Head,
    time: Time,
    state: State,
    batch: Batch,
}

impl<'l> Staging<'l> {
    fn on(log: &'l dyn Log, parent: BranchId, state: State) -> Self {
        let (cut, time) = (state.head, Time::from_ms(state.clock).unwrap_or_default());
        Staging { log, parent, cut, time, state, batch: Batch::new() }
    }

    fn push(&mut self, mut draft: Draft) -> Result<(), ForkError> {
        (draft.time, draft.taken) = (self.time, self.state.taken);
        let (event, blobs) =
            Event::encode(&draft, self.state.head.next()).map_err(LogError::from)?;
        if self.repeats(&event)? {
            return Ok(());
        }
        let of_runtime = is_runtime_kind(event.kind());
        if let Some(id) = forged(&event, &self.state.graph).filter(|_| !of_runtime) {
            return Err(ForkError::Refused(format!("`{id}` is written by the runtime only")));
        }
        self.state.fold(&event, Past::Of(self.log, self.parent)).map_err(|error| {
            ForkError::Refused(format!("`{}` has no place there: {error}", event.kind()))
        })?;
        self.batch.push(event, blobs);
        Ok(())
    }

    /// Whether the event was there before, by its key.
    fn repeats(&self, event: &Event) -> Result<bool, ForkError> {
        let Some(key) = event.key() else { return Ok(false) };
        let before = self.log.find_key(self.parent, key)?;
        let before = before.filter(|offset| *offset < self.cut.next());
        let first = match before {
            Some(offset) => Some(read_one(self.log, self.parent, offset)?),
            None => self.batch.events().find(|event| event.key() == Some(key)).cloned(),
        };
        let Some(first) = first else { return Ok(false) };
        if first.same_content(event) {
            return Ok(true);
        }
        let at = first.offset();
        Err(ForkError::Refused(format!("the key `{key}` is used with other content at @{at}")))
    }

    fn remove(&mut self, name: &str) -> Result<(), ForkError> {
        let name = SmolStr::from(name);
        let loaded = self.state.subscriptions.get(&name).is_some();
        if !loaded && !self.state.disabled.contains_key(&name) {
            let known = self.state.subscriptions.iter().map(|known| known.name.as_str());
            let hint = did_you_mean(&name, known);
            let what = format!("no behavior is called `{name}` there{hint}");
            return Err(ForkError::Refused(what));
        }
        let draft = self.state.removing(&name, self.time);
        self.push(draft)
    }

    /// Loads what a file declares, and removes what it declared before and does not now.
    fn load(&mut self, source: &Source) -> Result<(), ForkError> {
        let declared =
            source.declared.as_ref().map_err(|error| ForkError::Refused(error.clone()))?;
        let names: Vec<SmolStr> = declared.iter().map(name_of).collect();
        let gone = self
            .state
            .subscriptions
            .iter()
            .filter(|known| known.path() == source.path && !names.contains(&known.name));
        let gone: Vec<SmolStr> = gone.map(|known| known.name.clone()).collect();
        gone.iter().try_for_each(|name| self.remove(name))?;
        for (loaded, name) in declared.iter().zip(&names) {
            let draft = self.state.loading(name, source.payload(loaded), self.time);
            self.push(draft)?;
        }
        Ok(())
    }

    fn set(&mut self, lines: &[String]) -> Result<(), ForkError> {
        let mut set = Map::new();
        for line in lines {
            let read = crate::flock::read_set(&self.state.settings.values, line);
            let (name, value) = read.map_err(|error| ForkError::Refused(error.to_string()))?;
            set.insert(name, value);
        }
        match self.state.setting(&set, self.time) {
            Some(draft) => self.push(draft),
            None => Ok(()),
        }
    }

    /// Answers an effect otherwise than it was.
    fn answer(&mut self, prefix: &str, outcome: &Value) -> Result<(), ForkError> {
        let action = self.find_action(prefix)?;
        let bare = |name: &str| outcome.get(name).is_none();
        let whole = match outcome {
            Value::Object(_) if !(bare("status") && bare("error") && bare("result")) => {
                outcome.clone()
            }
            result => json!({"result": result}),
        };
        if ending_of(&whole).is_none() {
            let what = format!(
                "{outcome} is no outcome: write a result as JSON, or {{\"status\": \"failed\", \"error\": \
                 {{…}}}} with an error as `starling show` prints one"
            );
            return Err(ForkError::Refused(what));
        }
        let id = Derivation::new().text(OVERRIDDEN).id(&action).json(&whole).finish();
        let mut draft = Draft::new(id, OVERRIDDEN, "runtime");
        let Value::Object(payload) = whole else { unreachable!("it was made an object above") };
        draft.payload = payload;
        draft.payload.insert("action".to_owned(), json!(action.to_string()));
        self.push(draft)
    }

    /// The action that an id or its beginning means: open at the cut, or asked for later.
    fn find_action(&self, prefix: &str) -> Result<EventId, ForkError> {
        let mut all: Vec<EventId> =
            self.state.effects.iter().map(|action| action.facts.id).collect();
        for event in read(self.log, self.parent, self.cut.next()..Offset::new(u64::MAX))? {
            let event = event?;
            if event.is_kind("effect.requested") {
                all.push(event.id());
            }
        }
        all.retain(|id| id.to_string().starts_with(prefix));
        all.dedup();
        match all.as_slice() {
            [one] => Ok(*one),
            [] => Err(ForkError::Refused(format!(
                "no effect whose id begins with `{prefix}` is open there or asked for later; `starling \
                 log --kind effect.requested --json` has them as `id`"
            ))),
            _ => Err(ForkError::Refused(format!(
                "several effects begin with `{prefix}`; write more of it"
            ))),
        }
    }
}

/// Whether a fork was told to follow the folder of its flock.
pub(crate) fn follows(
    log: &dyn Log,
    branch: BranchId,
    name: &BranchName,
) -> Result<bool, LogError> {
    Ok(log.find_key(branch, &follows_key(name))?.is_some())
}

/// The event that tells a fork to follow the folder of its flock. A fork of that fork does not.
pub(crate) fn follows_draft(name: &BranchName, time: Time) -> Draft {
    let id = Derivation::new().text(FOLLOWS).text(name.as_str()).finish();
    let mut draft = Draft::new(id, FOLLOWS, "runtime");
    draft.payload.insert("branch".to_owned(), json!(name.as_str()));
    draft.key = Some(follows_key(name).into());
    Draft { time, ..draft }
}

fn follows_key(name: &BranchName) -> String {
    format!("{FOLLOWS} {name}")
}
