//! Grants: what may be asked of the world. They come from the flock's policy and from people, and
//! only shrink down the chain of causes.
//!
//! An effect is granted if the policy grants it and every narrower grant on its chain does. A
//! narrower grant is a list of its own: what holds below it is what all lists have in common, so no
//! list can bring back what one above it left out.

use std::collections::BTreeMap;

use behaviors::KindPattern;
use log::EventId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::{Account, Ceiling};

/// What a firing left to all that follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Narrowed {
    /// The effects that stay granted; all, if it says nothing about them.
    pub(crate) effects: Option<Vec<String>>,
    pub(crate) ceiling: Ceiling,
    pub(crate) account: Account,
}

/// What people granted and took back while the branch ran, and what firings narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted {
    pub(crate) given: Vec<String>,
    pub(crate) revoked: Vec<String>,
    pub(crate) narrowed: BTreeMap<EventId, Narrowed>,
}

/// Why an effect is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ungranted {
    /// Neither the flock nor a person grants it.
    Nobody,
    /// A cause of it gave less.
    Narrowed(EventId),
}

/// Whether one of the patterns fits.
pub(crate) fn fits(patterns: &[String], effect: &str) -> bool {
    let fits = |text: &String| KindPattern::parse(text).is_ok_and(|pattern| pattern.fits(effect));
    patterns.iter().any(fits)
}

impl Granted {
    /// Reads what a firing gives to what follows from it.
    pub(crate) fn narrow(&mut self, id: EventId, payload: &Value) {
        let effects = payload.get("effects").and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let effects = effects.map(|all| all.iter().filter_map(text).collect());
        let ceiling = Ceiling::of_json(payload.get("budget"));
        self.narrowed.insert(id, Narrowed { effects, ceiling, account: Account::default() });
    }

    /// A person grants a pattern, or takes one back.
    pub(crate) fn give(&mut self, pattern: &str) {
        self.revoked.retain(|other| other != pattern);
        self.given.push(pattern.to_owned());
    }

    /// A person takes a grant back: from now on what the pattern fits is not granted.
    pub(crate) fn revoke(&mut self, pattern: &str) {
        self.given.retain(|other| other != pattern);
        self.revoked.push(pattern.to_owned());
    }

    /// Whether an effect may be asked for under these narrower grants.
    pub(crate) fn check(
        &self,
        policy: &[String],
        scopes: &[EventId],
        effect: &str,
    ) -> Result<(), Ungranted> {
        let granted =
            fits(&self.given, effect) || (fits(policy, effect) && !fits(&self.revoked, effect));
        if !granted {
            return Err(Ungranted::Nobody);
        }
        for scope in scopes {
            let narrowed = self.narrowed.get(scope).ok_or(Ungranted::Narrowed(*scope))?;
            if narrowed.effects.as_ref().is_some_and(|effects| !fits(effects, effect)) {
                return Err(Ungranted::Narrowed(*scope));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use behaviors::Stream;
    use serde_json::json;

    use super::*;

    const EFFECTS: [&str; 6] =
        ["tool:pay", "tool:mail", "fs.read", "fs.write", "http.fetch", "model:planner"];
    const PATTERNS: [&str; 9] =
        ["tool:*", "tool:pay", "tool:mail", "fs.*", "fs.read", "*", "http.fetch", "model:*", "x"];

    fn some(chance: &Stream<'_>) -> Vec<String> {
        let count = chance.below(4);
        let one = |_| PATTERNS[chance.below(PATTERNS.len() as u64) as usize].to_owned();
        (0..count).map(one).collect()
    }

    fn allowed(granted: &Granted, policy: &[String], scopes: &[EventId]) -> Vec<&'static str> {
        let is = |effect: &&&str| granted.check(policy, scopes, effect).is_ok();
        EFFECTS.iter().filter(is).copied().collect()
    }

    /// effective(child) is a subset of effective(parent) and of what it was given, in 100,000
    /// delegations by chains that try to give themselves more.
    #[test]
    fn a_hundred_thousand_delegations_never_gain() {
        let chance = Stream::of_firing(7, EventId::ZERO, "delegate", Vec::new());
        let mut delegations = 0u64;
        while delegations < 100_000 {
            let policy = some(&chance);
            let mut granted = Granted::default();
            let (mut scopes, mut before) = (Vec::new(), allowed(&granted, &policy, &[]));
            for _ in 0..=chance.below(6) {
                delegations += 1;
                let id = EventId::from_bytes(u128::from(delegations).to_le_bytes());
                let given = some(&chance);
                granted.narrow(id, &json!({"effects": given}));
                scopes.push(id);
                let now = allowed(&granted, &policy, &scopes);
                assert!(now.iter().all(|effect| before.contains(effect)), "{now:?} of {before:?}");
                assert!(now.iter().all(|effect| fits(&given, effect)), "{now:?} of {given:?}");
                before = now;
            }
        }
    }

    #[test]
    fn only_policy_and_people_give_and_what_is_taken_back_is_gone() {
        let policy = ["tool:*".to_owned()];
        let mut granted = Granted::default();
        let check = |granted: &Granted, effect| granted.check(&policy, &[], effect).is_ok();
        assert!(check(&granted, "tool:pay") && !check(&granted, "fs.read"));
        granted.give("fs.read");
        assert!(check(&granted, "fs.read"));
        granted.revoke("tool:pay");
        assert!(!check(&granted, "tool:pay") && check(&granted, "tool:mail"));
        granted.revoke("fs.read");
        assert!(!check(&granted, "fs.read"));
        granted.give("tool:pay");
        assert!(check(&granted, "tool:pay"));
    }

    #[test]
    fn a_grant_whose_narrowing_is_not_known_grants_nothing() {
        let policy = ["*".to_owned()];
        let scope = EventId::from_bytes([3; 16]);
        let found = Granted::default().check(&policy, &[scope], "tool:pay");
        assert_eq!(found, Err(Ungranted::Narrowed(scope)));
    }
}
