//! Guards: behaviors that speak before a request leaves. Every guard that a request concerns must
//! have allowed exactly what leaves; silence, failure and a broken guard file deny.

use std::collections::BTreeSet;

use log::EventId;
use smol_str::{SmolStr, format_smolstr};

use super::action::Action;

/// How often arguments may be rewritten before the request is refused.
pub(crate) const REVISIONS_MAX: u32 = 8;

/// One question that a request puts to a guard: a guard with a pattern is asked once for each match
/// in which the request stands, any other once.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'g> {
    pub(crate) guard: &'g SmolStr,
    /// Its name with the hash of its source: an older version's word does not count.
    pub(crate) actor: &'g SmolStr,
    /// Under which name its word is kept.
    pub(crate) voice: SmolStr,
    /// Whether it has been asked, and its word is still to come.
    pub(crate) pending: bool,
}

/// What the loaded guards have to say about one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts<'g> {
    /// The names of those that are loaded.
    pub(crate) loaded: Vec<&'g SmolStr>,
    pub(crate) asked: Vec<Asked<'g>>,
    /// One whose pattern costs too much, so that nobody knows whether it is to be asked.
    pub(crate) costly: Option<&'g SmolStr>,
}

/// Why a request does not leave yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Missing<'g> {
    /// A guard that was asked has not spoken.
    Word,
    /// This guard has not been asked: its pattern matched only after the request was made.
    Question(&'g SmolStr),
}

/// The name under which a guard's word on one match is kept.
pub(crate) fn voice(guard: &str, question: Option<&str>) -> SmolStr {
    match question {
        None => guard.into(),
        Some(question) => format_smolstr!("{guard} on {question}"),
    }
}

impl<'g> Verdicts<'g> {
    /// What is missing until every guard has allowed this revision.
    pub(crate) fn missing(&self, action: &Action) -> Option<Missing<'g>> {
        let allowed = |one: &&Asked<'_>| action.facts.allowed.get(&one.voice) == Some(one.actor);
        let mut silent = self.asked.iter().filter(|one| !allowed(one)).peekable();
        silent.peek()?;
        let unasked = silent.find(|one| !one.pending);
        Some(unasked.map_or(Missing::Word, |one| Missing::Question(one.guard)))
    }

    /// Whether a guard of this name is loaded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.loaded.iter().any(|guard| *guard == name)
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
