//! The behaviors that are loaded, by name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use log::Hash;
use smol_str::{SmolStr, format_smolstr};

use crate::behavior::Behavior;
use crate::metadata::Metadata;

/// A behavior, and the source it was made of.
#[derive(Clone)]
pub struct Loaded {
    behavior: Arc<dyn Behavior>,
    hash: Hash,
    actor: SmolStr,
}

impl Loaded {
    /// A behavior made of this source text.
    #[must_use]
    pub fn new(behavior: Arc<dyn Behavior>, source: &str) -> Self {
        let hash = Hash::from_bytes(*blake3::hash(source.as_bytes()).as_bytes());
        let actor =
            format_smolstr!("behavior:{}@{}", behavior.metadata().name, &hash.hex().as_str()[..8]);
        Loaded { behavior, hash, actor }
    }

    /// The behavior.
    #[must_use]
    pub fn behavior(&self) -> &Arc<dyn Behavior> {
        &self.behavior
    }

    /// What it says about itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.behavior.metadata()
    }

    /// The BLAKE3 hash of its source.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Who its events are by: `behavior:NAME@` and the first 8 digits of the hash.
    #[must_use]
    pub fn actor(&self) -> &SmolStr {
        &self.actor
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.actor)
    }
}

/// The behaviors that are loaded, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    by_name: BTreeMap<String, Loaded>,
}

impl Registry {
    /// No behaviors.
    #[must_use]
    pub fn new() -> Self {
        Registry::default()
    }

    /// Puts a behavior in, in place of the one of its name, which is returned.
    pub fn insert(&mut self, loaded: Loaded) -> Option<Loaded> {
        match self.by_name.entry(loaded.metadata().name.clone()) {
            Entry::Occupied(mut old) => Some(old.insert(loaded)),
            Entry::Vacant(place) => {
                place.insert(loaded);
                None
            }
        }
    }

    /// Takes a behavior out.
    pub fn remove(&mut self, name: &str) -> Option<Loaded> {
        self.by_name.remove(name)
    }

    /// The behavior of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Loaded> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Loaded> {
        self.by_name.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl Extend<Loaded> for Registry {
    fn extend<T: IntoIterator<Item = Loaded>>(&mut self, loaded: T) {
        for one in loaded {
            self.insert(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::RustBehavior;

    fn loaded(name: &str, source: &str) -> Loaded {
        let metadata = json!({"name": name, "on": "k"});
        let behavior = RustBehavior::new(&metadata, |_, _| Ok(())).expect("metadata");
        Loaded::new(Arc::new(behavior), source)
    }

    #[test]
    fn behaviors_stand_by_name_and_the_last_of_a_name_counts() {
        let mut registry = Registry::new();
        registry.extend([loaded("b", "1"), loaded("a", "1")]);
        let old = registry.insert(loaded("b", "2")).expect("there was one");
        assert_eq!(old.actor(), loaded("b", "1").actor());
        let names = |registry: &Registry| -> Vec<String> {
            registry.iter().map(|one| one.metadata().name.clone()).collect()
        };
        assert_eq!(names(&registry), ["a", "b"]);
        assert!(registry.remove("a").is_some() && registry.remove("a").is_none());
        assert_eq!((registry.len(), registry.is_empty()), (1, false));
    }

    #[test]
    fn an_actor_is_the_name_and_the_hash_of_the_source() {
        let one = loaded("b", "source");
        let hash = blake3::hash(b"source").to_hex();
        assert_eq!(one.hash().to_string(), hash.as_str());
        assert_eq!(one.actor().as_str(), format!("behavior:b@{}", &hash[..8]));
    }
}
