//! A branch follows its flock: what differs between folder and log becomes events, or is refused.

use std::sync::Arc;

use behaviors::Loaded;
use bytes::Bytes;
use log::{Branch, BranchName, Derivation, Draft, Hash, Log, Time};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::sources::{code_of, name_of};
use super::{Flock, Source};
use crate::engine::{Engine, EngineError, Library, Start, start_branch};

/// What following its flock changed on a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Behaviors that were not there before.
    pub added: Vec<String>,
    /// Behaviors with another source than before.
    pub replaced: Vec<String>,
    /// Behaviors whose file is gone.
    pub removed: Vec<String>,
    /// Broken files: path, and what is wrong.
    pub rejected: Vec<(String, String)>,
    /// Settings that have another value than before.
    pub settings: Vec<String>,
}

impl Flock {
    /// The payload of `flock.started`: whatever in `flock.toml` can change a result.
    #[must_use]
    pub fn payload(&self) -> Map<String, Value> {
        let mut payload = Map::new();
        payload.insert("name".to_owned(), json!(self.name));
        payload.insert("seed".to_owned(), json!(self.seed));
        payload.insert("schedule".to_owned(), json!(self.schedule.name()));
        payload.insert("settings".to_owned(), Value::Object(self.settings.clone()));
        payload.insert("budget".to_owned(), Value::Object(self.budget.clone()));
        payload.extend(self.policy.clone());
        payload.insert("start".to_owned(), json!(self.start_hash().to_string()));
        payload
    }

    /// A hash of the start events, so that a change of them is noticed.
    fn start_hash(&self) -> Hash {
        let mut text = self.start.to_string();
        for event in &self.events {
            let changes: Vec<Value> = event.changes.iter().map(log::Change::to_json).collect();
            let parts = json!([event.kind.as_str(), event.actor.as_str(), event.key.as_deref()]);
            text += &json!([parts, event.payload, changes]).to_string();
        }
        Hash::of(text.as_bytes())
    }

    /// What stands in the way of running this flock on a branch that was started otherwise.
    #[must_use]
    pub fn refused_changes(&self, started: &Map<String, Value>) -> Vec<String> {
        let now = self.payload();
        let mut refused = Vec::new();
        for (field, what) in
            [("seed", "the seed"), ("schedule", "the schedule"), ("start", "the start events")]
        {
            let (then, now) = (&started[field], &now[field]);
            if then != now && field == "start" {
                refused.push(format!("{what} are others than those the branch began with"));
            } else if then != now {
                refused.push(format!("{what} is {now} now, the branch began with {then}"));
            }
        }
        refused
    }

    /// The code of all behavior files, and of what the log's blobs hold of older versions.
    #[must_use]
    pub fn library(&self, log: &Arc<dyn Log>) -> Library {
        let mut library = library_of(log);
        for source in &self.sources {
            library.extend(source.declared.iter().flatten().cloned());
        }
        library
    }
}

/// The code of every version that a log has seen, read from its blobs when it is asked for.
pub(crate) fn library_of(log: &Arc<dyn Log>) -> Library {
    let log = Arc::clone(log);
    Library::fetching(Arc::new(move |name, hash, path| {
        let text = log.blob(&hash.parse().ok()?).ok()??;
        let text = std::str::from_utf8(&text).ok()?.to_owned();
        let declared: Vec<Loaded> = code_of(path, &text).ok()?;
        declared.into_iter().find(|loaded| loaded.metadata().name == name.as_str())
    }))
}

/// Starts a branch with a flock: settings, behaviors and start events land as one batch.
///
/// # Errors
/// A behavior file is broken, a start event cannot be applied, the branch is not empty, or the log
/// cannot be written. Nothing was appended.
pub fn start(
    log: &Arc<dyn Log>,
    name: &BranchName,
    flock: &Flock,
    owner: &str,
) -> Result<Branch, EngineError> {
    if let Some(error) = flock.sources.iter().find_map(|source| source.declared.as_ref().err()) {
        return Err(EngineError::Refused(error.clone()));
    }
    for source in &flock.sources {
        store_source(log, source)?;
    }
    let mut behaviors: Vec<_> = flock.sources.iter().flat_map(Source::payloads).collect();
    behaviors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let begin = Start {
        flock: flock.payload(),
        seed: flock.seed,
        start: flock.start,
        behaviors,
        events: flock.events.clone(),
    };
    start_branch(log, name, &begin, owner)
}

fn store_source(log: &Arc<dyn Log>, source: &Source) -> Result<(), EngineError> {
    let stored = log.put_blob(Bytes::copy_from_slice(source.text.as_bytes()))?;
    assert_eq!(stored, source.hash, "a blob is named by its hash");
    Ok(())
}

/// Makes a branch that has begun follow its flock. `now` is the time of the events that this takes.
///
/// # Errors
/// The seed, the schedule or the start events changed, which a branch cannot follow; or the log
/// cannot be written.
pub fn sync(engine: &mut Engine, flock: &Flock, now: Time) -> Result<Synced, EngineError> {
    let refused = flock.refused_changes(engine.started());
    if !refused.is_empty() {
        let what = refused.join("; ");
        let fix = "start anew with --fresh, or on a new branch with --branch NAME";
        return Err(EngineError::Changed(format!("flock.toml: {what}; {fix}")));
    }
    let mut synced = Synced::default();
    sync_settings(engine, flock, now, &mut synced)?;
    for source in &flock.sources {
        match &source.declared {
            Ok(declared) => sync_source(engine, source, declared, now, &mut synced)?,
            Err(error) => reject(engine, source, error, now, &mut synced)?,
        }
    }
    remove_gone(engine, flock, now, &mut synced)?;
    mend(engine, flock, now)?;
    engine.commit()?;
    Ok(synced)
}

