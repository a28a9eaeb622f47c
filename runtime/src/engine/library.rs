//! The code of behaviors, found by name and by the hash of its source: old versions stay at hand,
//! so that an old firing can be run again with the code that made it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use behaviors::Loaded;
use smol_str::{SmolStr, ToSmolStr};

use super::EngineError;
use super::subscription::Subscription;

/// Finds code that is not at hand, by name, hash and path.
pub(crate) type Fetch = Arc<dyn Fn(&SmolStr, &SmolStr, &str) -> Option<Loaded> + Send + Sync>;

/// The code of behaviors, by name and hash.
#[derive(Clone, Default)]
pub struct Library {
    code: BTreeMap<(SmolStr, SmolStr), Loaded>,
    fetch: Option<Fetch>,
    /// Whether any of it reacts elsewhere.
    remote: bool,
}

impl Library {
    /// No code.
    #[must_use]
    pub fn new() -> Self {
        Library::default()
    }

    /// No code yet; what is missing is fetched when it is needed.
    #[must_use]
    pub(crate) fn fetching(fetch: Fetch) -> Self {
        Library { fetch: Some(fetch), ..Library::default() }
    }

    /// Adds a behavior; another version of the same name stays.
    pub fn insert(&mut self, loaded: Loaded) {
        let name = loaded.metadata().name.as_str().into();
        self.remote |= loaded.behavior().is_remote();
        self.code.insert((name, loaded.hash().to_smolstr()), loaded);
    }

    /// The behavior of this name made of the source with this hash, if it is at hand.
    #[must_use]
    pub fn get(&self, name: &SmolStr, hash: &SmolStr) -> Option<&Loaded> {
        self.code.get(&(name.clone(), hash.clone()))
    }

    /// Whether any behavior reacts elsewhere.
    pub(super) fn any_remote(&self) -> bool {
        self.remote
    }

    /// Makes sure that the code of a loaded behavior is at hand.
    pub(super) fn require(&mut self, subscription: &Subscription) -> Result<(), EngineError> {
        let Subscription { name, hash, .. } = subscription;
        if self.get(name, hash).is_some() {
            return Ok(());
        }
        let fetched = self.fetch.as_ref().and_then(|fetch| fetch(name, hash, &subscription.path()));
        let (missing, hash) = (name.to_string(), hash.to_string());
        let missing = EngineError::NoCode { name: missing, hash };
        let fetched = fetched.ok_or(missing)?;
        self.insert(fetched);
        Ok(())
    }
}

impl Extend<Loaded> for Library {
    fn extend<T: IntoIterator<Item = Loaded>>(&mut self, code: T) {
        code.into_iter().for_each(|loaded| self.insert(loaded));
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.code.values()).finish()
    }
}
