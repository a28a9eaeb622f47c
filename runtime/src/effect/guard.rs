//! Guards: behaviors that speak before a request leaves. Every guard that a request concerns must
//! have allowed exactly what leaves; silence, failure and a broken guard file deny.

use std::collections::BTreeSet;

use behaviors::Trigger;
use log::EventId;
use smol_str::SmolStr;

use super::action::Action;

/// How often arguments may be rewritten before the request is refused.
pub(crate) const REVISIONS_MAX: u32 = 8;

/// A loaded guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'g> {
    pub(crate) name: &'g SmolStr,
    /// Its name with the hash of its source: an older version's word does not count.
    pub(crate) actor: &'g SmolStr,
    pub(crate) trigger: &'g Trigger,
}

/// The loaded guards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts<'g> {
    pub(crate) guards: Vec<Guard<'g>>,
}

impl Verdicts<'_> {
    /// The first guard that has not allowed this revision.
    pub(crate) fn missing(&self, action: &Action) -> Option<&SmolStr> {
        let mut asked = self.guards.iter().filter(|guard| guard.concerns(action));
        let missing = asked.find(|guard| !guard.has_allowed(action));
        missing.map(|guard| guard.name)
    }

    /// Whether a guard of this name is loaded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.guards.iter().any(|guard| guard.name == name)
    }
}

impl Guard<'_> {
    pub(crate) fn concerns(&self, action: &Action) -> bool {
        action.facts.judges.is_none() && self.trigger.guards(action.asked.payload())
    }

    pub(crate) fn has_allowed(&self, action: &Action) -> bool {
        action.facts.allowed.get(self.name) == Some(self.actor)
    }
}

/// The guards named by the flock that are not loaded.
pub(crate) fn absent(named: &[String], verdicts: &Verdicts<'_>) -> Option<String> {
    named.iter().find(|name| !verdicts.has(name)).cloned()
}

/// The actions whose arguments an executor has checked, at which revision: a check is pure, so it
/// is made once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked(BTreeSet<(EventId, u32)>);

impl Checked {
    pub(crate) fn has(&self, action: &Action) -> bool {
        self.0.contains(&(action.facts.id, action.facts.revision))
    }

    pub(crate) fn note(&mut self, action: &Action) {
        self.0.insert((action.facts.id, action.facts.revision));
    }

    /// It has left or ended: its checks are not asked for again.
    pub(crate) fn forget(&mut self, action: &EventId) {
        let all: Vec<_> = self.0.range((*action, 0)..=(*action, u32::MAX)).copied().collect();
        all.iter().for_each(|one| {
            self.0.remove(one);
        });
    }
}
