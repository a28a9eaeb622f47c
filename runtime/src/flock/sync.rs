//! A branch follows its flock: what differs between folder and log becomes events, or is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use behaviors::Loaded;
use bytes::Bytes;
use log::{Branch, BranchName, Derivation, Draft, Hash, Log, Time};
use serde_json::{Map, Value, json};
use smol_str::{SmolStr, ToSmolStr};

use super::sources::{code_of, name_of, settle_twins};
use super::{Flock, Source, policy};
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
    /// Files that are whole again, or gone.
    pub mended: Vec<String>,
    /// Behaviors of these that a person has switched off.
    pub disabled: Vec<String>,
    /// Settings that have another value than before.
    pub settings: Vec<String>,
    /// What has changed and is followed by the next run only.
    pub later: Vec<String>,
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
        if !self.set.is_empty() {
            payload.insert("set".to_owned(), Value::Object(self.set.clone()));
        }
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

pub(crate) fn store_source(log: &Arc<dyn Log>, source: &Source) -> Result<(), EngineError> {
    let stored = log.put_blob(Bytes::copy_from_slice(source.text.as_bytes()))?;
    assert_eq!(stored, source.hash, "a blob is named by its hash");
    Ok(())
}

/// Begins a flock on a branch that holds the log of another system: settings, behaviors and start
/// events land behind it, and the behaviors see what stands there.
///
/// # Errors
/// The log cannot be written.
pub(crate) fn adopt(engine: &mut Engine, flock: &Flock, now: Time) -> Result<Synced, EngineError> {
    assert!(engine.started().is_empty(), "a branch is begun once");
    let derive = || Derivation::new().text("start").json(&json!(flock.seed));
    let begun = Draft::new(derive().finish(), "flock.started", "runtime");
    engine.outside(Draft { payload: flock.payload(), time: now, ..begun })?;
    let synced = follow(engine, flock, now, &|_| true)?;
    for (nth, event) in flock.events.iter().enumerate() {
        let id = derive().integer(nth as u64).finish();
        engine.outside(Draft { id, time: now, ..event.clone() })?;
    }
    engine.commit()?;
    Ok(synced)
}

/// Makes a branch that has begun follow its flock. `now` is the time of the events that this takes;
/// they land as one batch.
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
    follow(engine, flock, now, &|_| true)
}

/// The same while it runs: behaviors, settings and bounds are followed at once. What the person who
/// runs it confirmed, and what a branch cannot change, stays until the next run.
///
/// # Errors
/// The log cannot be written.
pub fn sync_live(engine: &mut Engine, flock: &Flock, now: Time) -> Result<Synced, EngineError> {
    let at_once = |field: &str| ["settings", "set", "budget", "lint"].contains(&field);
    let mut synced = follow(engine, flock, now, &at_once)?;
    synced.later.extend(flock.refused_changes(engine.started()));
    Ok(synced)
}

fn follow(
    engine: &mut Engine,
    flock: &Flock,
    now: Time,
    follows: &dyn Fn(&str) -> bool,
) -> Result<Synced, EngineError> {
    let mut sources = flock.sources.clone();
    settle_twins(&mut sources, |name| engine.known(name).map(|known| known.path()));
    let mut sync =
        Sync { engine, sources: &sources, now, drafts: Vec::new(), synced: Synced::default() };
    sync.settings(flock, follows);
    for source in &sources {
        match &source.declared {
            Ok(declared) => sync.load(source, declared)?,
            Err(error) => sync.reject(source, error)?,
        }
    }
    sync.remove_gone();
    sync.mend();
    let Sync { engine, drafts, mut synced, .. } = sync;
    let changed = synced.added.iter().chain(&synced.replaced);
    synced.disabled = changed.filter(|name| engine.is_disabled(name)).cloned().collect();
    if !drafts.is_empty() {
        engine.reload(drafts)?;
        engine.commit()?;
    }
    Ok(synced)
}

/// What differs between a flock and a branch, as it is found.
struct Sync<'e> {
    engine: &'e mut Engine,
    sources: &'e [Source],
    now: Time,
    drafts: Vec<Draft>,
    synced: Synced,
}