fn sync_settings(
    engine: &mut Engine,
    flock: &Flock,
    now: Time,
    synced: &mut Synced,
) -> Result<(), EngineError> {
    let started = engine.started().clone();
    let mut changed = Map::new();
    for (field, value) in flock.payload() {
        if started.get(&field) != Some(&value) {
            synced.settings.push(field.clone());
            changed.insert(field, value);
        }
    }
    for field in super::policy::FIELDS.map(str::to_owned) {
        let was_said = started.get(&field).is_some_and(|value| !value.is_null());
        if was_said && !flock.policy.contains_key(&field) {
            synced.settings.push(field.clone());
            changed.insert(field, Value::Null);
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    // The same change at another place of the log is another change.
    let id = Derivation::new().text("flock.changed").integer(engine.head().count());
    let id = id.json(&Value::Object(changed.clone())).finish();
    let draft = Draft { payload: changed, time: now, ..Draft::new(id, "flock.changed", "runtime") };
    engine.outside(draft).map(drop)
}

fn sync_source(
    engine: &mut Engine,
    source: &Source,
    declared: &[Loaded],
    now: Time,
    synced: &mut Synced,
) -> Result<(), EngineError> {
    if let Some(error) = declared.iter().find_map(|loaded| too_late(engine, loaded)) {
        return reject(engine, source, &format!("{}: {error}", source.path), now, synced);
    }
    let payloads = source.payloads();
    for (loaded, (name, payload)) in declared.iter().zip(payloads) {
        let standing = engine.loaded_payload(&name);
        if standing.as_ref() == Some(&payload) {
            continue;
        }
        store_source(engine.log(), source)?;
        engine.learn(loaded.clone());
        engine.load(&name, payload, now)?;
        let list = if standing.is_some() { &mut synced.replaced } else { &mut synced.added };
        list.push(name.to_string());
    }
    Ok(())
}

/// Why a behavior cannot be added to a branch that has begun, if it cannot: the events before it
/// are not shown to it, so it must not believe that it saw them.
fn too_late(engine: &Engine, loaded: &Loaded) -> Option<String> {
    let metadata = loaded.metadata();
    let known = engine.loaded_payload(&metadata.name).is_some();
    (metadata.from_beginning && !known).then(|| {
        format!(
            "{} wants events `from` the \"beginning\", and the branch has begun; leave `from` out to \
             hear events from now on, or start anew with --fresh",
            metadata.name
        )
    })
}

/// A broken file changes nothing: the last good version of its behaviors stays.
fn reject(
    engine: &mut Engine,
    source: &Source,
    error: &str,
    now: Time,
    synced: &mut Synced,
) -> Result<(), EngineError> {
    store_source(engine.log(), source)?;
    synced.rejected.push((source.path.clone(), error.to_owned()));
    let hash = source.hash.to_string();
    let guard = may_hold_a_guard(&source.text);
    // A file that is broken again denies again, though the log has told of this text before.
    let known = engine.effects().ledger.broken_guards.contains_key(source.path.as_str());
    let again = if guard && !known { engine.head().count() } else { 0 };
    let key = match again {
        0 => format!("rejected:{}:{hash}", source.path),
        nth => format!("rejected:{}:{hash}:{nth}", source.path),
    };
    let id = Derivation::new().text("behavior.rejected").text(&source.path).text(&hash);
    let id = if again == 0 { id } else { id.integer(again) }.finish();
    let mut draft = Draft::new(id, "behavior.rejected", "runtime");
    draft.payload.insert("path".to_owned(), json!(source.path));
    draft.payload.insert("hash".to_owned(), json!(hash));
    draft.payload.insert("error".to_owned(), json!(error));
    if guard {
        draft.payload.insert("guard".to_owned(), json!(true));
    }
    (draft.key, draft.time) = (Some(SmolStr::from(key)), now);
    engine.outside(draft).map(drop)
}

/// Whether the text of a broken file looks as if it declared a guard. What cannot be told is one.
fn may_hold_a_guard(text: &str) -> bool {
    text.contains("guard")
}

/// A broken file that might have held a guard is mended or gone: effects leave again.
fn mend(engine: &mut Engine, flock: &Flock, now: Time) -> Result<(), EngineError> {
    let broken = |path: &str| {
        flock.sources.iter().any(|source| source.path == path && source.declared.is_err())
    };
    let ledger = &engine.effects().ledger;
    let paths: Vec<SmolStr> = ledger.broken_guards.keys().cloned().collect();
    for path in paths.into_iter().filter(|path| !broken(path)) {
        let id = Derivation::new().text("behavior.mended").text(&path);
        let id = id.integer(engine.head().count()).finish();
        let mut draft = Draft::new(id, "behavior.mended", "runtime");
        draft.payload.insert("path".to_owned(), json!(path.as_str()));
        draft.time = now;
        engine.outside(draft)?;
    }
    Ok(())
}

fn remove_gone(
    engine: &mut Engine,
    flock: &Flock,
    now: Time,
    synced: &mut Synced,
) -> Result<(), EngineError> {
    let declared = |name: &SmolStr| {
        let all = flock.sources.iter().flat_map(|source| source.declared.iter().flatten());
        all.map(name_of).any(|known| known == *name)
    };
    let broken = |path: &str| {
        flock.sources.iter().any(|source| source.path == path && source.declared.is_err())
    };
    for (name, path) in engine.loaded_behaviors() {
        if !declared(&name) && !broken(&path) {
            engine.unload(&name, now)?;
            synced.removed.push(name.to_string());
        }
    }
    Ok(())
}
