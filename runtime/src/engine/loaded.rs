//! The loaded behaviors as the rest of the runtime sees them: in place, switched off and broken.

use std::sync::Arc;

use behaviors::did_you_mean;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::Engine;
use super::state::Rejection;
use super::subscription::Subscription;

/// The kinds of event after which a behavior is there that was not, or another version of it.
pub(super) const LOADS: [&str; 2] = ["behavior.loaded", "behavior.enabled"];

impl Engine {
    /// The behaviors of the branch, by name, each with its path; those that are switched off too.
    #[must_use]
    pub fn loaded_behaviors(&self) -> Vec<(SmolStr, String)> {
        let off = self.state.disabled.values().flatten();
        let all = self.state.subscriptions.iter().chain(off);
        let mut all: Vec<_> = all.map(|known| (known.name.clone(), known.path())).collect();
        all.sort();
        all
    }

    /// The payload of the event that loaded a behavior.
    #[must_use]
    pub fn loaded_payload(&self, name: &str) -> Option<Map<String, Value>> {
        Some(self.known(name)?.loaded.payload().to_json())
    }

    /// How many activations of a behavior wait.
    pub(crate) fn waiting_of(&self, name: &str) -> usize {
        let round = self.state.round.left.iter().chain(&self.state.round.refused);
        let round = round.filter(|waiting| waiting.behavior == name).count();
        self.state.agenda.of(name).count() + round
    }

    /// A behavior, be it in place or switched off.
    pub(crate) fn known(&self, name: &str) -> Option<&Arc<Subscription>> {
        let off = || self.state.disabled.get(name)?.as_ref();
        self.state.subscriptions.get(name).or_else(off)
    }

    /// Whether a person switched a behavior off.
    #[must_use]
    pub fn is_disabled(&self, name: &str) -> bool {
        self.state.disabled.contains_key(name)
    }

    /// What the log says about a broken file.
    pub(crate) fn rejection(&self, path: &str) -> Option<&Rejection> {
        self.state.rejected.get(path)
    }

    /// The files that the log says are broken, each with what is wrong with it.
    #[must_use]
    pub fn rejected_files(&self) -> Vec<(SmolStr, String)> {
        let all = self.state.rejected.iter();
        all.map(|(path, rejection)| (path.clone(), rejection.error.clone())).collect()
    }

    /// The behaviors whose pattern cost too much: name, offset at which it did, and the pattern.
    #[must_use]
    pub fn suspended(&self) -> Vec<(SmolStr, u64, String)> {
        let told = |(name, suspension): (&SmolStr, &super::state::Suspension)| {
            let pattern = self.state.subscriptions.get(name).and_then(|s| s.pattern.as_ref());
            let pattern = pattern.map(|bindings| bindings.pattern.canonical().to_owned());
            (name.clone(), suspension.at.offset().get(), pattern.unwrap_or_default())
        };
        self.state.suspended.iter().map(told).collect()
    }

    /// The bounds that were reached and still hold: their names, and how much they allow.
    #[must_use]
    pub fn standing_bounds(&self) -> Vec<(SmolStr, u64)> {
        let standing = |(budget, limit): &&(SmolStr, u64)| match budget.rsplit_once('.') {
            Some((name, what)) => self.known(name).is_some_and(|known| {
                let own = known.metadata.budget;
                let own = match what {
                    "events" => own.events,
                    "firings" => own.firings,
                    "depth" => own.depth,
                    _ => own.effects,
                };
                own == Some(*limit)
            }),
            None if budget == "depth" => self.state.settings.bounds.depth == *limit,
            None => {
                let said = self.started().get("budget").and_then(|all| all.get(budget.as_str()));
                said.and_then(Value::as_f64).is_some_and(|said| said as u64 == *limit)
            }
        };
        self.state.exhausted.iter().filter(standing).cloned().collect()
    }

    /// Who still hears events from before it was loaded: name, the next offset, and the last one.
    #[must_use]
    pub fn catching_up(&self) -> Vec<(SmolStr, u64, u64)> {
        let all = self.state.catching.iter();
        all.map(|(name, c)| (name.clone(), c.next.get(), c.cause.offset().get())).collect()
    }

    /// Whether a behavior can be switched on; its code is at hand then.
    pub(super) fn check_enable(&mut self, name: &str) -> Result<(), String> {
        let known = self.state.disabled.get(name);
        let known = known.ok_or_else(|| match self.state.subscriptions.get(name) {
            Some(_) => format!("`{name}` is not disabled"),
            None => self.no_behavior(name),
        })?;
        match known.clone() {
            Some(loaded) => self.library.require(&loaded).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Whether a behavior can be switched off.
    pub(super) fn check_disable(&self, name: &str) -> Result<(), String> {
        if self.state.disabled.contains_key(name) {
            return Err(format!("`{name}` is disabled already; starling enable {name} undoes it"));
        }
        match self.state.subscriptions.get(name) {
            Some(_) => Ok(()),
            None => Err(self.no_behavior(name)),
        }
    }

    fn no_behavior(&self, name: &str) -> String {
        let all = self.loaded_behaviors();
        let hint = did_you_mean(name, all.iter().map(|(name, _)| name.as_str()));
        format!("no behavior is called `{name}`{hint}")
    }
}
