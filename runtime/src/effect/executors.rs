//! Who does which effect: executors by the name that is requested.

use std::collections::BTreeMap;
use std::sync::Arc;

use effect::Executor;

/// Executors by the name of their effect: `tool:pay_flight`, `fs.read`.
#[derive(Clone, Debug, Default)]
pub struct Executors {
    by_name: BTreeMap<String, Arc<dyn Executor>>,
}

impl Executors {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Executors::default()
    }

    /// Puts one in, in place of the one of its name.
    pub fn insert(&mut self, name: impl Into<String>, executor: Arc<dyn Executor>) {
        self.by_name.insert(name.into(), executor);
    }

    /// The one of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Executor>> {
        self.by_name.get(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

impl Extend<(String, Arc<dyn Executor>)> for Executors {
    fn extend<T: IntoIterator<Item = (String, Arc<dyn Executor>)>>(&mut self, all: T) {
        self.by_name.extend(all);
    }
}
