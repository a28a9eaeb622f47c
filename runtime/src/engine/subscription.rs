//! The loaded behaviors as the fold knows them: metadata and compiled patterns, no code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use behaviors::{Condition, Loaded, Metadata};
use log::{Event, EventId, ValueRef};
use projection::{Delta, Graph, Pattern, Variable};
use serde_json::{Map, Value, json};
use smol_str::{SmolStr, format_smolstr};

use super::error::FoldError;
use super::watchers::Watchers;

/// A pattern, and what it binds.
#[derive(Debug)]
pub(crate) struct Bindings {
    pub(crate) pattern: Pattern,
    pub(crate) variables: Vec<Variable>,
}

/// A loaded behavior: what decides when it fires and what it reads.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) metadata: Metadata,
    /// The pattern of `match` or `vanishes`.
    pub(crate) pattern: Option<Bindings>,
    /// The declared reads, by name.
    pub(crate) reads: Vec<(String, Bindings)>,
    /// The hash of its source, 64 hexadecimal digits.
    pub(crate) hash: SmolStr,
    /// Who its events are by.
    pub(crate) actor: SmolStr,
    /// The event that loaded it, of which a snapshot keeps the payload.
    pub(crate) loaded: Event,
    /// Its name.
    pub(crate) name: SmolStr,
    /// The effect that answers for it, if it cannot answer by itself.
    pub(crate) asks: Option<SmolStr>,
}

impl Subscription {
    /// Reads a `behavior.loaded` event.
    pub(crate) fn read(event: &Event) -> Result<Subscription, FoldError> {
        let bad = |what: String| FoldError::Meaning { offset: event.offset(), what };
        let payload = event.payload().to_json();
        let metadata = payload.get("metadata").and_then(Value::as_object);
        let metadata =
            metadata.ok_or_else(|| bad("`behavior.loaded` has no metadata".to_owned()))?;
        let metadata = Metadata::from_json(metadata, "metadata").map_err(|e| bad(e.to_string()))?;
        let hash = payload.get("hash").and_then(Value::as_str);
        let hash = hash.ok_or_else(|| bad("`behavior.loaded` has no hash".to_owned()))?;
        let parse = |text: &str| -> Result<Bindings, FoldError> {
            let pattern = Pattern::parse(text).map_err(|error| bad(error.to_string()))?;
            Ok(Bindings { variables: pattern.variables(), pattern })
        };
        let condition = metadata.trigger.condition.as_ref();
        let pattern = condition.map(Condition::pattern).map(parse).transpose()?;
        let read = |(name, text): (&String, &String)| Ok((name.clone(), parse(text)?));
        let reads = metadata.reads.iter().map(read).collect::<Result<_, FoldError>>()?;
        let short = hash.get(..8).unwrap_or(hash);
        let actor = format_smolstr!("behavior:{}@{short}", metadata.name);
        let name = SmolStr::from(metadata.name.as_str());
        let hash = hash.into();
        let asks = payload.get("asks").and_then(Value::as_str).map(SmolStr::from);
        let loaded = event.clone();
        Ok(Subscription { metadata, pattern, reads, hash, actor, loaded, name, asks })
    }
}

/// The payload of the event that loads a behavior from a file of this path and hash.
pub(crate) fn load_payload(loaded: &Loaded, path: &str, hash: &str) -> Map<String, Value> {
    let mut payload = Map::new();
    if let Some(effect) = loaded.behavior().asks() {
        payload.insert("asks".to_owned(), json!(effect));
    }
    payload.insert("name".to_owned(), json!(loaded.metadata().name));
    payload.insert("path".to_owned(), json!(path));
    payload.insert("hash".to_owned(), json!(hash));
    payload.insert("metadata".to_owned(), Value::Object(loaded.metadata().to_json()));
    payload
}

impl Subscription {
    /// The (type, property) pairs by which its patterns find elements.
    pub(crate) fn indexes(&self) -> Vec<(SmolStr, SmolStr)> {
        let mut pairs = Vec::new();
        let mut known = Vec::new();
        if let Some(Bindings { pattern, variables }) = &self.pattern {
            pairs.extend(pattern.indexes_for_delta());
            if self.metadata.guard {
                pairs.extend(pattern.indexes_for_matches(&["request"]));
            } else if self.metadata.trigger.on.is_some() {
                pairs.extend(pattern.indexes_for_matches(&[]));
            }
            known.extend(variables.iter().filter_map(|variable| variable.name.as_deref()));
        }
        for (_, read) in &self.reads {
            pairs.extend(read.pattern.indexes_for_matches(&known));
        }
        pairs
    }

    /// The file it came from, relative to the flock.
    pub(crate) fn path(&self) -> String {
        let path = self.loaded.payload().get("path").and_then(ValueRef::as_str);
        path.unwrap_or_default().to_owned()
    }
}

/// All loaded behaviors, found by name and by what can wake them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscriptions {
    by_name: BTreeMap<SmolStr, Arc<Subscription>>,
    /// The last load or removal of each name that ever was.
    pub(crate) loads: BTreeMap<SmolStr, EventId>,
    by_kind: BTreeMap<SmolStr, Vec<SmolStr>>,
    by_change: Watchers,
    /// Those that hear kinds by glob or expression, or whose pattern has a part of any type.
    always: BTreeSet<SmolStr>,
    /// Those that speak before a request leaves. They hear nothing else.
    guards: BTreeSet<SmolStr>,
}

impl Subscriptions {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Subscription>> {
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.by_name.values()
    }

    /// The guards, by name.
    pub(crate) fn guards(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.guards.iter().filter_map(|name| self.by_name.get(name))
    }

    pub(crate) fn insert(&mut self, subscription: Arc<Subscription>) {
        let name = subscription.name.clone();
        self.remove(&name);
        if subscription.metadata.guard {
            self.guards.insert(name.clone());
            self.by_name.insert(name, subscription);
            return;
        }
        let trigger = &subscription.metadata.trigger;
        match trigger.on.as_ref().map(|on| (on, on.exact())) {
            None => {}
            Some((_, Some(kind))) => {
                self.by_kind.entry(kind.into()).or_default().push(name.clone());
            }
            Some((_, None)) => {
                self.always.insert(name.clone());
            }
        }
        if let Some(pattern) = &subscription.pattern {
            for watch in pattern.pattern.interest() {
                if !self.by_change.insert(watch, &name) {
                    self.always.insert(name.clone());
                }
            }
        }
        self.by_name.insert(name, subscription);
    }

    pub(crate) fn remove(&mut self, name: &SmolStr) -> Option<Arc<Subscription>> {
        let old = self.by_name.remove(name)?;
        self.always.remove(name);
        self.guards.remove(name);
        self.by_kind.values_mut().for_each(|names| names.retain(|other| other != name));
        self.by_kind.retain(|_, names| !names.is_empty());
        self.by_change.remove(name);
        Some(old)
    }

    /// Those that an event could wake or withdraw, by name. Asking costs what the event changed,
    /// not the number of behaviors.
    pub(crate) fn concerned(&self, event: &Event, graph: &Graph, delta: &Delta) -> Vec<SmolStr> {
        let mut names: Vec<SmolStr> = self.always.iter().cloned().collect();
        names.extend(self.by_kind.get(event.kind()).into_iter().flatten().cloned());
        self.by_change.concerned(graph, delta, &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }
}
