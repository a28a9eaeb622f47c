//! Who failed while an engine was open: told to whoever runs it, and no part of the log, which has
//! every failure as an event.

use std::collections::BTreeMap;

use log::{Offset, ValueRef};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::Engine;
use super::fire::Staged;

/// How often each behavior failed, and what its last failure said.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(BTreeMap<SmolStr, Failed>);

/// A behavior that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The behavior.
    pub behavior: SmolStr,
    /// How often.
    pub times: u64,
    /// Where the last failure stands in the log.
    pub last: Offset,
    /// What it says.
    pub error: String,
}

impl Failed {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "behavior": self.behavior.as_str(), "times": self.times, "last": self.last.get(),
            "error": self.error,
        })
    }
}

impl Engine {
    /// Who failed since the engine was opened, by name.
    #[must_use]
    pub fn failures(&self) -> Vec<Failed> {
        self.failures.0.values().cloned().collect()
    }
}

impl Failures {
    /// Looks at what a firing is about to land: one that fails lands nothing but its failure.
    pub(super) fn look(&mut self, staged: &[Staged]) {
        let [Staged { event, .. }] = staged else { return };
        let Some(behavior) = event.author().filter(|_| event.kind() == "behavior.failed") else {
            return;
        };
        let error = event.payload().get("error").and_then(ValueRef::as_str).unwrap_or_default();
        let (behavior, last) = (SmolStr::from(behavior), event.offset());
        let times = self.0.get(&behavior).map_or(0, |failed| failed.times) + 1;
        let error = error.to_owned();
        self.0.insert(behavior.clone(), Failed { behavior, times, last, error });
    }
}