impl Sync<'_> {
    fn settings(&mut self, flock: &Flock, follows: &dyn Fn(&str) -> bool) {
        let started = self.engine.started();
        let mut payload = flock.payload();
        flock.keep_set(started, &mut payload);
        let mut changed = Map::new();
        for (field, value) in payload.clone() {
            if started.get(&field) != Some(&value) {
                changed.insert(field, value);
            }
        }
        for field in policy::FIELDS.map(str::to_owned) {
            let was_said = started.get(&field).is_some_and(|value| !value.is_null());
            if was_said && !payload.contains_key(&field) {
                changed.insert(field, Value::Null);
            }
        }
        let settled = ["seed", "schedule", "start"];
        for field in changed.keys() {
            if follows(field) {
                self.synced.settings.push(field.clone());
            } else if !settled.contains(&field.as_str()) {
                self.synced.later.push(format!("[{field}] is another now"));
            }
        }
        changed.retain(|field, _| follows(field));
        if changed.is_empty() {
            return;
        }
        // The same change at another place of the log is another change.
        let id = Derivation::new().text("flock.changed").integer(self.engine.head().count());
        let id = id.json(&Value::Object(changed.clone())).finish();
        self.draft(Draft { payload: changed, ..Draft::new(id, "flock.changed", "runtime") });
    }

    fn draft(&mut self, draft: Draft) {
        self.drafts.push(Draft { time: self.now, ..draft });
    }

    fn load(&mut self, source: &Source, declared: &[Loaded]) -> Result<(), EngineError> {
        for loaded in declared {
            let name = name_of(loaded);
            let standing = self.engine.known(&name);
            let same = standing.is_some_and(|known| {
                known.path() == source.path
                    && known.hash == source.hash.to_smolstr()
                    && known.metadata == *loaded.metadata()
            });
            if same {
                continue;
            }
            let payload = source.payload(loaded);
            let replaces = standing.is_some();
            if self.engine.loaded_payload(&name).as_ref() == Some(&payload) {
                continue;
            }
            store_source(self.engine.log(), source)?;
            self.engine.learn(loaded.clone());
            self.drafts.push(self.engine.loading(&name, payload, self.now));
            let synced = &mut self.synced;
            let list = if replaces { &mut synced.replaced } else { &mut synced.added };
            list.push(name.to_string());
        }
        Ok(())
    }

    /// A broken file changes nothing: the last good version of its behaviors stays. It is told
    /// again only when its text or what is wrong with it is another.
    fn reject(&mut self, source: &Source, error: &str) -> Result<(), EngineError> {
        self.synced.rejected.push((source.path.clone(), error.to_owned()));
        let hash = source.hash.to_string();
        let known = self.engine.rejection(&source.path);
        if known.is_some_and(|known| known.hash == hash && known.error == error) {
            return Ok(());
        }
        store_source(self.engine.log(), source)?;
        let id = Derivation::new().text("behavior.rejected").text(&source.path).text(&hash);
        let id = id.integer(self.engine.head().count()).finish();
        let mut draft = Draft::new(id, "behavior.rejected", "runtime");
        draft.payload.insert("path".to_owned(), json!(source.path));
        draft.payload.insert("hash".to_owned(), json!(hash));
        draft.payload.insert("error".to_owned(), json!(error));
        if source.may_hold_a_guard() {
            draft.payload.insert("guard".to_owned(), json!(true));
        }
        self.draft(draft);
        Ok(())
    }

    fn is_broken(&self, path: &str) -> bool {
        self.sources.iter().any(|source| source.path == path && source.declared.is_err())
    }

    /// A file that was broken is whole again, or gone.
    fn mend(&mut self) {
        for (path, _) in self.engine.rejected_files() {
            if self.is_broken(&path) {
                continue;
            }
            let id = Derivation::new().text("behavior.mended").text(&path);
            let id = id.integer(self.engine.head().count()).finish();
            let mut draft = Draft::new(id, "behavior.mended", "runtime");
            draft.payload.insert("path".to_owned(), json!(path.as_str()));
            self.draft(draft);
            self.synced.mended.push(path.to_string());
        }
    }

    fn remove_gone(&mut self) {
        let all = self.sources.iter().flat_map(|source| source.declared.iter().flatten());
        let declared: BTreeSet<SmolStr> = all.map(name_of).collect();
        for (name, path) in self.engine.loaded_behaviors() {
            if !declared.contains(&name) && !self.is_broken(&path) {
                let mut draft = self.engine.removing(&name, self.now);
                let waiting = self.engine.waiting_of(&name);
                if waiting > 0 {
                    draft.payload.insert("withdrawn".to_owned(), json!(waiting));
                }
                self.drafts.push(draft);
                self.synced.removed.push(name.to_string());
            }
        }
    }
}

impl Flock {
    /// What `--set` said on an earlier run stays until it is set otherwise or taken back.
    fn keep_set(&self, started: &Map<String, Value>, payload: &mut Map<String, Value>) {
        let before = started.get("set").and_then(Value::as_object);
        let (mut settings, mut set) = (self.settings.clone(), self.set.clone());
        for (name, value) in before.into_iter().flatten() {
            let said = set.contains_key(name) || self.unset.contains(name);
            if !said && settings.contains_key(name) {
                settings.insert(name.clone(), value.clone());
                set.insert(name.clone(), value.clone());
            }
        }
        payload.insert("settings".to_owned(), Value::Object(settings));
        if !set.is_empty() {
            payload.insert("set".to_owned(), Value::Object(set));
        }
    }
}
